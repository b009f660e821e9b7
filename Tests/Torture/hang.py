"""Library calls that never return, at the start and later: the report, its delay, and the cost; in real time, some six
minutes."""
import collections
import json
import os
import pathlib
import signal
import threading
import time

import records
from accounts import settle
from bench import Bench, capture, wait
from bystanders import Manager, Putter
from gpsd import Walk
from hanging import CASES, TRANSIENT, WATCHED, table
from microphone import RATE
from radio import Air
from report import Row
from server import Receiver
from silent import Silent
from sound import Sounds

# The promised limits (Sources/decisions/0011), in s.
TOLD, ANSWERED, STOPPED = 60, 1.0, 5.0
# A restarted part counts as recovered after a minute, at a tick of the health timer; and a busy machine. A server is
# asked again after 120 s at most where two tries failed.
RECOVERED, ASKED_AGAIN = 60 + 15 + 25, 120 + 30
# Sightings that each gateway hears beside it all, and how many a second.
SIGHTINGS, PACE = 3600, 20
SOURCES = ("audio", "location", "beacons")


class Hang:
    """One gateway in which one call hangs."""

    def __init__(self, settings, case):
        self.settings, self.case, self.name = settings, case, case.name
        self.problems, self.figures, self.reason = [], {}, ""
        self.slowest = self.statuses = 0

    def problem(self, text):
        self.problems.append(f"{self.name}: {text}")

    # The surroundings.

    def prepare(self):
        case = self.case
        bench = self.bench = Bench(self.settings)
        self.switch = bench.folder / "hang"
        self.receiver = Receiver(self.settings, bench.folder)
        self.server, self.gpsd = Silent(self.receiver.address), Silent()
        self.walk = Walk()
        self.gpsd.target = ("127.0.0.1", int(self.walk.address.rsplit(":")[1]))
        self.manager = Manager(bench.folder / "notify")
        self.heard = 0 if case.part == "beacons" else SIGHTINGS
        if self.heard:
            capture(bench.folder / "capture", SIGHTINGS, per_second=PACE)
        if case.part == "audio":
            self.microphone = bench.microphone(tone=0)
        self.air = Air() if case.call == "h4" else None
        bench.configure(self.configuration())

    def configuration(self, collects=True):
        case, bench = self.case, self.bench
        port = self.server.address.rsplit(":")[1]
        host = case.host if case.host == "server.example" else "127.0.0.1"
        text = bench.upload(f"{host}:{port}", interval="2s") + "allow_plaintext = true\n[stream.tide]\n"
        text += '[storage]\ncommit_interval = "200ms"\n'
        if case.part == "audio":
            text += '[audio]\ndevice = "mic"\ncodec = "wav"\nchunk = "4s"\noverlap = "1s"\n'
        if not collects:
            return text
        source = f"btsnoop:{bench.folder}/capture" if self.heard else f"h4:127.0.0.1:{self.air.port}" if self.air else "hci0"
        text += f'[beacons]\nsource = "{source}"\nmax_rate = 1000\n'
        if case.part == "location":
            host = case.host or "127.0.0.1"
            text += f'[location]\ngpsd = "{host}:{self.gpsd.address.rsplit(":")[1]}"\ninterval = "1s"\n'
        return text

    def launch(self, *arguments):
        case = self.case
        self.bench.launch(arguments=arguments, environment={
            "LD_PRELOAD": pathlib.Path(self.settings.faults).with_name("libhangs.so"), "HANGS_WHILE": self.switch,
            "HANGS_CALLS": case.call, "NOTIFY_SOCKET": self.manager.path,
            **({"HANGS_HOST": case.host} if case.host else {})})
        self.launched = time.monotonic()

    def end(self):
        self.putter.end()
        self.bench.end(keep=bool(self.problems))
        self.receiver.end()
        if self.air:
            self.air.kill()

    # The hang.

    def block(self):
        self.began = time.monotonic()
        if self.case.call == "gpsd":
            self.gpsd.hush()
        elif self.case.call == "server":
            self.server.hush()
        elif self.case.call == "h4":
            os.kill(self.air.process.pid, signal.SIGSTOP)
        else:
            self.switch.touch()

    def release(self):
        self.released = time.monotonic()
        self.gpsd.speak()
        self.server.speak()
        if self.air:
            os.kill(self.air.process.pid, signal.SIGCONT)
        self.switch.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    @property
    def mark(self):
        return self.switch.with_name(f"hang.{self.case.call}")

    def wait_for_hang(self):
        if self.case.call in ("gpsd", "server", "h4"):
            time.sleep(3)
            return
        if self.case.call == "snd_pcm_open" and self.bench.status():
            # Only a device that is reopened hangs there.
            threading.Thread(target=self.bench.command, args=("restart", "audio"), daemon=True).start()
        wait(f"{self.name}: the call", self.hangs, 120)
        self.began = max(self.began, self.mark.stat().st_mtime - time.time() + time.monotonic())

    def hangs(self):
        # A name is looked up once the connection is gone.
        if self.case.host == "gpsd.example":
            self.gpsd.hang_up()
        if self.case.host == "server.example":
            self.server.hang_up()
        time.sleep(0.2)
        return self.mark.exists()

    # Observations.

    def status(self):
        """Returns the current status; its delay is checked."""
        began = time.monotonic()
        status = self.bench.status()
        took = time.monotonic() - began
        if status:
            self.statuses += 1
            self.slowest = max(self.slowest, took)
            (self.bench.folder / "last-status.json").write_text(json.dumps(status, indent=1))
        return status

    def is_told(self, status):
        reasons = "; ".join(status["reasons"])
        self.reason = next((text for text in status["reasons"] if self.case.words in text), self.reason)
        return self.case.words in reasons

    def is_well(self, status):
        if status is None or self.is_told(status):
            return False
        source = status["sources"].get(self.case.part)
        # A Bluetooth socket that is none stays an error, of another kind.
        return source is None or source["state"] == "loaded" or self.case.call == "HCIDEVUP"

    def until(self, what, condition, limit):
        """Asks on and on; when it came, None if it did not."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            status = self.status()
            if status and condition(status):
                return time.monotonic()
            if self.bench.daemon.poll() is not None:
                self.problem(f"ended by itself with {self.bench.daemon.poll()} before {what}")
                return None
            time.sleep(0.25)
        self.problem(f"not {what} in {limit:.0f} s: {self.reason or 'no reason told'}")
        return None

    def stop(self):
        began = time.monotonic()
        code = self.bench.stop(limit=20)
        took = time.monotonic() - began
        self.figures["stopped"] = max(took, self.figures.get("stopped", 0))
        if code != 0:
            self.problem(f"SIGTERM ended it with {code}")
        if took > STOPPED:
            self.problem(f"SIGTERM ended it only after {took:.1f} s")

    def command(self):
        """`waypost status`, as a person asks."""
        began = time.monotonic()
        self.bench.command("status", limit=30)
        return time.monotonic() - began

    def begin(self):
        case = self.case
        if case.when == "start":
            # First without anything else: a stop must be heard by then, too.
            self.block()
            self.launch()
            self.wait_for_hang()
            time.sleep(1)
            if case.part == "storage" and self.manager.count("READY=1"):
                self.problem("READY=1 while the disk hangs")
            self.stop()
            self.release()
            self.block()
        self.launch()
        self.putter = Putter(self.bench.run / "intake")
        if case.when == "run":
            wait(f"{self.name}: a start", lambda: self.is_well(self.status()), 60)
            time.sleep(3)
            self.block()
        self.wait_for_hang()

    def run(self):
        try:
            self.prepare()
            self.begin()
            limit = self.case.limit or TOLD
            told = self.until("told", self.is_told, limit + 30)
            self.figures["told"] = (told or time.monotonic()) - self.began
            if self.figures["told"] > limit:
                self.problem(f"told only after {self.figures['told']:.0f} s")
            self.figures["command"] = self.command()
            self.collects()
            if self.case.part in SOURCES:
                # A source that is back within half a minute was not lost.
                time.sleep(40)
            self.release()
            well = self.until("well again", self.is_well, RECOVERED + 60)
            self.figures["recovered"] = (well or time.monotonic()) - self.released
            if self.figures["recovered"] > (ASKED_AGAIN if self.case.part == "upload" else RECOVERED):
                self.problem(f"well again only after {self.figures['recovered']:.0f} s")
            if self.slowest > ANSWERED:
                self.problem(f"status came after {self.slowest:.1f} s")
            self.stop_while_hung()
            self.finish()
        except Exception as error:
            self.problem(f"{error!r}")

    def collects(self):
        """The other parts go on, unless it is the disk that hangs."""
        if self.case.part in TRANSIENT:
            return
        given = self.putter.acknowledged
        wait(f"{self.name}: records beside it", lambda: self.putter.acknowledged > given + 20, 20)

    def stop_while_hung(self):
        self.block()
        self.wait_for_hang()
        if self.heard:
            self.until("through with the capture", lambda status: status["sources"]["beacons"]["detail"].startswith(
                "replay finished"), SIGHTINGS / PACE + 30)
        # Beside a second fault: a configuration that is read again.
        self.bench.daemon.send_signal(signal.SIGHUP)
        time.sleep(1.5)
        self.stop()
        self.release()

    # The fate of the records.

    def finish(self):
        """Everything that is left is sent; what was accepted has arrived once, or is in the ledger."""
        self.putter.end()
        self.bench.configure(self.configuration(collects=False))
        self.launch()
        wait(f"{self.name}: the last start", lambda: self.status() is not None, 30)
        if self.case.part == "audio":
            # A gap is reported once audio follows it.
            wait(f"{self.name}: sound", lambda: self.status()["sources"]["audio"]["state"] == "loaded", 30)
            time.sleep(8)
        code, output = self.bench.command("sync", "--wait", "60", limit=90)
        if code:
            self.problem(f"the last sync left records: {output.strip()}")
        self.stop()
        row = Row(self.name)
        accounts = settle(row, self.bench)
        self.problems += [f"{self.name}: {text}" for text in row.problems]
        if accounts:
            self.compare(accounts)

    def compare(self, accounts):
        arrived = records.received(self.receiver.data)
        doubled = sum(records.twice(arrived[stream])[0] for stream in arrived)
        tide = self.tide()
        counted = sum(count for (stream, kind), count in accounts.ledger.items()
                      if stream == 3 and kind in ("overrun", "dropped", "missed"))
        told = sum(event["kind"] == "gap" for event in arrived[4])
        lost = max(0, self.heard - len(arrived[3])) if self.heard else 0
        unacknowledged = max(0, self.putter.acknowledged - len(set(tide)))
        self.figures.update(heard=self.heard, lost=lost, counted=counted, gaps=told, doubled=doubled)
        if doubled or len(set(tide)) != len(tide):
            self.problem(f"{doubled} records arrived twice, of tide {len(tide) - len(set(tide))}")
        if unacknowledged:
            self.problem(f"{unacknowledged} records of tide were acknowledged and never arrived")
        if lost != counted:
            self.problem(f"{lost} of {self.heard} sightings did not arrive, {counted} are in the ledger")
        if self.case.part == "audio":
            self.follow(arrived)
        events = [event["kind"] for event in arrived[4]]
        if self.case.part in SOURCES and "source_lost" not in events:
            self.problem("no event source_lost")

    def follow(self, arrived):
        """Along the microphone's ramp: what is missing between two runs is what the gap says."""
        sounds = Sounds.__new__(Sounds)
        sounds.row, sounds.lost, sounds.was_slow = Row(self.name), collections.Counter(), False
        chunks = sorted(arrived[2], key=lambda chunk: chunk["timestamp_start"])
        gaps = sorted((event for event in arrived[4] if event["kind"] == "gap"), key=lambda event: event["timestamp"])
        sounds.follow(chunks, gaps)
        if not gaps:
            self.problem("no gap tells of the sound that was lost")
        for problem in sounds.row.problems:
            self.problem(problem)
        self.figures["sound"] = sum(sounds.lost.values()) / RATE

    def tide(self):
        """The numbers of the program's records at the receiver."""
        numbers = []
        for path in self.receiver.data.glob("stream=tide/**/*.ndjson"):
            numbers += [json.loads(line)["number"] for line in path.read_text().splitlines()]
        return numbers


class Watched(Hang):
    """A gateway that has two seconds of patience: the service manager hears of it until one part hung for twenty."""

    def run(self):
        try:
            self.prepare()
            self.putter = Putter(self.bench.run / "intake")
            if self.case.when == "start":
                self.block()
            self.launch("--patience", "2")
            wait(f"{self.name}: signs of life", lambda: self.manager.count("WATCHDOG=1") > 3, 60)
            if self.case.when == "run":
                self.block()
            self.wait_for_hang()
            time.sleep(45)
            self.is_silent = not self.beats(5)
            self.release()
            time.sleep(20)
            if not self.beats(5):
                self.problem("the watchdog hears nothing after the hang")
            if self.is_silent != self.case.is_lost:
                self.problem(f"the watchdog hears {'nothing' if self.is_silent else 'signs of life'} during the hang")
            self.stop()
        except Exception as error:
            self.problem(f"{error!r}")

    def beats(self, seconds):
        now = time.monotonic()
        time.sleep(seconds)
        return self.manager.count("WATCHDOG=1", now)


def run(settings):
    row = Row("hang")
    cases = [case for case in CASES if os.environ.get("HANG_CASE", "") in case.name]
    hangs = [Hang(settings, case) for case in cases]
    watched = [Watched(settings, case) for case in WATCHED]
    threads = [threading.Thread(target=hang.run, daemon=True) for hang in hangs + watched]
    for thread in threads:
        thread.start()
        # Not all starts at once, which only shows how busy the machine is.
        time.sleep(1)
    while any(thread.is_alive() for thread in threads):
        settings.progress.show(row, f"{sum(thread.is_alive() for thread in threads)} hangs under way")
        time.sleep(0.5)
    for hang in hangs:
        row.tried += 1
        row.committed += hang.figures.get("heard", 0)
        row.doubled += hang.figures.get("doubled", 0)
        row.lost += max(0, hang.figures.get("lost", 0) - hang.figures.get("counted", 0))
        row.note(f"{hang.name}: {hang.reason or 'no reason told'}; {hang.statuses} times asked, "
                 f"`waypost status` in {hang.figures.get('command', 0):.1f} s")
        for problem in hang.problems:
            row.problem(problem)
        if hang.problems:
            row.note(f"kept in {hang.bench.folder}")
        hang.end()
    for hang in watched:
        row.tried += 1
        for problem in hang.problems:
            row.problem(problem)
        hang.end()
    row.note("\n" + "\n".join(table(hangs)))
    return [row]
