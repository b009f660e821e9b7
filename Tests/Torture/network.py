"""Bad networks: hundreds of faults of every kind between the gateway and the receiver, each answered by a sync."""
import json
import os
import socket
import time

import records
from accounts import settle
from badnet import FAULTS, STORED, BadNetwork
from bench import Bench, NeverStarted, capture, wait
from report import Row
from server import Receiver

# How many times as long everything may take: on emulated processors.
SLOWER = int(os.environ.get("WAYPOST_TEST_PATIENCE", 1))
# Faults that end only by the gateway's own patience: few of them, with a short one.
SLOW = ("stall", "stored, stall", "stored, drip")
PATIENCE = f"{SLOWER}s"
# A thousand faults a minute.
PER_SECOND = 1000 / 60


class Networks:
    def __init__(self, settings):
        self.settings = settings
        self.random = settings.random
        self.row = Row("network")
        self.bench = Bench(settings)
        self.receiver = Receiver(settings, self.bench.folder)
        self.network = BadNetwork(self.receiver.address, self.random.random(), self.bench.kill)
        capture(self.bench.folder / "capture", 60_000, per_second=200)
        self.bench.configure(
            self.bench.upload(self.network.address, interval="1h") + f'timeout = "{PATIENCE}"\n'
            + f'[beacons]\nsource = "btsnoop:{self.bench.folder}/capture"\nmax_rate = 1000\n'
            + '[storage]\ncommit_interval = "20ms"\n')

    def start(self):
        try:
            self.bench.start()
            return True
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"a start failed: {error}")
            return False

    def choose(self):
        draw = self.random.random()
        if draw < 0.01:
            return self.random.choice(SLOW)
        # A killed gateway costs a start.
        if draw < 0.03:
            return "stored, kill"
        quick = [fault for fault in FAULTS + STORED if fault not in SLOW and fault != "stored, kill"]
        return self.random.choice(quick)

    def sync(self):
        """One sync over the control socket; whether nothing was left, None when the gateway is gone."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20 * SLOWER)
        try:
            client.connect(str(self.bench.run / "control.sock"))
            client.sendall(b'{"command":"sync"}\n')
            # The status comes first, and after each change.
            for line in client.makefile("rb"):
                reply = json.loads(line)
                if "done" in reply or "error" in reply:
                    return reply.get("done", False)
            return None
        except socket.timeout:
            self.row.problem(f"a sync did not end in {20 * SLOWER} s")
            return None
        except OSError:
            return None
        finally:
            client.close()

    def fault(self):
        """One fault, met by one asked sync; now and then a good sync behind it."""
        fault = self.choose()
        before = self.network.done[fault]
        self.network.next_fault = fault
        end = time.monotonic() + 10 * SLOWER
        while self.network.done[fault] == before and time.monotonic() < end:
            # When there is nothing to send yet, the next sync has something.
            self.sync()
        if self.network.done[fault] == before:
            self.row.problem(f"the fault '{fault}' met no request in {10 * SLOWER} s")
            self.network.next_fault = None
            return
        self.row.tried += 1
        if fault == "stored, kill":
            wait("the kill", lambda: self.bench.daemon is None)
            self.start()
        if self.random.random() < 0.4:
            self.sync()

    def run(self):
        end = time.monotonic() + self.settings.seconds
        count = max(20, round(self.settings.seconds * PER_SECOND))
        try:
            if self.start():
                while self.row.tried < count and time.monotonic() < end + 60 * SLOWER and len(self.row.problems) < 5:
                    self.fault()
                    self.settings.progress.show(self.row)
            self.finish()
        finally:
            self.network.end()
            self.receiver.end()
            self.bench.end(keep=not self.row.is_good)
            if not self.row.is_good:
                self.row.note(f"kept in {self.bench.folder}")
        return [self.row]

    def finish(self):
        """A good network at last: everything arrives, each record once."""
        self.network.next_fault = None
        code, output = self.bench.command("sync", "--wait", str(60 * SLOWER), limit=90 * SLOWER)
        if self.bench.stop() != 0:
            self.row.problem("SIGTERM at the end did not end the gateway with 0")
        accounts = settle(self.row, self.bench)
        if accounts is None:
            return
        arrived = records.received(self.receiver.data)
        content = records.Content(self.bench.state / "queue.sqlite")
        for stream in (3, 4):
            self.compare(stream, accounts, arrived[stream], content)
        for problem in self.network.problems[:5]:
            self.row.problem(problem)
        if code:
            self.row.problem(f"the last sync left records: {output.strip()}")
        tries = self.network.tries
        self.row.note(
            f"{self.network.requests} requests for {len(tries)} batches, the most for one {max(tries.values(), default=0)}; "
            + ", ".join(f"{count} {fault}" for fault, count in sorted(self.network.done.items())))

    def compare(self, stream, accounts, arrived, content):
        name = records.NAMES[stream]
        committed = set(content.ids(stream).values())
        if len(committed) != accounts.highest[stream]:
            self.row.problem(f"{name}: {accounts.highest[stream]} numbers, {len(committed)} records with an id of their own")
        # Of those that are not marked as uploaded some are at the receiver all the same.
        kept = accounts.highest[stream] - accounts.uploaded[stream] - accounts.evicted[stream]
        self.row.committed += len(committed)
        got = {record["id"] for record in arrived}
        missing = len(committed - got)
        if missing > kept:
            self.row.lost += missing - kept
            self.row.problem(f"{name}: {missing} records never arrived, {kept} of them are still in the queue")
        if got - committed:
            self.row.problem(f"{name}: {len(got - committed)} records arrived that the queue never had")
        self.row.doubled += records.twice(arrived)[0]
        if accounts.uploaded[stream] > len(got):
            self.row.problem(f"{name}: {accounts.uploaded[stream]} marked as uploaded, {len(got)} at the receiver")


def run(settings):
    return Networks(settings).run()
