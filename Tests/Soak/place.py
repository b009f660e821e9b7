"""One site: the real gateway with all that is plugged into it, and the real receiver, under the fast clock."""
import signal
import subprocess

from bench import Bench, NeverStarted
from bystanders import Putter
from microphone import EPOCH, FINE, MODE, UNPLUGGED
from server import Receiver
from sources import Controller, Fixes

CONFIGURATION = """
[upload]
required = false
endpoint = "http://{receiver}/api/ingest"
token_file = "{folder}/token"
interval = "5m"
timeout = "10m"
compression = "{compression}"
[beacons]
enabled = {is_on}
source = "h4:{controller}"
max_rate = {max_rate}
[location]
enabled = {is_on}
gpsd = "{gpsd}"
interval = "10s"
min_distance = {min_distance}
[audio]
enabled = {has_sound}
device = "mic"
codec = "{codec}"
[storage]
retention = "{retention}"
[stream.tide]
max_rate = 1000.0
"""


class Site:
    def __init__(self, settings, clock, sound, retention, directory, archive, preload=()):
        self.settings, self.clock, self.sound = settings, clock, sound
        self.preload = list(preload)
        self.gateway = Bench(settings, folder=directory)
        self.environment = clock.environment()
        self.controller = Controller(clock, settings.rate, settings.random.random())
        self.gpsd = Fixes(clock)
        self.microphone = None
        if sound != "none":
            self.microphone = self.gateway.microphone(tone=0)
            self.microphone.set(EPOCH, clock.monotonic_ns())
        self.server = archive
        self.receiver = self.putter = None
        self.start_receiver()
        self.keys = dict(compression="zstd", is_on="true", max_rate=1000.0, min_distance=0.0, retention=retention)
        self.configure()
        # Starts of each program: a series of its memory begins with each.
        self.lives = {"gateway": 0, "receiver": 1}

    def start_receiver(self):
        port = self.receiver.address[1] if self.receiver else 0
        self.receiver = Receiver(self.settings, self.server, port, self.environment, ["--quiet"])

    def configure(self, **keys):
        self.keys.update(keys)
        has_sound = "true" if self.microphone and self.keys["is_on"] == "true" else "false"
        self.gateway.configure(CONFIGURATION.format(
            receiver="%s:%d" % self.receiver.address, folder=self.gateway.folder, controller=self.controller.address,
            gpsd=self.gpsd.address, codec="opus" if self.sound == "none" else self.sound, has_sound=has_sound, **self.keys))

    def start(self):
        """Starts the gateway; the library that is to make it fail is loaded into it alone."""
        self.gateway.start(limit=60, environment=self.clock.environment(*self.preload))
        self.lives["gateway"] += 1
        if not self.putter:
            self.putter = Putter(self.gateway.run / "intake")

    def reload(self, **keys):
        self.configure(**keys)
        self.gateway.daemon.send_signal(signal.SIGHUP)

    def restart(self):
        """kill -9 at any moment, and the start after it."""
        self.gateway.kill()
        self.start()

    def is_running(self):
        return self.gateway.daemon is not None and self.gateway.daemon.poll() is None

    # Parts that go away and come back.

    def set_sound(self, is_there):
        if self.microphone:
            self.microphone.set(MODE, FINE if is_there else UNPLUGGED)

    def hold_receiver(self, is_held):
        """A server that takes connections and says nothing."""
        self.receiver.process.send_signal(signal.SIGSTOP if is_held else signal.SIGCONT)

    def end_receiver(self):
        self.receiver.end()

    def begin_receiver(self):
        self.start_receiver()
        self.lives["receiver"] += 1

    # The end of it.

    def drain(self, limit):
        """All that is left goes to the receiver, with the sources off; the last status, None when that failed."""
        self.putter.end()
        self.gateway.stop(limit=60)
        self.configure(is_on="false")
        # In real time: what is left takes as long as it takes.
        self.gateway.start(limit=60, environment=self.environment)
        words = "nothing was tried"
        for _ in range(limit // 60):
            try:
                code, words = self.gateway.command("sync", "--wait", "60", limit=90)
            except subprocess.TimeoutExpired:
                continue
            if code == 0:
                break
        else:
            raise NeverStarted(f"the last sync left records: {words.strip()}")
        self.gateway.stop(limit=60)

    def end(self, keep=False):
        for part in (self.controller, self.gpsd):
            part.is_out = True
            part.listener.close()
        self.clock.end()
        if self.putter:
            self.putter.end()
        self.receiver.end()
        self.gateway.end(keep=keep)
