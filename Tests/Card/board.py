"""A board in QEMU with a card of its own: the image, on a bigger card, with what a person wrote on its FAT partition."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

ENDS_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
# Where parts/card-image puts the FAT partition.
FAT_OFFSET = 4 << 20
# Does the firmware's part: kernel, initramfs and command line of the FAT partition.
VIRT = ["-machine", "virt", "-cpu", "cortex-a72", "-smp", "2", "-m", "1024", "-accel", "tcg,thread=multi"]
RASPI = ["-machine", "raspi3b"]


def run(*command, check=True, limit=120, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=limit, **options)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout.strip()[-1500:]}")
    return done


class Card:
    """A copy of the image on a card of `size` bytes, a power of two: QEMU takes no others."""

    def __init__(self, image, path, size):
        self.path = pathlib.Path(path)
        run("cp", "--sparse=always", "--reflink=auto", image, path)
        self.resize(size)

    def resize(self, size):
        os.truncate(self.path, size)

    @property
    def fat(self):
        return f"{self.path}@@{FAT_OFFSET}"

    def write(self, name, text):
        """A file for its FAT partition, as an editor on a PC would leave it."""
        run("mcopy", "-o", "-i", self.fat, "-", f"::/{name}", input=text)

    def read(self, name, to):
        run("mcopy", "-n", "-o", "-i", self.fat, f"::/{name}", to)
        return pathlib.Path(to)

    def config(self, folder):
        """config.txt, by key."""
        text = self.read("config.txt", folder / "config.txt").read_text()
        words = (line.replace("=", " ").split() for line in text.splitlines() if line and line[0] not in "#[")
        return {word[0]: word[1] for word in words if len(word) == 2}


class Board:
    """One machine with that card. `serial`: where QEMU finds what its serial ports are plugged into."""

    def __init__(self, card, folder, machine, ssh_port=0, serial=(), sound=None):
        self.card, self.folder, self.machine, self.ssh_port = card, folder, machine, ssh_port
        self.serial, self.sound = serial, sound
        self.starts = 0
        self.process = None
        # A card in a reader, beside the one in the slot.
        self.other = None

    def start(self):
        self.starts += 1
        self.console = self.folder / f"console-{self.starts}.log"
        config = self.card.config(self.folder)
        kernel = self.card.read(config["kernel"], self.folder / "kernel")
        initramfs = self.card.read(config["initramfs"], self.folder / "initramfs")
        line = self.card.read("cmdline.txt", self.folder / "cmdline.txt").read_text().strip()
        # The serial port shows what a screen would.
        line = line.replace("console=tty0", f"console=tty0 console={'ttyAMA0' if self.machine == 'virt' else 'ttyS1,115200'}")
        if self.machine != "virt":
            # QEMU's Pi is reset as soon as its watchdog is started; beside a login prompt systemd tells no more of its units.
            line += " systemd.watchdog_sec=0 systemd.getty_auto=no"
        words = self.virt() if self.machine == "virt" else self.raspi()
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, "qemu-system-aarch64", "-nodefaults", "-no-user-config", "-display", "none", *words,
             "-kernel", str(kernel), "-initrd", str(initramfs), "-append", line],
            stdin=subprocess.DEVNULL, stdout=open(self.folder / f"qemu-{self.starts}.log", "wb"), stderr=subprocess.STDOUT)

    def virt(self):
        """A card slot, a network, a serial port for the receiver, one for the controller, a microphone, a watchdog."""
        words = [*VIRT, "-serial", f"file:{self.console}", "-device", "sdhci-pci", "-device", "sd-card,drive=card",
                 "-drive", f"id=card,if=none,format=raw,file={self.card.path}", "-device", "virtio-rng-pci",
                 "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22", "-device", "virtio-net-pci,netdev=net,romfile=",
                 # A Pi has no clock that runs without power.
                 "-rtc", "base=2000-01-01T00:00:00",
                 # A real watchdog would restart the machine; on a busy PC the guest pauses longer than its limit.
                 "-device", "i6300esb", "-action", "watchdog=none"]
        for number, place in enumerate(self.serial):
            words += ["-chardev", f"socket,id=port{number},{place},reconnect=1", "-device", f"pci-serial,chardev=port{number}"]
        if self.other:
            words += ["-device", "qemu-xhci", "-drive", f"id=other,if=none,format=raw,file={self.other.path}",
                      "-device", "usb-storage,drive=other"]
        if self.sound:
            words += ["-audiodev",
                      # A busy PC must not cut holes into the sound.
                      f"pa,id=sound,server={self.sound},in.name=field,in.latency=200000,in.buffer-length=1000000", "-device", "intel-hda",
                      "-device", "hda-micro,audiodev=sound"]
        return words

    def raspi(self):
        """As QEMU knows a Pi 3: no network that Debian's kernel has, so there is the console alone."""
        tree = self.card.read("bcm2837-rpi-3-b.dtb", self.folder / "board.dtb")
        return [*RASPI, "-dtb", str(tree), "-serial", "null", "-serial", f"file:{self.console}",
                "-drive", f"if=sd,format=raw,file={self.card.path}"]

    @property
    def age(self):
        return time.monotonic() - self.began

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def words(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def speaks(self, words, limit):
        """Waits until the console has said this."""
        while words not in self.words():
            if not self.is_running:
                raise RuntimeError("QEMU ended; see qemu-*.log")
            if self.age > limit:
                raise TimeoutError(f"the console has not said {words!r} after {limit} s")
            time.sleep(0.1)

    def cut(self):
        """The power goes off: what the guest had not written is gone."""
        if self.is_running:
            self.process.kill()
        if self.process:
            self.process.wait()


class Shell:
    """SSH to the board with the key of the card's custom.toml."""

    def __init__(self, board, folder, user):
        self.board, self.folder, self.user = board, folder, user
        self.key = folder / "key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", self.key)

    @property
    def public(self):
        return self.key.with_suffix(".pub").read_text().strip()

    def run(self, command, check=True, limit=180, options=(), input=""):
        """Output and, without `check`, exit status of a command there."""
        done = run("ssh", "-q", "-i", self.key, "-p", self.board.ssh_port, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
                   "-o", "ConnectTimeout=60", "-o", "StrictHostKeyChecking=accept-new",
                   "-o", f"UserKnownHostsFile={self.folder}/known_hosts", *options, f"{self.user}@127.0.0.1", command,
                   check=False, limit=limit, input=input)
        if check and done.returncode != 0:
            raise RuntimeError(f"{command}: exit status {done.returncode}: {done.stdout.strip()[-1500:]}")
        return done.stdout.strip() if check else done

    def waits(self, limit):
        """Seconds of the board's age when a login works."""
        while self.board.age < limit:
            if not self.board.is_running:
                raise RuntimeError("QEMU ended; see qemu-*.log")
            try:
                if self.run("true", check=False, limit=90).returncode == 0:
                    return self.board.age
            except subprocess.TimeoutExpired:
                pass
            time.sleep(2)
        raise TimeoutError(f"no login after {limit} s; the console ends with: {self.board.words()[-800:]}")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def enough_room(folder, needed=4 << 30):
    if shutil.disk_usage(folder).free < needed:
        raise SystemExit(f"boot: {folder} has less than {needed >> 30} GB free")
