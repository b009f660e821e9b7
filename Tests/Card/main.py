#!/usr/bin/env python3
"""Boots a card image in QEMU, untouched but for what a person writes on its FAT partition, until it delivers.

Started by deploy/boot, which builds the receiver.
"""
import argparse
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

# No compiled files among the sources; before the imports of our own.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Peers"), str(HERE.parent / "Torture")]

import figures
import outside
import records
from bench import TOKEN
from board import Board, Card, Shell, enough_room, free_port
from server import Receiver as Server

USER = "anna"
CARD_SIZE = 8 << 30
LOCATION, AUDIO, BEACONS, EVENTS = 1, 2, 3, 4
# A boot takes a minute or two; a PC that does other things at the same time must not fail it.
BOOT_LIMIT, DATA_LIMIT = 1200, 900
# Escape sequences between the words of a console.
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Bench:
    """The board, and what stands about it."""

    faults = ""

    def __init__(self, arguments, folder):
        self.folder, self.arguments = folder, arguments
        self.programs = arguments.programs
        self.random = random.Random(1)
        self.receiver, self.beacons = outside.Receiver(folder / "gnss"), outside.Beacons(arguments.python, folder)
        self.sound = outside.Sound(folder)
        self.server = Server(self, folder)
        self.card = Card(arguments.image, folder / "card.img", CARD_SIZE)
        self.board = Board(
            self.card, folder, "virt", free_port(), sound=f"unix:{folder}/pulse/native",
            serial=[f"path={self.receiver.path}", f"host=127.0.0.1,port={self.beacons.port}"])
        self.shell, self.screen = Shell(self.board, folder, USER), ""

    def say(self, text):
        print(f"{self.board.age:5.0f} s  {text}" if self.board.process else f"         {text}", flush=True)

    def write_card(self):
        """Writes the settings as a person on Windows does."""
        self.card.write("rpi-preseed.toml", "\r\n".join([
            'config_version = "1.0"', "[system]", 'hostname = "lake-7"', "[user]", f'name = "{USER}"', 'groups = ["sudo"]',
            "[ssh]", "enabled = true", "password_authentication = false", "authorized_keys = [", f'  "{self.shell.public}",', "]",
            ""]))
        self.card.write("custom.toml", '\ufeff[gnss]\r\ndevice = "/dev/ttyS0"\r\n')
        # QEMU's name for the machine that it runs on.
        self.card.write("waypost.toml", "\r\n".join([
            "[upload]", f'endpoint = "http://10.0.2.2:{self.server.address[1]}/api/ingest"', "allow_plaintext = true",
            'interval = "10s"', "[location]", 'interval = "1s"', "[audio]", 'chunk = "10s"', ""]))
        self.card.write("Waypost.token.txt", TOKEN + "\r\n")

    def boot(self):
        """Starts it and waits for a login; prints when what was reached."""
        self.board.start()
        login = self.shell.waits(BOOT_LIMIT)
        self.say("a login by SSH works")
        self.wait("the whole boot", lambda: self.shell.run("systemctl is-system-running", check=False).stdout.strip()
                  in ("running", "degraded"), BOOT_LIMIT)
        stages = self.shell.run("systemd-analyze | head -n 1; for unit in waypost-settings ssh waypost; do "
                                "echo $unit $(systemctl show -P ActiveEnterTimestampMonotonic $unit); done").splitlines()
        self.say(stages[0])
        times = dict(line.split() for line in stages[1:])
        self.say("from the start of the kernel: " + ", ".join(
            f"{name} {int(times[unit]) / 1e6:.1f} s" for unit, name in
            (("waypost-settings", "settings"), ("ssh", "sshd"), ("waypost", "Waypost READY"))) + f"; login {login:.0f} s after power")

    def wait(self, what, condition, limit):
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {limit} s")
            # A login costs the emulated processor seconds, and the emulated sound card some sound.
            time.sleep(10)

    def plug_other(self):
        """A card of the same labels."""
        self.board.other = Card(self.arguments.image, self.folder / "other.img", CARD_SIZE)
        self.board.other.write("custom.toml", 'hostname = "other"\n')

    def attach_radio(self):
        self.shell.run("cat >/tmp/attach && sudo modprobe hci_uart && "
                       "sudo systemd-run --quiet --collect perl /tmp/attach /dev/ttyS1", input=outside.ATTACH)

    def is_healthy(self):
        """Whether all is well but for sound: QEMU's card stops every few seconds where this machine is slow.

        Keeps the last screen of `waypost status`.
        """
        done = self.shell.run("waypost status", check=False)
        self.screen = done.stdout
        problems = done.stdout.split("\n\n")[0].splitlines()[1:]
        return done.returncode == 0 or bool(problems) and all(line.startswith("  audio: ") for line in problems)

    def received(self):
        return records.received(self.server.data)

    def lost(self):
        """Returns the details of events that report records that no disk stored."""
        details = [event["detail"] for event in self.received().get(EVENTS, []) if event.get("detail")]
        return [detail for detail in details if detail.get("kind") == "dropped"]

    def delivers(self):
        """Waits until all three sources arrive and `status` has no problem but the emulated sound card."""
        before = {stream: len(self.received().get(stream, [])) for stream in (LOCATION, AUDIO, BEACONS)}
        self.wait("places, sightings and sound at the receiver", lambda: all(
            len(self.received().get(stream, [])) > count for stream, count in before.items()), DATA_LIMIT)
        self.say("places, sightings and sound arrive: " + ", ".join(
            f"{len(self.received()[stream])} {records.NAMES[stream]}" for stream in before))
        try:
            self.wait("`waypost status` without a problem", self.is_healthy, DATA_LIMIT)
        finally:
            self.say(f"`waypost status`:\n{self.screen}")


# Runs the note's unit, which waits no longer than it must, while the gateway is stopped.
NOTE_NOW = """sudo systemctl stop waypost
sudo mkdir /run/systemd/system/waypost-note.service.d
printf '[Service]\\nExecStart=\\nExecStart=/usr/bin/waypost card-note --patience 0 /boot/firmware\\n' |
    sudo tee /run/systemd/system/waypost-note.service.d/now.conf >/dev/null
sudo systemctl daemon-reload
sudo systemctl restart waypost-note
while systemctl is-active -q waypost-note; do sleep 1; done
sudo head -n 1 /boot/firmware/waypost-ok.txt | tr -d '\\r'
sudo systemctl start waypost
systemctl is-active waypost"""


def look(shell):
    """Checks the image's promises in the running system: name, what was found, whether it is right."""
    def ask(command, limit=180):
        return shell.run(command, check=False, limit=limit).stdout.strip()
    rows = [
        ("root", ask("findmnt -no OPTIONS / | cut -d, -f1; touch /usr/x 2>&1"), lambda text: "ro" in text and "Read-only" in text),
        ("data partition", ask("df -h --output=size,source /data | tail -n 1"), lambda text: "p4" in text and text.startswith("3.")),
        ("partitions", ask("lsblk -rno NAME,SIZE | tr '\\n' ' '"), lambda text: "p3" in text),
        ("swap", ask("cat /proc/swaps | tail -n +2"), lambda text: text == ""),
        ("journal", ask("test -d /var/log/journal && echo on the card || echo volatile"), lambda text: text == "volatile"),
        ("watchdog", ask("cat /sys/class/watchdog/watchdog0/state /sys/class/watchdog/watchdog0/timeout | tr '\\n' ' '"),
         lambda text: text.startswith("active")),
        ("failed units", ask("systemctl --failed --plain --no-legend"), lambda text: text == ""),
        ("name", ask("hostname"), lambda text: text == "lake-7"),
        ("passwords", ask("sudo sshd -T | grep -E '^(passwordauthentication|permitrootlogin|kbdinteractive)' | tr '\\n' ' '"),
         lambda text: text.count(" no") == 3),
        ("accounts with a password", ask("sudo grep -vcE '^[^:]*:[!*]' /etc/shadow"), lambda text: text == "0"),
        ("updates by themselves", ask("apt-config dump APT::Periodic::Enable"), lambda text: '"0"' in text),
        ("apt, and the root after it", ask("sudo apt-get -qq -y remove nano >/dev/null 2>&1; echo $?; for i in $(seq 30); do "
                                          "findmnt -no OPTIONS / | grep ^ro && break; sleep 3; done"),
         lambda text: text.split() == ["0", "ro,noatime"]),
        ("time from", ask("chronyc -n sources | grep '^#'"), lambda text: "#*" in text),
        ("steps whenever it must", ask("grep -h ^makestep /etc/chrony/conf.d/* /etc/chrony/chrony.conf"),
         lambda text: text == "makestep 1 -1"),
        ("FAT partition", ask("findmnt -no FSTYPE,SIZE /boot/firmware; sudo ls /boot/firmware | grep -i errors"),
         lambda text: "vfat" in text and "errors" not in text),
        ("documents", ask("sudo ls /boot/firmware | grep -c -e waypost-all-keys.toml -e waypost-manual.html"),
         lambda text: text == "2"),
        # Five minutes after its start at the latest.
        ("note of the start", ask("for i in $(seq 40); do sudo test -s /boot/firmware/waypost-ok.txt && break; sleep 10; done; "
                                  "sudo cat /boot/firmware/waypost-ok.txt | tr -d '\\r'", limit=600),
         lambda text: "Device:" in text and "Server:" in text),
        ("note without a gateway", ask(NOTE_NOW), lambda text: text.startswith("Waypost does NOT run") and text.endswith("\nactive")),
        ("token on it", ask("sudo head -c 40 /boot/firmware/Waypost.token.txt"), lambda text: text and TOKEN not in text),
    ]
    good = True
    for name, text, is_right in rows:
        is_good = bool(is_right(text))
        good = good and is_good
        print(f"         {'ok    ' if is_good else 'WRONG '} {name}: {text}", flush=True)
    return good


def measure(shell):
    """Measures the gateway for a minute; checks each figure that this board gives, and the reasons for the others."""
    page, _, text = shell.run("waypost measure --minutes 1 --json /tmp/board.json && cat /tmp/board.json", limit=600).rpartition("\n")
    wrong = figures.problems(
        text, ["records", "dropped", "audio_overruns", "interface_bytes", "disk_written_bytes", "ntp_drift_ppm"],
        kernel=shell.run("uname -r"), model="linux,dummy-virt", architecture="aarch64", program="aarch64",
        installed_as="card image", disk="mmcblk0")
    print(f"         `waypost measure`:\n{page}\n{text}", flush=True)
    for problem in wrong:
        print(f"         WRONG  measurement: {problem}", flush=True)
    return not wrong


IDENTITY = "cat /etc/machine-id; ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; sudo cat /var/lib/waypost/device_id"


def cut_boots(bench, count):
    """Starts that the power ends: the first third while the data partition is made, the others spread over the first boot."""
    for number in range(count):
        bench.board.start()
        if number < count // 3:
            # Some ten seconds; the next start makes again whatever is not complete at the power cut.
            bench.board.speaks("Running /scripts/local-bottom", BOOT_LIMIT)
            instant = bench.board.age + bench.random.uniform(0, 10)
        else:
            # From the kernel's first words, which come after a second or two, until the login, some two minutes later.
            instant = bench.random.uniform(5, 150)
        while bench.board.age < instant and bench.board.is_running:
            time.sleep(0.2)
        bench.board.cut()
        words = [line for line in bench.board.words().splitlines() if line.strip()]
        bench.say(f"cut {number + 1}: {words[-1][:100] if words else 'before the first word'}")


def whole_run(bench, cuts):
    bench.write_card()
    cut_boots(bench, cuts)
    bench.say("first boot")
    bench.boot()
    bench.attach_radio()
    bench.delivers()
    # Before `look` restarts the gateway, so that its times since the boot are known.
    good = measure(bench.shell)
    good = look(bench.shell) and good
    identity = bench.shell.run(IDENTITY)
    bench.say("power cut; the card is copied onto one twice as big, and another device's card stands in a reader")
    bench.board.cut()
    bench.card.resize(2 * CARD_SIZE)
    bench.plug_other()
    bench.boot()
    *used, label = bench.shell.run("for place in / /data /boot/firmware; do findmnt -no SOURCE $place; done; lsblk -no LABEL /dev/sda2").split()
    bench.say(f"mounted: {' '.join(used)}; in the reader: {label}")
    if label != "waypost-root" or not all(disk.startswith("/dev/mmcblk") for disk in used):
        raise RuntimeError("a part of the other card is used, or it is not there")
    size = int(bench.shell.run("findmnt -bno SIZE /data"))
    bench.say(f"data partition now: {size / 1e9:.1f} GB")
    if size < CARD_SIZE:
        raise RuntimeError("the data partition did not grow")
    bench.attach_radio()
    if bench.shell.run(IDENTITY) != identity:
        raise RuntimeError("machine id, host key or device id changed")
    bench.delivers()
    places = bench.received()[LOCATION]
    rows = sorted(map(records.row_of, places))
    same_id, _ = records.twice(places)
    holes = rows[-1] - len(set(rows))
    bench.say(f"{len(places)} places arrived, {same_id} twice, {holes} missing; the same device as before")
    survives_error(bench)
    return good and not same_id and not holes


def survives_error(bench):
    """An error after which the data partition takes nothing: the next start repairs it, and tells what was lost."""
    bench.say("an error of the card")
    # Nobody can log in any more: the same login does what `keep` would do ten minutes after the start; until then it sees the error.
    words = bench.shell.run(
        "sudo bash -c 'echo 1 >/sys/fs/ext4/mmcblk0p4/trigger_fs_error; sleep 30; ls /run/waypost; "
        "/usr/lib/waypost-card/keep; echo keep: $?; systemctl reboot'", check=False).stdout
    bench.say(f"in /run/waypost: {' '.join(words.split())}")
    # A slow emulation has run for more than ten minutes by now; `keep` then restarts it itself.
    if "keep: 1" not in words and "restarting the device" not in words:
        raise RuntimeError("the data partition is whole, or `keep` does not see that it is not")
    bench.wait("the end", lambda: bench.board.words().count("reboot: ") > 0, BOOT_LIMIT)
    bench.board.cut()
    bench.boot()
    bench.wait("the event of the losses", bench.lost, DATA_LIMIT)
    told = ", ".join(f"{lost['records']} of {lost['stream']} ({lost['from']} to {lost['to']})" for lost in bench.lost())
    bench.say(f"told as lost: {told}")


def raspi(arguments, folder):
    """QEMU's Pi 3: how far its console comes."""
    card = Card(arguments.image, folder / "card.img", CARD_SIZE)
    board = Board(card, folder, "raspi3b")
    board.start()
    marks = {"Linux version": "the kernel", "Run /init": "the initramfs", "EXT4-fs (mmcblk": "a file system of the card",
             "systemd[1]: systemd": "systemd", "Reached target": "a target", "Started waypost.service": "Waypost READY",
             "Reached target multi-user.target": "the whole boot"}
    last, known = time.monotonic(), ""
    # As long as it speaks it goes on: after the first target come several minutes without a mark.
    while board.is_running and marks and board.age < BOOT_LIMIT and time.monotonic() - last < arguments.patience:
        words = COLOURS.sub("", board.words())
        for mark in [mark for mark in marks if mark in words]:
            print(f"{board.age:5.0f} s  {marks.pop(mark)}", flush=True)
        if words != known:
            last, known = time.monotonic(), words
        time.sleep(1)
    board.cut()
    print("not reached: " + (", ".join(marks.values()) or "nothing"), flush=True)
    print("\n".join(COLOURS.sub("", board.words()).splitlines()[-5:]))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--machine", choices=["virt", "raspi3b"], default="virt")
    parser.add_argument("--patience", type=float, default=240)
    parser.add_argument("--cuts", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    # Sockets lie below it, whose paths must be short; the card is sparse, and too big for a /tmp in memory.
    enough_room("/var/tmp")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wpt-", dir="/var/tmp"))
    good, bench = False, None
    try:
        if arguments.machine == "raspi3b":
            good = raspi(arguments, folder)
        else:
            bench = Bench(arguments, folder)
            good = whole_run(bench, arguments.cuts)
    except (RuntimeError, TimeoutError) as error:
        print(f"FAILED: {error}", flush=True)
    finally:
        if bench:
            bench.board.cut()
            bench.server.end()
            bench.sound.end()
        if good and not arguments.keep:
            shutil.rmtree(folder)
        else:
            print(f"kept: {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
