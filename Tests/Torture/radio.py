"""A Bluetooth controller that fails in every way under the running gateway, in real time: some six minutes."""
import os
import pathlib
import signal
import socket
import struct
import subprocess

import threading
import time

from accounts import check_admitted, check_status, settle
from bench import ENDS_WITH_US, Bench, wait
from listening import Listening
from report import Row

EVENT, LE_META = 0x04, 0x3E
RESET, SCAN_ON = bytes([1, 0x03, 0x0C, 0]), bytes([1, 0x0C, 0x20, 2, 1])
# Most that may pass until it collects again: 90 s of silence, a tick of the health timer of 30 s for each step, and
# what a busy machine needs.
SLACK = 20
# How long the radio is silent whatever is done about it, and how long the controller hangs.
QUIET, HUNG, KILLED = 300, 150, 5

class Air:
    """The simulated controller in a process of its own."""

    def __init__(self, port=0):
        script = pathlib.Path(__file__).resolve().parents[1] / "Peers/beacons.py"
        python = script.parents[2] / ".build/tools/bin/python3"
        self.process = subprocess.Popen([*ENDS_WITH_US, python, script, "--port", str(port)], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().split()[-1])

    def kill(self):
        self.process.kill()
        self.process.wait()

class Wire(Listening):
    """The connection between gateway and controller: may keep reports to itself, and break in the middle of one."""

    def __init__(self, port):
        self.port = port
        self.muted_until = None
        self.is_cutting = False
        self.withheld = self.resets = self.scans = 0
        super().__init__()

    def serve(self, client):
        try:
            controller = socket.create_connection(("127.0.0.1", self.port))
        except OSError:
            client.close()
            return
        if self.muted_until == "connection":
            self.muted_until = None
        host = threading.Thread(target=self.commands, args=(client, controller), daemon=True)
        host.start()
        try:
            self.events(controller, client)
            # Closing has no effect while the other thread reads.
            client.shutdown(socket.SHUT_RD)
        except OSError:
            pass
        host.join()
        for end in (client, controller):
            end.close()

    def commands(self, client, controller):
        try:
            while data := client.recv(4096):
                # The gateway sends one command and waits for its answer.
                self.resets += data.startswith(RESET)
                self.scans += data.startswith(SCAN_ON)
                controller.sendall(data)
                if (self.muted_until == "scan" and data.startswith(SCAN_ON)) or (
                        self.muted_until == "reset" and data.startswith(RESET)):
                    self.muted_until = None
            controller.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def events(self, controller, client):
        stream = controller.makefile("rb")
        while len(head := stream.read(3)) == 3 and head[0] == EVENT:
            packet = head + stream.read(head[2])
            if head[1] == LE_META and self.is_cutting:
                self.is_cutting = False
                client.sendall(packet[:len(packet) // 2])
                time.sleep(0.2)
                # A reset, not an orderly end.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if head[1] == LE_META and self.muted_until:
                self.withheld += 1
                continue
            client.sendall(packet)

class Fault:
    """One gateway, one controller, one fault."""

    def __init__(self, settings, name, limit, inject, lost=0):
        self.settings, self.name, self.limit, self.inject = settings, name, limit, inject
        # The count that the ledger must record as missed.
        self.lost = lost
        self.problems, self.note, self.records = [], "", 0
        self.seen = []

    def start(self):
        self.air = Air()
        self.wire = Wire(self.air.port)
        self.bench = Bench(self.settings)
        self.bench.configure(f'[beacons]\nsource = "h4:{self.wire.address}"\nmax_rate = 1000\n'
                             '[storage]\ncommit_interval = "200ms"\n')
        self.bench.start()
        wait(f"{self.name}: sightings", lambda: self.source()["records"] > 20, 60)

    def source(self):
        status = self.bench.status()
        return status["sources"]["beacons"] if status else {"records": 0, "detail": "", "state": "?", "reason": ""}

    def well(self, source):
        return source["state"] == "loaded" and "nothing heard" not in source["detail"]

    def watch(self, until):
        """Yields the source's state until the time `until`, and records each change."""
        while time.monotonic() < until:
            source = self.source()
            words = source["detail"] if source["state"] == "loaded" else f"{source['state']}: {source.get('reason')}"
            if not self.seen or self.seen[-1][1] != words:
                self.seen.append((time.monotonic() - self.began, words))
            yield source
            time.sleep(0.1)

    def run(self):
        try:
            self.start()
            before = self.source()
            self.began = time.monotonic()
            self.heal = self.inject(self)
            self.observe(before)
            self.finish()
        except Exception as error:
            self.problems.append(f"{self.name}: {error!r}")

    def observe(self, before):
        quiet_since, count = time.monotonic(), before["records"]
        recovered = None
        for source in self.watch(self.began + self.limit + 60):
            if self.heal and self.heal():
                self.heal = None
            if source["records"] > count:
                if time.monotonic() - quiet_since > 1.5 and self.well(source) and not self.heal:
                    recovered = time.monotonic() - self.began
                    break
                quiet_since, count = time.monotonic(), source["records"]
        said = [at for at, words in self.seen[1:]]
        if recovered is None or recovered > self.limit:
            self.problems.append(f"{self.name}: collecting again after {recovered} s, {self.limit} s are allowed")
        steps = "; ".join(f"{at:.0f} s {words}" for at, words in self.seen[1:])
        self.note = (f"{self.name}: told after {said[0] if said else 0:.0f} s, collecting again after {recovered or 0:.1f} s; "
                     f"{self.wire.withheld} reports withheld, {self.wire.resets} resets and {self.wire.scans} scans in all"
                     + (f"\n    {steps}" if steps else ""))

    def finish(self):
        if self.bench.stop() != 0:
            self.problems.append(f"{self.name}: SIGTERM did not end it with 0")
        row = Row(self.name)
        accounts = settle(row, self.bench)
        if accounts:
            status = self.bench.last_status(row)
            check_status(row, accounts, status)
            check_admitted(row, accounts, status)
            missed = accounts.ledger.get((3, "missed"), 0)
            self.note += f"\n    in the ledger as missed: {missed} of {self.lost}"
            if missed != self.lost:
                row.problem(f"{missed} in the ledger as missed, not {self.lost}")
            self.records = accounts.highest[3]
        # A controller that does not answer is asked to with each new connection.
        if self.wire.withheld and self.wire.resets > 1 + 3:
            row.problem(f"{self.wire.resets - 1} resets in an hour")
        self.problems += [f"{self.name}: {problem}" for problem in row.problems]

    def end(self):
        self.bench.end(keep=bool(self.problems))
        self.air.kill()

def muted(until):
    def inject(fault):
        fault.wire.muted_until = until
        return None
    return inject

def quiet(fault):
    fault.wire.muted_until = "the end"
    end = time.monotonic() + QUIET

    def heal():
        if time.monotonic() < end:
            return False
        if any("error" in words for _, words in fault.seen):
            fault.problems.append(f"{fault.name}: a quiet place was called an error")
        fault.wire.muted_until = None
        return True
    return heal

def killed(fault):
    fault.air.kill()
    end = time.monotonic() + KILLED

    def heal():
        if time.monotonic() < end:
            return False
        fault.air = Air(fault.wire.port)
        return True
    return heal

def cut(fault):
    fault.wire.is_cutting = True

def hung(fault):
    process = fault.air.process
    os.kill(process.pid, signal.SIGSTOP)
    end = time.monotonic() + HUNG

    def heal():
        if time.monotonic() < end:
            return False
        if not any(words.startswith("error") for _, words in fault.seen):
            fault.problems.append(f"{fault.name}: never called an error: {fault.seen}")
        os.kill(process.pid, signal.SIGCONT)
        return True
    return heal

FAULTS = [
    ("silent until the scan is started again", 120 + SLACK, muted("scan"), 0),
    ("silent until it is reset", 150 + SLACK, muted("reset"), 0),
    ("silent until it is connected anew", 180 + SLACK, muted("connection"), 0),
    (f"silent for {QUIET} s whatever is done", QUIET + SLACK, quiet, 0),
    (f"killed, started again after {KILLED} s", KILLED + 10 + SLACK, killed, 0),
    ("connection reset in a packet", 2 + SLACK, cut, 1),
    (f"hangs for {HUNG} s (SIGSTOP)", HUNG + 40 + SLACK, hung, 0),
]

def run(settings):
    row = Row("radio")
    faults = [Fault(settings, *fault) for fault in FAULTS]
    threads = [threading.Thread(target=fault.run, daemon=True) for fault in faults]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        settings.progress.show(row, f"{sum(thread.is_alive() for thread in threads)} faults under way")
        time.sleep(0.2)
    for fault in faults:
        row.tried += 1
        row.committed += fault.records
        row.note(fault.note or f"{fault.name}: {fault.problems}")
        for problem in fault.problems:
            row.problem(problem)
        fault.end()
    return [row]
