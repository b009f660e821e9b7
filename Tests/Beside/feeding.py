#!/usr/bin/env python3
"""A program that hands over numbered records, each peer in its own form, and logs which it had an answer for.

    feeding.py PROTOCOL ADDRESS LOG FIRST COUNT [RATE]

Ends when all have an answer, or the peer is gone. ADDRESS is a port of 127.0.0.1, or the path of a socket.
"""
import socket
import struct
import sys
import time

from account import Log, now
from content import WINDOW, record


class Stream:
    """A connection on which answers come in the order of the records."""

    def __init__(self, address):
        if address.isdigit():
            self.socket = socket.create_connection(("127.0.0.1", int(address)))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address)
        self.rest = b""
        self.open()

    def open(self):
        pass

    def receive(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the peer is gone")
        return data

    def send(self, records):
        self.socket.sendall(b"".join(map(self.form, records)))

    def lines(self):
        *lines, self.rest = (self.rest + self.receive()).split(b"\n")
        return lines


class Intake(Stream):
    """Waypost's intake socket: the answer says that the record is on the disk."""

    def form(self, text):
        return b'{"stream":"site","data":%s}\n' % text

    def answers(self):
        lines = self.lines()
        for line in lines:
            if not line.startswith(b'{"accepted"'):
                raise SystemExit(f"refused: {line.decode()}")
        return len(lines)


class Storage(Stream):
    """The process around ThingsBoard's storage: a line back when `put` has returned true."""

    def form(self, text):
        return text + b"\n"

    def answers(self):
        return len(self.lines())


class Relp(Stream):
    """RELP, which answers each message; rsyslog's documentation says that it loses none (imrelp)."""

    def open(self):
        offer = b"relp_version=0\nrelp_software=waypost-bench\ncommands=syslog"
        self.socket.sendall(b"1 open %d %s\n" % (len(offer), offer))
        while not self.rest.endswith(b"commands=syslog\n"):
            self.rest += self.receive()
        self.rest, self.number = b"", 1

    def form(self, text):
        self.number = self.number % 999_999_999 + 1
        text = b"<14>Nov 21 04:30:07 pi site: " + text
        return b"%d syslog %d %s\n" % (self.number, len(text), text)

    def answers(self):
        lines = self.lines()
        for line in lines:
            if not line.endswith(b" 200 OK"):
                raise SystemExit(f"refused: {line.decode()}")
        return len(lines)


class Mqtt(Stream):
    """MQTT 3.1.1 with QoS 1: PUBACK is the answer."""

    def open(self):
        body = struct.pack(">H4sBBH", 4, b"MQTT", 4, 2, 0) + struct.pack(">H", 6) + b"feeder"
        self.socket.sendall(bytes([0x10, len(body)]) + body)
        if self.receive()[3] != 0:
            raise ConnectionError("the broker refuses")
        self.number = 0

    def form(self, text):
        self.number = self.number % 65_535 + 1
        length = 2 + 4 + 2 + len(text)
        return struct.pack(">BBBH4sH", 0x32, length & 127 | 128, length >> 7, 4, b"site", self.number) + text

    def answers(self):
        data = self.rest + self.receive()
        count = len(data) // 4
        self.rest = data[4 * count:]
        return count


class Journal:
    """journald's own protocol, a datagram a record; `journalctl --sync` is what answers (Synchronize of its varlink)."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.connect(f"{address}/socket")
        self.varlink = socket.socket(socket.AF_UNIX)
        self.varlink.connect(f"{address}/io.systemd.journal")

    def send(self, records):
        for text in records:
            self.socket.send(b"PRIORITY=6\nSYSLOG_IDENTIFIER=site\nMESSAGE=" + text + b"\n")
        self.count = len(records)
        self.varlink.sendall(b'{"method":"io.systemd.Journal.Synchronize","parameters":{}}\0')

    def answers(self):
        answer = self.varlink.recv(1 << 12)
        if not answer.endswith(b'{"parameters":{}}\0'):
            raise ConnectionError(f"not synchronized: {answer!r}")
        return self.count


PROTOCOLS = {"intake": Intake, "storage": Storage, "relp": Relp, "mqtt": Mqtt, "journal": Journal}


def feed(peer, log, first, count, rate):
    texts = [record(number) for number in range(first, first + count)]
    sent = answered = 0
    began = time.monotonic()
    while answered < count:
        due = count if not rate else min(count, int((time.monotonic() - began) * rate) + 1)
        end = min(due, answered + WINDOW)
        if isinstance(peer, Journal) and answered < sent:
            end = sent
        if end > sent:
            peer.send(texts[sent:end])
            sent = end
        elif answered == sent:
            time.sleep(0.002)
            continue
        got = peer.answers()
        if got:
            log.add((now(), first + answered, got))
            answered += got


def main():
    protocol, address, path, first, count, *rate = sys.argv[1:]
    try:
        feed(PROTOCOLS[protocol](address), Log(path), int(first), int(count), float(*rate or [0]))
    except OSError as error:
        sys.exit(f"{protocol}: {error}")


if __name__ == "__main__":
    main()
