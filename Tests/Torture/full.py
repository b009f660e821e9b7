"""A full disk: by other programs on a small file system, and by the queue's own limit."""
import os
import signal
import subprocess
import time

import records
from accounts import check_admitted, check_status, settle
from bench import ENDS_WITH_US, Bench, NeverStarted, capture, wait
from report import Row
from server import Network, Receiver

BEACONS = '[beacons]\nsource = "btsnoop:{path}"\nreplay_speed = {speed}\nmax_rate = 1000\n'
AUDIO = '[audio]\ndevice = "mic"\nchunk = "2s"\noverlap = "200ms"\n'
LIMITS = '[storage]\nmax_size = "40MB"\nwarn_free = "16MB"\ncritical_free = "8MB"\n'
# Takes every byte that becomes free, for as long as it runs.
FILL = 'while :; do head -c 1000000 /dev/zero >>"$0" 2>/dev/null || { head -c 4096 /dev/zero >>"$0"; sleep 0.02; } 2>/dev/null; done'


class FullDisk:
    """Another program fills the file system, stays a while and goes."""

    def __init__(self, settings):
        self.settings = settings
        self.row = Row("disk full")
        self.bench = Bench(settings)
        self.small = self.bench.folder / "small"
        self.small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", self.small], check=True, capture_output=True)
        self.bench.state = self.small / "state"
        self.bench.microphone()
        capture(self.bench.folder / "capture", 200_000, per_second=2000, burst=20)
        self.bench.configure(BEACONS.format(path=self.bench.folder / "capture", speed="1.0") + AUDIO + LIMITS)

    def fill(self):
        return subprocess.Popen([*ENDS_WITH_US, "sh", "-c", FILL, self.small / "filling"], start_new_session=True)

    def free(self, filler):
        os.killpg(filler.pid, signal.SIGKILL)
        filler.wait()
        (self.small / "filling").unlink()

    def watch(self, seconds, seen):
        """Collects what status says while the disk is full; it must go on answering."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.bench.status()
            if status is None:
                self.row.problem("no answer on the socket while the disk is full")
                return
            seen.append(status)
            self.settings.progress.show(self.row, f"storage {status['storage']['state']}")
            time.sleep(0.1)

    def has_recovered(self):
        status = self.bench.status()
        return (status is not None and status["storage"]["state"] in ("ok", "low", "full")
                and status["sources"]["audio"]["state"] == "loaded")

    def judge(self, seen):
        """Checks the reports made while the disk was full."""
        if not any(status["sources"]["audio"]["code"] == "E004" for status in seen):
            self.row.problem("sound did not stop with E004 on a full disk")
        if not any(status["state"] == "critical" for status in seen):
            self.row.problem("status was never critical on a full disk")
        if not any(error["code"] == "E004" for status in seen for error in status["recent_errors"]):
            self.row.problem("no E004 among the recent errors of a full disk")

    def round(self, restarts):
        """One time from room enough over full to room enough."""
        self.bench.start()
        time.sleep(1.5)
        filler = self.fill()
        seen = []
        self.watch(3, seen)
        if restarts:
            filler = self.restart(filler)
            self.watch(2, seen)
        self.judge(seen)
        self.free(filler)
        self.row.tried += 1
        try:
            wait("recovery once there is room", self.has_recovered, 40)
        except TimeoutError as error:
            status = self.bench.status() or {}
            self.row.problem(f"{error}: storage {status.get('storage')}, audio {status.get('sources', {}).get('audio')}")
        time.sleep(1)
        self.end_round(restarts)

    def restart(self, filler):
        """kill -9 and a start on the full disk; nothing else writes to it then."""
        os.killpg(filler.pid, signal.SIGSTOP)
        self.bench.kill()
        try:
            self.bench.start()
            os.killpg(filler.pid, signal.SIGCONT)
            return filler
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"on a full disk: {error}")
            self.free(filler)
            self.bench.start()
            return self.fill()

    def end_round(self, restarts):
        if self.bench.stop() != 0:
            self.row.problem("SIGTERM did not end it with 0")
        accounts = settle(self.row, self.bench)
        if not accounts:
            return
        status = self.bench.last_status(self.row)
        self.row.committed += sum(accounts.highest.values())
        check_status(self.row, accounts, status)
        # A kill takes along what was in memory, which nobody can count.
        if not restarts:
            check_admitted(self.row, accounts, status)
        self.row.note(f"beacons: {accounts.highest[3]} numbered, {accounts.evicted[3]} evicted, "
                      f"{accounts.lost(3)} never stored; all in the ledger")
        for path in self.bench.state.glob("queue.sqlite*"):
            path.unlink()

    def run(self):
        end = time.monotonic() + self.settings.seconds
        restarts = False
        try:
            while True:
                self.round(restarts)
                restarts = not restarts
                if time.monotonic() > end and self.row.tried >= 2:
                    break
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(str(error))
        finally:
            self.bench.kill()
            subprocess.run(["umount", "-l", self.small], check=False)
            self.bench.end(keep=not self.row.is_good)
        return self.row


class OwnLimit:
    """More records than storage.max_size holds: the rest must arrive, the evicted must be reported."""

    def __init__(self, settings):
        self.settings = settings
        self.row = Row("queue at its limit")
        self.bench = Bench(settings)
        self.limit = 1_500_000

    def run(self):
        bench, row = self.bench, self.row
        receiver = Receiver(self.settings, bench.folder)
        network = Network(receiver.address)
        try:
            storage = f'[storage]\nmax_size = "{self.limit // 1000}kB"\nwarn_free = "2MB"\ncritical_free = "1MB"\n'
            capture(bench.folder / "capture", 150_000)
            bench.configure(BEACONS.format(path=bench.folder / "capture", speed="0.0") + storage)
            bench.start()
            largest = self.collect()
            if largest > self.limit * 1.05:
                row.problem(f"the database grew to {largest} bytes, {self.limit} are allowed")
            if bench.stop() != 0:
                row.problem("SIGTERM did not end it with 0")
            accounts = settle(row, bench)
            status = bench.last_status(row)
            if accounts:
                check_status(row, accounts, status)
                check_admitted(row, accounts, status)
                self.send(accounts, network, receiver, storage)
        except NeverStarted as error:
            row.start_failures += 1
            row.problem(str(error))
        finally:
            network.end()
            receiver.end()
            bench.end(keep=not row.is_good)
        return row

    def collect(self):
        largest = 0
        end = time.monotonic() + 60
        while time.monotonic() < end:
            largest = max(largest, sum(path.stat().st_size for path in self.bench.state.glob("queue.sqlite*")
                                       if not path.name.endswith(("-shm", "-reserve"))))
            status = self.bench.status()
            if status and "finished" in (status["sources"]["beacons"]["detail"] or ""):
                break
            self.settings.progress.show(self.row, "more than it holds")
            time.sleep(0.05)
        return largest

    def send(self, accounts, network, receiver, storage):
        row, bench = self.row, self.bench
        row.tried += 1
        row.committed += sum(accounts.highest.values())
        bench.configure(bench.upload(network.address) + storage)
        bench.start()
        code, output = bench.command("sync", "--wait", "60")
        if code:
            row.problem(f"sync: {output.strip()}")
        bench.stop()
        arrived = records.received(receiver.data)
        same_id, same_content = records.twice(arrived[3])
        row.doubled += same_id + same_content
        # The start may have made room once more for what came last before the end.
        accounts = settle(row, bench) or accounts
        missing = accounts.highest[3] - len(arrived[3])
        if missing != accounts.evicted[3]:
            row.lost += abs(missing - accounts.evicted[3])
            row.problem(f"beacons: {missing} did not arrive, {accounts.evicted[3]} were said to be evicted")
        if not accounts.evicted[3]:
            row.problem("nothing was evicted, so nothing was tested")
        kinds = {record["kind"] for record in arrived[4]}
        if "evicted" not in kinds:
            row.problem(f"no event tells of the eviction, only {sorted(kinds)}")
        row.note(f"{accounts.highest[3]} beacons, {accounts.evicted[3]} evicted, {len(arrived[3])} arrived")


def run(settings):
    rows = [OwnLimit(settings).run()]
    try:
        disk = FullDisk(settings)
    except subprocess.CalledProcessError:
        row = Row("disk full")
        row.problem("no file system of its own can be mounted here: run it as root, or allow user namespaces")
        return rows + [row]
    return rows + [disk.run()]
