"""Offers the lake as views of DuckDB and of Spark with the same names, so that queries run in both.

A view a shape (`location`, `sound`, `beacons`, `events`, `free`) with its columns, `stream` and `date` (of the folder),
and `unix_s` (`timestamp` as a number); `records`, what all streams have; `readings`, a row a number of `numbers`.
"""
import json
import os
import pathlib

import shapes

COMMON = ("device", "id", "timestamp", "clock")


class Lake:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        names = self.path / "_shapes.json"
        if not names.exists():
            raise SystemExit(f"lake: {path} is not a lake; make one with deploy/lake convert")
        known = json.loads(names.read_text())
        self.folders = {}
        for stream, shape in sorted(known.items()):
            folder = self.path / f"stream={stream}"
            if any(folder.glob("date=*/*.parquet")):
                self.folders.setdefault(shape, []).append(str(folder))
        if not self.folders:
            raise SystemExit(f"lake: {path} has no records yet")

    @property
    def all(self):
        return [folder for folders in self.folders.values() for folder in folders]

    @property
    def with_numbers(self):
        return [shape for shape in ("beacons", "free") if shape in self.folders]


class DuckDB:
    def __init__(self, lake, memory, threads=None, spill=None):
        import duckdb

        self.db = duckdb.connect()
        self.db.execute(f"SET TimeZone='UTC'; SET memory_limit='{memory}'; SET temp_directory='{spill or '/tmp'}'")
        if threads:
            self.db.execute(f"SET threads={threads}")
        for shape, folders in lake.folders.items():
            self._view(shape, folders, shapes.columns(shape))
        self._view("records", lake.all, [column for column in shapes.columns("free") if column.name in COMMON])
        readings = " UNION ALL ".join(
            f"SELECT stream, date, device, timestamp, e.key AS name, e.value AS value FROM "
            f"(SELECT *, unnest(map_entries(numbers)) AS e FROM {shape})" for shape in lake.with_numbers)
        if readings:
            self.db.execute(f"CREATE VIEW readings AS {readings}")

    def _view(self, name, folders, columns):
        files = ", ".join(f"'{folder}/*/*.parquet'" for folder in folders)
        table = (f"read_parquet([{files}], hive_partitioning=true, hive_types={{'stream': VARCHAR, 'date': DATE}}, "
                 "union_by_name=true)")
        there = {row[0] for row in self.db.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}
        # As they are, so that a filter reaches the files' bounds; a column that older files lack is NULL.
        names = ", ".join(column.name if column.name in there else f"CAST(NULL AS {column.type}) AS {column.name}"
                          for column in columns)
        self.db.execute(f"CREATE VIEW {name} AS SELECT stream, date, {names}, epoch(timestamp) AS unix_s FROM {table}")

    def rows(self, query):
        result = self.db.execute(query)
        return [column[0] for column in result.description], result.fetchall()


class Spark:
    def __init__(self, lake, memory, threads=None, spill=None):
        # Spark is to listen on loopback alone.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(f"local[{threads or '*'}]").appName("lake")
        for key, value in {
            "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.driver.memory": memory.replace("GB", "g"),
            "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "8",
            "spark.log.level": "ERROR", "spark.local.dir": str(spill or "/tmp"),
            "spark.sql.warehouse.dir": f"{spill or '/tmp'}/warehouse", "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        for shape, folders in lake.folders.items():
            self._view(shape, folders, shapes.columns(shape), lake)
        self._view("records", lake.all, [column for column in shapes.columns("free") if column.name in COMMON], lake)
        readings = " UNION ALL ".join(
            f"SELECT stream, date, device, timestamp, name, value FROM {shape} LATERAL VIEW explode(numbers) AS name, value"
            for shape in lake.with_numbers)
        if readings:
            self.session.sql(readings).createOrReplaceTempView("readings")

    def _view(self, name, folders, columns, lake):
        schema = ", ".join(f"{column.name} {shapes.SPARK_TYPES[column.type]}" for column in columns)
        table = self.session.read.schema(f"{schema}, stream string, date date").option("basePath", str(lake.path))
        table.parquet(*folders).createOrReplaceTempView(f"_{name}")
        names = ", ".join(column.name for column in columns)
        self.session.sql(f"""
            SELECT stream, date, {names}, CAST(CAST(timestamp AS TIMESTAMP) AS DOUBLE) AS unix_s FROM _{name}
            """).createOrReplaceTempView(name)

    def rows(self, query):
        result = self.session.sql(query)
        return result.columns, [tuple(row) for row in result.collect()]


ENGINES = {"duckdb": DuckDB, "spark": Spark}
