"""Damaged databases: what a gateway finds at its start when bytes have changed, gone or never been a database."""
import collections
import hashlib
import json
import shutil
import time

import records
from bench import Bench, NeverStarted, Sound, capture
from gpsd import Walk
from report import Row

CONTENT = {1: "SELECT boottime, latitude_e7 FROM location", 2: "SELECT boottime, frames FROM chunks",
           3: "SELECT boottime, payload FROM sightings", 4: "SELECT boottime, kind, source FROM events"}
MOST_BYTES = 400


def content(path):
    """What makes a record the same record under another number, by stream."""
    return {stream: collections.Counter(records.query(path, sql)) for stream, sql in CONTENT.items()}


class Damage:
    """The ways to damage a state folder; each gives a name for what it did."""

    def __init__(self, random):
        self.random = random

    def edit(self, path, change):
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)

    def flip(self, path, count, start=0, end=None):
        def change(data):
            for _ in range(count):
                at = self.random.randrange(start, min(len(data), end or len(data)))
                data[at] ^= self.random.randrange(1, 256)
        self.edit(path, change)

    def bytes_changed(self, state):
        self.flip(state / "queue.sqlite", self.random.choice((1, 16, MOST_BYTES)), start=100)

    def header_changed(self, state):
        self.flip(state / "queue.sqlite", 3, end=100)

    def page_lost(self, state):
        def change(data):
            size = int.from_bytes(data[16:18], "big")
            page = self.random.randrange(len(data) // size) * size
            data[page:page + size] = self.random.choice((bytes(size), self.random.randbytes(size)))
        self.edit(state / "queue.sqlite", change)

    def cut_short(self, state):
        self.edit(state / "queue.sqlite", lambda data: data.__delitem__(slice(self.random.randrange(1, len(data)), None)))

    def emptied(self, state):
        (state / "queue.sqlite").write_bytes(b"")

    def something_else(self, state):
        (state / "queue.sqlite").write_text("This is a letter, and no database.\n" * 300)

    def journal_changed(self, state):
        self.flip(state / "queue.sqlite-wal", self.random.choice((1, 16, MOST_BYTES)))

    def journal_cut_short(self, state):
        self.edit(state / "queue.sqlite-wal",
                  lambda data: data.__delitem__(slice(self.random.randrange(len(data)), None)))


class Corruption:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("corruption")
        self.recovered = collections.defaultdict(list)
        # A journal's changed frames are thrown away by SQLite without a word.
        self.untold = 0

    def template(self, bench, stops):
        """A folder with some seconds of records in it: in the database alone, or half of them in the journal."""
        sound, walk = Sound(bench.folder), Walk()
        capture(bench.folder / "capture", 30_000, per_second=3000, burst=30)
        bench.configure(
            f'[beacons]\nsource = "btsnoop:{bench.folder}/capture"\nreplay_speed = 1.0\nmax_rate = 1000\n'
            f'[location]\ngpsd = "{walk.address}"\ninterval = "0s"\n'
            '[audio]\ndevice = "field"\nchunk = "2s"\noverlap = "200ms"\n')
        try:
            bench.start()
            time.sleep(4)
            bench.stop() if stops else bench.kill()
        finally:
            sound.end()
            walk.end()

    def round(self, name, damage, template):
        bench = Bench(self.settings)
        shutil.copytree(template.state, bench.state)
        for path in bench.state.glob("*-shm"):
            path.unlink()
        truth = content(records.copy(bench.state, bench.folder / "copy"))
        damage(bench.state)
        self.row.tried += 1
        before = len(self.row.problems), self.row.start_failures
        try:
            bench.start()
            self.judge(name, bench, truth)
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"{name}: {error}")
        except records.sqlite3.Error as error:
            self.row.problem(f"{name}: the database cannot be read afterwards: {error}")
        finally:
            is_good = before == (len(self.row.problems), self.row.start_failures)
            bench.end(keep=not is_good)
            if not is_good:
                self.row.note(f"{name}, kept in {bench.folder}")

    def judge(self, name, bench, truth):
        told = self.salvaged(name, bench)
        if bench.stop() != 0:
            self.row.problem(f"{name}: SIGTERM did not end it with 0")
        path = bench.state / "queue.sqlite"
        health = records.Content(path, "integrity_check").health
        if health != "ok":
            self.row.problem(f"{name}: integrity_check of the database in use: {health}")
        ledger = dict(records.query(path, "SELECT stream, sum(records) FROM losses WHERE kind='corrupt' GROUP BY 1"))
        now = content(path)
        kept = whole = 0
        for stream, wanted in truth.items():
            there = wanted & now[stream]
            missing = sum(wanted.values()) - sum(there.values())
            whole += sum(wanted.values())
            kept += sum(there.values())
            twice = [key for key, count in wanted.items() if now[stream][key] > count]
            if twice:
                self.row.doubled += len(twice)
                self.row.problem(f"{name}: {records.NAMES[stream]}: {twice[0]} is there twice")
            silent = missing - ledger.get(stream, 0)
            if silent > 0:
                self.silent(name, stream, silent, told)
        self.row.committed += whole
        self.recovered[name].append(100 * kept / max(1, whole))

    def silent(self, name, stream, count, told):
        """Records that are gone and in no ledger: only where nobody could know of them, or count them."""
        is_known = told is not None and (told["readable"] == "no" or told["lost"] > 0)
        # A byte of a record's own content: the record is there, and says something else.
        if is_known or name.startswith("journal") or count <= MOST_BYTES:
            self.untold += count
        else:
            self.row.lost += count
            self.row.problem(f"{name}: {records.NAMES[stream]}: {count} records lost that nothing tells of")

    def salvaged(self, name, bench):
        """Waits for the end of a salvage, if there is one; what its event says."""
        aside = [path for path in bench.state.glob("queue.sqlite.corrupt-*") if not path.name.endswith(("-wal", "-shm"))]
        if not aside:
            return None
        status = bench.status() or {}
        if status.get("state") != "critical" or not any("corrupt" in reason for reason in status.get("reasons", [])):
            self.row.problem(f"{name}: a database was set aside and status does not say so")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            copy = records.copy(bench.state, bench.folder / "copy")
            told = records.query(copy, "SELECT detail FROM events WHERE kind='database_salvaged'")
            if told:
                return json.loads(told[0][0])
            time.sleep(0.1)
        self.row.problem(f"{name}: no event database_salvaged in 30 s")
        return None

    def newer(self, template):
        """A database of a newer version must be refused with advice, and left alone."""
        bench = Bench(self.settings)
        shutil.copytree(template.state, bench.state)
        path = bench.state / "queue.sqlite"
        connection = records.sqlite3.connect(path)
        connection.execute("PRAGMA user_version=99")
        connection.commit()
        connection.close()
        before = hashlib.sha256(path.read_bytes()).digest()
        self.row.tried += 1
        try:
            bench.start()
            self.row.problem("a database of a newer version was opened")
        except NeverStarted as error:
            if "newer" not in str(error):
                self.row.problem(f"a newer version is refused without advice: {error}")
        bench.kill()
        if hashlib.sha256(path.read_bytes()).digest() != before or list(bench.state.glob("*corrupt*")):
            self.row.problem("a database of a newer version was not left alone")
        bench.end()

    def run(self):
        stopped, killed = Bench(self.settings), Bench(self.settings)
        try:
            self.template(stopped, stops=True)
            self.template(killed, stops=False)
            self.newer(stopped)
            damage = Damage(self.settings.random)
            kinds = [getattr(damage, name) for name in
                     ("bytes_changed", "page_lost", "cut_short", "header_changed", "emptied", "something_else",
                      "journal_changed", "journal_cut_short", "bytes_changed", "page_lost")]
            end = time.monotonic() + self.settings.seconds
            while True:
                for kind in kinds:
                    self.round(kind.__name__, kind, killed if kind.__name__.startswith("journal") else stopped)
                    self.settings.progress.show(self.row, kind.__name__)
                if time.monotonic() > end:
                    break
            for name, shares in self.recovered.items():
                self.row.note(f"{name}: of {len(shares)}, records still there: least {min(shares):.1f} %, "
                              f"mean {sum(shares) / len(shares):.1f} %")
            self.row.note(f"{self.untold} records went where nothing could tell of them")
        finally:
            stopped.end()
            killed.end()
        return [self.row]


def run(settings):
    return Corruption(settings).run()
