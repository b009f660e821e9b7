"""The sources of a gateway for a month: a controller with a hundred beacons around it, a gpsd with a GNSS receiver."""
import json
import random
import select
import socket
import struct
import time

from listening import Listening

RESET, SCAN, EXTENDED_SCAN, COMMANDS = 0x0C03, 0x200C, 0x2042, 0x1002
# Supported commands without extended scanning (octet 37).
SUPPORTED = bytes(37) + b"\x1f" + bytes(26)
UUID = bytes.fromhex("f7826da64fa24e988024bc5b71e0893e")
BEACONS, STAYING = 100, 40
# How long a beacon that passes by stays, in s.
PASSING = 18 * 3600
LATE = 10


class Pluggable(Listening):
    """A server that can be pulled out: then it lets go whoever comes."""

    def __init__(self, clock):
        self.clock = clock
        self.is_out = False
        # The most that it was behind the clock, in its seconds, and how often more than `LATE`.
        self.worst, self.late = 0.0, 0
        super().__init__()

    def note_delay(self, seconds):
        self.worst = max(self.worst, seconds)
        self.late += seconds > LATE

    def serve(self, client):
        try:
            # Packets that wait for an answer to the one before (Nagle) would be half a minute late.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self.is_out:
                self.talk(client)
        except OSError:
            pass
        finally:
            client.close()


class Controller(Pluggable):
    """A Bluetooth controller over TCP (H4) that hears `rate` advertisements a second, as the clock has it."""

    def __init__(self, clock, rate, seed):
        self.rate = rate
        self.random = random.Random(seed)
        self.sent = 0
        super().__init__(clock)

    def talk(self, client):
        buffer, since, done = b"", None, 0
        while not self.is_out:
            ready, _, _ = select.select([client], [], [], 0.002 if since is not None else 0.1)
            if ready:
                data = client.recv(4096)
                if not data:
                    return
                buffer += data
                while len(buffer) >= 4 and len(buffer) >= 4 + buffer[3]:
                    command, buffer = buffer[1:4 + buffer[3]], buffer[4 + buffer[3]:]
                    order = self.answer(client, command)
                    if order is not None:
                        since, done = (self.clock.seconds() if order else None), 0
            if since is not None:
                due = int((self.clock.seconds() - since) * self.rate)
                if due > done:
                    # Sends what a busy machine delayed at once, but with a limit.
                    self.note_delay((due - done) / self.rate)
                    for first in range(done, due, 200):
                        client.sendall(b"".join(self.report() for _ in range(min(200, due - first))))
                    self.sent += due - done
                    done = due

    def answer(self, client, command):
        """Command Complete; True when the scan begins, False when it ends, else nothing."""
        opcode = command[0] | command[1] << 8
        values = b"\0" + (SUPPORTED if opcode == COMMANDS else bytes(8) if opcode == 0x2003 else b"")
        client.sendall(bytes([4, 0x0E, 3 + len(values), 1]) + command[:2] + values)
        if opcode in (SCAN, EXTENDED_SCAN):
            return command[3] == 1
        return False if opcode == RESET else None

    def report(self):
        """An advertising report of one of them, drawn by chance."""
        place = self.random.randrange(BEACONS)
        if place < STAYING:
            address = bytes([0xCB, 0xB8, 0x33, 0x4C, 0x88, place])
            seconds = self.clock.seconds()
            body = struct.pack(">BhHHhhhHBH", 5, 4000 + round(seconds / 60) % 500, 22120, 51000, 4, -4, 1036,
                               (2977 - 1600) << 5 | 22, 66, round(seconds / 60) & 0xFFFF) + address
            data = b"\x02\x01\x06" + bytes([len(body) + 3, 0xFF, 0x99, 0x04]) + body
        else:
            # Each passes by at a time of its own.
            number = int(self.clock.seconds() / PASSING + place / BEACONS) * BEACONS + place
            address = bytes([0xC0, 0xFF, 0xEE]) + number.to_bytes(3, "big")
            body = b"\x4c\x00\x02\x15" + UUID + struct.pack(">HHb", number >> 16, number & 0xFFFF, -59)
            data = b"\x02\x01\x06" + bytes([len(body) + 1, 0xFF]) + body
        report = b"\x01\x00\x01" + address[::-1] + bytes([len(data)]) + data + bytes([256 - self.random.randrange(40, 95)])
        return b"\x04\x3E" + bytes([len(report) + 1, 0x02]) + report


class Fixes(Pluggable):
    """A gpsd whose receiver walks north: a position each two seconds of the clock."""

    PAUSE = 2.0

    def talk(self, client):
        def send(**fields):
            client.sendall(json.dumps(fields, separators=(",", ":")).encode() + b"\r\n")

        send(**{"class": "VERSION"}, release="3.25", rev="3.25", proto_major=3, proto_minor=15)
        due = self.clock.seconds()
        while not self.is_out:
            self.clock.until(due)
            when = self.clock.wall()
            self.note_delay(self.clock.seconds() - due)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when)) + f".{int(when * 1000) % 1000:03d}Z"
            send(**{"class": "TPV"}, device="/dev/walk", mode=3, time=stamp, lat=46.5 + self.clock.seconds() * 1e-6,
                 lon=9.8, altMSL=1800.0, speed=0.1, track=0.0, epx=3.0, epy=3.0, epv=5.0, eph=4.0)
            # Positions that came too late are left out, as a receiver has it.
            due = max(due + self.PAUSE, self.clock.seconds())
