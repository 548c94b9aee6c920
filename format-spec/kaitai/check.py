"""check.py FOLDER: every sound vector in FOLDER, read by way of kmt.ksy, tells what its JSON says; REFUSED are refused.

The compiled kmt.py and kmt_body.py must be on the path. What is done here and not in the description: checksums, looking
fields up by their slots, the walk over sub-buffers, and the order of the merge.
"""

import json
import pathlib
import sys
import zlib

from kmt import Kmt

MASK = (1 << 64) - 1
EVENT_LEN_MAX = 65_536
# Defects of files that are sound but for a rule that is checked here.
REFUSED = {
    "invalid-schema-field-end-*.kmt": "a field is beyond the end of any event",
    "invalid-schema-common-array-*.kmt": "a common field is an array",
    "invalid-schema-common-data-loc-*.kmt": "a common field is an array",
}


def number_of(value):
    """A number that the description names, or one that it does not know."""
    return getattr(value, "value", value)


def hexed(data):
    return "hex:" + bytes(data).hex()


def leb128(heap, at):
    number = shift = 0
    while True:
        byte, at = heap[at], at + 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7


def symbols(block, heap, owners):
    """The symbols of a block of KSYM, each by its difference from the one before."""
    at, address, owner, name = block.offset, block.address, 0, b""
    for _ in range(block.symbol_count):
        kind, at = heap[at], at + 1
        if kind & 0x80:
            owner, at = leb128(heap, at)
        step, at = leb128(heap, at)
        size, at = leb128(heap, at)
        shared, at = heap[at], at + 1
        length, at = leb128(heap, at)
        address, name, at = address + step, name[:shared] + heap[at : at + length], at + length
        yield [address, size, chr(kind & 0x7F), owners[owner], name.decode()]


class Reader:
    def __init__(self, path):
        self.data = path.read_bytes()
        self.kmt = Kmt.from_bytes(self.data)
        self.file = self.kmt.file
        self.order = "big" if self.kmt.bom[0] == 1 else "little"
        self.long = self.file.size_long
        self.classes, self.shapes = {}, {}
        self.events, self.losses = {}, []
        self.out = {}
        self.check_sums()
        for chunk in self.file.chunks:
            self.chunk(chunk)

    def check_sums(self):
        header_len = self.file.header_len
        assert self.file.header_crc == zlib.crc32(self.data[: header_len - 4])
        at = header_len
        for chunk in self.file.chunks:
            assert chunk.salt == self.file.trace_uuid[:4]
            assert chunk.header_crc == zlib.crc32(self.data[at : at + 60])
            assert chunk.body_crc == zlib.crc32(self.data[at + 64 : at + chunk.total_len])
            assert chunk.prefix_crc == zlib.crc32(self.data[at + 64 : at + 64 + chunk.prefix_len])
            at += chunk.total_len
        assert at == len(self.data)

    def number(self, data, at, size):
        assert at + size <= len(data)
        return int.from_bytes(data[at : at + size], self.order)

    def chunk(self, chunk):
        name = "on_" + chunk.kind.lower()
        if hasattr(self, name):
            getattr(self, name)(chunk.body, chunk)
        elif chunk.kind not in ("HDRC",):
            self.out.setdefault("unknown", []).append(chunk.kind)

    def on_schm(self, body, _):
        text = lambda ref: body.heap[ref.offset : ref.offset + ref.len].decode()
        for i, row in enumerate(body.classes):
            fields = []
            for f in body.fields[row.first_field : row.first_field + row.field_count]:
                assert f.offset + f.size <= EVENT_LEN_MAX, "a field is beyond the end of any event"
                fields.append([text(f.name), text(f.type_text), f.offset, f.size, number_of(f.kind), f.signed != 0, f.element_size, f.role])
            common = (number_of(f.kind) for f in body.fields[row.first_field : row.first_field + row.common_count])
            assert all(kind == 0 or kind > 4 for kind in common), "a common field is an array"
            name = f"{text(row.system)}:{text(row.name)}"
            told = {"number": body.first_class + i, "id": row.id, "name": name, "meaning": row.meaning,
                    "print": text(row.print_fmt), "fields": fields}
            assert self.classes.setdefault(body.first_class + i, told) == told
        for i, row in enumerate(body.shapes):
            count = len(self.classes[row.class_number]["fields"])
            slots = body.slots[row.first_slot : row.first_slot + count]
            self.shapes.setdefault(body.first_shape + i, (row.class_number, slots, row.payload_len))

    def loss(self, body, cpu):
        # Bit 0: counted, also where the count is 0.
        if body.loss_flags & ~1 or body.loss_flags & 1 and body.lost_events:
            self.losses.append({"cpu": cpu, "before": body.first_event,
                                "counted": body.lost_events if body.loss_flags & 1 else 0,
                                "uncounted": body.loss_flags & ~13 != 0, "damaged": body.loss_flags & 4 == 4,
                                "overwritten": body.loss_flags & 8 == 8})

    def on_evnt(self, body, chunk):
        self.loss(body, chunk.stream)
        events = self.events_of(body, chunk.stream)
        self.events.setdefault(chunk.stream, []).extend(events)

    def events_of(self, body, cpu):
        events = []
        for i, record in enumerate(body.records):
            upper = [e.upper for e in body.epochs if e.first_record <= i]
            time = (body.t_base + ((upper[-1] if upper else 0) << 32) + record.time_offset) & MASK
            descriptor = body.descriptors[record.descriptor].target
            number, slots, _ = self.shapes[descriptor.shape]
            context = body.contexts[record.context]
            stored = [self.stored(s, descriptor.data, context, record.value, body.heap, number) for s in slots]
            events.append(self.event(cpu, time, number, slots, stored, body.heap))
        if body.record_count:
            assert events[-1]["time"] == body.t_last
        return events

    def on_fold(self, body, chunk):
        assert self.file.incompatible & 1 and chunk.prefix_len >= 88 and body.t_begin <= body.t_end
        samples = [{key: e[key] for key in ("class", "fields")} for e in self.events_of(body.events, 0)]
        rows, last_end = [], 0
        for row in body.rows:
            assert last_end <= row.first_bin <= row.first_bin + row.bin_count <= body.bin_count
            last_end = row.first_bin + row.bin_count
            bins = [[b.bin, b.count] for b in body.bins[row.first_bin : last_end]]
            count, cross_cpu, elsewhere, _, _, over_ms, over_s = row.sums
            if is_null := row.alloc == 0xFFFFFFFF:
                assert not any(row.sums[1:]) and not bins
            else:
                assert sum(count for _, count in bins) == count and all(bin < 1920 for bin, _ in bins)
                assert cross_cpu <= elsewhere <= count and over_s <= over_ms <= count
            rows.append({"alloc": None if is_null else samples[row.alloc], "free": samples[row.free], "sums": row.sums, "bins": bins})
        assert body.event_count == min(sum(c.events for c in body.cpus), 2**64 - 1)
        folds = self.out.setdefault("folds", [])
        next = folds[-1]["number"] + 1 if folds else 0
        assert body.number >= next
        self.out["folds_missing"] = self.out.get("folds_missing", 0) + body.number - next
        folds.append({"number": body.number, "begin": body.t_begin, "end": body.t_end,
                      "threshold": body.threshold, "written_through": body.flags & 1 == 1, "events": body.event_count,
                      "cpus": [[c.cpu, c.events] for c in body.cpus], "rows": rows})

    def stored(self, slot, descriptor, context, value, heap, number):
        place = number_of(slot.place)
        if place > 4 or number_of(slot.transform) > 2:
            return None
        if place == 0:
            return self.classes[number]["id"]
        if place == 3:
            return value >> (8 * slot.offset) & ((1 << (8 * slot.stored)) - 1)
        data, start = {1: (context, 0), 2: (descriptor, 0), 4: (heap, value)}[place]
        return self.number(data, start + slot.offset, slot.stored)

    def event(self, cpu, time, number, slots, stored, heap):
        told = self.classes[number]
        def value(i):
            (_, _, _, size, kind, signed, _, _), slot = told["fields"][i], slots[i]
            transform = number_of(slot.transform)
            if kind > 4 or transform > 2 or stored[i] is None:
                return None
            if kind != 0:
                length = self.number(heap, stored[i], 4)
                return hexed(heap[stored[i] + 4 : stored[i] + 4 + length])
            if transform == 0:
                return self.extend(stored[i], 2 if number_of(slot.place) == 0 else slot.stored, signed)
            start = time
            if transform == 2:
                is_number = told["fields"][slot.base][4] == 0 and number_of(slots[slot.base].transform) != 2
                start = value(slot.base) if is_number else None
            return None if start is None else self.extend(start - stored[i] & (1 << 8 * size) - 1, size, signed)

        fields = {field[0]: value(i) for i, field in enumerate(told["fields"])}
        return {"cpu": cpu, "time": time, "class": told["name"], "fields": fields}

    @staticmethod
    def extend(value, size, signed):
        return value - (1 << 8 * size) if signed and value >> (8 * size - 1) else value

    def on_rawp(self, body, chunk):
        cpu = chunk.stream
        self.loss(body, cpu)
        events = self.events.setdefault(cpu, [])
        before = len(events)
        for data in body.sub_buffers:
            time = self.number(data, body.timestamp_offset, 8)
            committed = self.number(data, body.commit_offset, body.commit_size) & 0x7FFFFFF
            at, end = body.data_offset, body.data_offset + committed
            while at + 4 <= end:
                word = self.number(data, at, 4)
                kind, delta = (word >> 27, word & 0x7FFFFFF) if self.order == "big" else (word & 31, word >> 5)
                second = self.number(data, at + 4, 4) if kind in (0, 30, 31) or kind == 29 and delta else 0
                if kind == 29:
                    if delta == 0:
                        break
                    time = (time + (0 if delta == 1 else delta)) & MASK
                    at += (4 + second + 3) // 4 * 4
                elif kind == 30:
                    time = (time + (second << 27) + delta) & MASK
                    at += 8
                elif kind == 31:
                    upper = time >> 59 << 59
                    stamp = (second << 27) + delta | upper
                    wrapped = time > stamp + (1 << 58) if upper == 0 else time > stamp
                    time = (stamp + (1 << 59) if wrapped else stamp) & MASK
                    at += 8
                else:
                    start = at + (8 if kind == 0 else 4)
                    size = second - 4 if kind == 0 else 4 * kind
                    time = (time + delta) & MASK
                    events.append(self.record(cpu, time, data[start : start + size], body.class_limit))
                    at = start + (size + 3) // 4 * 4
        assert len(events) == before + body.record_count

    def record(self, cpu, time, data, class_limit):
        id = self.number(data, 0, 2)
        told = self.classes[max(n for n, c in self.classes.items() if n < class_limit and c["id"] == id)]
        fields = {}
        # Of several fields with one role the first one counts; if it is an array, there is no depth.
        depth = next((f for f in told["fields"] if f[7] == 18), None)
        depth_at = (depth[2], depth[3]) if depth and depth[4] == 0 else None
        for name, ctype, offset, size, kind, signed, element, role in told["fields"]:
            if kind == 0:
                fields[name] = self.extend(self.number(data, offset, size), size, signed)
                continue
            if kind > 4:
                fields[name] = None
                continue
            if kind in (2, 3):
                locator = self.number(data, offset, 4)
                start = (locator & 0xFFFF) + (offset + 4 if kind == 3 else 0)
                found = data[start : start + (locator >> 16)]
            elif role == 17 and depth_at:
                count = min(self.number(data, *depth_at), max(len(data) - offset, 0) // self.long)
                found = data[offset : offset + count * self.long]
            else:
                found = data[offset:] if kind == 4 else data[offset : offset + size]
                if kind == 1 and element == 1 and ctype in ("char", "const char"):
                    found = found.split(b"\0")[0]
            fields[name] = hexed(found)
        return {"cpu": cpu, "time": time, "class": told["name"], "fields": fields}

    def on_clok(self, body, _):
        self.out["clock"] = {"name": body.name, "ticks": body.unit != 0, "comparable": body.comparable == 1}

    def on_meta(self, body, _):
        self.out.setdefault("meta", []).extend([p.key, hexed(p.value)] for p in body.pairs)

    def on_file(self, body, _):
        self.out.setdefault("files", []).append(
            [body.name, hexed(body.contents), [body.time_first, body.time_last] if body.flags & 1 else None])

    def table(self, name, body, row):
        text = lambda ref: body.heap[ref.offset : ref.offset + ref.len].decode()
        self.out.setdefault(name, []).extend(row(r, text) for r in body.rows)

    def on_line(self, body, _):
        self.table("lines", body, lambda r, text: [r.address, text(r.function), text(r.file), r.line, r.depth])

    def on_cgrp(self, body, _):
        self.table("cgroups", body, lambda r, text: [r.time, r.id, r.pid, r.hierarchy, text(r.path)])

    def on_sums(self, body, _):
        def row(r, text):
            numbers = [n if r.present >> i & 1 else None for i, n in enumerate(r.numbers)]
            return [[r.time_first, r.time_last], r.call_site, text(r.function), r.meaning, numbers]

        self.table("sums", body, row)

    def on_task(self, body, _):
        rows = ([r.time, r.pid, r.tgid, hexed(r.comm.split(b"\0")[0])] for r in body.rows)
        self.out.setdefault("tasks", []).extend(rows)

    def on_stat(self, body, _):
        # A row with another `taken` is of a later version.
        for r in (r for r in body.rows if r.taken <= 2):
            numbers = [n if r.present >> i & 1 else None for i, n in enumerate(r.numbers)]
            # Of rows of one CPU and `taken` the last one holds.
            rows = [row for row in self.out.get("stats", []) if row[:2] != [r.cpu, r.taken]]
            self.out["stats"] = rows + [[r.cpu, r.taken, numbers]]

    def on_ksym(self, body, _):
        name = lambda offset, length: body.heap[offset : offset + length].decode()
        owners = [None] + [name(o.name_offset, o.name_len) for o in body.owners]
        rows = [row for block in body.blocks for row in symbols(block, body.heap, owners)]
        # All chunks together; a bound that is 0 is not known.
        all = self.out.setdefault("symbols", {"start": 0, "end": 0, "symbols": []})
        all["start"] = body.core_start or all["start"]
        all["end"] = body.core_end or all["end"]
        all["symbols"] += rows

    def on_indx(self, body, _):
        for row, chunk in zip(body.rows, self.file.chunks):
            assert row.header == self.data[row.offset : row.offset + 64]
            if chunk.kind in ("EVNT", "RAWP"):
                head = chunk.body
                told = (head.t_base, head.t_last, head.first_event, head.lost_events, head.record_count, head.loss_flags, head.classes)
                assert told == (row.t_base, row.t_last, row.first_event, row.lost_events, row.record_count, row.loss_flags, row.classes)

    def on_trlr(self, body, _):
        events = [c.body for c in self.file.chunks if c.kind in ("EVNT", "RAWP")]
        if self.file.chunks[-1].body is body:
            assert body.chunk_count == len(self.file.chunks) and body.file_len == len(self.data)
            assert body.event_count == sum(e.record_count for e in events)

    def told(self):
        queues = {cpu: [e["time"] for e in events] for cpu, events in self.events.items()}
        merged = []
        while any(queues.values()):
            cpu = min((times[0], cpu) for cpu, times in queues.items() if times)[1]
            queues[cpu].pop(0)
            merged.append(cpu)
        file = self.file
        return self.out | {
            "format": {"major": file.version_major, "minor": file.version_minor, "order": self.order,
                       "long": self.long, "uuid": hexed(file.trace_uuid)},
            "finished": bool(file.chunks) and file.chunks[-1].kind == "TRLR",
            "chunks": [c.kind for c in file.chunks],
            "classes": [self.classes[n] for n in sorted(self.classes)],
            "losses": sorted(self.losses, key=lambda l: (l["cpu"], l["before"])),
            "merged": merged,
            "events": [e for cpu in sorted(self.events) for e in self.events[cpu]],
        }


def not_refused(folder):
    """Vectors of REFUSED that are not refused for their defect, and rules without a vector."""
    for pattern, what in REFUSED.items():
        paths = sorted(folder.glob(pattern))
        if not paths:
            yield pattern
        for path in paths:
            try:
                Reader(path)
                yield path.name
            except AssertionError as error:
                if str(error) != what:
                    yield f"{path.name}: {error}"


def main():
    paths = sorted(p for p in pathlib.Path(sys.argv[1]).glob("*.kmt") if not p.name.startswith("invalid-"))
    failed = 0
    for path in paths:
        expected = json.loads(path.with_suffix(".json").read_text())
        try:
            told = Reader(path).told()
            # The answers to questions are left to readers.
            keys = (expected.keys() | told.keys()) - {"lookups"}
            differs = [key for key in keys if told.get(key) != expected.get(key)]
        except (AssertionError, KeyError, IndexError, EOFError, ValueError) as error:
            differs = [f"{type(error).__name__}: {error}"]
        if differs:
            failed += 1
            print(f"{path.name}: {', '.join(differs)}")
    for problem in not_refused(pathlib.Path(sys.argv[1])):
        failed += 1
        print(f"not refused: {problem}")
    print(f"{len(paths) - failed} passed, {failed} failed")
    sys.exit(failed > 0 or len(paths) < 150)


if __name__ == "__main__":
    main()
