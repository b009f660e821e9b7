"""Wrong wall clocks: boots in 1970, 2019 and 2038, a sync while running, steps of years."""
import datetime
import struct
import time

import records
from accounts import check_admitted, check_status, settle
from bench import Bench, NeverStarted, capture, wait
from report import Row
from server import Network, Receiver

# Places in `struct control` of fieldfaults.c, and what the kernel is made to say of the clock.
OFFSET, SYNCED = 6, 7
IS_SYNCED, IS_NOT = 1, 2
YEAR = 365 * 86_400_000
# A timestamp that claims to be right may be off by so much, in ms.
TOLERANCE = 1500


def offset_to(year):
    """Milliseconds to add to the clock to be at the start of a year."""
    start = datetime.datetime(year, 1, 1, 0, 0, 30, tzinfo=datetime.timezone.utc).timestamp()
    return int((start - time.time()) * 1000)


class Clocks:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("clock")
        self.worst = 0.0

    def set(self, bench, offset, synced):
        values = [0] * 8
        values[OFFSET], values[SYNCED] = offset, synced
        control = bench.folder / "control"
        if not control.exists():
            control.write_bytes(bytes(64))
        with open(control, "r+b") as file:
            file.write(struct.pack("<8q", *values))

    def goes_on(self, bench, name):
        """Records still come in."""
        before = bench.status()
        if before is None:
            self.row.problem(f"{name}: no answer on the socket")
            return
        count = before["sources"]["beacons"]["records"]
        try:
            wait("more records", lambda: ((bench.status() or before)["sources"]["beacons"]["records"] > count + 50), 10)
        except TimeoutError:
            self.row.problem(f"{name}: no records come in any more")

    def round(self, name, steps, interval="1h"):
        """`steps`: pairs of offset and state of sync; the first is there from the start, and all is well in the end."""
        bench = Bench(self.settings)
        receiver = Receiver(self.settings, bench.folder)
        network = Network(receiver.address)
        before = len(self.row.problems)
        self.row.tried += 1
        try:
            capture(bench.folder / "capture", 60_000, per_second=1000, burst=10)
            bench.configure(
                bench.upload(network.address, interval)
                + f'[beacons]\nsource = "btsnoop:{bench.folder}/capture"\nreplay_speed = 1.0\nmax_rate = 1000\n'
                + '[storage]\nretention = "1d"\n')
            self.set(bench, *steps[0])
            bench.start(faults=True)
            self.goes_on(bench, name)
            for step in steps[1:]:
                self.set(bench, *step)
                time.sleep(0.3)
                self.goes_on(bench, name)
                self.settings.progress.show(self.row, name)
            self.finish(name, bench, receiver, len(steps) - 1)
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"{name}: {error}")
        finally:
            network.end()
            receiver.end()
            is_good = len(self.row.problems) == before
            bench.end(keep=not is_good)
            if not is_good:
                self.row.note(f"{name}, kept in {bench.folder}")

    def finish(self, name, bench, receiver, count):
        """Sends all and looks at what arrived."""
        code, output = bench.command("sync", "--wait", "60")
        # Records came in during the sync, so "nothing pending" need not be true at its end.
        if code not in (0, 1):
            self.row.problem(f"{name}: sync: {output.strip()}")
        if bench.stop() != 0:
            self.row.problem(f"{name}: SIGTERM did not end it with 0")
        accounts = settle(self.row, bench)
        if not accounts:
            return
        status = bench.last_status(self.row)
        check_status(self.row, accounts, status)
        check_admitted(self.row, accounts, status)
        self.row.committed += sum(accounts.highest.values())
        if sum(accounts.evicted.values()):
            self.row.problem(f"{name}: records were evicted")
        path = bench.state / "queue.sqlite"
        steps = records.query(path, "SELECT count(*) FROM events WHERE kind='clock_step'")[0][0]
        if steps < count:
            self.row.problem(f"{name}: {count} steps of the clock, {steps} events tell of one")
        purged = records.query(path, "SELECT sum(last-first+1) FROM gone")[0][0]
        if purged:
            self.row.problem(f"{name}: {purged} records were purged by a wrong clock")
        self.check_arrived(name, path, records.received(receiver.data)[3])

    def check_arrived(self, name, path, arrived):
        """Timestamps that claim to be right must be."""
        base = (time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)) * 1000
        rows = dict(records.query(path, "SELECT id, boottime FROM sightings"))
        kinds, wrong = {}, {}
        for record in arrived:
            said = datetime.datetime.fromisoformat(record["timestamp"].replace("Z", "+00:00")).timestamp() * 1000
            off = abs(said - base - rows.get(records.row_of(record), 0))
            kinds[record["clock"]] = kinds.get(record["clock"], 0) + 1
            if record["clock"] != "unsynced" and off > TOLERANCE:
                wrong[record["clock"]] = max(wrong.get(record["clock"], 0), off)
            elif record["clock"] != "unsynced":
                self.worst = max(self.worst, off)
        self.row.doubled += sum(records.twice(arrived))
        for kind, off in wrong.items():
            self.row.problem(f"{name}: timestamps said to be {kind} are off by up to {off / 1000:.0f} s")
        self.row.note(f"{name}: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")

    def run(self):
        well = (0, IS_SYNCED)
        rounds = [(f"boot in {year}, then a sync", [(offset_to(year), IS_NOT), well]) for year in (1970, 2019, 2038)]
        rounds += [
            ("steps of years, then a sync", [(offset_to(2019), IS_NOT), (offset_to(2038), IS_NOT), (-YEAR, IS_NOT), well]),
            ("uploads without a sync", [(offset_to(1970), IS_NOT), well], "200ms"),
            ("a wrong time server first", [(40 * 86_400_000, IS_SYNCED), well]),
            ("steps of years after a sync", [well, (5 * YEAR, IS_NOT), (-8 * YEAR, IS_NOT), well]),
        ]
        end = time.monotonic() + self.settings.seconds
        while True:
            for one in rounds:
                self.round(*one)
            if time.monotonic() > end:
                break
        self.row.note(f"timestamps said to be right are off by at most {self.worst:.0f} ms")
        return [self.row]


def run(settings):
    return Clocks(settings).run()
