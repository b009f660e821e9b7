"""Power cuts: one recorded run gives any number of disks as they may be found after a cut."""
import bisect
import shutil
import sqlite3
import struct
import time

import diskimage
import records
from bench import Bench, NeverStarted, capture
from gpsd import Walk
from report import Row, spread
from server import Network, Receiver

COMMIT = 1000
SEGMENT = 1000
# The least that is promised: two seconds of sound, whatever delays it on its way.
SOUND = 2000
# Scheduling of a busy machine, in ms, on top of the longest sync that the run saw.
SLACK = 100
# A position is handed over when the next one shows that its epoch is over; the walk gives ten a second.
EPOCH = 100
CUTS = 50


class Truth:
    """The records of an uncut run: each with its boottime in ms."""

    def __init__(self, path):
        connection = sqlite3.connect(path)
        self.seeds = records.Seeds(connection)
        connection.close()
        self.rows = {name: records.query(path, f"SELECT id, boottime FROM {table} ORDER BY id")
                     for name, table in (("location", "location"), ("beacons", "sightings"), ("events", "events"))}
        self.rows["audio"] = records.query(
            path, "SELECT s.id, s.boottime + s.frames * 1000 / r.rate FROM segments s JOIN runs r ON r.id=s.run "
                  "ORDER BY s.id")
        for stream in self.rows:
            # In the order of time, which is that of the rows but for two sources with one stream.
            self.rows[stream].sort(key=lambda row: row[1])


class PowerCuts:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("power cut")
        self.bench = Bench(settings)
        self.control = self.bench.folder / "control"
        self.control.write_bytes(struct.pack("<8q", *[0] * 8))
        self.log = self.bench.folder / "log"
        self.loss = {"beacons": [], "location": [], "audio": [], "events": []}

    def record(self, seconds):
        """One run from an empty folder, with uploads and checkpoints, each change to the disk logged."""
        folder = self.bench.folder
        receiver = Receiver(self.settings, folder)
        network = Network(receiver.address, delay=0.005)
        walk = Walk()
        self.bench.microphone()
        # Enough for a checkpoint (1000 pages) every few seconds.
        capture(folder / "capture", int(seconds + 20) * 8000, per_second=8000, burst=40)
        self.bench.configure(
            self.bench.upload(network.address, "700ms")
            + f'[beacons]\nsource = "btsnoop:{folder}/capture"\nreplay_speed = 1.0\nmax_rate = 1000\n'
            + f'[location]\ngpsd = "{walk.address}"\ninterval = "0s"\n'
            + '[audio]\ndevice = "mic"\nchunk = "6s"\n'
            + f'[storage]\ncommit_interval = "{COMMIT}ms"\n')
        try:
            self.bench.start(faults=True, log=self.log)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(0.2)
                self.settings.progress.show(self.row, "recording the run that will be cut")
            if self.bench.stop() != 0:
                self.row.problem("SIGTERM did not end it with 0")
        finally:
            for part in (walk, network, receiver):
                part.end()
        self.batches = network.batches

    def instants(self, entries):
        """Half at random times, half around random changes, where the disk is least in order."""
        random = self.settings.random
        times = [entry.time for entry in entries]
        chosen = set()
        while len(chosen) < CUTS:
            if len(chosen) % 2:
                chosen.add(random.randrange(1, len(entries)))
            else:
                chosen.add(bisect.bisect(times, random.randint(times[0], times[-1] - 1)))
        return sorted(chosen)

    def cut(self, disk, index, truth, allowed):
        entries = disk.entries
        disk.advance(index)
        # The last instant at which nothing more had been written.
        at = (entries[index].time if index < len(entries) else entries[-1].time) // 1_000_000
        image = Bench(self.settings)
        disk.image(image.state, self.settings.random)
        self.row.tried += 1
        is_good = False
        try:
            is_good = self.revive(image, at, truth, allowed)
        finally:
            image.end(keep=not is_good)
            if not is_good:
                self.row.note(f"cut {self.row.tried} (before entry {index} of the log) is kept in {image.folder}")

    def revive(self, image, at, truth, allowed):
        """Starts the gateway on the image; False when anything is not as it must be."""
        before = len(self.row.problems)
        try:
            image.start()
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"cut {self.row.tried}: {error}")
            return False
        aside = [path.name for path in image.state.glob("*corrupt*")]
        if aside:
            self.row.problem(f"cut {self.row.tried}: a power cut was taken for corruption: {aside}")
        if image.stop() != 0:
            self.row.problem(f"cut {self.row.tried}: SIGTERM did not end it with 0")
        database = image.state / "queue.sqlite"
        try:
            content = records.Content(database, "integrity_check")
        except sqlite3.Error as error:
            self.row.problem(f"cut {self.row.tried}: {error}")
            return False
        if content.health != "ok":
            self.row.problem(f"cut {self.row.tried}: integrity_check: {content.health}")
        self.measure(database, at, truth, allowed)
        self.check_sent(content, truth, at)
        return len(self.row.problems) == before

    def measure(self, database, at, truth, allowed):
        kept = Truth(database)
        for stream, losses in self.loss.items():
            due = [row for row in truth.rows[stream] if row[1] <= at]
            there = set(kept.rows[stream])
            missing = [row for row in due if row not in there]
            if stream == "audio":
                # From the last sound on the disk to the cut: the piece under way counts, too.
                begun = [row for row in truth.rows[stream] if row[1] - SEGMENT <= at]
                ends = [row[1] for row in due if row in there]
                first = truth.rows[stream][0][1] - SEGMENT if begun else at
                losses.append(max(0, at - (max(ends) if ends else first)))
            else:
                losses.append(at - min(row[1] for row in missing) if missing else 0)
            self.row.committed += len(due) - len(missing)
            limit = SOUND if stream == "audio" else allowed + COMMIT + (EPOCH if stream == "location" else 0)
            if losses[-1] > limit:
                self.row.lost += len(missing)
                self.row.problem(
                    f"cut {self.row.tried}: {stream}: {losses[-1]:.0f} ms lost, {limit:.0f} ms allowed "
                    f"({len(missing)} records)")

    def check_sent(self, content, truth, at):
        """Checks that everything sent to the server keeps its ids; otherwise numbers would be used twice."""
        numbers = {name: number for number, name in records.NAMES.items()}
        for when, stream, last in self.batches:
            number = numbers[stream]
            if when * 1000 < at and content.last[number] < last:
                self.row.doubled += last - content.last[number]
                self.row.problem(f"cut {self.row.tried}: {stream}: sent up to {last}, kept up to {content.last[number]}")
            if when * 1000 < at and content.seeds.id(number, last) != truth.seeds.id(number, last):
                self.row.doubled += 1
                self.row.problem(f"cut {self.row.tried}: {stream}: record {last} was sent under another id")

    def run(self):
        try:
            self.record(max(8, min(40, self.settings.seconds * 0.45)))
            entries = diskimage.read_log(self.log)
            database = records.copy(self.bench.state, self.bench.folder / "copy")
            truth = Truth(database)
            syncs = [(entry.time - entry.began) / 1e6 for entry in entries if entry.kind == "s"]
            disk = diskimage.Disk(entries, self.bench.state)
            for index in self.instants(entries):
                self.cut(disk, index, truth, max(syncs) + SLACK)
                self.settings.progress.show(self.row)
            self.row.note(f"{len(entries)} changes logged, {len(syncs)} syncs, ms: {spread(syncs)}; "
                          f"{len(self.batches)} batches sent")
            for stream, losses in self.loss.items():
                self.row.note(f"ms of {stream} lost: {spread(losses)}")
        finally:
            self.bench.end()
        return [self.row]


def run(settings):
    return PowerCuts(settings).run()
