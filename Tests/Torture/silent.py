"""A proxy that passes everything on, until it accepts and says nothing more."""
import select
import socket
import threading

from listening import Listening


class Silent(Listening):
    def __init__(self, target=None):
        self.target = target
        self.speaking = threading.Event()
        self.speaking.set()
        self.open = set()
        super().__init__()

    def hush(self):
        self.speaking.clear()

    def speak(self):
        if not self.speaking.is_set():
            self.speaking.set()
            # Who waited is to come again.
            self.hang_up()

    def hang_up(self):
        for client in list(self.open):
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(self, client):
        self.open.add(client)
        try:
            self.speaking.wait()
            with socket.create_connection(self.target, timeout=10) as server:
                self.carry(client, server)
        except OSError:
            pass
        self.open.discard(client)
        client.close()

    def carry(self, client, server):
        other = {client: server, server: client}
        while True:
            for end in select.select([client, server], [], [])[0]:
                data = end.recv(1 << 16)
                if not data:
                    return
                self.speaking.wait()
                other[end].sendall(data)
