"""Power cuts by the log of writes: one run on a folder that logs gives any number of disks as a cut may leave them."""
import bisect
import shutil
import time

import diskimage
from account import Account, arrived, promised
from disk import Journalled, Logged
from kills import drain

# Records a second, and seconds: the server is away for the first part of them.
RATE = 500
SECONDS, AWAY = 9, 4


class Cuts:
    def __init__(self, kind, programs, folder, random, count, progress):
        self.kind, self.programs, self.folder = kind, programs, folder
        self.random, self.count, self.progress = random, count, progress
        self.account = Account()
        self.failed = self.worst = 0

    def record(self):
        """The run that is never cut; gives its peer, and the log."""
        logged = Logged(self.programs, self.folder)
        peer = self.kind(self.programs, logged.mounted, self.folder / "whole")
        try:
            peer.prepare()
            peer.start()
            began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            peer.feed(0, RATE * SECONDS, RATE)
            time.sleep(AWAY)
            peer.server()
            for _ in range(SECONDS - AWAY):
                peer.nudge()
                time.sleep(1)
        finally:
            peer.kill()
            # The program's last answers are logged.
            time.sleep(0.2)
            peer.away()
            logged.end()
        return peer, began, diskimage.read_log(logged.log)

    def instants(self, entries, began):
        """Index in the log and time: half at random times, half at random changes, where the disk is least in order."""
        times = [entry.time for entry in entries]
        first, chosen = bisect.bisect(times, began), []
        for number in range(self.count):
            if number % 2:
                index = self.random.randrange(first, len(entries))
                # The last instant at which nothing more had been written.
                chosen.append((index, times[index]))
            else:
                at = self.random.randint(began, times[-1])
                chosen.append((bisect.bisect(times, at), at))
        return sorted(chosen)

    def cut(self, disk, index, at, whole):
        disk.advance(index)
        state = self.folder / "image"
        disk.image(state, self.random, at)
        before, had = promised(whole.acknowledged, at), arrived(whole.arrivals, at)
        peer = self.kind(self.programs, state, self.folder / "revived")
        self.account.tried += 1
        try:
            try:
                peer.start(15)
            except (ChildProcessError, TimeoutError) as error:
                self.failed += 1
                self.account.note(f"did not start after {self.failed} cuts, the last: {error}")
            else:
                drain(peer, before - {number for number, _ in had}, 4.0)
            missing = self.account.enter(before, had + arrived(peer.arrivals))
            if missing:
                self.worst = max(self.worst, len(missing))
        finally:
            peer.end()
            shutil.rmtree(state, ignore_errors=True)
            shutil.rmtree(peer.work, ignore_errors=True)

    def run(self):
        self.progress(f"{self.kind.title}: the run that will be cut, {SECONDS} s")
        whole, began, entries = self.record()
        if not promised(whole.acknowledged) or not arrived(whole.arrivals):
            raise ChildProcessError(f"nothing was stored or sent in the run to be cut: {whole.last_words()}")
        disk = Journalled(entries, self.folder / "logged")
        for number, (index, at) in enumerate(self.instants(entries, began), 1):
            self.cut(disk, index, at, whole)
            if number % 5 == 0:
                self.progress(f"{self.kind.title}: {number} power cuts")
        if self.account.lost:
            self.account.note(f"lost by a power cut: {self.worst} records at most")
        return self.account
