"""Opens what `kmt-analyze export` writes with the programs that it is for, and compares totals; checks every JSON document
against docs/json.schema.json.

Usage: check.py KMT_ANALYZE FILE.kmt [FILE.kmt ...]
(with duckdb, jsonschema, pyarrow, perfetto installed; node with pprof-format)
"""
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

csv.field_size_limit(1 << 30)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode in (0, 3), (command, done.returncode, done.stderr.decode())
    return done.stdout


def equal(what, theirs, ours):
    assert theirs == ours, f"{what}: read back {theirs}, exported {ours}"


class Check:
    def __init__(self, analyze, file):
        self.analyze, self.file = analyze, file
        self.folder = tempfile.mkdtemp(prefix="kmt-consumers-")
        summary = json.loads(run(analyze, "summary", "--json", file))
        self.slab, self.trace = summary["slab"], summary["trace"]
        self.sites = json.loads(run(analyze, "callers", "--json", file))["callers"]

    def documents(self):
        """Each document is what its definition in the schema says, also one without an answer."""
        import jsonschema
        with open("docs/json.schema.json") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        others = {
            "who": ["who", "0xffff888000010060"], "info-diff": ["info", "--diff"], "diff": ["diff", self.file],
            "trace-cmd-mem": ["summary", "--compat", "trace-cmd-mem"],
            "anonymize": ["anonymize", "-o", os.path.join(self.folder, "anonymous.kmt")],
            # They need copies of /proc/allocinfo or /proc/slabinfo, /proc/meminfo of begin and end, or a build.
            "allocinfo": None, "slabinfo-copies": None, "balance": None, "footprint": None, "footprint-diff": None,
        }
        for reference in schema["oneOf"]:
            name = reference["$ref"].rpartition("/")[2]
            command = others.get(name, [name])
            if command is None:
                continue
            done = subprocess.run([self.analyze, *command, "--json", self.file], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            document = json.loads(done.stdout)
            equal("document", document["schema"]["report"], name)
            # Only a document without an answer may be refused.
            equal(f"exit code of {name}", done.returncode in (0, 3), name == "all" or "refused" not in document)
            jsonschema.Draft202012Validator({**reference, "$defs": schema["$defs"]}).validate(document)

    def charts(self):
        """XML, with the numbers of the report."""
        for by in ("kind", "cache", "task"):
            svg = run(self.analyze, "chart", "timeline", "--by", by, self.file)
            root = xml.etree.ElementTree.fromstring(svg)
            lines = [e for e in root.iter() if e.get("data-values") is not None]
            report = json.loads(run(self.analyze, "timeline", "--json", "--by", by, "--steps", "200", "-l", "7", self.file))
            ours = {line["name"]: line["bytes_live"] for line in report["timeline"]["lines"]}
            theirs = {e.get("data-name"): [int(n) for n in e.get("data-values").split()] for e in lines}
            equal(f"chart timeline --by {by}", theirs, ours)
        root = xml.etree.ElementTree.fromstring(run(self.analyze, "chart", "flame", self.file))
        frames = [e for e in root.iter() if e.get("data-value") is not None]
        equal("chart flame", int(frames[0].get("data-value")), self.slab["bytes_alloc"])

    def export(self, format, *options):
        path = os.path.join(self.folder, "export." + format)
        run(self.analyze, "export", format, self.file, "-o", path, *options)
        return path

    def is_coarse(self):
        first, last, events = self.trace["first"], self.trace["last"], self.trace["events"]
        times = set()
        for line in run(self.analyze, "dump", "--format", "jsonl", "-l", "2000", self.file).splitlines():
            times.add(json.loads(line)["ts"])
        return len(times) < min(events, 2000) / 4 or first == last

    def tabular(self):
        with open(self.export("csv", "--of", "objects", "--force"), newline="") as file:
            rows = list(csv.DictReader(file))
        born = [r for r in rows if r["born_in_window"] == "true"]
        equal("csv objects", len(born), self.slab["alloc_events"])
        equal("csv bytes", sum(int(r["bytes_alloc"]) for r in born), self.slab["bytes_alloc"])
        live = [r for r in rows if r["fate"] == "live"]
        equal("csv live", sum(int(r["bytes_alloc"]) for r in live), self.slab["bytes_live"])
        with open(self.export("ndjson", "--of", "events")) as file:
            events = [json.loads(line) for line in file]
        equal("ndjson events", len(events), self.trace["events"])
        with open(self.export("csv", "--of", "callers", "--table", "callers", "--force"), newline="") as file:
            callers = list(csv.DictReader(file))
        equal("csv callers", sum(int(r["bytes_alloc"]) for r in callers), self.slab["bytes_alloc"])

    def folded(self):
        for by, key in (("alloc", "bytes_alloc"), ("live", "bytes_live"), ("waste", "bytes_wasted")):
            text = open(self.export("folded", "--by", by, "--force")).read()
            total = sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
            equal("folded " + by, total, self.slab[key])

    def pprof(self):
        script = """
const { Profile } = require('pprof-format'); const fs = require('fs'); const zlib = require('zlib');
const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(process.argv[1])));
const text = n => p.stringTable.strings[Number(n)];
const sums = {}; p.sampleType.forEach((t, i) => {
  sums[text(t.type)] = Number(p.sample.reduce((s, x) => s + BigInt(x.value[i]), 0n)); });
const ids = new Set(p.location.map(l => Number(l.id)));
if (!p.sample.every(s => s.locationId.length && s.locationId.every(id => ids.has(Number(id))))) throw 'location';
if (!p.function.every(f => text(f.name))) throw 'function';
console.log(JSON.stringify(sums));"""
        sums = json.loads(run("node", "-e", script, self.export("pprof")))
        equal("pprof alloc_objects", sums["alloc_objects"], self.slab["alloc_events"])
        equal("pprof alloc_space", sums["alloc_space"], self.slab["bytes_alloc"])
        equal("pprof inuse_space", sums["inuse_space"], self.slab["bytes_live"])
        equal("pprof waste_space", sums["waste_space"], self.slab["bytes_wasted"])

    def dhat(self):
        d = json.load(open(self.export("dhat")))
        equal("dhat version", d["dhatFileVersion"], 2)
        for key in ("mode", "verb", "bklt", "bkacc", "tu", "Mtu", "tuth", "cmd", "pid", "tg", "te", "pps", "ftbl"):
            assert key in d, key
        assert d["bklt"] is True and d["bkacc"] is False and 0 <= d["tg"] <= d["te"]
        equal("dhat root", d["ftbl"][0], "[root]")
        for pp in d["pps"]:
            equal("dhat keys", set(pp), {"tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk", "fs"})
            assert pp["gb"] <= pp["mb"] <= pp["tb"] and pp["eb"] <= pp["mb"], pp
            assert all(0 < f < len(d["ftbl"]) for f in pp["fs"])
        equal("dhat tb", sum(pp["tb"] for pp in d["pps"]), self.slab["bytes_alloc"])
        equal("dhat tbk", sum(pp["tbk"] for pp in d["pps"]), self.slab["alloc_events"])
        equal("dhat eb", sum(pp["eb"] for pp in d["pps"]), self.slab["bytes_live"])
        peak = json.loads(run(self.analyze, "peak", "--json", self.file))["peak"]
        at_peak = sum(pp["gb"] for pp in d["pps"])
        # Where a clock has few steps, births and ends of one step cannot be put in order: ends go first.
        if self.is_coarse():
            assert at_peak <= peak["bytes_live"]
        else:
            equal("dhat gb", at_peak, peak["bytes_live"])

    def sqlite(self):
        db = sqlite3.connect(self.export("sqlite", "--events"))
        one = lambda sql: db.execute(sql).fetchone()
        equal("sqlite check", one("PRAGMA integrity_check")[0], "ok")
        equal("sqlite objects", one(
            "SELECT sum(o.is_born), sum(o.is_born * s.bytes_alloc), sum(o.is_live * s.bytes_alloc) "
            "FROM objects o JOIN sites s USING (site)"),
            (self.slab["alloc_events"], self.slab["bytes_alloc"], self.slab["bytes_live"]))
        equal("sqlite call_sites", one("SELECT sum(bytes_wasted), sum(bytes_freed), sum(bytes_live) FROM call_sites"),
              (self.slab["bytes_wasted"], self.slab["bytes_freed"], self.slab["bytes_live"]))
        equal("sqlite caches", one("SELECT sum(bytes_alloc) FROM caches")[0], self.slab["bytes_alloc"])
        equal("sqlite task_load", one("SELECT sum(bytes_alloc) FROM task_load")[0], self.slab["bytes_alloc"])
        equal("sqlite events", one("SELECT count(*) FROM events")[0], self.trace["events"])
        assert one("SELECT count(*) FROM paths")[0] > 0 and one("SELECT count(*) FROM objects_named")[0] > 0

    def parquet(self):
        import duckdb
        import pyarrow.dataset
        path = self.export("parquet", "--events", "--target", "board/1")
        read = lambda table: f"read_parquet('{path}/{table}/**/*.parquet', hive_partitioning = true)"
        one = lambda sql: duckdb.sql(sql).fetchall()[0]
        equal("duckdb objects", one(
            "SELECT count(*) FILTER (born_in_window), sum(bytes_alloc) FILTER (born_in_window), "
            f"sum(bytes_alloc) FILTER (fate = 'live') FROM {read('objects')}"),
            (self.slab["alloc_events"], self.slab["bytes_alloc"], self.slab["bytes_live"]))
        equal("duckdb call_sites", one(f"SELECT sum(bytes_wasted), sum(bytes_live) FROM {read('call_sites')}"),
              (self.slab["bytes_wasted"], self.slab["bytes_live"]))
        equal("duckdb events", one(f"SELECT count(*) FROM {read('events')}")[0], self.trace["events"])
        equal("duckdb target", one(f"SELECT DISTINCT target FROM {read('traces')}")[0], "board/1")
        table = pyarrow.dataset.dataset(os.path.join(path, "objects"), partitioning="hive").to_table()
        equal("pyarrow objects", sum(table["born_in_window"].to_pylist()), self.slab["alloc_events"])
        equal("pyarrow address", str(table.schema.field("address").type), "uint64")

    def perfetto(self):
        from google.protobuf import unknown_fields
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
        trace = proto.Trace()
        trace.ParseFromString(open(self.export("perfetto", "--events"), "rb").read())
        tracks, values, depth, events = {}, {}, {}, 0
        for packet in trace.packet:
            assert not len(unknown_fields.UnknownFieldSet(packet)), packet
            if packet.HasField("track_descriptor"):
                tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                event = packet.track_event
                assert event.track_uuid in tracks, event
                if event.type == proto.TrackEvent.TYPE_COUNTER:
                    values[event.track_uuid] = event.counter_value
                elif event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
                    depth[event.track_uuid] = depth.get(event.track_uuid, 0) + 1
                elif event.type == proto.TrackEvent.TYPE_SLICE_END:
                    depth[event.track_uuid] -= 1
                    assert depth[event.track_uuid] >= 0
            events += len(packet.ftrace_events.event)
        assert all(d == 0 for d in depth.values()), "slices that do not end"
        equal("perfetto events", events, self.trace["events"])
        for group, name in ((2, "caches"), (3, "call sites")):
            live = sum(v for uuid, v in values.items() if tracks[uuid].parent_uuid == group)
            equal("perfetto live bytes by " + name, live, self.slab["bytes_live"])


for file in sys.argv[2:]:
    check = Check(sys.argv[1], file)
    for name in ("documents", "charts", "tabular", "folded", "pprof", "dhat", "sqlite", "parquet", "perfetto"):
        getattr(check, name)()
        print(f"{os.path.basename(file)}: {name} agrees")
