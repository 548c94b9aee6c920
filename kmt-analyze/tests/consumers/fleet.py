"""DuckDB and Spark give the same answers about one data set, and the totals are those of the traces.

Usage: fleet.py KMT_ANALYZE TARGET=FILE.kmt ...
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

analyze, dataset = sys.argv[1], tempfile.mkdtemp(prefix="kmt-fleet-")
wasted = 0
for pair in sys.argv[2:]:
    target, file = pair.split("=", 1)
    command = [analyze, "export", "parquet", file, "-o", dataset, "--target", target]
    assert subprocess.run(command).returncode in (0, 3), command
    summary = json.loads(subprocess.run([analyze, "summary", "--json", file], stdout=subprocess.PIPE).stdout)
    wasted += summary["slab"]["bytes_wasted"]

asked = guide.questions()
assert set(asked) == {"waste", "rare", "lifetimes", "trust"}, asked.keys()
asked["total"] = "SELECT sum(bytes_wasted) AS wasted FROM call_sites"
for name, sql in asked.items():
    columns, rows = guide.duckdb_rows(dataset, sql)
    spark_columns, spark_rows = guide.spark_rows(dataset, sql)
    plain = lambda rows: [tuple(int(c) if isinstance(c, (int, float)) else c for c in row) for row in rows]
    assert columns == spark_columns and plain(rows) == plain(spark_rows), (name, rows[:3], spark_rows[:3])
    assert rows or name == "trust", f"{name} has no answer"
    print(f"{name}: {len(rows)} rows, DuckDB and Spark agree")
    if name == "total":
        assert int(rows[0][0]) == wasted, (rows, wasted)
