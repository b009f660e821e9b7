"""kill -9 at random instants, while records come in and go out."""
import time

import records
from bench import Bench, NeverStarted, capture
from report import Row, spread
from server import Network, Receiver

BEACONS = '[beacons]\nsource = "btsnoop:{path}"\nreplay_speed = {speed}\nmax_rate = 1000\n'
AUDIO = '[audio]\ndevice = "mic"\nchunk = "2s"\noverlap = "200ms"\n'
STORAGE = '[storage]\ncommit_interval = "100ms"\n'


class Crashes:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("crash (kill -9)")
        self.bench = Bench(settings)
        self.receiver = Receiver(settings, self.bench.folder)
        self.network = Network(
            self.receiver.address, settings.random.random(), answers=0.15, requests=0.05, delay=0.02)
        self.bench.microphone()
        # Both last longer than any life of the gateway here.
        capture(self.bench.folder / "flood", 40_000)
        capture(self.bench.folder / "bursts", 40_000, per_second=1500, burst=300)
        self.last = dict.fromkeys(records.TABLES, 0)
        # The id of each record that was once seen committed: it must stay the same.
        self.ids = {stream: {} for stream in records.TABLES}
        self.generation = None

    def configure(self, flood):
        path = self.bench.folder / ("flood" if flood else "bursts")
        self.bench.configure(self.bench.upload(self.network.address)
                             + BEACONS.format(path=path, speed="0.0" if flood else "1.0") + AUDIO + STORAGE)

    def life(self):
        """One start, a random while, one kill."""
        random = self.settings.random
        # A replay without a pace makes tens of thousands of records per second: one in ten, and short.
        flood = random.random() < 0.1
        self.configure(flood)
        if random.random() < 0.15:
            # While it starts: nothing needs to answer yet.
            self.bench.launch()
            time.sleep(random.uniform(0, 0.12))
        else:
            try:
                self.bench.start()
            except NeverStarted as error:
                self.row.start_failures += 1
                self.row.problem(f"a start failed: {error}")
                return
            time.sleep(random.uniform(0, 0.1) if flood else min(3.0, random.expovariate(5)))
        self.bench.kill()
        self.row.tried += 1
        self.look()

    def look(self):
        """Reads the committed records from a copy of the files; all earlier ones must still be there."""
        if not (self.bench.state / "queue.sqlite").exists():
            return
        try:
            content = records.Content(records.copy(self.bench.state, self.bench.folder / "copy"))
        except records.sqlite3.Error as error:
            if self.generation:
                self.row.problem(f"the database cannot be read after kill {self.row.tried}: {error}")
            return
        if self.generation not in (None, content.generation):
            self.row.problem("the database was started anew")
        self.generation = content.generation
        if content.health != "ok":
            self.row.problem(f"integrity after kill {self.row.tried}: {content.health}")
        for stream in content.holes():
            self.row.problem(f"{stream}: rows and numbers do not agree")
        for stream, last in content.last.items():
            self.ids[stream].update(content.ids(stream, after=self.last[stream]))
            self.row.lost += max(0, self.last[stream] - last)
            self.last[stream] = max(self.last[stream], last)
        self.row.committed = sum(self.last.values())

    def drain(self):
        """Sends what is left, over a network that is well again."""
        self.network.answers = self.network.requests = self.network.delay = 0
        self.bench.configure(self.bench.upload(self.network.address))
        try:
            self.bench.start()
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"the last start failed: {error}")
            return
        end = time.monotonic() + 240
        code, output = 1, ""
        while code and time.monotonic() < end:
            code, output = self.bench.command("sync", "--wait", "60", limit=90)
            self.settings.progress.show(self.row, "sending what is left")
            if code:
                time.sleep(1)
        if code:
            self.row.problem(f"sync left records pending: {output.strip()}")
        if self.bench.stop() != 0:
            self.row.problem("SIGTERM after the sync did not end it with 0")

    def compare(self):
        arrived = records.received(self.receiver.data)
        content = records.Content(records.copy(self.bench.state, self.bench.folder / "copy"), "integrity_check")
        if content.health != "ok":
            self.row.problem(f"integrity at the end: {content.health}")
        for stream, name in records.NAMES.items():
            committed = set(self.ids[stream].values())
            there = content.ids(stream)
            if len(committed) != self.last[stream] or None in committed:
                self.row.problem(f"{name}: {self.last[stream]} numbers have {len(committed - {None})} ids")
            changed = [row for row, id in self.ids[stream].items() if there.get(row) != id]
            if changed:
                self.row.problem(f"{name}: the ids of {len(changed)} records have changed, first row {min(changed)}")
            got = {record["id"] for record in arrived[stream]}
            missing = committed - got
            if missing:
                self.row.lost += len(missing)
                self.row.problem(f"{name}: {len(missing)} committed records never arrived, first {min(missing)}")
            unknown = got - set(there.values())
            if unknown:
                self.row.problem(f"{name}: {len(unknown)} records arrived that the queue never had")
            same_id, same_content = records.twice(arrived[stream])
            # Two events may say the same of the same millisecond; nothing else may.
            self.row.doubled += same_id + (same_content if stream != 4 else 0)
        for text in records.undecodable(arrived[2]):
            self.row.problem(f"sound: {text}")
        for stream in (2, 3, 4):
            if not arrived[stream]:
                self.row.problem(f"{records.NAMES[stream]}: nothing was recorded, so nothing was tested")
        self.row.note(f"{len(arrived[2])} pieces of sound, {self.network.cuts} connections cut, start to answer "
                      f"in ms: {spread([1000 * value for value in self.bench.starts])}")

    def run(self):
        end = time.monotonic() + self.settings.seconds
        try:
            while time.monotonic() < end:
                self.life()
                self.settings.progress.show(self.row)
            self.drain()
            self.compare()
        finally:
            self.network.end()
            self.receiver.end()
            self.bench.end(keep=not self.row.is_good)
            if not self.row.is_good:
                self.row.note(f"kept in {self.bench.folder}")
        return [self.row]


def run(settings):
    return Crashes(settings).run()
