"""A gpsd that fails in every way under the real gateway: the report, its delay, and the cost."""
import os
import pty
import signal
import socket
import subprocess
import threading
import time

import records
from bench import ENDS_WITH_US, Bench, NeverStarted, free_port, wait
from listening import Listening
from report import Row

PLACE = "4627.6180,N,00650.5800,E"
# Recovery may take so long once the cause is gone, in s.
RECOVERY = 15
# The health timer looks every 30 s for a silence of 30 s.
SILENCE = 75


def sentence(body):
    checksum = 0
    for character in body:
        checksum ^= ord(character)
    return f"${body}*{checksum:02X}\r\n".encode()


class Receiver(threading.Thread):
    """A receiver that stands still with a 3D fix, an epoch every 200 ms, on a serial line of its own."""

    def __init__(self):
        super().__init__(daemon=True)
        self.line, other = pty.openpty()
        self.path = os.ttyname(other)
        # gpsd gives up root before it opens the receiver.
        os.chmod(self.path, 0o666)
        os.close(other)
        os.set_blocking(self.line, False)
        self.date = None
        self.is_silent = False
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.2):
            if self.is_silent:
                continue
            now = time.time()
            clock = time.strftime("%H%M%S", time.gmtime(now)) + f".{int(now * 100) % 100:02d}"
            date = self.date or time.strftime("%d%m%y", time.gmtime(now))
            for body in (f"GPRMC,{clock},A,{PLACE},0.10,12.00,{date},,,A",
                         f"GPGGA,{clock},{PLACE},1,09,0.9,377.0,M,47.6,M,,",
                         "GPGSA,A,3,04,05,09,12,16,20,24,25,29,,,,1.6,0.9,1.3"):
                try:
                    os.write(self.line, sentence(body))
                except OSError:
                    pass
        os.close(self.line)

    def end(self):
        self.ended.set()
        self.join()


class Daemon:
    """A real gpsd on a port of its own."""

    def __init__(self, folder):
        self.port = free_port()
        self.control = f"{folder}/gpsd.sock"
        self.receiver = Receiver()
        self.process = None

    def start(self):
        path = [self.receiver.path] if self.receiver else []
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, "gpsd", "-N", "-F", self.control, "-S", str(self.port), *path],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def signal(self, number):
        self.process.send_signal(number)

    def tell(self, action, path):
        """Does what udev does when a GNSS receiver comes or goes."""
        subprocess.run(["gpsdctl", action, path], env={**os.environ, "GPSD_SOCKET": self.control},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=20)

    def unplug(self):
        receiver, self.receiver = self.receiver, None
        receiver.end()
        self.tell("remove", receiver.path)

    def plug(self):
        self.receiver = Receiver()
        self.tell("add", self.receiver.path)

    def end(self):
        self.kill()
        if self.receiver:
            self.receiver.end()


class Liar(Listening):
    """Stands on gpsd's port and says what no gpsd would."""

    def __init__(self, port, lines):
        self.lines = lines
        super().__init__(port)

    def serve(self, client):
        try:
            while self.listener.fileno() >= 0:
                client.sendall(self.lines)
                time.sleep(0.5)
        except OSError:
            pass
        client.close()

    def end(self):
        # shutdown wakes accept(), which close() alone does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


# ms.
YEAR = 365 * 86_400_000

GARBAGE = (b"\x00\xff\xfe garbage\r\n" + b"x" * 30_000 + b"\r\n" + b'{"class":"TPV","mode":"three"}\r\n'
           + b'{"class":"TPV","mode":3,"lat":1e999,"lon":{}}\r\n' + b'{"class":"DEVICES","devices":[{}]}\r\n'
           + b'{"class":"SKY","satellites":[' + b'{"PRN":1,"used":true},' * 300 + b"{}]}\r\n")


class Places:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("gpsd")
        self.bench = Bench(settings)
        self.daemon = Daemon(self.bench.folder)
        self.bench.configure(f'[location]\ngpsd = "127.0.0.1:{self.daemon.port}"\ninterval = "1s"\n'
                             '[storage]\ncommit_interval = "100ms"\n')

    def source(self):
        return (self.bench.status() or {"sources": {}})["sources"].get("location", {})

    def says(self, words):
        source = self.source()
        return words in (source.get("reason") or source.get("detail") or "")

    def has_fixes(self, count=2):
        source = self.source()
        return source.get("state") == "loaded" and source.get("records", 0) >= count

    def fault(self, name, cause, words, cure, detection=10):
        """One fault: from its cause to its right reason, and from its cure to the next fixes."""
        self.row.tried += 1
        before = self.source()
        began = time.monotonic()
        try:
            cause()
            wait(f"{name}: '{words}'", lambda: self.says(words), detection)
            told = time.monotonic() - began
            cured = time.monotonic()
            cure()
            count = self.source().get("records", 0)
            wait(f"{name}: fixes again", lambda: self.has_fixes(count + 2), RECOVERY + 15)
            back = time.monotonic() - cured
        except TimeoutError as error:
            source = self.source()
            self.row.problem(f"{error}; state {source.get('state')}, {source.get('reason') or source.get('detail')}")
            cure()
            return
        after = self.source()
        if back > RECOVERY:
            self.row.problem(f"{name}: recovered only after {back:.0f} s")
        gone = time.monotonic() - began
        self.row.note(
            f"{name}: told after {told:.1f} s, fixes again {back:.1f} s after its end; {gone:.0f} s in all, "
            f"{after['records'] - before['records']} fixes kept, {after['dropped'] - before['dropped']} readings dropped and counted")
        self.settings.progress.show(self.row, name)

    def run(self):
        daemon = self.daemon
        try:
            self.bench.start()
            self.fault("gpsd starts late", lambda: None, "Connection refused", daemon.start)
            self.fault("gpsd killed", daemon.kill, "Connection refused", daemon.start)
            self.fault("receiver unplugged", daemon.unplug, "has lost the GNSS receiver", daemon.plug)
            self.fault("garbage in place of gpsd", self.lie, "", self.tell_the_truth)
            # One rollover behind gpsd corrects by itself, two it does not.
            self.fault("receiver a rollover behind", lambda: self.date("220899"), "is before this release", lambda: self.date(None),
                       detection=40)
            if self.settings.seconds >= 60:
                self.fault("receiver silent", lambda: self.silence(True), "silent for", lambda: self.silence(False), SILENCE)
                self.fault("gpsd frozen", lambda: daemon.signal(signal.SIGSTOP), "silent for",
                           lambda: daemon.signal(signal.SIGCONT), SILENCE)
            self.check()
        except NeverStarted as error:
            self.row.start_failures += 1
            self.row.problem(f"{error}")
        finally:
            daemon.end()
            self.bench.end(keep=not self.row.is_good)
            if not self.row.is_good:
                self.row.note(f"kept in {self.bench.folder}")
        return [self.row]

    def lie(self):
        self.daemon.kill()
        before = self.source().get("dropped", 0)
        self.liar = Liar(self.daemon.port, GARBAGE)
        wait("garbage is counted", lambda: self.source().get("dropped", 0) > before, 20)

    def tell_the_truth(self):
        self.liar.end()
        self.daemon.start()

    def date(self, date):
        self.daemon.receiver.date = date

    def silence(self, is_silent):
        self.daemon.receiver.is_silent = is_silent

    def check(self):
        """Each fix that was counted is there, none from another time or place."""
        if self.bench.stop() != 0:
            self.row.problem("SIGTERM did not end the gateway with 0")
        status = self.bench.last_status(self.row)
        path = self.bench.state / "queue.sqlite"
        rows = records.query(path, "SELECT wall, receiver_time, latitude_e7, longitude_e7 FROM location")
        self.row.committed = len(rows)
        told = status["sources"]["location"]["records"] if status else 0
        if told != len(rows):
            self.row.lost += max(0, told - len(rows))
            self.row.problem(f"{told} fixes told, {len(rows)} in the queue")
        # A receiver that is years behind is right but for the date.
        worst = max((late for late in (abs(wall - said) for wall, said, _, _ in rows if said) if late < YEAR), default=0)
        if worst > 10_000:
            self.row.problem(f"a fix was kept that is {worst / 1000:.0f} s old")
        if any(abs(latitude - 464_603_000) > 10 or abs(longitude - 68_430_000) > 10 for _, _, latitude, longitude in rows):
            self.row.problem("a fix was kept from elsewhere")
        self.row.note(f"{len(rows)} fixes, the oldest was kept {worst / 1000:.1f} s after its time")


def run(settings):
    return Places(settings).run()
