"""The real gateway on a bench: its folder, its configuration, its starts and its ends."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from microphone import Microphone

TOKEN = "torture-token"
# Child processes end with us, however we end.
ENDS_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


class Settings:
    """The settings that every family of faults gets."""

    def __init__(self, programs, faults, seconds, seed, progress):
        self.programs = pathlib.Path(programs)
        self.faults = str(faults)
        self.seconds = seconds
        self.random = random.Random(seed)
        self.progress = progress


class NeverStarted(Exception):
    """The gateway did not come to answer."""


def capture(path, count, per_second=0, burst=1, first=0):
    """Writes a btsnoop capture of `count` RuuviTag advertisements, no two with the same content.

    `per_second`: their spacing, in bursts of `burst` at one instant; 0: all at once.
    """
    parts = [b"btsnoop\0" + struct.pack(">II", 1, 1002)]
    for number in range(first, first + count):
        tag = number % 64
        address = bytes([0xCB, 0xB8, 0x33, 0x4C, 0x88, tag])
        body = struct.pack(">BhHHhhhHBH", 5, 4860, 22120, number >> 16 & 0x7FFF, 4, -4, 1036,
                           (2977 - 1600) << 5 | 22, 66, number & 0xFFFF) + address
        data = b"\x02\x01\x06" + bytes([len(body) + 3, 0xFF, 0x99, 0x04]) + body
        report = b"\x01\x00\x01" + address[::-1] + bytes([len(data)]) + data + b"\xC4"
        packet = b"\x04\x3E" + bytes([len(report) + 1, 0x02]) + report
        at = (number - first) // burst * burst * 1_000_000 // per_second if per_second else 0
        parts.append(struct.pack(">IIIIQ", len(packet), len(packet), 3, 0, at) + packet)
    pathlib.Path(path).write_bytes(b"".join(parts))


def wait(what, condition, limit=60.0):
    """Waits for a condition; raises when it does not come."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come up in {limit:.0f} s")
        time.sleep(0.005)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configuration(state, run, text):
    """All of a configuration. `text`: tables and keys; sources that it does not name are off."""
    for table in ("beacons", "location", "audio"):
        if f"[{table}]" not in text:
            text += f"\n[{table}]\nenabled = false\n"
    if "[upload]" not in text:
        text += "\n[upload]\nrequired = false\n"
    return f'state_directory = "{state}"\nruntime_directory = "{run}"\n{text}'


def upload(address, folder, interval):
    """The upload table for a server at `address`; the token is in the folder."""
    return (f'[upload]\nrequired = false\nendpoint = "http://{address}/api/ingest"\n'
            f'token_file = "{folder}/token"\ninterval = "{interval}"\n')


class Bench:
    """A folder with one gateway in it."""

    # A command that starts it with other rights than ours.
    rights = ()

    def __init__(self, settings, configuration="", folder=None):
        self.settings = settings
        # Sockets lie below it, whose paths must be short.
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="wpt-", dir="/tmp"))
        self.state = self.folder / "state"
        self.run = self.folder / "run"
        self.log = self.folder / "gateway.log"
        self.file = self.folder / "waypost.toml"
        self.daemon = None
        self.starts = []
        (self.folder / "token").write_text(TOKEN + "\n")
        (self.folder / "token").chmod(0o600)
        self.configure(configuration)

    def configure(self, text):
        """`text`: as `configuration` takes it."""
        self.file.write_text(configuration(self.state, self.run, text))

    def microphone(self, tone=440):
        """Its microphone, which gives a hum, or a ramp for tone=0."""
        return Microphone(self.folder, pathlib.Path(self.settings.faults).with_name("libsoundfaults.so"), tone)

    def upload(self, address, interval="300ms"):
        return upload(address, self.folder, interval)

    def launch(self, faults=False, environment=(), log=None, arguments=()):
        """Starts the gateway and does not wait for it."""
        variables = dict(os.environ, **dict(environment))
        variables.pop("STATE_DIRECTORY", None)
        if (self.folder / "asound.conf").exists():
            variables["ALSA_CONFIG_PATH"] = str(self.folder / "asound.conf")
        if faults:
            variables.update(LD_PRELOAD=self.settings.faults, FIELDFAULTS_DIR=str(self.state),
                             FIELDFAULTS_CONTROL=str(self.folder / "control"))
            if log:
                variables["FIELDFAULTS_LOG"] = str(log)
        with open(self.log, "ab") as output:
            self.daemon = subprocess.Popen(
                [*ENDS_WITH_US, *self.rights, self.settings.programs / "waypost", "run", "--config", self.file,
                 *arguments],
                env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        return self.daemon

    def start(self, limit=15.0, **options):
        """Starts the gateway and waits until it answers; raises NeverStarted with its last words."""
        (self.run / "control.sock").unlink(missing_ok=True)
        began = time.monotonic()
        self.launch(**options)
        while self.status() is None:
            if self.daemon.poll() is not None or time.monotonic() - began > limit:
                ended = self.daemon.poll()
                self.kill()
                words = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
                if ended is not None and ended < 0:
                    # A program that fell is worth its whole story.
                    print("\n".join(words), file=sys.stderr)
                raise NeverStarted(f"exit status {ended}: {' / '.join(words[-3:])}")
            time.sleep(0.003)
        self.starts.append(time.monotonic() - began)

    def status(self, timeout=5.0):
        """Returns the gateway's status from its socket; None if nothing answers."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(timeout)
        try:
            client.connect(str(self.run / "control.sock"))
            client.sendall(b'{"command":"status"}\n')
            answer = b""
            while not answer.endswith(b"\n"):
                part = client.recv(1 << 16)
                if not part:
                    return None
                answer += part
            return json.loads(answer).get("status")
        except (OSError, ValueError):
            return None
        finally:
            client.close()

    def last_status(self, row):
        """Returns the status that the stopped gateway left; None, and a problem, without one."""
        try:
            return json.loads((self.state / "status.json").read_text())
        except (OSError, ValueError) as error:
            row.problem(f"no last status: {error}")
            return None

    def kill(self):
        """kill -9."""
        if self.daemon:
            try:
                os.killpg(self.daemon.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.daemon.wait()
            self.daemon = None

    def stop(self, limit=10.0):
        """SIGTERM; its exit status, None when it had to be killed, or does not run."""
        if self.daemon is None:
            return None
        self.daemon.terminate()
        try:
            code = self.daemon.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        return code

    def command(self, *arguments, limit=120):
        """A field command's exit status and output."""
        done = subprocess.run(
            [self.settings.programs / "waypost", *arguments, "--config", self.file], capture_output=True,
            text=True, timeout=limit)
        return done.returncode, done.stdout + done.stderr

    def end(self, keep=False):
        self.kill()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
