"""Waypost itself: records of another program over its intake socket, or sightings from the bytes of a radio."""
import json
import os
import shutil
import socket

from bench import configuration, upload
from peer import Peer, wait


class Waypost(Peer):
    name = "waypost"
    title = "Waypost, put"
    protocol = "intake"
    sink_kind = "waypost"
    promise = "an answer a record, once it is on the disk (waypost-protocol(7))"
    sources = '[stream.site]\nmax_rate = 100000\n'

    def configure(self):
        token = self.work / "token"
        token.write_text("bench-token\n")
        token.chmod(0o600)
        text = upload(f"127.0.0.1:{self.sink_port}", self.work, self.interval) + self.sources
        (self.work / "waypost.toml").write_text(configuration(self.state / "state", self.work / "run", text))

    def begin(self):
        for name in ("intake", "control.sock"):
            (self.work / "run" / name).unlink(missing_ok=True)
        # With the system's libraries, not those that were fetched for the others.
        self.launch("waypost", self.programs.build / "waypost", "run", "--config", self.work / "waypost.toml",
                    LD_LIBRARY_PATH="")

    def is_up(self):
        return self.answers("intake")

    def answers(self, name):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.work / "run" / name)) == 0

    def address(self):
        return str(self.work / "run/intake")

    def ask(self, command):
        """One line of the control socket."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(self.work / "run/control.sock"))
            client.sendall(json.dumps({"command": command}).encode() + b"\n")
            with client.makefile() as lines:
                return json.loads(lines.readline() or "{}")

    def nudge(self):
        # As `waypost sync`; the network's own events do the same on a device.
        try:
            self.ask("sync")
        except (OSError, ValueError):
            pass


class Sightings(Waypost):
    """The whole path in one process: HCI bytes, as fast as they can be read."""

    name = "sightings"
    title = "Waypost, sightings"
    sink_kind = "sightings"
    promise = "none: a commit a second"

    def configure(self):
        # A pipe, so that it has started before the first byte is there.
        if not (self.work / "radio").exists():
            os.mkfifo(self.work / "radio")
        super().configure()

    def hear(self):
        """The bytes of the capture, as fast as they are read."""
        with open(self.work / "radio", "wb") as radio, open(self.work / "capture", "rb") as capture:
            shutil.copyfileobj(capture, radio, 1 << 16)

    def begin(self):
        self.sources = (f'[beacons]\nsource = "btsnoop:{self.work}/radio"\nreplay_speed = 0.0\nmax_rate = 1000\n')
        self.configure()
        super().begin()

    def is_up(self):
        return self.answers("control.sock")

    def stored(self):
        """How many sightings wait."""
        streams = self.ask("status").get("status", {}).get("streams", {})
        return streams.get("linux_bluez_beacons", {}).get("pending", 0)

    def wait_for(self, count, limit):
        wait("sightings", lambda: self.stored() >= count, limit)
