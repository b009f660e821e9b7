#!/usr/bin/env python3
"""The server, in the form that each peer sends to: takes records, logs them before it answers, looks at nothing else.

    sinks.py KIND PORT LOG [--forget N]

mqtt is a subscriber of the broker at PORT with a session that lasts; the others listen on PORT. `--forget N` leaves
each Nth record out of the log: the bench must say that it was lost.
"""
import re
import socket
import struct
import sys
import threading
import time
import zlib

from account import Log, now
from content import NUMBER, numbers

RECORD = re.compile(rb'"id": ?"([^"]+)"[^{}]*?"n":(\d+),')
FRAME = re.compile(rb"(\d+) (\w+) (\d+)[ \n]")


class Arrivals:
    """The log; several connections may add to it."""

    def __init__(self, path, forget):
        self.log, self.forget, self.count = Log(path), forget, 0
        self.lock = threading.Lock()
        self.first = Log(f"{path}.first")

    def begin(self):
        """A client is there: the time from which it is measured how fast it sends."""
        self.first.add((now(), 0, 0))

    def add(self, pairs):
        at, values = now(), []
        with self.lock:
            for number, id in pairs:
                self.count += 1
                if not (self.forget and self.count % self.forget == 0):
                    values += (at, number, id)
            self.log.add(values)

    def plain(self, data):
        self.add((number, 0) for number in numbers(data))


class Connection:
    """Reads what one client sends, as it arrives."""

    def __init__(self, client, arrivals):
        self.client, self.arrivals, self.rest = client, arrivals, b""
        arrivals.begin()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def more(self):
        data = self.client.recv(1 << 18)
        if not data:
            raise ConnectionError
        self.rest += data

    def until(self, mark):
        while mark not in self.rest:
            self.more()
        part, self.rest = self.rest.split(mark, 1)
        return part

    def exactly(self, count):
        parts, have = [self.rest], len(self.rest)
        while have < count:
            parts.append(self.client.recv(1 << 18))
            if not parts[-1]:
                raise ConnectionError
            have += len(parts[-1])
        data = b"".join(parts)
        self.rest = data[count:]
        return data[:count]

    def head(self):
        """Returns an HTTP request's fields; answers `Expect: 100-continue`."""
        lines = self.until(b"\r\n\r\n").lower().split(b"\r\n")
        fields = dict(line.split(b": ", 1) for line in lines[1:] if b": " in line)
        if b"expect" in fields:
            self.client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return fields

    def chunks(self):
        while size := int(self.until(b"\r\n"), 16):
            yield self.exactly(size)
            self.until(b"\r\n")
        self.until(b"\r\n")

    def answer(self):
        self.client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Waypost(Connection):
    """The ingest server of waypost-protocol(7); a record's id is the first half of what the log has."""

    def serve(self):
        while True:
            fields = self.head()
            if fields.get(b"transfer-encoding") == b"chunked":
                body = b"".join(self.chunks())
            else:
                body = self.exactly(int(fields.get(b"content-length", 0)))
            if fields.get(b"content-encoding") == b"gzip":
                body = zlib.decompress(body, 31)
            self.arrivals.add((int(number), zlib.crc32(id) << 32 | zlib.crc32(id[::-1]) | 1)
                              for id, number in RECORD.findall(body))
            self.answer()


class Sightings(Connection):
    """The same; sightings have no number, so they get one as they come."""

    def serve(self):
        while True:
            body = self.exactly(int(self.head().get(b"content-length", 0)))
            if body[:2] == b"\x1f\x8b":
                body = zlib.decompress(body, 31)
            if b"linux_bluez_beacons" in body[:200]:
                count = self.arrivals.count
                self.arrivals.add((count + place, 0) for place in range(body.count(b'"rssi":')))
            self.answer()


class Journal(Connection):
    """A request of systemd-journal-upload: entries one after the other for as long as it has some."""

    def serve(self):
        while True:
            self.head()
            rest = b""
            for chunk in self.chunks():
                whole, _, tail = (rest + chunk).rpartition(b"\n")
                self.arrivals.plain(whole)
                rest = tail
            self.arrivals.plain(rest)
            self.answer()


class Relp(Connection):
    def serve(self):
        while True:
            answers, found, at = [], [], 0
            while frame := FRAME.match(self.rest, at):
                end = frame.end() + int(frame[3])
                if frame[3] != b"0" and len(self.rest) <= end:
                    break
                if frame[2] == b"syslog":
                    found += [(int(number), 0) for number in NUMBER.findall(self.rest, frame.end(), end)]
                    answers.append(b"%s rsp 6 200 OK\n" % frame[1])
                elif frame[2] == b"open":
                    offer = b"200 OK\nrelp_version=0\nrelp_software=waypost-bench\ncommands=syslog"
                    answers.append(b"%s rsp %d %s\n" % (frame[1], len(offer), offer))
                else:
                    answers.append(b"%s rsp 0\n0 serverclose 0\n" % frame[1])
                at = end + (frame[3] != b"0")
            self.rest = self.rest[at:]
            if answers:
                self.arrivals.add(found)
                self.client.sendall(b"".join(answers))
            # Half a frame has no answer to carry the acknowledgement, and the other half would wait for it.
            self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            self.more()


class Packs(Connection):
    """The packs that ThingsBoard's read loop sends: a length in a line, records, and a line back."""

    def serve(self):
        while True:
            self.arrivals.plain(self.exactly(int(self.until(b"\n"))))
            self.client.sendall(b"ok\n")


class Subscriber(Connection):
    def serve(self):
        body = struct.pack(">H4sBBH", 4, b"MQTT", 4, 0, 0) + struct.pack(">H", 4) + b"sink"
        self.client.sendall(bytes([0x10, len(body)]) + body)
        if self.exactly(4)[3] != 0:
            raise ConnectionError
        self.client.sendall(b"\x82\x09\x00\x01\x00\x04site\x01")
        while True:
            found, answers, at = [], [], 0
            while len(self.rest) >= at + 4:
                length, head = self.rest[at + 1], 2
                if length & 128:
                    length, head = length & 127 | self.rest[at + 2] << 7, 3
                if len(self.rest) < at + head + length:
                    break
                if self.rest[at] >> 4 == 3:
                    body = self.rest[at + head:at + head + length]
                    found += [(number, 0) for number in numbers(body)]
                    answers.append(b"\x40\x02" + body[6:8])
                at += head + length
            self.rest = self.rest[at:]
            if answers:
                self.arrivals.add(found)
                self.client.sendall(b"".join(answers))
            self.more()


KINDS = {"waypost": Waypost, "sightings": Sightings, "journal": Journal, "relp": Relp, "packs": Packs}


def serve(connection):
    try:
        connection.serve()
    except OSError:
        pass
    finally:
        connection.client.close()


def main():
    kind, port, path = sys.argv[1:4]
    arrivals = Arrivals(path, int(sys.argv[5]) if "--forget" in sys.argv else 0)
    while kind == "mqtt":
        try:
            serve(Subscriber(socket.create_connection(("127.0.0.1", int(port))), arrivals))
        except OSError:
            pass
        time.sleep(0.1)
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(KINDS[kind](client, arrivals),), daemon=True).start()


if __name__ == "__main__":
    main()
