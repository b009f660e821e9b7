"""The rights that the unit leaves to the service, each removed once; and a clock that is wrong at the start."""
import ctypes
import socket
import time
from datetime import datetime, timezone

import records
from pace import wait_for

FAMILIES = {"AF_UNIX", "AF_INET", "AF_INET6", "AF_BLUETOOTH", "AF_NETLINK"}


def without(family):
    return "RestrictAddressFamilies=\nRestrictAddressFamilies=" + " ".join(sorted(FAMILIES - {family}))


def capability(name):
    return f"AmbientCapabilities=\nAmbientCapabilities={name}\nCapabilityBoundingSet=\nCapabilityBoundingSet={name}"


# The right, the drop-in that takes it away, and the method that waits for what does not work without.
RIGHTS = (
    ("CAP_NET_RAW", capability("CAP_NET_ADMIN"), "has_no_beacons"),
    ("CAP_NET_ADMIN", capability("CAP_NET_RAW"), "has_no_beacons"),
    ("char-alsa", "DeviceAllow=\nDeviceAllow=/dev/rfkill rw", "has_no_sound"),
    ("/dev/rfkill", "DeviceAllow=\nDeviceAllow=char-alsa rw", "stays_blocked"),
    ("AF_BLUETOOTH", without("AF_BLUETOOTH"), "has_no_beacons"),
    ("AF_INET", without("AF_INET"), "has_no_server"),
    ("AF_INET6", without("AF_INET6"), "has_no_server_on_ipv6"),
    ("AF_NETLINK", without("AF_NETLINK"), "sees_no_network"),
    ("AF_UNIX", without("AF_UNIX"), "is_not_there"),
    ("adjtimex", "SystemCallFilter=~adjtimex clock_adjtime", "knows_no_clock"),
)


class Timex(ctypes.Structure):
    """`struct timex` of adjtimex(2), as far as it is used; what follows is room."""

    _fields_ = [("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
                ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("room", ctypes.c_char * 256)]


def say_clock(is_synced):
    """Tells the kernel that its clock is right, as chrony does, or that nobody knows."""
    adj_maxerror, adj_esterror, adj_status, sta_unsync = 0x4, 0x8, 0x10, 0x40
    error = 1000 if is_synced else 16_000_000
    state = Timex(modes=adj_maxerror | adj_esterror | adj_status, maxerror=error, esterror=error,
                  status=0 if is_synced else sta_unsync)
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")


class Sandbox:
    """Scenarios of the installed service."""

    def rights(self, row):
        """each right that the unit leaves is taken away: what it is for does not work then; with all of them, all works"""
        self.card.load()
        self.air.ask("open mixed")
        say_clock(True)
        try:
            self.start_with("")
            for way in sorted({way for _, _, way in RIGHTS}):
                row.check(not getattr(self, way)(60), f"{way} with all rights: {self.service.words()}")
            for right, drop_in, way in RIGHTS:
                self.guest.say(f"without {right}")
                self.start_with(drop_in)
                row.check(getattr(self, way)(20), f"without {right} nothing is missing")
            row.see(f"{len(RIGHTS)} rights, each needed")
        finally:
            say_clock(False)
            self.service.drop_in("")
            self.guest.run("systemctl", "stop", "waypost", limit=90)
            self.air.ask("close")
            self.card.unload()

    def start_with(self, drop_in):
        """Restarts it; the adapter is down, as after a boot."""
        self.guest.run("systemctl", "stop", "waypost", limit=90)
        self.guest.run("hciconfig", "hci0", "down", check=False)
        self.service.drop_in(drop_in)
        # Without a socket it cannot tell systemd that it runs.
        self.guest.run("systemctl", "start", "--no-block", "waypost")

    def state(self, source):
        return (((self.service.status() or {}).get("sources") or {}).get(source) or {}).get("state")

    def fails(self, source, limit):
        """Whether the source does not work within the limit."""
        return wait_for(lambda: self.state(source) == "loaded", limit) is None

    def has_no_beacons(self, limit):
        return self.fails("beacons", limit)

    def has_no_sound(self, limit):
        return self.fails("audio", limit)

    def stays_blocked(self, limit):
        self.fails("beacons", 60)
        self.guest.run("rfkill", "block", "bluetooth")
        try:
            wait_for(lambda: self.state("beacons") == "error", 30)
            return self.fails("beacons", limit)
        finally:
            self.guest.run("rfkill", "unblock", "bluetooth")

    def has_no_server(self, limit):
        wait_for(self.service.status, limit)
        return self.service.command("sync", "--wait", str(limit))[0] != 0

    def has_no_server_on_ipv6(self, limit):
        """Whether nobody calls a server that has such an address."""
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
            server.settimeout(1)
            self.service.write(address=f"[::1]:{server.getsockname()[1]}")
            try:
                self.guest.run("systemctl", "restart", "waypost", limit=90)
                self.service.command("sync", "--wait", "5")
                server.accept()[0].close()
                return False
            except TimeoutError:
                return True
            finally:
                self.service.write()

    def sees_no_network(self, limit):
        wait_for(self.service.status, limit)
        identity = self.service.property("InvocationID")
        return "network changes cannot be watched" in self.guest.run("journalctl", f"_SYSTEMD_INVOCATION_ID={identity}", "--no-pager")

    def is_not_there(self, limit):
        return wait_for(self.service.status, limit) is None

    def knows_no_clock(self, limit):
        # It keeps over a restart that the clock of this boot was right once.
        self.guest.run("systemctl", "stop", "waypost", limit=90)
        for path in self.service.state.glob("queue.sqlite*"):
            path.unlink()
        self.guest.run("systemctl", "start", "waypost", limit=90)
        return wait_for(self.clock_is_synced, limit) is None

    def clock_is_synced(self):
        return ((self.service.status() or {}).get("clock") or {}).get("state") == "synced"

    def wrong_clock(self, row):
        """a board without a clock: starts in 1970, collects, and the time comes later: all is dated right"""
        self.service.write(interval="1h")
        began, uptime = time.time(), time.monotonic()
        say_clock(False)
        self.air.ask("open mixed")
        try:
            time.clock_settime(time.CLOCK_REALTIME, 86_400)
            if not self.begins(row):
                return
            enough = wait_for(lambda: self.service.count >= 20, 60)
            row.check(enough is not None, f"{self.service.count} sightings: {self.service.words()}")
        finally:
            time.clock_settime(time.CLOCK_REALTIME, began + time.monotonic() - uptime)
        say_clock(True)
        synced = wait_for(self.clock_is_synced, 60)
        row.check(synced is not None, "the clock is not noticed")
        row.recovered = synced
        code, text = self.service.command("sync", "--wait", "60")
        row.check(code == 0, f"sync: {text.strip()}")
        self.service.stop_service(row)
        self.judge_dates(row, records.received(self.service.receiver.data)[3], began)
        say_clock(False)
        self.air.ask("close")
        self.service.write()

    @staticmethod
    def judge_dates(row, arrived, began):
        dates = [datetime.fromisoformat(record["timestamp"].replace("Z", "+00:00")).timestamp() for record in arrived]
        strange = [date for date in dates if not began - 2 <= date <= datetime.now(timezone.utc).timestamp() + 2]
        row.check(len(dates) >= 20, f"only {len(dates)} sightings arrived")
        row.check(not strange, f"{len(strange)} of {len(dates)} are dated otherwise, {min(strange, default=0):.0f}")
        corrected = sum(record.get("clock") == "corrected" for record in arrived)
        row.check(corrected >= 20, f"only {corrected} are corrected")
        row.see(f"{len(dates)} arrived, {corrected} of them corrected")
