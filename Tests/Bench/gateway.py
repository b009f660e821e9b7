"""The real gateway with all its sources connected, for benches: what is started, and what /proc says of it."""
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from bench import TOKEN, configuration, free_port, upload
from microphone import Microphone

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Bench:
    def __init__(self, build, directory):
        self.build = build
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="wpidle-", dir=directory))
        self.file = self.folder / "waypost.toml"
        self.children = []

    def configure(self, server, sources=""):
        """Uploads go to `server`; a source that is not named is off."""
        (self.folder / "token").write_text(TOKEN + "\n")
        (self.folder / "token").chmod(0o600)
        text = upload(server, self.folder, "5m") + sources
        self.file.write_text(configuration(self.folder / "state", self.folder / "run", text))

    def start(self, name, *command, **environment):
        log = open(self.folder / f"{name}.log", "wb")
        child = subprocess.Popen(
            [str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, **environment})
        self.children.append(child)
        return child

    def wait_for(self, what, condition, limit=30):
        end = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > end:
                for log in self.folder.glob("*.log"):
                    print(f"--- {log.name}\n{log.read_text(errors='replace')[-500:]}", file=sys.stderr)
                sys.exit(f"idle: {what} did not come up in {limit} s")
            time.sleep(0.1)
        return found

    def said(self, name, words):
        text = (self.folder / f"{name}.log").read_text(errors="replace")
        return text.split(words, 1)[1].split()[0].rstrip(",") if words in text else None

    def end(self):
        for child in reversed(self.children):
            try:
                os.killpg(child.pid, signal.SIGTERM)
                child.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_sound(self):
        library = self.folder / "libsoundfaults.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O2", "-o", library, ROOT / "Tests/FieldFaults/soundfaults.c", "-lasound", "-lm"],
            check=True)
        Microphone(self.folder, library)
        return {"ALSA_CONFIG_PATH": str(self.folder / "asound.conf")}

    def start_plain(self):
        """plain.c, once it stores a second of sound each second."""
        program = self.folder / "plain"
        opus = subprocess.run(["pkg-config", "--cflags", "opus"], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["cc", "-O2", "-o", program, ROOT / "Tests/Beside/plain.c", *opus,
                        "-lasound", "-lcurl", "-lopus", "-lsqlite3"], check=True)
        plain = self.start("plain", program, self.folder / "plain.sqlite", f"http://{self.receiver}/", "mic", **self.sound)
        self.wait_for("plain.c", lambda: len(self.stored()) >= 5)
        return plain

    def stored(self):
        """Lengths of what plain.c has stored; none before there is a table."""
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.folder}/plain.sqlite?mode=ro", uri=True)) as database:
                return database.execute("SELECT length(second) FROM sound").fetchall()
        except sqlite3.OperationalError:
            return []

    def start_all(self):
        gps = free_port()
        self.start("gpsd", shutil.which("gpsd", path=os.environ["PATH"] + f":/usr/sbin:{ROOT}/.build/servers/bin") or "gpsd", "-N", "-n", "-F", self.folder / "gpsd.sock", "-S", gps)
        python = ROOT / ".build/tools/bin/python3"
        self.start("beacons", python, ROOT / "Tests/Peers/beacons.py", "--quiet")
        (self.folder / "tokens").write_text(TOKEN + "\n")
        self.start(
            "receiver", self.build / "waypost-receiver", "--listen", "127.0.0.1:0",
            "--data", self.folder / "received", "--tokens", self.folder / "tokens")
        hci = self.wait_for("the controller", lambda: self.said("beacons", "listening on "))
        self.receiver = self.wait_for("the receiver", lambda: self.said("receiver", "listening on http://"))
        self.sound = self.start_sound()
        self.configure(self.receiver, f'[beacons]\nsource = "h4:127.0.0.1:{hci}"\n[location]\ngpsd = "127.0.0.1:{gps}"\n'
                                 '[audio]\ndevice = "mic"\n')
        return self.start("waypost", self.build / "waypost", "run", "--config", self.file,
                          **self.sound, **unit_environment())

    def status(self):
        return subprocess.run([self.build / "waypost", "status", "--config", self.file], capture_output=True, text=True).stdout


def unit_environment():
    """The environment that the service sets for the gateway."""
    lines = (ROOT / "deploy/systemd/waypost.service").read_text().splitlines()
    return dict(line.split("=", 2)[1:] for line in lines if line.startswith("Environment="))


def switches(pid):
    """Voluntary context switches by thread: {tid: (name, count)}."""
    counts = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        counts[task.name] = fields["Name"], int(fields["voluntary_ctxt_switches"])
    return counts


def written(directory):
    """Bytes that the disk under a folder was given so far, and requests; None where it is no disk (Documentation/block/stat)."""
    device = os.stat(directory).st_dev
    try:
        fields = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
    except FileNotFoundError:
        return None
    return int(fields[6]) * 512, int(fields[4])
