"""Asks the questions of questions.sql about a Parquet data set: fleet.py duckdb|spark DATASET [QUESTION]

The data set is a directory that `kmt-analyze export parquet -o DATASET` was given for each trace.
"""
import os
import re
import sys


def questions():
    """Name and SQL of each question."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "questions.sql")
    text = open(path).read()
    return dict(re.findall(r"^-- (\w+): .*\n((?:[^-].*\n)+?)(?=\n|\Z)", text, re.M))


TABLES = ("traces", "call_sites", "objects")


def duckdb_rows(dataset, sql):
    import duckdb

    connection = duckdb.connect()
    for table in TABLES:
        files = os.path.join(dataset, table, "**", "*.parquet")
        connection.execute(
            f"CREATE VIEW {table} AS SELECT * FROM "
            f"read_parquet('{files}', hive_partitioning = true, hive_types_autocast = false)"
        )
    cursor = connection.execute(sql.rstrip().rstrip(";"))
    return [c[0] for c in cursor.description], cursor.fetchall()


def spark_rows(dataset, sql):
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        # A boot id that looks like a number is none.
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for table in TABLES:
        spark.read.parquet(os.path.join(dataset, table)).createOrReplaceTempView(table)
    found = spark.sql(sql.rstrip().rstrip(";"))
    return found.columns, [tuple(row) for row in found.collect()]


ENGINES = {"duckdb": duckdb_rows, "spark": spark_rows}

if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in ENGINES:
        sys.exit(__doc__)
    for name, sql in questions().items():
        if len(sys.argv) == 4 and name != sys.argv[3]:
            continue
        columns, rows = ENGINES[sys.argv[1]](sys.argv[2], sql)
        print(f"== {name}\n{' | '.join(columns)}")
        for row in rows:
            print(" | ".join(str(cell) for cell in row))
