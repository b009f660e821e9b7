"""The kernel's Bluetooth with a simulated controller: rights, ends and faults of an adapter."""
import contextlib
import json
import os
import signal
import subprocess
import time

from gateway import CAPABILITIES, NOBODY, Gateway
from guest import PARTS
from pace import is_prompt, wait_for

TABLE = '[beacons]\nsource = "hci0"\n'


class Air:
    """The process with the controller (air.py)."""

    def __init__(self, guest):
        self.process = subprocess.Popen(
            [guest.python, str(PARTS / "air.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open("/bench/air.log", "ab"), text=True)
        json.loads(self.process.stdout.readline())

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"air: {command}: {answer['error']}")
        return answer

    @property
    def is_scanned(self):
        return self.ask("state")["scanning"]


class Scenarios:
    def __init__(self, guest):
        self.guest = guest
        guest.say("loading the kernel's Bluetooth, starting the beacons")
        for module in ("bluetooth", "hci_vhci", "rfkill"):
            guest.run("modprobe", module)
        self.air = Air(guest)
        self.trace = subprocess.Popen(["btmon", "-w", "/bench/bluetooth.btsnoop"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)

    def all(self):
        for name in ("root", "user", "extended", "forbidden", "down_at_start", "down", "reset", "rfkill", "removed",
                     "other_number", "hung", "scan_off", "crash", "overrun", "shared", "restarted", "their_scan"):
            yield name, getattr(self, name)

    def end(self):
        self.trace.terminate()
        self.air.process.kill()

    @contextlib.contextmanager
    def gateway(self, name, radio="mixed", rights=()):
        """An adapter that is there and a gateway that is not started yet."""
        try:
            self.adapter(radio)
            gateway = Gateway(self.guest, name, "beacons", TABLE, rights)
            try:
                yield gateway
            finally:
                gateway.end()
        finally:
            self.air.ask("close")

    def adapter(self, radio="mixed"):
        self.air.ask(f"open {radio}")
        # The kernel sets a new adapter up, and takes it down when nobody wants it.
        if wait_for(lambda: "BD Address" in self.guest.run("hciconfig", "hci0", check=False), 20) is None:
            raise RuntimeError("no hci0")

    def hci(self, *arguments):
        return self.guest.run("hciconfig", "hci0", *arguments)

    @contextlib.contextmanager
    def collecting(self, row, name, beside=contextlib.nullcontext):
        """A gateway that has begun to collect; afterwards its records are compared with the receiver's.

        `beside`: what runs from before its start until after its end.
        """
        with self.gateway(name) as gateway, beside():
            began = time.monotonic()
            gateway.begin()
            started = gateway.collects(60)
            if not row.check(started is not None, f"nothing collected in 60 s: {gateway.words()}"):
                return
            row.see(f"first sightings {time.monotonic() - began:.1f} s after start")
            yield gateway
            gateway.finish(row)
            row.check(not self.air.is_scanned or "DOWN" in self.hci(), "the scan was left on")

    def all_kinds(self, row, name, radio, rights=()):
        with self.gateway(name, radio, rights) as gateway:
            gateway.begin()
            enough = wait_for(lambda: gateway.count >= 20, 90)
            row.check(enough is not None, f"{gateway.count} sightings in 90 s: {gateway.words()}")
            row.see(gateway.report().get("detail") or "")
            state = self.air.ask("state")
            row.check(not state["duplicates_filtered"], "the controller filters duplicates")
            arrived = gateway.finish(row, at_least=20)
            kinds = {record["kind"] for record in arrived}
            row.check({"ibeacon", "eddystone_uid", "ruuvi"} <= kinds, f"only {', '.join(sorted(kinds))}")
            row.check(not self.air.is_scanned, "the scan was left on")

    def root(self, row):
        """as root, a radio with legacy commands and extended reports: all kinds of beacon, each id once"""
        self.all_kinds(row, "root", "mixed")

    def user(self, row):
        """as an ordinary user with CAP_NET_RAW and CAP_NET_ADMIN, a legacy radio: the same"""
        self.all_kinds(row, "user", "legacy", NOBODY + CAPABILITIES)

    def extended(self, row):
        """a radio of Bluetooth 5, all extended: the same"""
        self.all_kinds(row, "extended", "extended", NOBODY + CAPABILITIES)

    def forbidden(self, row):
        """as a user without capabilities: E005 with what to do"""
        with self.gateway("forbidden", rights=NOBODY) as gateway:
            gateway.begin()
            row.detected = wait_for(lambda: gateway.report().get("state") == "error", 30)
            row.see(gateway.words())
            row.check(gateway.report().get("code") == "E005", f"code {gateway.report().get('code')}")
            row.check("CAP_NET_RAW" in (gateway.report().get("reason") or ""), "no next step")
            row.check(gateway.stop(limit=30) == 0, "SIGTERM did not end it with 0")

    def down_at_start(self, row):
        """the adapter is down at the start: brought up"""
        with self.gateway("down-at-start") as gateway:
            self.hci("down")
            began = time.monotonic()
            gateway.begin()
            collecting = gateway.collects(60)
            if row.check(collecting is not None, f"not collecting: {gateway.words()}"):
                row.recovered = time.monotonic() - began
            row.see("UP" if "UP" in self.hci() else "still DOWN")
            gateway.finish(row)

    def down(self, row):
        """hciconfig hci0 down while it runs: noticed, up again by itself"""
        with self.collecting(row, "down") as gateway:
            gateway.recovers(row, lambda: self.hci("down"), lambda: None)

    def reset(self, row):
        """hciconfig hci0 reset while it runs: the scan is set up again"""
        with self.collecting(row, "reset") as gateway:
            gateway.recovers(row, lambda: self.hci("reset"), lambda: None, notice_limit=5)

    def rfkill(self, row):
        """rfkill block, 4 s later unblock: noticed; it lifts the block itself, or collects after it"""
        with self.collecting(row, "rfkill") as gateway:
            def back():
                time.sleep(4)
                blocked = "Soft blocked: yes" in self.guest.run("rfkill", "list", "bluetooth")
                row.see(f"{'still blocked' if blocked else 'unblocked it'} after 4 s: “{gateway.words()}”")
                self.guest.run("rfkill", "unblock", "bluetooth")
            gateway.recovers(row, lambda: self.guest.run("rfkill", "block", "bluetooth"), back)

    def removed(self, row):
        """the controller is pulled out and 4 s later put in again"""
        with self.collecting(row, "removed") as gateway:
            def back():
                time.sleep(4)
                self.adapter()
            gateway.recovers(row, lambda: self.air.ask("close"), back)

    def other_number(self, row):
        """the controller comes back as hci1 and hci0 is gone: says so; it is hci0 again: collecting"""
        with self.collecting(row, "other-number") as gateway:
            def move():
                self.air.ask("close")
                self.air.ask("other")
                self.air.ask("open mixed")
                self.air.ask("end_other")

            def back():
                said = wait_for(lambda: gateway.words().startswith("error"), 20)
                row.check(said is not None, f"does not say that hci0 is gone: {gateway.words()}")
                self.air.ask("close")
                self.adapter()
            gateway.recovers(row, move, back)

    def hung(self, row):
        """the adapter is down, and the call that brings it up never returns: told in 60 s; once it returns: collecting"""
        with self.gateway("hung") as gateway:
            self.hci("down")
            switch = gateway.folder / "hang"
            switch.touch()
            gateway.start(limit=60, environment={
                "LD_PRELOAD": "/bench/hangs.so", "HANGS_WHILE": str(switch), "HANGS_CALLS": "HCIDEVUP"})
            row.detected = wait_for(lambda: "HCIDEVUP" in gateway.words(), 90)
            row.see(f"says “{gateway.words()}”")
            row.check(is_prompt(row.detected, 60), "not told in 60 s")
            switch.unlink()
            row.recovered = gateway.collects(120)
            row.check(row.recovered is not None, f"not collecting after it: {gateway.words()}")
            # A restarted run counts as recovered after a minute.
            well = wait_for(lambda: gateway.is_well, 120)
            row.check(well is not None, f"not well after it: {gateway.words()}")
            gateway.finish(row)

    def scan_off(self, row):
        """SIGTERM: the scan is off, the adapter still up"""
        with self.gateway("scan-off") as gateway:
            gateway.begin()
            row.check(gateway.collects(60) is not None, "nothing collected")
            row.check(self.air.is_scanned, "no scan while it collects")
            gateway.finish(row)
            row.check(not self.air.is_scanned, "the scan was left on")
            row.see("scan off" + (", adapter up" if "UP" in self.hci() else ", adapter DOWN"))

    def crash(self, row):
        """kill -9 leaves the scan on; the next start takes it over, its end switches it off"""
        with self.collecting(row, "crash") as gateway:
            gateway.kill()
            row.see("scan left on" if self.air.is_scanned else "scan off after kill -9")
            began = time.monotonic()
            gateway.begin()
            row.check(gateway.collects(60) is not None, f"not collecting: {gateway.words()}")
            row.recovered = time.monotonic() - began

    def overrun(self, row):
        """stopped (SIGSTOP) under a flood of 8,000 reports: what the kernel dropped is counted"""
        count = 8_000
        self.adapter("legacy")
        gateway = Gateway(self.guest, "overrun", "beacons", TABLE + 'allow = ["kind:ruuvi"]\n')
        try:
            gateway.begin()
            row.check(gateway.collects(60) is not None, "nothing collected")
            os.kill(gateway.daemon.pid, signal.SIGSTOP)
            self.air.ask(f"flood {count}")
            os.kill(gateway.daemon.pid, signal.SIGCONT)
            wait_for(lambda: gateway.report().get("dropped", 0) > 0, 30)
            # Until it has caught up: what comes then is one beacon, twice a second.
            last = [(-100, time.monotonic())]

            def is_calm():
                if gateway.count > last[0][0] + 20:
                    last[0] = (gateway.count, time.monotonic())
                return time.monotonic() - last[0][1] > 8
            wait_for(is_calm, 120)
            dropped = gateway.report().get("dropped", 0)
            arrived = gateway.finish(row)
            readings = [record.get("telemetry", {}) for record in arrived]
            flood = sum(1 for reading in readings
                        if (reading.get("humidity_percent"), reading.get("temperature_c")) == (55.3, 24.3))
            row.records = f"{count} sent, {flood} arrived, {dropped} dropped"
            row.check(dropped > 0, "no drop was counted")
            row.check(abs(count - flood - dropped) <= 50, f"{count - flood - dropped} unaccounted for")
        finally:
            gateway.end()
            self.air.ask("close")

    @contextlib.contextmanager
    def bus(self):
        self.guest.run("mkdir", "-p", "/run/dbus")
        bus = subprocess.Popen(["dbus-daemon", "--system", "--nofork", "--nopidfile"], stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            bus.kill()
            bus.wait()

    @contextlib.contextmanager
    def bluetoothd(self):
        """BlueZ's daemon, once it manages the adapter."""
        daemon = subprocess.Popen(["/usr/libexec/bluetooth/bluetoothd", "-n", "-d"],
                                  stderr=open("/bench/bluetoothd.log", "ab"))
        try:
            if wait_for(lambda: "Powered: " in self.control("show"), 60) is None:
                raise RuntimeError("bluetoothd does not manage the adapter")
            yield
        finally:
            daemon.terminate()
            daemon.wait()

    def control(self, *arguments):
        # It waits for a daemon that is not there.
        return self.guest.run("timeout", "30", "bluetoothctl", *arguments, check=False, limit=60)

    def shared(self, row):
        """bluetoothd beside it, discovering and not: hearing all along, again 5 s after its discovery at most"""
        with self.bus(), self.collecting(row, "shared", beside=self.bluetoothd) as gateway:
            row.check(gateway.collects(20) is not None, "silent beside bluetoothd")
            self.control("--timeout", "6", "scan", "on")
            discovery = self.control("show")
            row.recovered = gateway.collects(40)
            row.see("discovery still on" if "Discovering: yes" in discovery else "discovery ended")
            row.check(is_prompt(row.recovered), f"silent after it: {gateway.words()}")

    def restarted(self, row):
        """bluetoothd starts and ends while it collects: collecting again in 5 s"""
        with self.bus(), self.collecting(row, "restarted") as gateway:
            with self.bluetoothd():
                row.recovered = gateway.collects(40)
                row.check(is_prompt(row.recovered), "silent after its start")
            again = gateway.collects(40)
            row.check(is_prompt(again), "silent after its end")

    def their_scan(self, row):
        """SIGTERM while bluetoothd discovers: its scan is there again within 20 s"""
        with self.bus(), self.gateway("their-scan") as gateway, self.bluetoothd():
            gateway.begin()
            row.check(gateway.collects(60) is not None, f"nothing collected: {gateway.words()}")
            theirs = subprocess.Popen(["bluetoothctl", "--timeout", "100", "scan", "on"], stdout=subprocess.DEVNULL)
            try:
                wait_for(lambda: "Discovering: yes" in self.control("show"), 30)
                gateway.stop(limit=30)
                row.see("their scan " + ("goes on" if self.air.is_scanned else "ends with ours"))
                row.recovered = wait_for(lambda: self.air.is_scanned, 40)
                row.check(is_prompt(row.recovered, 20), "their scan does not come back")
            finally:
                theirs.kill()
                theirs.wait()
