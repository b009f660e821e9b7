"""A failing disk: writes, syncs, reads or names that give errors for a while under the running gateway."""
import errno
import struct
import time

from accounts import check_admitted, check_status, settle
from bench import Bench, NeverStarted, capture, wait
from report import Row

# Places in `struct control` of fieldfaults.c.
WRITE, SYNC, NAME, READ, HAS_BUDGET, BUDGET = range(6)

FAULTS = {
    "read-only (EROFS)": {WRITE: errno.EROFS, NAME: errno.EROFS},
    "write errors (EIO)": {WRITE: errno.EIO},
    "sync errors (EIO)": {SYNC: errno.EIO},
    "read errors (EIO)": {READ: errno.EIO},
    "all errors (EIO)": {WRITE: errno.EIO, SYNC: errno.EIO, NAME: errno.EIO, READ: errno.EIO},
    "no space (ENOSPC)": {HAS_BUDGET: 1, BUDGET: 3000},
}


class FailingDisk:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("failing disk")
        self.bench = Bench(settings)
        self.control = self.bench.folder / "control"
        self.bench.microphone()
        capture(self.bench.folder / "capture", 100_000, per_second=1000, burst=10)
        self.bench.configure(
            f'[beacons]\nsource = "btsnoop:{self.bench.folder}/capture"\nreplay_speed = 1.0\nmax_rate = 1000\n'
            '[audio]\ndevice = "mic"\nchunk = "2s"\noverlap = "200ms"\n')

    def set(self, values):
        """Acts at once: the gateway has the file mapped."""
        if not self.control.exists():
            self.control.write_bytes(bytes(64))
        with open(self.control, "r+b") as file:
            file.write(struct.pack("<8q", *[values.get(place, 0) for place in range(8)]))

    def is_well(self):
        # "full" stays for a while after records had to give way.
        status = self.bench.status()
        return status is not None and status["storage"]["state"] in ("ok", "full")

    def fault(self, name, values):
        row, bench = self.row, self.bench
        self.set({})
        bench.start(faults=True)
        time.sleep(self.settings.random.uniform(0.5, 1.5))
        self.set(values)
        seen = []
        end = time.monotonic() + self.settings.random.uniform(1.5, 4)
        while time.monotonic() < end and bench.daemon.poll() is None:
            status = bench.status()
            if status is None:
                row.problem(f"{name}: no answer on the socket meanwhile")
                break
            seen.append(status)
            time.sleep(0.1)
            self.settings.progress.show(row, name)
        self.set({})
        row.tried += 1
        if bench.daemon.poll() is not None:
            row.problem(f"{name}: the gateway ended with {bench.daemon.poll()}")
            return
        if not any(status["state"] != "healthy" and status["recent_errors"] for status in seen):
            # Nothing is read from the disk while all is in the cache.
            if name != "read errors (EIO)":
                row.problem(f"{name}: status never told of it")
        began = time.monotonic()
        try:
            wait("recovery", self.is_well, 40)
            self.recoveries.append(time.monotonic() - began)
        except TimeoutError:
            row.problem(f"{name}: not well 40 s after it was over: {(bench.status() or {}).get('storage')}")
        time.sleep(1.2)
        self.judge(name)

    def judge(self, name):
        row, bench = self.row, self.bench
        if bench.stop() != 0:
            row.problem(f"{name}: SIGTERM did not end it with 0")
        aside = list(bench.state.glob("*.corrupt-*"))
        if aside:
            row.problem(f"{name}: a healthy database was set aside: {aside[0].name}")
        before = len(row.problems)
        accounts = settle(row, bench)
        if accounts:
            row.committed += sum(accounts.highest.values())
            status = bench.last_status(row)
            check_status(row, accounts, status)
            check_admitted(row, accounts, status)
        if len(row.problems) > before:
            row.problem(f"the problems above came with {name}")
        for path in bench.state.glob("queue.sqlite*"):
            path.unlink()

    def run(self):
        end = time.monotonic() + self.settings.seconds
        self.recoveries = []
        try:
            while True:
                for name, values in FAULTS.items():
                    try:
                        self.fault(name, values)
                    except NeverStarted as error:
                        self.row.start_failures += 1
                        self.row.problem(f"start after the fault before {name}: {error}")
                    if time.monotonic() > end and self.row.tried >= len(FAULTS):
                        break
                if time.monotonic() > end:
                    break
            self.row.note(f"well again after at most {max(self.recoveries, default=0):.1f} s")
        finally:
            self.bench.end(keep=not self.row.is_good)
            if not self.row.is_good:
                self.row.note(f"kept in {self.bench.folder}")
        return [self.row]


def run(settings):
    return FailingDisk(settings).run()
