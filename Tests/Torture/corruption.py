"""Damaged databases: what a gateway finds at its start when bytes have changed, gone or never been a database."""
import collections
import hashlib
import json
import shutil
import time

import records
from bench import Bench, NeverStarted, capture
from gpsd import Walk
from report import Row
from server import Receiver

MOST_BYTES = 400
# The members that make records at the receiver the same; their dates may differ.
CONTENT = {1: ("latitude", "longitude"), 2: ("duration", "sample_rate"), 3: ("kind", "beacon_id", "telemetry", "rssi"),
           4: ("kind", "source", "detail"), 5: ("name",)}


# SQLite's messages about a damaged database may quote its bytes, which may not be text.
UNREADABLE = (records.sqlite3.Error, UnicodeDecodeError)


def content(stream, record):
    return json.dumps([record.get(key) for key in CONTENT[stream]], sort_keys=True)


def seeds_in(path):
    """How a database, perhaps a damaged one, makes the ids of each stream; without those that cannot be read."""
    connection = records.sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    seeds = records.Seeds()
    try:
        for stream in records.TABLES:
            try:
                seeds.read(connection, stream)
            except UNREADABLE:
                seeds.of[stream] = []
    finally:
        connection.close()
    return seeds


class Truth:
    """The records of a folder that was not damaged, by their ids, as the receiver has them once they are sent."""

    def __init__(self, settings, template):
        self.state = template.state
        bench = Bench(settings)
        receiver = Receiver(settings, bench.folder)
        try:
            before = records.Content(records.copy(template.state, bench.folder / "copy"))
            copy_state(template.state, bench.state)
            bench.configure(bench.upload("%s:%d" % receiver.address))
            bench.start()
            code, output = bench.command("sync", "--wait", "60")
            if code or bench.stop() != 0:
                raise RuntimeError(f"the records without damage cannot be sent: {output.strip()}")
            arrived = records.received(receiver.data)
        finally:
            receiver.end()
            bench.end()
        self.seeds = before.seeds
        self.ids = {stream: set(before.ids(stream).values()) for stream in records.TABLES}
        self.content = {stream: {record["id"]: content(stream, record) for record in arrived[stream]}
                        for stream in records.TABLES}
        for stream, ids in self.ids.items():
            if ids - set(self.content[stream]):
                raise RuntimeError(f"{records.NAMES[stream]}: not all records arrive without damage")
        # Audio that is not yet in a chunk is one more record of a quarantined database.
        self.tail = self.seeds.id(2, before.last[2] + 1)


def copy_state(state, to):
    shutil.copytree(state, to)
    for path in to.glob("*-shm"):
        path.unlink()


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
        self.counts = collections.Counter()

    def template(self, bench, stops):
        """A folder with the records of two starts in it: in the database alone, or half of them in the journal."""
        walk = Walk()
        bench.microphone()
        capture(bench.folder / "capture", 30_000, per_second=3000, burst=30)
        bench.configure(
            f'[beacons]\nsource = "btsnoop:{bench.folder}/capture"\nreplay_speed = 1.0\nmax_rate = 1000\n'
            f'[location]\ngpsd = "{walk.address}"\ninterval = "0s"\n'
            '[audio]\ndevice = "mic"\nchunk = "2s"\noverlap = "200ms"\n')
        try:
            bench.start()
            time.sleep(2)
            bench.stop()
            bench.start()
            time.sleep(2)
            bench.stop() if stops else bench.kill()
        finally:
            walk.end()

    def round(self, name, damage, truth):
        """One damage and one start; in half of the rounds all is sent, in the others it waits."""
        bench = Bench(self.settings)
        receiver = Receiver(self.settings, bench.folder) if self.settings.random.random() < 0.5 else None
        copy_state(truth.state, bench.state)
        damage(bench.state)
        self.row.tried += 1
        before = len(self.row.problems), self.row.lost, self.row.doubled, self.row.start_failures
        try:
            if receiver:
                bench.configure(bench.upload("%s:%d" % receiver.address))
            bench.start()
            self.judge(name, bench, receiver, truth)
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"{name}: {error}")
        except UNREADABLE as error:
            self.row.problem(f"{name}: the database cannot be read afterwards: {error}")
        finally:
            if receiver:
                receiver.end()
            is_good = before == (len(self.row.problems), self.row.lost, self.row.doubled, self.row.start_failures)
            bench.end(keep=not is_good)
            if not is_good:
                self.row.note(f"{name}, kept in {bench.folder}")

    def judge(self, name, bench, receiver, truth):
        told = self.salvaged(name, bench)
        self.counts["sent" if receiver else "waiting"] += 1
        if receiver:
            code, output = bench.command("sync", "--wait", "60")
            if code:
                self.row.problem(f"{name}: sync: {output.strip()}")
        if bench.stop() != 0:
            self.row.problem(f"{name}: SIGTERM did not end it with 0")
        path = bench.state / "queue.sqlite"
        live = records.Content(path, "integrity_check")
        if live.health != "ok":
            self.row.problem(f"{name}: integrity_check of the database in use: {live.health}")
        aside = self.aside(bench)
        # A number that was changed is found where all is read, and that is not at once.
        if live.holes() and (aside or name != "bytes_changed"):
            self.row.problem(f"{name}: rows and numbers of {live.holes()} do not agree in the database in use")
        damaged = seeds_in(aside[0] if aside else path)
        waiting = {stream: set() for stream in records.TABLES}
        for (_, stream), numbers in records.older(path).items():
            waiting[stream] |= {damaged.id(stream, number) for number in numbers}
        ledger = dict(records.query(path, "SELECT stream, sum(records) FROM losses WHERE kind='corrupt' GROUP BY 1"))
        if told and told["lost"] != "unknown" and told["lost"] > sum(ledger.values()):
            self.row.problem(f"{name}: the event tells of {told['lost']} lost, the ledger of {ledger}")
        arrived = records.received(receiver.data) if receiver else None
        kept = whole = 0
        for stream, wanted in truth.ids.items():
            own = set(live.ids(stream).values())
            there = waiting[stream] | own
            # A byte of a random number: the records are there under other ids, and nobody can know.
            is_renamed = (name == "bytes_changed" and damaged.of[stream]
                          and not set(truth.seeds.of[stream]) <= set(damaged.of[stream]))
            if receiver:
                got = {record["id"] for record in arrived[stream]}
                there = waiting[stream] | got
                self.compare(name, stream, arrived[stream], truth, own if not is_renamed else got)
            missing = len(wanted - there)
            whole += len(wanted)
            kept += len(wanted) - missing
            if is_renamed:
                self.counts["renamed"] += missing
            else:
                self.settle(name, stream, missing, ledger.get(stream, 0), told)
        self.row.committed += whole
        self.recovered[name].append(100 * kept / max(1, whole))

    def compare(self, name, stream, arrived, truth, own):
        """Each record once, none that nobody knows, and all as they were."""
        same_id, same_content = records.twice(arrived)
        # Two events may say the same of the same millisecond.
        doubled = same_id + (same_content if stream != 4 else 0)
        if doubled:
            self.row.doubled += doubled
            self.row.problem(f"{name}: {records.NAMES[stream]}: {doubled} records arrived twice")
        strange = {record["id"] for record in arrived} - truth.ids[stream] - own - {truth.tail}
        if strange:
            self.row.problem(f"{name}: {records.NAMES[stream]}: {len(strange)} records arrived that no queue had")
        known = truth.content[stream]
        changed = sum(known.get(record["id"], content(stream, record)) != content(stream, record)
                      for record in arrived if record["id"] in truth.ids[stream])
        self.counts["changed"] += changed
        # SQLite has checksums for its journal only.
        if changed and name not in ("bytes_changed", "page_lost"):
            self.row.problem(f"{name}: {records.NAMES[stream]}: {changed} records say something else than before")

    def settle(self, name, stream, missing, ledger, told):
        """Records that are gone must be in the ledger, but where nobody could know of them, or count them."""
        self.counts["lost"] += missing
        silent = missing - ledger
        # A tail of sound is one more record.
        if silent < -1 or (silent == -1 and stream != 2):
            self.counts["told too much"] -= silent
            if told is None or told["lost"] != "unknown":
                self.row.problem(f"{name}: {records.NAMES[stream]}: {missing} records lost, {ledger} in the ledger")
        if silent <= 0:
            return
        is_known = told is not None and (told["readable"] == "no" or told["lost"] == "unknown")
        # Frames of a journal that changed are thrown away by SQLite; a byte may be the number of a record.
        is_quiet = told is None and (name.startswith("journal") or name == "bytes_changed" and silent <= MOST_BYTES)
        if is_known or is_quiet:
            self.counts["untold"] += silent
        else:
            self.row.lost += silent
            self.row.problem(f"{name}: {records.NAMES[stream]}: {silent} records lost that nothing tells of")

    @staticmethod
    def aside(bench):
        return [path for path in bench.state.glob("queue.sqlite.corrupt-*") if not path.name.endswith(("-wal", "-shm", "-mark"))]

    def salvaged(self, name, bench):
        """Waits for the end of a salvage, if there is one; what its event says."""
        if not self.aside(bench):
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
        connection.executescript("PRAGMA user_version=99; ALTER TABLE boots ADD COLUMN more TEXT")
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
            truths = Truth(self.settings, stopped), Truth(self.settings, killed)
            damage = Damage(self.settings.random)
            kinds = [getattr(damage, name) for name in
                     ("bytes_changed", "page_lost", "cut_short", "header_changed", "emptied", "something_else",
                      "journal_changed", "journal_cut_short", "bytes_changed", "page_lost")]
            end = time.monotonic() + self.settings.seconds
            while True:
                for kind in kinds:
                    self.round(kind.__name__, kind, truths[kind.__name__.startswith("journal")])
                    self.settings.progress.show(self.row, kind.__name__)
                if time.monotonic() > end:
                    break
            for name, shares in self.recovered.items():
                self.row.note(f"{name}: of {len(shares)}, records still there: least {min(shares):.1f} %, "
                              f"mean {sum(shares) / len(shares):.1f} %")
            self.row.note(", ".join(f"{count} {name}" for name, count in self.counts.items())
                          + "; untold: where nothing could tell of them")
        finally:
            stopped.end()
            killed.end()
        return [self.row]


def run(settings):
    return Corruption(settings).run()
