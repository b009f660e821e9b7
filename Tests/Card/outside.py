"""The devices around a board: a GNSS receiver that walks, a Bluetooth controller with beacons, a microphone."""
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Peers"), str(HERE.parent / "Torture")]

import route
from bench import ENDS_WITH_US, wait


class Receiver:
    """NMEA sentences once a second, of the time that it is, for a serial port at the socket `path`."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            # As on a wire, what nobody reads is gone: the time in old sentences would be wrong.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
            client.setblocking(False)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        while True:
            time.sleep(1 - time.time() % 1)
            start = datetime.now(timezone.utc).replace(microsecond=0)
            # The walk restarts each hour; the time is the real one.
            second = start.minute * 60 + start.second
            lines = route.epoch(start - timedelta(seconds=second), second)
            try:
                client.send("".join(map(route.sentence, lines)).encode())
                # gpsd probes the GNSS receiver; its bytes are read and ignored.
                while client.recv(4096):
                    pass
                return
            except BlockingIOError:
                pass
            except OSError:
                return


class Beacons:
    """A controller behind a TCP port (H4), which hears four beacons."""

    def __init__(self, python, folder):
        log = folder / "beacons.log"
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, python, HERE.parent / "Peers/beacons.py"], stdin=subprocess.DEVNULL,
            stdout=open(log, "wb"), stderr=subprocess.STDOUT)
        wait("the Bluetooth controller", lambda: b"listening on" in log.read_bytes(), 60)
        self.port = int(log.read_text().split("listening on ")[1].split()[0])


class Sound:
    """A sound server with a microphone that hears a tone, for QEMU's sound card."""

    def __init__(self, folder):
        home = folder / "pulse"
        home.mkdir(mode=0o700)
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, "pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no",
             "--load=module-sine-source source_name=field rate=16000 frequency=440",
             f"--load=module-native-protocol-unix socket={home}/native auth-anonymous=1"],
            env=dict(os.environ, XDG_RUNTIME_DIR=str(home), HOME=str(home)),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait("the sound server", (home / "native").exists)

    def end(self):
        self.process.kill()
        self.process.wait()


# A radio on a serial port, as the kernel's own driver attaches that of a Pi: raw bytes, then the HCI line discipline (15),
# H4. Debian's smallest system has Perl.
ATTACH = r"""
open(my $port, "+<", $ARGV[0]) or die "open: $!";
system("stty", "-F", $ARGV[0], "raw", "-echo", "115200", "cs8", "-crtscts", "clocal") == 0 or die "stty";
my $discipline = pack("i", 15);
ioctl($port, 0x5423, $discipline) or die "TIOCSETD: $!";
ioctl($port, 0x400455c8, 0) or die "HCIUARTSETPROTO: $!";
sleep;
"""
