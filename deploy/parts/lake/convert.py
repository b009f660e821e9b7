"""Converts lines to Parquet: one file per stream and day, sorted by device and time, each record once, replaced whole.

A day is read in slices, some devices at a time, so that memory and the temporary files have a bound whatever a day holds.
"""
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import sys

import duckdb

import shapes
import sources

# Bytes of JSON, about, that are read at once; DuckDB's memory is bounded by itself (--memory).
SLICE = 1 << 30
FILE = "records.parquet"


@dataclasses.dataclass
class Counts:
    lines: int = 0
    # Not JSON, or without a plain id or a time.
    broken: int = 0
    # Read more often than once.
    repeated: int = 0
    # In the partition before, and no longer in any file.
    kept: int = 0
    records: int = 0
    unreadable: int = 0


def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def listed(paths):
    return "[" + ", ".join(map(quoted, paths)) + "]"


def described(path):
    """Returns a partition's metadata; None if there is no partition."""
    if not os.path.exists(path):
        return None
    rows = duckdb.sql(f"SELECT value FROM parquet_kv_metadata({quoted(path)}) WHERE key = 'waypost'").fetchall()
    if not rows:
        raise SystemExit(f"lake: {path} was not made by this command; move it away")
    return json.loads(bytes(rows[0][0]))


class Converter:
    def __init__(self, source, lake, memory, threads, chosen=()):
        self.source, self.lake = source, pathlib.Path(lake)
        self.work = self.lake / "_work"
        self.lake.mkdir(parents=True, exist_ok=True)
        # Held as long as we live. Engines pass over names that begin with `_`.
        self.lock = open(self.lake / "_lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"lake: another process is converting into {lake}; wait until it ends")
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        self.shapes = self._shapes(dict(chosen))
        self.db = duckdb.connect()
        self.db.execute(f"SET TimeZone='UTC'; SET memory_limit={quoted(memory)}; SET temp_directory={quoted(self.work / 'spill')}")
        if threads:
            self.db.execute(f"SET threads={threads}")
        self.progress = sys.stderr.isatty()

    def _shapes(self, chosen):
        """Returns the shape of each stream, as stored with the lake, because its columns must not change."""
        path = self.lake / "_shapes.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        for stream, shape in chosen.items():
            if known.get(stream, shape) != shape and (self.lake / f"stream={stream}").exists():
                raise SystemExit(f"lake: {stream} is {known[stream]} in this lake; move its folder away to change that")
        self.shapes_path = path
        return {**known, **chosen}

    def shape(self, stream):
        if stream not in self.shapes:
            self.shapes[stream] = shapes.USUAL.get(stream, "free")
        temporary = self.shapes_path.with_suffix(".new")
        temporary.write_text(json.dumps(self.shapes, indent=1, sort_keys=True) + "\n")
        os.replace(temporary, self.shapes_path)
        return self.shapes[stream]

    def run(self, date=None):
        """Converts once; yields (stream, date, Counts, messages) for each converted day."""
        groups = sources.grouped(self.source.files(date))
        for number, ((stream, day), files) in enumerate(groups.items()):
            self.say(f"{stream} {day} ({number + 1} of {len(groups)})")
            target = self.lake / f"stream={stream}" / f"date={day}" / FILE
            before = described(target)
            mark = sources.fingerprint(files)
            if before and before["source"] == mark:
                continue
            day_work = Day(self, stream, files, target, before)
            counts = day_work.convert(mark)
            if counts.lines or counts.unreadable:
                yield stream, day, counts, day_work.told
        self.say("")
        shutil.rmtree(self.work)
        self.lock.close()

    def say(self, text):
        if self.progress:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class Day:
    """Converts one partition."""

    def __init__(self, converter, stream, files, target, before):
        self.converter, self.db = converter, converter.db
        self.shape = converter.shape(stream)
        self.stream, self.files, self.target = stream, files, target
        self.old = target if before else None
        self.counts = Counts()
        # Messages for the user: broken lines, and unreadable files by name.
        self.told = []
        self.parts = []
        self.names = ", ".join(column.name for column in shapes.columns(self.shape))

    def convert(self, mark):
        slices = list(self._slices())
        for number, (devices, files) in enumerate(slices):
            if len(slices) > 1:
                self.converter.say(f"{self.stream} {self.files[0].date}: slice {number + 1} of {len(slices)}")
            self._read(files)
            if self.old:
                self._keep(devices)
            self._write(mark, is_last=len(slices) == 1)
        if self.counts.lines or self.counts.records:
            self._finish(mark)
        return self.counts

    def _slices(self):
        """Yields devices in order with their files, some at a time, including those of the former partition."""
        by_device = {}
        if self.old:
            for device, in self.db.execute(f"SELECT DISTINCT device FROM {self._partition}").fetchall():
                by_device[device] = []
        for file in self.files:
            by_device.setdefault(file.device, []).append(file)
        devices, files, weight = [], [], 0
        for device in sorted(by_device):
            more = sum(file.weight for file in by_device[device])
            if devices and weight + more > SLICE:
                yield devices, files
                devices, files, weight = [], [], 0
            devices.append(device)
            files += by_device[device]
            weight += more
        yield devices, files

    @property
    def _partition(self):
        return f"read_parquet({quoted(self.old)}, hive_partitioning=false)"

    def _read(self, files):
        """Reads the typed records into `slice`; counts lines that are not records."""
        types = ", ".join(f"{column.name} {column.type}" for column in shapes.columns(self.shape))
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE slice({types}, filename VARCHAR)")
        with self._fetched(files) as paths:
            try:
                self._insert(paths)
            except duckdb.IOException:
                paths = [path for path in paths if self._can_read(path)]
                self._insert(paths)
            open_ends = [path for path in paths if sources.has_open_end(path)]
        is_broken = "id IS NULL OR timestamp IS NULL OR NOT regexp_full_match(id, '[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}')"
        broken = dict(self.db.execute(f"SELECT filename, count(*) FROM slice WHERE {is_broken} GROUP BY 1").fetchall())
        lines, = self.db.execute("SELECT count(*) FROM slice").fetchone()
        if broken:
            self.db.execute(f"DELETE FROM slice WHERE {is_broken}")
        for path in open_ends:
            # It may have been whole when it was read.
            if path in broken:
                broken[path] -= 1
                lines -= 1
        self.counts.lines += lines
        self.counts.broken += sum(broken.values())
        self.told += [f"{self._name(path)}: {count} broken lines" for path, count in sorted(broken.items()) if count]
        self._once()

    def _insert(self, paths):
        if paths:
            self.db.execute("INSERT INTO slice " + shapes.reading(self.shape, listed(paths)))

    @contextlib.contextmanager
    def _fetched(self, files):
        folder = self.converter.work / "objects"
        try:
            yield self.converter.source.local(files, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _name(self, path):
        return path[path.rindex("stream="):]

    def _can_read(self, path):
        try:
            self.db.execute(f"SELECT count(*) FROM read_ndjson_objects({listed([path])}, ignore_errors=true)").fetchone()
            return True
        except duckdb.IOException as error:
            self.counts.unreadable += 1
            self.told.append(f"{self._name(path)} cannot be read: {str(error).splitlines()[0]}")
            return False

    def _once(self):
        """Keeps each id of a device once: that of the first file by name."""
        rows, ids = self.db.execute("SELECT count(*), count(DISTINCT (device, id)) FROM slice").fetchone()
        if rows == ids:
            return
        self.counts.repeated += rows - ids
        self.db.execute("""
            CREATE OR REPLACE TEMP TABLE slice AS
            SELECT * FROM slice QUALIFY row_number() OVER (PARTITION BY device, id ORDER BY filename, record) = 1""")

    def _keep(self, devices):
        """Adds records of the former partition that are in no file: files may be archived, the lake stays."""
        before, = self.db.execute("SELECT count(*) FROM slice").fetchone()
        self.db.execute(f"""
            INSERT INTO slice BY NAME SELECT * FROM {self._partition} AS old
            WHERE device IN {tuple(devices) + ('',)} AND NOT EXISTS (
                SELECT 1 FROM slice WHERE slice.device = old.device AND slice.id = old.id)""")
        after, = self.db.execute("SELECT count(*) FROM slice").fetchone()
        self.counts.kept += after - before

    def _write(self, mark, is_last):
        rows, = self.db.execute("SELECT count(*) FROM slice").fetchone()
        self.counts.records += rows
        path = str(self.converter.work / f"part-{len(self.parts):05}.parquet")
        self._copy(f"SELECT {self.names} FROM slice ORDER BY device, timestamp, id", path, mark if is_last else None)
        self.parts.append(path)

    def _copy(self, query, path, mark):
        options = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880"
        if mark is not None:
            # The next run retries unreadable files.
            source = "" if self.counts.unreadable else mark
            said = json.dumps({"version": 1, "shape": self.shape, "source": source, **dataclasses.asdict(self.counts)})
            options += f", KV_METADATA {{waypost: {quoted(said)}}}"
        self.db.execute(f"COPY ({query}) TO {quoted(path)} ({options})")

    def _finish(self, mark):
        """Replaces the partition in one step, checked and synced to the disk."""
        whole = self.parts[0]
        if len(self.parts) > 1:
            whole = str(self.converter.work / "whole.parquet")
            self._copy(f"SELECT * FROM read_parquet({listed(self.parts)}, hive_partitioning=false)", whole, mark)
        rows, = self.db.execute(f"SELECT num_rows FROM parquet_file_metadata({quoted(whole)})").fetchone()
        if rows != self.counts.records:
            raise SystemExit(f"lake: {self.target}: {rows} records were written, {self.counts.records} expected; convert again")
        self.target.parent.mkdir(parents=True, exist_ok=True)
        sync(whole)
        os.replace(whole, self.target)
        sync(self.target.parent)
        for part in self.parts:
            pathlib.Path(part).unlink(missing_ok=True)


def sync(path):
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
