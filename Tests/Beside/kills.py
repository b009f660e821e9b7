"""kill -9 at drawn instants while records come in and go out; at the end all that was answered for must have arrived."""
import shutil
import time

from account import Account, arrived, promised, read
from peer import wait

# Records a second that the program hands over: enough that each kill meets some on their way.
RATE = 4000


def size(path):
    return path.stat().st_size if path.exists() else 0


class Quiet:
    """True once everything that was promised is there and nothing more comes, or nothing comes at all any more."""

    def __init__(self, peer, expected, patience):
        self.peer, self.expected, self.patience = peer, expected, patience
        self.size, self.changed, self.nudged = -1, time.monotonic(), 0.0

    def __call__(self):
        at = time.monotonic()
        if (now := size(self.peer.arrivals)) != self.size:
            self.size, self.changed = now, at
        if at - self.nudged > 1:
            self.peer.nudge()
            self.nudged = at
        if at - self.changed > self.patience:
            return True
        if at - self.changed > 0.7:
            return self.expected <= {number for _, number, _ in read(self.peer.arrivals)}
        time.sleep(0.1)
        return False


def drain(peer, expected, patience=8.0):
    """Lets the peer send what it has left to a server that is there."""
    peer.server()
    wait(f"{peer.name} to be drained", Quiet(peer, expected, patience), 180)


class Kills:
    def __init__(self, peer, random, count, progress, forget=0):
        self.peer, self.random, self.count, self.progress, self.forget = peer, random, count, progress, forget
        self.account = Account()
        self.next = 0

    def life(self):
        """One start, a server that is there or away, a while with records, one kill."""
        peer, random = self.peer, self.random
        if random.random() < 0.7:
            peer.server(self.forget)
        if random.random() < 0.15:
            # While it starts.
            peer.configure()
            peer.begin()
            time.sleep(random.uniform(0, 0.12))
        else:
            peer.start()
            life = min(2.0, random.expovariate(2))
            count = int(RATE * life * 2)
            known = size(peer.acknowledged)
            peer.feed(self.next, count, RATE)
            self.next += count
            # On a busy machine the program takes a while to begin.
            wait("a first answer", lambda: size(peer.acknowledged) > known or peer.feeder.poll() is not None, 20)
            time.sleep(life)
        peer.kill()
        # The program sees its connection end, and has logged the last answer by then.
        if peer.feeder:
            peer.feeder.wait(10)
        peer.away()
        self.account.tried += 1

    def run(self):
        peer = self.peer
        try:
            peer.prepare()
            for number in range(self.count):
                self.life()
                if number % 10 == 9:
                    self.progress(f"{peer.title}: {number + 1} kills")
            expected = promised(peer.acknowledged)
            peer.start()
            drain(peer, expected)
            missing = self.account.enter(expected, arrived(peer.arrivals))
            if missing:
                self.account.note(f"lost by kill -9: {len(missing)} records, the first {min(missing)}, the last {max(missing)}")
        finally:
            peer.end()
            shutil.rmtree(peer.state, ignore_errors=True)
        return self.account
