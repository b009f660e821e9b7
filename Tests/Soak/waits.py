"""Started with the fast clock preloaded: does each clock go on alike, and does each wait that the programs use end with it?

Compares with what the metronome says in the file, which nothing stands before. Prints what is not so; exit status 1 then.
"""
import ctypes
import os
import select
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
REAL = 0.2


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("ns", ctypes.c_long)]


def passed(path):
    """Seconds that the metronome has made, at its last beat."""
    with open(path, "rb") as file:
        words = struct.unpack("<16q", file.read(128))
    return words[8 + 3 * (words[6] & 1)] / 1e9


def at(clock, seconds):
    end = time.clock_gettime(clock) + seconds
    return Timespec(int(end), int(end % 1 * 1e9))


def condition(clock, seconds):
    """pthread_cond_timedwait with the clock of its attributes."""
    attributes, wait, mutex = (ctypes.create_string_buffer(64) for _ in range(3))
    libc.pthread_condattr_init(attributes)
    libc.pthread_condattr_setclock(attributes, clock)
    libc.pthread_cond_init(wait, attributes)
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_cond_timedwait(wait, mutex, ctypes.byref(at(clock, seconds)))


def timer(clock, seconds, is_absolute):
    """timerfd, read until it expires."""
    fd = libc.timerfd_create(clock, 0)
    end = at(clock, seconds) if is_absolute else Timespec(int(seconds), 0)
    libc.timerfd_settime(fd, int(is_absolute), ctypes.byref((Timespec * 2)(Timespec(0, 0), end)), None)
    os.read(fd, 8)
    os.close(fd)


def polls(seconds):
    reading, _ = os.pipe()
    entries = select.poll()
    entries.register(reading)
    entries.poll(seconds * 1000)


def main():
    path, speed = sys.argv[1], int(sys.argv[2])
    seconds = max(1.0, REAL * speed)
    # A beat and what a busy machine is late, in fast seconds.
    early, late = 0.006 * speed, 0.3 * speed
    wrong = []
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC", "CLOCK_REALTIME"):
        clock = getattr(time, name)
        began, fast = passed(path), time.clock_gettime(clock)
        while passed(path) - began < seconds:
            pass
        if not -early < time.clock_gettime(clock) - fast - seconds < late:
            wrong.append(f"{name} went on by {time.clock_gettime(clock) - fast:.1f} s, not {seconds:.0f}")
    boot, monotonic, wall = time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC, time.CLOCK_REALTIME
    waits = {
        "poll": lambda: polls(seconds),
        "ppoll": lambda: libc.ppoll(None, 0, ctypes.byref(Timespec(int(seconds), 0)), None),
        "select": lambda: select.select([], [], [], seconds),
        "epoll_wait": lambda: select.epoll().poll(seconds),
        "nanosleep": lambda: libc.nanosleep(ctypes.byref(Timespec(int(seconds), 0)), None),
        "clock_nanosleep": lambda: time.sleep(seconds),
        "usleep": lambda: libc.usleep(int(seconds * 1e6)),
        "sleep": lambda: libc.sleep(int(seconds)),
        "pthread_cond_timedwait, monotonic": lambda: condition(monotonic, seconds),
        "pthread_cond_timedwait, wall": lambda: condition(wall, seconds),
        "timerfd, boot time, a moment": lambda: timer(boot, seconds, True),
        "timerfd, monotonic, a length": lambda: timer(monotonic, seconds, False),
    }
    for name, wait in waits.items():
        began = passed(path)
        wait()
        # A timer of a length expires when the kernel says so: that is early where the metronome is late.
        least = -seconds / 2 if name.startswith("timerfd") else -early
        if not least < passed(path) - began - int(seconds) < late:
            wrong.append(f"{name} took {passed(path) - began:.1f} s, not {seconds:.0f}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
