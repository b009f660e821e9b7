"""The reference receiver behind a bad network: slow, and now and then cut when it hurts most."""
import gzip
import json
import os
import random
import select
import socket
import subprocess
import time

from bench import ENDS_WITH_US, TOKEN, wait
from listening import Listening


class Receiver:
    """The real receiver, in a folder of its own."""

    def __init__(self, settings, folder, port=0, environment=(), arguments=()):
        self.data = folder / "received"
        self.log = folder / "receiver.log"
        tokens = folder / "tokens"
        tokens.write_text(TOKEN + "\n")
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [*ENDS_WITH_US, settings.programs / "waypost-receiver", "--listen", f"127.0.0.1:{port}", "--data",
                 self.data, "--tokens", tokens, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=dict(os.environ, **dict(environment)))
        wait("the receiver", lambda: b"listening on http://" in self.log.read_bytes())
        text = self.log.read_text().split("listening on http://")[1]
        host, port = text.split(",")[0].split()[0].rstrip("/").rsplit(":", 1)
        self.address = (host, int(port))

    def end(self):
        # Asked to end, it waits some seconds for idle connections; its files are complete without that.
        self.process.kill()
        self.process.wait()


class Network(Listening):
    """A proxy between gateway and receiver.

    Of the answers it cuts off `answers`: the server has stored the batch and the gateway does not hear of it.
    Of the requests it cuts off `requests` on their way. `batches` lists what went out and when (CLOCK_BOOTTIME).
    """

    def __init__(self, server, seed=0, answers=0.0, requests=0.0, delay=0.0):
        self.server = server
        self.random = random.Random(seed)
        self.answers, self.requests, self.delay = answers, requests, delay
        self.cuts = 0
        self.batches = []
        super().__init__()

    def serve(self, client):
        server = None
        try:
            server = socket.create_connection(self.server, timeout=10)
            request = b""
            while True:
                ready, _, _ = select.select([client, server], [], [], 30)
                if not ready:
                    return
                for end in ready:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if self.delay:
                        time.sleep(self.random.uniform(0, self.delay))
                    if end is client:
                        request += data
                        if self.random.random() < self.requests:
                            self.cuts += 1
                            return
                        request = self.note(request)
                        server.sendall(data)
                    elif self.random.random() < self.answers:
                        self.cuts += 1
                        return
                    else:
                        client.sendall(data)
        except OSError:
            pass
        finally:
            for end in (client, server):
                if end:
                    end.close()

    def note(self, request):
        """Remembers a whole request's batch; gives what is left of the bytes."""
        head, found, body = request.partition(b"\r\n\r\n")
        if not found:
            return request
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        length = int(fields.get(b"content-length", b"0"))
        if len(body) < length:
            return request
        if length:
            at = time.clock_gettime(time.CLOCK_BOOTTIME)
            try:
                content = body[:length]
                if fields.get(b"content-encoding") == b"gzip":
                    content = gzip.decompress(content)
                batch = json.loads(content)
                self.batches.append((at, batch["stream_name"], batch["batch_metadata"]["last_sequence"]))
            except (KeyError, ValueError, OSError):
                pass
        return body[length:]

    def end(self):
        self.listener.close()
