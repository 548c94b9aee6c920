"""All engines give the same answers about one data set, and the totals are those of the traces.

Usage: fleet.py duckdb[,spark] KMT_ANALYZE TARGET=FILE.kmt ...
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("fleet_guide", os.path.join(here, "../../../docs/fleet/fleet.py"))
guide = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guide)

engines, analyze, dataset = sys.argv[1].split(","), sys.argv[2], tempfile.mkdtemp(prefix="kmt-fleet-")
wasted = 0
for pair in sys.argv[3:]:
    target, file = pair.split("=", 1)
    command = [analyze, "export", "parquet", file, "-o", dataset, "--target", target]
    assert subprocess.run(command).returncode in (0, 3), command
    summary = json.loads(subprocess.run([analyze, "summary", "--json", file], stdout=subprocess.PIPE).stdout)
    wasted += summary["slab"]["bytes_wasted"]

asked = guide.questions()
assert set(asked) == {"waste", "rare", "lifetimes", "trust"}, asked.keys()
asked["total"] = "SELECT sum(bytes_wasted) AS wasted FROM call_sites"
for name, sql in asked.items():
    columns, rows = guide.ENGINES[engines[0]](dataset, sql)
    plain = lambda rows: [tuple(int(c) if isinstance(c, (int, float)) else c for c in row) for row in rows]
    for other in engines[1:]:
        other_columns, other_rows = guide.ENGINES[other](dataset, sql)
        assert columns == other_columns and plain(rows) == plain(other_rows), (name, rows[:3], other_rows[:3])
    assert rows or name == "trust", f"{name} has no answer"
    print(f"{name}: {len(rows)} rows, {' and '.join(engines)}")
    if name == "total":
        assert int(rows[0][0]) == wasted, (rows, wasted)
