"""The content of a queue and of a receiver, each read from its own files."""
import bisect
import collections
import json
import pathlib
import shutil
import sqlite3
import subprocess

TABLES = {1: "location", 2: "chunks", 3: "sightings", 4: "events", 5: "surveys", 6: "health", 7: "effort",
          8: "replies"}
NAMES = {1: "linux_gpsd_location", 2: "linux_alsa_audio", 3: "linux_bluez_beacons", 4: "waypost_events",
         5: "waypost_surveys", 6: "waypost_health", 7: "waypost_effort", 8: "waypost_replies"}


class Seeds:
    """How a database makes ids: for each stream the random numbers and the row from which on each holds."""

    def __init__(self, connection=None):
        self.of = {stream: [] for stream in TABLES}
        if connection:
            for stream in TABLES:
                self.read(connection, stream)

    def read(self, connection, stream):
        self.of[stream] = connection.execute(
            "SELECT first, seed FROM id_seeds WHERE stream=? ORDER BY first", (stream,)).fetchall()

    def id(self, stream, row):
        """The id of a record as the gateway makes it (a UUID of version 8); None without a seed for it."""
        place = bisect.bisect_right(self.of[stream], row, key=lambda seed: seed[0])
        if place == 0:
            return None
        seed = self.of[stream][place - 1][1]
        high = int.from_bytes(seed[:8], "big") & ~0xF000 | 0x8000
        low = int.from_bytes(seed[8:16], "big") & 0x3FFC000000000000 | 0x8000000000000000
        text = f"{high:016x}{low | stream << 40 | row & 0xFFFFFFFFFF:016x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def row_of(record):
    """The last 40 bits of a record's id are its row."""
    return int(record["id"].replace("-", "")[-10:], 16)


def numbers_in(ranges):
    """The numbers of ranges, each with its first and its last."""
    return {number for first, last in ranges for number in range(first, last + 1)}


def copy(state, to):
    """Copies the database with its journal, as a stopped or killed process left them."""
    to.mkdir(exist_ok=True)
    for name in ("queue.sqlite", "queue.sqlite-wal"):
        (to / name).unlink(missing_ok=True)
        if (state / name).exists():
            shutil.copyfile(state / name, to / name)
    (to / "queue.sqlite-shm").unlink(missing_ok=True)
    return to / "queue.sqlite"


class Content:
    """The content of a database, read once; no other process may use the file."""

    def __init__(self, path, check="quick_check"):
        connection = sqlite3.connect(path)
        try:
            self.health = "; ".join(row[0] for row in connection.execute(f"PRAGMA {check}")) if check else "ok"
            row = connection.execute("SELECT generation FROM database").fetchone()
            self.generation = row[0] if row else b""
            self.seeds = Seeds(connection)
            self.last, self.gone, self.rows = {}, {}, {}
            # A table is made with the first record of its stream.
            made = {name for name, in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            for stream, table in TABLES.items():
                row = connection.execute("SELECT next FROM sequences WHERE database=0 AND stream=?", (stream,)).fetchone()
                self.last[stream] = row[0] - 1 if row else 0
                self.gone[stream] = numbers_in(connection.execute(
                    "SELECT first, last FROM gone WHERE database=0 AND stream=?", (stream,)))
                self.rows[stream] = {row[0] for row in connection.execute(f"SELECT id FROM {table}")} if table in made else set()
        finally:
            connection.close()

    @property
    def records(self):
        return sum(self.last.values())

    def holes(self):
        """Streams whose rows are not the numbers that were given out, without those that are gone."""
        return [NAMES[stream] for stream in TABLES
                if self.rows[stream] != set(range(1, self.last[stream] + 1)) - self.gone[stream]]

    def ids(self, stream, after=0):
        """The id of each row there is, by its number."""
        return {row: self.seeds.id(stream, row) for row in self.rows[stream] if row > after}


def older(path):
    """The numbers pending in quarantined databases, by file name and stream.

    In batches that are not sent, in quarantine, or in no batch: all that is not over.
    """
    waiting = {}
    for name, stream, next, database in query(
            path, "SELECT d.name, s.stream, s.next, d.id FROM sequences s JOIN databases d ON d.id=s.database"):
        over = numbers_in(query(path, "SELECT first, last FROM gone WHERE database=? AND stream=?", database, stream))
        waiting[name, stream] = set(range(1, next)) - over
    return waiting


def query(path, sql, *values):
    """The rows of one question to a database that nobody writes."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def audio_folder(directory, records):
    """The folder of the audio files that the records in a folder name."""
    parts = pathlib.Path(records).relative_to(directory).parts
    return pathlib.Path(directory, "audio", *(part.partition("=")[2] for part in parts))


def received(directory):
    """Every record of our own streams at the receiver, by number, with the folder of its audio."""
    numbers = {name: number for number, name in NAMES.items()}
    records = collections.defaultdict(list)
    for path in pathlib.Path(directory).glob("stream=*/**/*.ndjson"):
        stream = numbers.get(next(part for part in path.parts if part.startswith("stream="))[7:])
        if stream is None:
            continue
        for line in path.read_text().splitlines():
            record = json.loads(line)
            record["_folder"] = audio_folder(directory, path.parent)
            records[stream].append(record)
    return records


def twice(records):
    """How many records stand twice: under one id, or with one content under two."""
    ids = collections.Counter(record["id"] for record in records)
    content = collections.Counter(
        json.dumps({key: value for key, value in record.items() if key not in ("id", "_folder", "audio_file")},
                   sort_keys=True) for record in records)
    return sum(count - 1 for count in ids.values()), sum(count - 1 for count in content.values())


def undecodable(chunks, limit=40):
    """Of at most `limit` pieces of sound, those that do not decode to the length they say."""
    problems = []
    for chunk in chunks[:: max(1, len(chunks) // limit)]:
        path = chunk["_folder"] / chunk["audio_file"]
        done = subprocess.run(
            ["opusdec", "--quiet", "--rate", str(chunk["sample_rate"]), "--force-wav", str(path), "-"],
            capture_output=True)
        # 44 bytes of header, two bytes a frame.
        seconds = (len(done.stdout) - 44) / 2 / chunk["sample_rate"]
        if done.returncode or abs(seconds - chunk["duration"]) > 0.001:
            problems.append(f"{path.name}: decodes to {seconds:.3f} s, says {chunk['duration']} s")
    return problems
