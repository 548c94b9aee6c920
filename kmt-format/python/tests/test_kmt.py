"""The package against kmt-analyze and itself: test_kmt.py KMT_ANALYZE TRACE... (run by .ci/python)."""

import gc
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import threading

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute

import kmt

ALLOCATIONS = ["kmem:kmalloc", "kmem:kmem_cache_alloc"]
FOLDER = pathlib.Path(__file__).parent


def analyze(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def recipe_of_waste():
    """The block of docs/python.md that computes waste by call site of columns."""
    text = (FOLDER / "../../../docs/python.md").read_text()
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", text, re.MULTILINE)
    (recipe,) = [block for block in blocks if "UNION ALL" in block]
    return textwrap.dedent(recipe)


def waste_is_that_of_callers(program, path):
    rows = json.loads(analyze(program, "callers", "-l", "1000000", "--json", path))["callers"]
    expected = sorted((r["bytes_wasted"], r["api"], r["call_site"], r["symbol"]) for r in rows)
    assert len(expected) > 10, path
    printed = analyze(sys.executable, FOLDER / "../examples/waste.py", path)
    lines = (line.split("\t") for line in printed.splitlines())
    assert sorted((int(waste), *rest) for waste, *rest in lines) == expected, path

    # The same of columns, by the recipe of docs/python.md.
    names = {"trace": kmt.open(path), "duckdb": duckdb, "print": lambda *_: None}
    exec(recipe_of_waste(), names)
    found = sorted((waste, hex(address), names["trace"].symbol(address)) for address, waste in names["waste"])
    by_site = {}
    for waste, _, address, symbol in expected:
        by_site[address, symbol] = by_site.get((address, symbol), 0) + waste
    assert found == sorted((waste, *site) for site, waste in by_site.items()), path


def duplicates_are_those_of_summary(program, path):
    slab = json.loads(analyze(program, "summary", "--json", path))["slab"]
    events = list(kmt.open(path))
    seconds = [event for event in events if event.duplicate_call_site is not None]
    assert len(seconds) == slab["double_reports"], (path, len(seconds))
    for second in seconds:
        first = [e for e in events[: second.number - 1] if e.get("ptr") == second["ptr"]][-1]
        assert first["call_site"] == second.duplicate_call_site and first["bytes_alloc"] == second["bytes_alloc"] > 8192
    return len(seconds)


def events_are_those_of_dump(program, path):
    """Every event, and every field that dump prints as the file has it."""
    trace, count = kmt.open(path), 0
    lines = analyze(program, "dump", "--format", "jsonl", path).splitlines()
    for event, line in zip(trace, map(json.loads, lines)):
        count += 1
        assert (event.number, event.time, event.cpu, event.pid) == (count, line["ts"], line["cpu"], line["pid"])
        assert f"{event.system}:{event.name}" == line["event"]
        assert event.comm == line["comm"] or event.comm is None, (event, line)
        names = [name for name in line["fields"] if not name.endswith("_text")]
        assert names == list(event.fields), (names, event)
        for name in names:
            value, there = event[name], line["fields"][name]
            assert (hex(value) if isinstance(there, str) and isinstance(value, int) else value) == there, (name, line)
        if "call_site_text" in line["fields"]:
            assert event.symbol == line["fields"]["call_site_text"]
    assert count == len(lines) == trace.event_count, path


def tables_hold_what_events_hold(path):
    trace = kmt.open(path)
    events = [item for item in trace.items() if isinstance(item, kmt.Event)]
    if not events:
        return
    fields = [name for name in ("bytes_req", "caller", "common_flags", "common_pid") if any(name in e for e in events)]
    fields.append("duplicate_call_site")
    # Common fields and call sites of first events have a column only if they are asked for.
    own = trace.to_arrow(allow_damage=True, batch_rows=1000), lambda event, name: event.fields.get(name)
    named = trace.to_arrow(None, fields, allow_damage=True), lambda event, name: event.get(name)
    for columns, get in (own, named):
        table = pyarrow.table(columns)
        table.validate(full=True)
        assert len(table) == len(events)
        shared = {name.split(".")[1] for name in table.column_names if "." in name}
        for name in table.column_names:
            if name in ("stack_of", "duplicate_call_site", "number", "time", "cpu", "pid", "comm"):
                expected = [getattr(e, name) for e in events]
            elif name == "event":
                expected = [f"{e.system}:{e.name}" for e in events]
            elif name == "call_site_text":
                expected = [e.symbol for e in events]
            elif "." in name:
                expected = [get(e, name.split(".")[1]) if name.split(".")[0] == e.name else None for e in events]
            elif name in shared:
                continue
            else:
                expected = [get(e, name) for e in events]
            assert table.column(name).to_pylist() == expected, (path, name)


def consumers_read_the_same(path):
    columns = kmt.open(path).to_arrow(ALLOCATIONS, ["bytes_req", "bytes_alloc", "call_site"])
    assert columns.names[6:] == ["call_site", "call_site_text", "bytes_req", "bytes_alloc"], columns.names
    table = pyarrow.table(columns)
    expected = pyarrow.compute.sum(table["bytes_alloc"]).as_py()
    assert polars.DataFrame(columns)["bytes_alloc"].sum() == expected > 0
    assert pandas.DataFrame.from_arrow(columns)["bytes_alloc"].sum() == expected
    assert table.to_pandas().groupby("call_site_text", observed=True)["bytes_alloc"].sum().sum() == expected
    assert duckdb.sql("SELECT sum(bytes_alloc)::BIGINT FROM columns").fetchall() == [(expected,)]
    assert pyarrow.schema(columns) == table.schema
    # Without a copy: polars has the buffer that pyarrow was given.
    one = polars.from_arrow(table.select(["time"]))["time"].to_arrow()
    assert one.buffers()[1].address == table["time"].chunk(0).buffers()[1].address


def memory_outlives_what_it_is_of(path):
    event = next(iter(kmt.open(pathlib.Path(path).read_bytes())))
    reader = pyarrow.RecordBatchReader.from_stream(kmt.open(path).to_arrow(batch_rows=7))
    first = reader.read_next_batch()
    gc.collect()
    assert first.num_rows == 7 and first["time"][0].as_py() == event.time
    assert repr(event).startswith("<kmt.Event kmem:")
    rest = []
    thread = threading.Thread(target=lambda: rest.append(sum(b.num_rows for b in reader)))
    thread.start()
    thread.join()
    assert rest[0] + 7 == kmt.open(path).event_count
    # Neither a stream nor a schema that nobody takes leaks or crashes.
    for _ in range(100):
        kmt.open(path).to_arrow().__arrow_c_stream__()
        kmt.open(path).to_arrow().__arrow_c_schema__()


def vectors_are_read(vectors):
    lossy = stacks = damaged = 0
    for path in sorted(vectors.glob("*.kmt")):
        try:
            trace = kmt.open(path)
        except kmt.Error as error:
            assert error.code and str(error), path
            continue
        told = json.loads(path.with_suffix(".json").read_text())
        items = list(trace.items())
        losses = [item for item in items if isinstance(item, kmt.Loss)]
        assert [repr(l) for l in losses] == [repr(l) for l in trace.losses()], path
        lossy += bool(losses)
        tables_hold_what_events_hold(path)
        is_damaged = bool(trace.damages) or any(loss.damaged for loss in losses)
        for complete in (lambda: list(trace), lambda: pyarrow.table(trace).to_pylist()):
            try:
                assert len(complete()) == len(items) - len(losses) and not is_damaged, path
            except kmt.Error as error:
                assert "items()" in str(error) or "allow_damage" in str(error), (path, error)
                # Files whose numbering has a gap have no damaged chunk.
                assert told.get("damages") or told.get("unreadable") or told.get("folds_missing") or "event-number" in path.name or path.name.startswith("gaps"), (path, error)
                damaged += 1
        events = [item for item in items if isinstance(item, kmt.Event)]
        for event in events:
            assert all(event[name] == value for name, value in event.fields.items()), path
            if event.stack_of:
                of = events[event.stack_of - 1]
                assert (of.cpu, of.pid) == (event.cpu, event.pid), path
                # The meaning makes a stack, also of a class without addresses.
                assert event.stack or event.name != "kernel_stack", path
                stacks += 1
    assert min(lossy, stacks, damaged) > 10, (lossy, stacks, damaged)


def folded_lives_are_reported(vectors):
    for name, events, folded in [
        ("one-le64", 1, None),
        ("folded-be32", 3, 26 + (1 << 34)),
        ("folded-gap-le64", 0, 2 * (1 << 34) + 8),
        ("invalid-fold-checksum-le64", 3, (1 << 34) + 3),
    ]:
        trace = kmt.open(vectors / f"{name}.kmt")
        found = (trace.event_count, trace.is_folded, trace.folded_event_count)
        assert found == (events, folded is not None, folded or 0), (name, found)


def errors_say_what_to_do(path):
    def error(call, kind):
        try:
            call()
        except kind as error:
            return error
        raise AssertionError(f"no {kind}")

    assert error(lambda: kmt.open(b"x" * 100), kmt.Error).code == "not-kmt"
    assert error(lambda: kmt.open("/nowhere.kmt"), FileNotFoundError).filename == "/nowhere.kmt"
    assert "events" in str(error(lambda: kmt.open(path, limits={"nonsense": 1}), ValueError))
    assert "kmem:kmalloc" in str(error(lambda: kmt.open(path).to_arrow(["kmem:nonsense"]), ValueError))
    assert "bytes_req" in str(error(lambda: kmt.open(path).to_arrow(fields=["nonsense"]), ValueError))
    event = next(iter(kmt.open(path)))
    assert error(lambda: event["nonsense"], KeyError).args == ("nonsense",)
    assert event.get("nonsense", 7) == 7 and "nonsense" not in event


def main(program, *paths):
    duplicates = 0
    for path in paths:
        waste_is_that_of_callers(program, path)
        duplicates += duplicates_are_those_of_summary(program, path)
        events_are_those_of_dump(program, path)
        tables_hold_what_events_hold(path)
    assert duplicates > 5, duplicates
    consumers_read_the_same(paths[0])
    memory_outlives_what_it_is_of(paths[0])
    vectors_are_read(FOLDER / "../../../format-spec/vectors")
    folded_lives_are_reported(FOLDER / "../../../format-spec/vectors")
    errors_say_what_to_do(paths[0])
    print(f"kmt {kmt.__version__}: {len(paths)} traces as kmt-analyze has them")


if __name__ == "__main__":
    main(*sys.argv[1:])
