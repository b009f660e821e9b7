"""Is each record that the gateway accepted at the receiver exactly once, or told as lost?

An id names the start of the gateway that made it, the stream and the row: a bit a record is enough to tick off a
month of them.
"""
import re

import records
from accounts import Accounts
from records import sqlite3

ID = re.compile(rb'^\{"id":"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})"', re.MULTILINE)
PART = 1 << 24
# Records that a stop may make after everything was sent.
LEFT = 5


class Arrived:
    """The ids in the receiver's files: by all but their row a bit for each row."""

    def __init__(self, directory):
        self.rows = {}
        self.count = self.doubled = self.unread = 0
        for path in directory.glob("stream=*/**/*.ndjson"):
            with open(path, "rb") as file:
                rest = b""
                while part := file.read(PART):
                    part = rest + part
                    end = part.rfind(b"\n") + 1
                    rest = part[end:]
                    self.read(part[:end])
                self.unread += bool(rest)

    def read(self, lines):
        found = 0
        for match in ID.finditer(lines):
            found += 1
            text = b"".join(match.groups())
            self.tick(text[:22], int(text[22:], 16))
        self.count += found
        self.unread += lines.count(b"\n") - found

    def tick(self, start, row):
        bits = self.rows.setdefault(start, bytearray())
        place, bit = row >> 3, 1 << (row & 7)
        if place >= len(bits):
            bits.extend(bytes(place + 4096 - len(bits)))
        self.doubled += bool(bits[place] & bit)
        bits[place] |= bit


class Sum:
    """The sum of a soak, of a database that was drained and a receiver's files; `problems` in words."""

    def __init__(self, database, directory):
        self.problems = []
        self.accepted = self.missing = self.told = self.left = 0
        arrived = self.arrived = Arrived(directory)
        self.doubled = arrived.doubled
        if arrived.doubled:
            self.problems.append(f"{arrived.doubled} records are at the receiver twice")
        if arrived.unread:
            self.problems.append(f"{arrived.unread} lines at the receiver are no records")
        accounts = Accounts(database)
        self.problems += accounts.problems
        # The stop's own events wait for the next start.
        self.waiting = accounts.waiting
        connection = sqlite3.connect(database)
        try:
            health = connection.execute("PRAGMA integrity_check").fetchone()[0]
            if health != "ok":
                self.problems.append(f"integrity_check: {health}")
            for stream, next, evicted in connection.execute(
                    "SELECT stream, next, evicted FROM sequences WHERE database=0").fetchall():
                self.look(connection, stream, next - 1, evicted)
        finally:
            connection.close()
        known = self.accepted - self.missing
        if arrived.count - arrived.doubled != known:
            self.problems.append(f"{arrived.count - arrived.doubled - known} records arrived that the queue never had")

    def look(self, connection, stream, highest, evicted):
        seeds = records.Seeds()
        seeds.of[stream] = []
        seeds.read(connection, stream)
        starts = [seed[0] for seed in seeds.of[stream]] + [highest + 1]
        missing, first = 0, 0
        for begin, end in zip(starts, starts[1:]):
            if begin >= end:
                continue
            # Ids of one start differ only in their last forty bits.
            id = seeds.id(stream, begin).replace("-", "")
            bits, base = self.arrived.rows.get(id[:22].encode(), b""), int(id[22:], 16)
            for row in range(base, base + end - begin):
                if row >> 3 >= len(bits) or not bits[row >> 3] & 1 << (row & 7):
                    missing += 1
                    first = first or begin + row - base
        self.accepted += highest
        self.missing += missing
        told = sum(row[0] for row in connection.execute(
            "SELECT records FROM losses WHERE stream=? AND kind IN ('evicted','discarded','corrupt')", (stream,)))
        self.told += told
        name = records.NAMES.get(stream, f"stream {stream}")
        waiting = self.waiting.get(stream, 0)
        self.left += waiting
        if missing != told + waiting or told != evicted or waiting > LEFT:
            self.problems.append(f"{name}: {missing} of {highest} are not at the receiver (the first is number {first}), "
                                 f"{told} are told as lost, {waiting} wait")
