"""A proxy that fails on command, one request at a time, and checks that a batch is the same at each try."""
import collections
import hashlib
import json
import random
import socket
import struct
import threading
import time
import zlib

from listening import Listening

# Faults of a request. Those in STORED happen after the receiver has stored the batch.
FAULTS = ("refuse", "hang up", "reset before", "cut the request", "stall", "portal", "error", "token", "endpoint",
          "too large", "busy", "garbage", "cut in the header", "cut in the body")
STORED = ("stored, hang up", "stored, reset", "stored, cut in the header", "stored, cut in the body",
          "stored, reset in the body", "stored, drip", "stored, portal", "stored, 502", "stored, stall",
          "stored, kill")
ANSWERS = {
    "portal": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 16\r\n\r\n<html>log in</p>",
    "error": b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops",
    "token": b"HTTP/1.1 401 X\r\nContent-Length: 2\r\n\r\nno",
    "endpoint": b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "too large": b"HTTP/1.1 413 X\r\nContent-Length: 3\r\n\r\nbig",
    "busy": b"HTTP/1.1 429 X\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n",
    "cut in the header": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "cut in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"accepted\": 1, ",
    "garbage": bytes(range(256)) * 8,
    "stored, 502": b"HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n",
}
ANSWERS["stored, portal"] = ANSWERS["portal"]


def reset(client):
    """The close that follows sends RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Closed(Exception):
    """The other side has ended the connection."""


class BadNetwork(Listening):
    """Passes requests on to the receiver, or does to them what `next_fault` says."""

    def __init__(self, receiver, seed, on_kill):
        self.receiver = receiver
        self.random = random.Random(seed)
        self.on_kill = on_kill
        # The fault of the next request, or None.
        self.next_fault = None
        self.done = collections.Counter()
        self.requests = 0
        self.problems = []
        # Of each key the digest of its bytes; the proxy's own memory of what was sent before.
        self.bodies = {}
        self.tries = collections.Counter()
        self.lock = threading.Lock()
        super().__init__()

    def take(self):
        """The fault of this request; there is one at a time."""
        with self.lock:
            fault, self.next_fault = self.next_fault, None
            return fault

    def serve(self, client):
        try:
            with self.lock:
                if self.next_fault == "refuse":
                    self.next_fault = None
                    self.done["refuse"] += 1
                    reset(client)
                    return
            with client.makefile("rb") as stream:
                while self.exchange(client, stream):
                    pass
        except (OSError, Closed, ValueError):
            pass
        finally:
            client.close()

    def exchange(self, client, stream):
        """One request; whether the connection stays open."""
        head = self.head(stream)
        fault = None
        if self.next_fault == "cut the request":
            fault = self.take()
            self.done[fault] += 1
            stream.read(20)
            reset(client)
            return False
        length = int(head[1].get("content-length", "0"))
        body = stream.read(length)
        if len(body) < length:
            raise Closed
        self.requests += 1
        self.compare(head[1], body)
        fault = self.take()
        if fault is None:
            client.sendall(self.forward(head, body))
            return True
        self.done[fault] += 1
        answer = self.forward(head, body) if fault in STORED else b""
        self.act(client, fault, answer)
        return False

    @staticmethod
    def head(stream):
        first = stream.readline(1 << 16)
        if not first:
            raise Closed
        fields = {}
        lines = [first]
        while True:
            line = stream.readline(1 << 16)
            lines.append(line)
            if line in (b"\r\n", b""):
                break
            name, _, value = line.decode("latin-1").partition(":")
            fields[name.strip().lower()] = value.strip()
        return b"".join(lines), fields

    def compare(self, fields, body):
        """A batch that was sent before must be the same, byte for byte, under the same key."""
        key = fields.get("idempotency-key", "")
        digest = hashlib.sha256(body + fields.get("content-encoding", "").encode()).digest()
        with self.lock:
            self.tries[key] += 1
            if self.bodies.setdefault(key, digest) != digest:
                self.problems.append(f"the batch {key} was sent with other bytes than before")
        try:
            plain = zlib.decompress(body, 47) if fields.get("content-encoding") == "gzip" else body
            if f'"{json.loads(plain)["batch_metadata"]["batch_id"]}"' != key:
                self.problems.append(f"the key {key} is not that of its batch")
        except (ValueError, KeyError, zlib.error) as error:
            self.problems.append(f"the batch {key} cannot be read: {error}")

    def forward(self, head, body):
        """Has the receiver answer; the batch is on its disk when this returns."""
        with socket.create_connection(self.receiver, timeout=30) as server:
            server.sendall(head[0] + body)
            with server.makefile("rb") as stream:
                answer, fields = self.head(stream)
                return answer + stream.read(int(fields.get("content-length", "0")))

    def act(self, client, fault, answer):
        split = answer.find(b"\r\n\r\n") + 4
        if fault in ANSWERS:
            client.sendall(ANSWERS[fault])
        elif fault in ("stall", "stored, stall"):
            self.wait(client)
        elif fault in ("refuse", "reset before", "stored, reset"):
            reset(client)
        elif fault == "stored, cut in the header":
            client.sendall(answer[:self.random.randrange(1, split)])
        elif fault == "stored, cut in the body":
            client.sendall(answer[:self.random.randrange(split, len(answer))])
        elif fault == "stored, reset in the body":
            client.sendall(answer[:self.random.randrange(split, len(answer))])
            reset(client)
        elif fault == "stored, drip":
            self.drip(client, answer)
        elif fault == "stored, kill":
            self.on_kill()

    @staticmethod
    def wait(client):
        """Until the other side gives up."""
        client.settimeout(30)
        client.recv(1)

    @staticmethod
    def drip(client, answer):
        try:
            for number in range(len(answer)):
                client.sendall(answer[number:number + 1])
                time.sleep(0.05)
        except OSError:
            pass

    def end(self):
        self.listener.close()
