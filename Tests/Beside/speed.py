"""In while the server is away, out when it is back: CPU, bytes at the disk, memory and rates of a peer's own processes."""
import subprocess
import threading
import time

from account import read
from peer import wait
from process import cpu, memory

# A peer that takes longer than this is measured over what it did until then.
LIMIT = 25


class Meter:
    """Samples the processes of a peer: CPU of each, those that have ended too, and the most memory of all together."""

    def __init__(self, peer):
        self.peer, self.used, self.private, self.resident = peer, {}, 0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.1):
            self.sample()

    def sample(self):
        private = resident = 0
        for pid in self.peer.pids():
            try:
                self.used[pid] = cpu(pid)
                own, whole, _ = memory(pid)
            except (OSError, ValueError, IndexError):
                continue
            private += own
            resident += whole
        self.private, self.resident = max(self.private, private), max(self.resident, resident)

    def cpu(self):
        """Seconds of CPU so far."""
        self.sample()
        return sum(self.used.values())

    def settle(self, limit=15):
        """Waits until the peer does nothing more: a second with hardly any CPU."""
        end, before = time.monotonic() + limit, self.cpu()
        while time.monotonic() < end:
            time.sleep(1)
            if (now := self.cpu()) - before <= 0.02:
                return
            before = now


class Speed:
    def __init__(self, peer, disk, records, forget=0):
        self.peer, self.disk, self.records, self.forget = peer, disk, records, forget
        self.figures = {}

    def fill(self):
        """Records come in; how many had an answer."""
        began = time.monotonic()
        feeder = self.peer.feed(0, self.records)
        try:
            if feeder.wait(LIMIT) != 0:
                raise ChildProcessError(f"the program that feeds {self.peer.name}: {self.peer.last_words()}")
        except subprocess.TimeoutExpired:
            feeder.kill()
            feeder.wait()
        log = read(self.peer.acknowledged)
        count = sum(entry[2] for entry in log)
        # From the first answer on: what was made before the first record went is not the peer's time.
        self.figures["in_per_s"] = count / max((log[-1][0] - log[0][0]) / 1e9, 0.001) if log else 0
        self.figures["seconds_in"] = time.monotonic() - began
        return count

    def drain(self, count):
        """The server is there; how many arrived until all were there, or nothing more came."""
        path, entry = self.peer.arrivals, 24
        self.peer.server(self.forget)
        began, size, changed = time.monotonic(), 0, time.monotonic()
        self.peer.nudge()
        while size < count * entry:
            time.sleep(0.02)
            at = time.monotonic()
            now = path.stat().st_size if path.exists() else 0
            if now != size:
                size, changed = now, at
            elif at - changed > 1:
                self.peer.nudge()
            if at - changed > 8 or at - began > LIMIT + 10:
                break
            if at - changed > 1:
                time.sleep(0.5)
        log, connected = read(path), read(f"{path}.first")
        if log:
            # From its first connection on: when it tries again is a setting.
            self.figures["out_per_s"] = len(log) / max((log[-1][0] - connected[0][0]) / 1e9, 0.001)
        return len(log)

    def run(self):
        peer, figures = self.peer, self.figures
        peer.interval = "5m"
        try:
            peer.prepare()
            before = self.disk.written()
            peer.start()
            meter = Meter(peer)
            time.sleep(0.5)
            start = meter.cpu()
            count = self.fill()
            meter.settle()
            filled, stored = meter.cpu(), self.disk.written()
            figures.update(records=count, cpu_in_us=(filled - start) / count * 1e6)
            figures["resident_in"], figures["private_in"] = meter.resident, meter.private
            came = self.drain(count)
            meter.settle(5)
            drained, sent = meter.cpu(), self.disk.written()
            figures.update(arrived=came, missing=max(0, count - came))
            if came:
                figures["cpu_out_us"] = (drained - filled) / came * 1e6
                figures["cpu_us"] = figures["cpu_in_us"] + figures["cpu_out_us"]
            figures["bytes_in"] = (stored - before) / count
            figures["bytes"] = (sent - before) / count
            figures.update(private=meter.private, resident=meter.resident)
            meter.ended.set()
        finally:
            peer.end()
        return figures


class SightingsSpeed(Speed):
    """The same for what comes from a radio: no program feeds it, and nothing is answered for."""

    def fill(self):
        began = time.monotonic()
        self.peer.hear()
        wait("the sightings", self.has_all, 60)
        self.figures["seconds_in"] = time.monotonic() - began
        self.figures["in_per_s"] = self.records / self.figures["seconds_in"]
        return self.peer.stored()

    def has_all(self):
        # Each question costs what is measured.
        time.sleep(0.1)
        return self.peer.stored() >= self.records
