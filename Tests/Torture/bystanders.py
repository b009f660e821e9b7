"""Who stands around a gateway: a program that puts records, and a service manager."""
import json
import socket
import threading
import time


class Putter(threading.Thread):
    """A program of the user's: a record each 100 ms, `acknowledged` those that are on the disk."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = str(path)
        self.given = self.acknowledged = 0
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.1):
            try:
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(self.path)
                    self.put(client, client.makefile("rb"))
            except (OSError, ValueError):
                pass

    def put(self, client, answers):
        while not self.ended.wait(0.1):
            client.sendall(json.dumps({"stream": "tide", "data": {"number": self.given}}).encode() + b"\n")
            self.given += 1
            if "accepted" not in json.loads(answers.readline()):
                return
            self.acknowledged += 1

    def end(self):
        self.ended.set()


class Manager:
    """systemd's side of sd_notify(3)."""

    def __init__(self, path):
        self.path = str(path)
        self.heard = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            self.heard.append((time.monotonic(), self.socket.recv(1 << 12).decode()))

    def count(self, words, since=0.0):
        return sum(words in text and at >= since for at, text in self.heard)
