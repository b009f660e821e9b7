"""The clock of a soak: the same fast time for all programs, and for us who look on (Tests/FieldFaults/fastclock.c)."""
import mmap
import pathlib
import struct
import subprocess
import sys
import time

from bench import ENDS_WITH_US

# Places in `struct control`.
SPEED, BOOT, MONOTONIC, WALL, STEP, SYNCED, BEATS, FIRST_BEAT = range(8)
GRANT = 5_000_000


class FastClock:
    """Time that goes by `speed` times as fast from now on, where the machine has time for it."""

    def __init__(self, folder, library, speed):
        self.library, self.speed = pathlib.Path(library), speed
        self.path = folder / "clock"
        monotonic = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.epoch = [speed, time.clock_gettime_ns(time.CLOCK_BOOTTIME), monotonic,
                      time.clock_gettime_ns(time.CLOCK_REALTIME), 0, 1, 0, monotonic, 0, speed]
        self.path.write_bytes(struct.pack("<16q", *self.epoch, *[0] * 6))
        with open(self.path, "r+b") as file:
            self.control = mmap.mmap(file.fileno(), 128)
        self.metronome = subprocess.Popen(
            [*ENDS_WITH_US, "nice", "-n", "19", self.library.with_name("metronome"), self.path])

    def place(self, number):
        return struct.unpack_from("<q", self.control, 8 * number)[0]

    def environment(self, *libraries):
        """The environment that gives a program this time; `libraries` are loaded before it."""
        return {"LD_PRELOAD": " ".join([*libraries, str(self.library)]), "FASTCLOCK_CONTROL": str(self.path)}

    def passed_ns(self):
        while True:
            beats = self.place(BEATS)
            at, passed, speed = struct.unpack_from("<3q", self.control, 8 * (FIRST_BEAT + 3 * (beats & 1)))
            if beats == self.place(BEATS):
                since = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - at
                return passed + max(0, min(since, GRANT)) * speed

    def seconds(self):
        """Seconds since the epoch of the soak."""
        return self.passed_ns() / 1e9

    def wall(self):
        """The date that is right, whatever the programs' clock was stepped by."""
        return self.epoch[WALL] / 1e9 + self.seconds()

    def monotonic_ns(self):
        return self.epoch[MONOTONIC] + self.passed_ns()

    def step(self, seconds):
        """The programs' date is off by so many seconds from now on."""
        struct.pack_into("<q", self.control, 8 * STEP, round(seconds * 1000))

    def slow_down(self):
        """From now on a second is a second."""
        self.speed = 1
        struct.pack_into("<q", self.control, 8 * SPEED, 1)

    def until(self, moment):
        while (left := moment - self.seconds()) > 0:
            time.sleep(left / self.speed)

    def check(self):
        """Whether each clock and each kind of wait is really that much faster: what is wrong, in words."""
        script = pathlib.Path(__file__).with_name("waits.py")
        done = subprocess.run([sys.executable, script, str(self.path), str(self.speed)], env=self.environment(),
                              capture_output=True, text=True)
        return (done.stdout + done.stderr).strip() if done.returncode else ""

    def end(self):
        self.metronome.kill()
        self.metronome.wait()
