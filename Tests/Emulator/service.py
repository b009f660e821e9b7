"""The installed service under systemd: its user, its sandbox, its watchdog, and devices that start it."""
import contextlib
import os
import pathlib
import shutil
import threading
import time
import tty
from datetime import datetime, timezone

import figures
import route
import soundcard
from bench import TOKEN
from bluetooth import Air
from gateway import Gateway
from guest import PARTS
from pace import is_prompt, wait_for
from sandbox import Sandbox

TABLES = ('[beacons]\nsource = "hci0"\n[location]\ninterval = "1s"\n'
          + soundcard.TABLE.format(device=soundcard.CARD))


class Service(Gateway):
    """The gateway as systemd runs it, with the paths of an installation."""

    def __init__(self, guest):
        super().__init__(guest, "service", "beacons", "")
        self.state, self.run = pathlib.Path("/var/lib/waypost"), pathlib.Path("/run/waypost")
        self.file = pathlib.Path("/etc/waypost/waypost.toml")

    def write(self, token="/etc/waypost/token", more="", address=None, interval="2s"):
        """Configuration and token as README.md has them; `more`: other tables."""
        upload = self.upload(address or "%s:%d" % self.receiver.address, interval=interval)
        if token:
            upload = upload.replace(f"{self.folder}/token", token)
        else:
            upload = "\n".join(line for line in upload.splitlines() if "token_file" not in line) + "\n"
        # In the file that installing made, whose owner and mode are a part of what is tried.
        self.configure(f"{TABLES}\n{upload}\n{more}")

    def property(self, name):
        return self.guest.run("systemctl", "show", "-P", name, "waypost").strip()

    def drop_in(self, text):
        folder = pathlib.Path("/run/systemd/system/waypost.service.d")
        folder.mkdir(exist_ok=True)
        (folder / "bench.conf").write_text(f"[Service]\n{text}\n")
        self.guest.run("systemctl", "daemon-reload")

    def stop_service(self, row):
        self.guest.run("systemctl", "stop", "waypost", limit=60)
        result = self.property("Result")
        row.check(result == "success", f"the stop came to {result}")


class Receiver:
    """A GNSS receiver on USB: this kernel is both ends of the cable (dummy_hcd), and walks (route.py)."""

    # A u-blox 8, as gpsd's rules and ours know it, and a modem of the same maker.
    GNSS, MODEM = "0x01a8", "0x1102"

    def __init__(self, guest, product=GNSS):
        self.guest, self.thread, self.product = guest, None, product
        guest.run("modprobe", "dummy_hcd")

    def properties(self):
        """Returns the properties that udev's rules set."""
        return self.guest.run("udevadm", "info", "-q", "property", "/dev/ttyACM0")

    def plug(self):
        self.guest.run("modprobe", "g_serial", "idVendor=0x1546", f"idProduct={self.product}")
        if wait_for(pathlib.Path("/dev/ttyACM0").exists, 20) is None:
            raise RuntimeError("no /dev/ttyACM0")
        self.unplugged = threading.Event()
        self.thread = threading.Thread(target=self.talk)
        self.thread.start()

    def talk(self):
        start, second = datetime.now(timezone.utc), 0
        with open("/dev/ttyGS0", "r+b", buffering=0) as line:
            tty.setraw(line)
            os.set_blocking(line.fileno(), False)
            while not self.unplugged.wait(1):
                line.write("".join(map(route.sentence, route.epoch(start, second))).encode())
                second = round((datetime.now(timezone.utc) - start).total_seconds())
                # gpsd's queries: unread, they would block gpsd when it closes the line.
                while line.read(4096):
                    pass

    def unplug(self):
        self.unplugged.set()
        self.thread.join()
        self.guest.run("rmmod", "g_serial")


class Stick:
    """A USB stick; this kernel is both ends of the cable (dummy_hcd). `files`: texts by their names in a folder Waypost."""

    def __init__(self, guest, files):
        self.guest, self.image = guest, guest.folder / "stick.img"
        guest.run("modprobe", "dummy_hcd")
        self.image.unlink(missing_ok=True)
        guest.run("mkfs.vfat", "-C", "-F", "32", self.image, str(64 << 10))
        guest.run("mmd", "-i", self.image, "::/Waypost")
        for name, text in files.items():
            (guest.folder / "file").write_text(text)
            guest.run("mcopy", "-i", self.image, guest.folder / "file", f"::/Waypost/{name}")

    def damage(self):
        """Its root folder begins in a cluster that is not there: the kernel knows the format and cannot mount it."""
        with open(self.image, "r+b") as image:
            image.seek(0x2C)
            image.write((0x0FFFFF00).to_bytes(4, "little"))

    gadget = pathlib.Path("/sys/kernel/config/usb_gadget/stick")
    disk = gadget / "functions/mass_storage.0"

    def make_gadget(self):
        self.guest.run("modprobe", "-a", "libcomposite", "usb_f_mass_storage")
        self.guest.run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)
        for folder in (self.gadget, self.disk, self.gadget / "configs/c.1"):
            folder.mkdir()
        # The Linux Foundation's numbers for gadgets.
        (self.gadget / "idVendor").write_text("0x1d6b")
        (self.gadget / "idProduct").write_text("0x0104")
        (self.disk / "lun.0/removable").write_text("1")
        (self.gadget / "configs/c.1/disk").symlink_to(self.disk)

    def plug(self):
        if not self.gadget.exists():
            self.make_gadget()
        (self.disk / "lun.0/file").write_text(str(self.image))
        port = next(pathlib.Path("/sys/class/udc").iterdir()).name
        (self.gadget / "UDC").write_text(port)

    def unplug(self):
        (self.gadget / "UDC").write_text("\n")
        (self.disk / "lun.0/file").write_text("\n")

    def read(self, name):
        return self.guest.run("mtype", "-i", self.image, f"::/Waypost/{name}", check=False)


class Scenarios(Sandbox):
    def __init__(self, guest):
        self.guest = guest
        guest.say("loading the kernel's Bluetooth and sound, starting the beacons")
        for module in ("bluetooth", "hci_vhci", "rfkill"):
            guest.run("modprobe", module)
        self.air = Air(guest)
        self.card = soundcard.Scenarios(guest)
        self.service = Service(guest)
        self.install()

    def install(self):
        """deploy/install, before every choice of scenarios."""
        self.guest.say("installing")
        self.guest.run(str(PARTS.parents[1] / "deploy/install"), "--no-build", str(self.guest.programs / "waypost"), limit=300)
        pathlib.Path("/etc/waypost/token").write_text(TOKEN + "\n")
        self.guest.run("chown", "waypost:waypost", "/etc/waypost/token")
        self.guest.run("chmod", "600", "/etc/waypost/token")
        self.service.write()

    def all(self):
        for name in ("started", "measured", "late_sound", "plugged_radio", "plugged_sound", "plugged_receiver", "hotplugged", "modem",
                     "disabled", "full_disk",
                     "killed", "aborted", "watchdog", "stick", "broken_stick", "credential", "wrong_clock", "rights"):
            yield name, getattr(self, name)

    def end(self):
        self.air.process.kill()
        self.card.end()
        journal = self.guest.run("journalctl", "-b", "--no-pager", "-o", "short-monotonic", check=False)
        pathlib.Path("/bench/journal.log").write_text(journal)
        self.service.receiver.end()

    def is_active(self):
        return self.service.property("ActiveState") == "active"

    def begins(self, row, limit=60):
        """Waits for the service and for its first records."""
        began = time.monotonic()
        row.detected = wait_for(self.is_active, limit)
        if row.check(row.detected is not None, f"not started: {self.service.property('Result')}"):
            heard = self.service.collects(60)
            row.check(heard is not None, f"nothing collected: {self.service.words()}")
            row.recovered = time.monotonic() - began
        return row.is_good

    def started(self, row):
        """deploy/install, then systemctl start: ready, no device needed"""
        row.check(self.service.file.stat().st_mode & 0o777 == 0o640, "all may read the configuration")
        self.guest.run("systemctl", "start", "waypost", limit=90)
        row.see(f"{self.service.property('ActiveState')}, user {self.service.property('User')}")
        row.check(self.service.status() is not None, "no answer on its socket")
        missing = wait_for(lambda: self.service.report().get("state") == "error", 20)
        row.check(missing is not None, "no error without hci0")
        row.see(self.service.words())
        self.service.stop_service(row)

    def measured(self, row):
        """waypost measure: all figures of this machine, each other one with the reason"""
        self.air.ask("open mixed")
        if self.begins(row):
            file = self.guest.folder / "board.json"
            code, page = self.service.command("measure", "--minutes", "1", "--json", file, limit=600)
            pathlib.Path("/bench/measure.txt").write_text(page)
            if row.check(code == 0, f"exit status {code}: {page.strip()}"):
                shutil.copyfile(file, "/bench/measure.json")
                for problem in figures.problems(file.read_text(), ["records", "boot_to_first_record_s"], architecture="x86_64",
                                                kernel=os.uname().release, installed_as="built from source", disk=None):
                    row.check(False, problem)
                row.see(" ".join(page.splitlines()[7].split()))
            self.service.stop_service(row)
        self.air.ask("close")

    def plugged_radio(self, row):
        """a Bluetooth controller is plugged in: udev starts the service, sightings come in its sandbox"""
        self.air.ask("open mixed")
        if self.begins(row):
            row.see(self.service.report().get("detail") or "")
            self.service.stop_service(row)
            row.check(not self.air.is_scanned, "the scan was left on")
        self.air.ask("close")

    def plugged_sound(self, row):
        """a sound card is plugged in: udev starts the service, sound comes in its sandbox"""
        self.service.source = "audio"
        self.card.load()
        if self.begins(row):
            row.see(self.service.report().get("detail") or "")
            self.service.stop_service(row)
        self.card.unload()
        self.service.source = "beacons"

    def plugged_receiver(self, row):
        """a USB receiver is plugged in: udev starts gpsd's part and the service; pulled out and 4 s later back"""
        receiver = Receiver(self.guest)
        self.service.source = "location"
        receiver.plug()
        row.check("ID_MM_DEVICE_IGNORE=1" in receiver.properties(), "ModemManager would probe it")
        if self.begins(row):
            row.see(self.service.report().get("detail") or "")

            def back():
                time.sleep(4)
                receiver.plug()
            # gpsd takes its time to open a receiver and to find its speed.
            self.service.recovers(row, receiver.unplug, back, within=30)
            self.service.stop_service(row)
        receiver.unplug()
        self.service.source = "beacons"

    def hotplugged(self, row):
        """each of the three pulled out and put back 20 times while the service runs: noticed, and collecting again"""
        receiver = Receiver(self.guest)
        # gpsd takes its time to open a receiver and to find its speed.
        devices = {"beacons": (lambda: self.air.ask("close"), lambda: self.air.ask("open mixed"), 5),
                   "audio": (self.card.unload, self.card.load, 5),
                   "location": (receiver.unplug, receiver.plug, 30)}
        for _, plug, _ in devices.values():
            plug()
        self.guest.run("systemctl", "start", "waypost", limit=90)
        for source, (unplug, plug, within) in devices.items():
            self.service.source = source
            row.check(self.service.collects(60) is not None, f"{source}: nothing collected: {self.service.words()}")
            noticed, collecting = [], []
            for time_ in range(20):
                if time_ % 5 == 0:
                    self.guest.say(f"{source} was pulled out and put back {time_} times")
                unplug()
                noticed.append(self.service.notices(20))
                plug()
                collecting.append(self.service.collects(40))
                if None in (noticed[-1], collecting[-1]):
                    break
            row.check(len(collecting) == 20 and None not in noticed + collecting,
                      f"{source}: noticed after {noticed}, collecting after {collecting}: {self.service.words()}")
            row.check(all(is_prompt(time_, within) for time_ in collecting), f"{source}: more than {within} s: {collecting}")
            row.see(f"{source}: noticed in {self.spread(noticed)}, collecting in {self.spread(collecting)}")
        self.service.stop_service(row)
        for unplug, _, _ in devices.values():
            unplug()
        self.service.source = "beacons"

    @staticmethod
    def spread(times):
        """Middle and longest, in seconds."""
        times = sorted(time_ for time_ in times if time_ is not None)
        return f"{times[len(times) // 2]:.1f} s, at most {times[-1]:.1f} s" if times else "never"

    def late_sound(self, row):
        """the service runs when the kernel's first sound card is plugged in: its sandbox lets it record"""
        for module in ("snd_aloop", "snd_pcm", "snd_timer", "snd"):
            self.guest.run("rmmod", module, check=False)
        row.check(not pathlib.Path("/sys/module/snd").exists(), "the kernel's sound could not be unloaded")
        self.service.source = "audio"
        self.guest.run("systemctl", "start", "waypost", limit=90)
        row.see("allowed: " + " ".join(self.service.property("DeviceAllow").split()))
        self.card.load()
        row.recovered = self.service.collects(60)
        row.check(row.recovered is not None, f"not collecting: {self.service.words()}")
        self.service.stop_service(row)
        self.card.unload()
        self.service.source = "beacons"

    def modem(self, row):
        """a u-blox modem is plugged in: it is no receiver, so nothing starts"""
        modem = Receiver(self.guest, Receiver.MODEM)
        modem.plug()
        row.check(wait_for(self.is_active, 10) is None, "the service was started")
        words = modem.properties()
        row.check("waypost" not in words and "ID_MM_DEVICE_IGNORE" not in words, f"udev made of it: {words}")
        row.see("left to ModemManager")
        modem.unplug()

    def disabled(self, row):
        """systemctl disable: a device that is plugged in starts nothing; enable: it does"""
        self.guest.run("systemctl", "disable", "waypost")
        self.air.ask("open mixed")
        row.check(wait_for(self.is_active, 10) is None, "started though it is disabled")
        self.air.ask("close")
        self.guest.run("systemctl", "enable", "waypost")
        self.air.ask("open mixed")
        if self.begins(row):
            self.service.stop_service(row)
        self.air.ask("close")

    def full_disk(self, row):
        """its disk is full as it starts again: it runs and says so, and collects once there is room"""
        state = self.service.state
        state.mkdir(exist_ok=True)
        self.guest.run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", state)
        # It keeps its id at the first start, and does not run without.
        self.guest.run("systemctl", "start", "waypost", limit=90)
        self.service.stop_service(row)
        filler = state / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        self.service.write(more='[storage]\nwarn_free = "2MB"\ncritical_free = "1MB"\n')
        self.air.ask("open mixed")
        row.detected = wait_for(self.is_active, 60)
        row.check(row.detected is not None, f"not started: {self.service.property('Result')}")

        def storage():
            return ((self.service.status() or {}).get("storage") or {}).get("state")
        told = wait_for(lambda: storage() in ("critical", "full", "error"), 60)
        row.check(told is not None, f"storage is said to be {storage()}")
        row.see("; ".join((self.service.status() or {}).get("reasons") or []))
        filler.unlink()
        row.recovered = self.service.collects(60)
        row.check(row.recovered is not None, f"not collecting: {self.service.words()}")
        row.check(wait_for(lambda: storage() not in ("critical", "error"), 60) is not None, f"storage is still {storage()}")
        self.service.stop_service(row)
        self.air.ask("close")
        self.guest.run("umount", state)
        self.service.write()

    def aborted(self, row):
        """SIGABRT, as of its watchdog: the process is gone at once, and started again"""
        self.air.ask("open mixed")
        if self.begins(row):
            process = pathlib.Path("/proc") / self.service.property("MainPID")
            self.guest.run("systemctl", "kill", "-s", "ABRT", "--kill-who=main", "waypost")
            row.detected = wait_for(lambda: not process.exists(), 30)
            row.check(is_prompt(row.detected, 2), "the process stayed more than 2 s")
            row.recovered = self.service.collects(60)
            row.check(row.recovered is not None, f"not collecting: {self.service.words()}")
            self.service.stop_service(row)
        self.air.ask("close")

    def killed(self, row):
        """kill -9: systemd starts it again, it takes the scan over"""
        self.air.ask("open mixed")
        if self.begins(row):
            self.guest.run("systemctl", "kill", "-s", "KILL", "waypost")
            row.detected = None
            row.recovered = self.service.collects(60)
            row.check(row.recovered is not None, f"not collecting: {self.service.words()}")
            row.see(f"{self.service.property('NRestarts')} restart")
            self.service.stop_service(row)
        self.air.ask("close")

    def watchdog(self, row):
        """it hangs (SIGSTOP, watchdog set to 20 s): systemd ends it and starts it again"""
        self.service.drop_in("WatchdogSec=20\nTimeoutAbortSec=5")
        self.air.ask("open mixed")
        if self.begins(row):
            began = time.monotonic()
            self.guest.run("systemctl", "kill", "-s", "STOP", "waypost")
            before = self.service.property("MainPID")
            row.detected = wait_for(lambda: self.service.property("MainPID") != before, 60)
            row.check(row.detected is not None, "still the same process after 60 s")
            if row.check(self.service.collects(60) is not None, "not collecting after it"):
                row.recovered = time.monotonic() - began
                row.see("collecting again")
            self.service.stop_service(row)
        self.air.ask("close")

    def stick(self, row):
        """a stick with a folder Waypost: in force at once, its token overwritten; another one after it: in force, too"""
        imported, token = pathlib.Path("/etc/waypost/imported.toml"), pathlib.Path("/etc/credstore/waypost.token")
        try:
            for interval in ("1m", "2m"):
                text = f'[upload]\r\nendpoint = "https://127.0.0.1:9/x"\r\ninterval = "{interval}"\r\n'
                stick = Stick(self.guest, {"WAYPOST.TOML.txt": text, "waypost.token": f"token-of-{interval}\r\n"})
                began = time.monotonic()
                stick.plug()
                seen = wait_for(lambda: imported.exists() and interval in imported.read_text(), 60)
                row.check(seen is not None, f"{interval}: not in force")
                row.recovered = row.recovered or time.monotonic() - began
                row.check(wait_for(lambda: self.unit("ActiveState") == "inactive", 60) is not None, "the stick is still in use")
                stick.unplug()
                row.check(token.exists() and f"token-of-{interval}" in token.read_text(), f"{interval}: no token")
                row.check("token-of" not in stick.read("waypost.token"), f"{interval}: the token is still on the stick")
            row.see("in force twice")
        finally:
            self.guest.run("systemctl", "stop", "waypost-enroll")
            for path in (imported, token, imported.parent / "import/unverified"):
                path.unlink(missing_ok=True)

    def broken_stick(self, row):
        """a stick that cannot be mounted, plugged in twice: `status` tells it each time"""
        told = pathlib.Path("/run/waypost/import-problems.json")
        stick = Stick(self.guest, {})
        stick.damage()
        for time_ in ("first", "second"):
            told.unlink(missing_ok=True)
            stick.plug()
            row.detected = wait_for(lambda: told.exists() and "the stick" in told.read_text(), 60)
            row.check(row.detected is not None, f"not told the {time_} time: {self.unit('Result')}")
            stick.unplug()
            wait_for(lambda: self.unit("ActiveState") in ("inactive", "failed"), 60)
        row.see(told.read_text() if told.exists() else "")
        told.unlink(missing_ok=True)

    def unit(self, name):
        """A property of the stick's unit."""
        return self.guest.run("systemctl", "show", "-P", name, "waypost-stick@sda").strip()

    def credential(self, row):
        """the token as the systemd credential waypost.token: uploads work"""
        self.service.drop_in("LoadCredential=waypost.token:/etc/waypost/token")
        self.service.write(token="")
        self.air.ask("open mixed")
        if self.begins(row):
            # Asked for, an upload does not wait for the clock, which nobody sets here.
            code, text = self.service.command("sync", "--wait", "60")
            if row.check(code == 0, f"sync: {text.strip()}"):
                row.see("uploading")
            self.service.stop_service(row)
        self.air.ask("close")
