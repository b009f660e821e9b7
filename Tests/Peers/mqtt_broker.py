"""A broker that misbehaves on purpose, for tests of the MQTT client and intake.

    mqtt_broker.py SCENARIO LOG [DATABASE]

Writes its port as the first line of LOG, then one line per packet that a test looks for.

raw:HEX    answers CONNECT with these bytes and keeps the connection open
order      publishes five messages; logs with each PUBACK how many records the database has by then
again      ignores the acknowledgements of its first connection and sends the messages again
hex:FILE   sends the packets of a file (Fixtures/mqtt): CONNACK, SUBACK, then the rest; a line with # begins
           the next connection, once the last message of this one is acknowledged
burst:N    publishes N messages of QoS 1 at once, then answers pings
lost       forgets the session at each connection
silent     loses the session, makes it anew for a connection that it closes, and then has it
refuse     does not allow the first filter of a subscription
"""
import socket
import sqlite3
import struct
import sys

scenario, path = sys.argv[1:3]
database = sys.argv[3] if len(sys.argv) > 3 else None
log = open(path, "a", buffering=1)


def tell(*words):
    print(*words, file=log, flush=True)


def length(count):
    out = b""
    while True:
        out += bytes([count & 127 | (128 if count > 127 else 0)])
        count >>= 7
        if not count:
            return out


def packet(first, body=b""):
    return bytes([first]) + length(len(body)) + body


def publish(topic, payload, number=0, duplicate=False, retained=False):
    flags = (8 if duplicate else 0) | (2 if number else 0) | (1 if retained else 0)
    head = struct.pack(">H", len(topic)) + topic + (struct.pack(">H", number) if number else b"")
    return packet(0x30 | flags, head + payload)


def rows():
    """The records that another process can see, so the committed ones."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'user%'").fetchall()
        return sum(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name, in tables)


class Client:
    def __init__(self, connection):
        self.connection = connection
        self.file = connection.makefile("rb")

    def send(self, data):
        self.connection.sendall(data)

    def read(self):
        first = self.file.read(1)
        if not first:
            return None, b""
        count, shift = 0, 0
        while True:
            byte = self.file.read(1)[0]
            count |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return first[0], self.file.read(count)

    def greet(self, present):
        first, body = self.read()
        if first != 0x10:
            return False
        size = struct.unpack(">H", body[10:12])[0]
        tell("connect", body[12:12 + size].decode(), "clean" if body[7] & 2 else "persistent")
        self.send(packet(0x20, bytes([present, 0])))
        return True

    def serve(self, messages, confirms=True, acknowledged=False):
        """Sends messages after SUBSCRIBE; ends once they are `acknowledged`."""
        left = len(messages)
        while left > 0 or not acknowledged:
            first, body = self.read()
            if first is None:
                return tell("closed")
            number = struct.unpack(">H", body[:2])[0] if len(body) >= 2 else 0
            if first == 0x82:
                count = 0
                at = 2
                while at < len(body):
                    size = struct.unpack(">H", body[at:at + 2])[0]
                    tell("subscribe", body[at + 2:at + 2 + size].decode())
                    at += size + 3
                    count += 1
                refusal = bytes([0x80]) if scenario == "refuse" else bytes([1])
                self.send(packet(0x90, body[:2] + refusal + bytes([1]) * (count - 1)))
                for message in messages:
                    self.send(message)
            elif first == 0xA2:
                tell("unsubscribe")
                self.send(packet(0xB0, body[:2]))
            elif first == 0x40:
                tell("puback", number, rows() if database else 0)
                left -= 1
            elif first == 0xC0:
                if confirms:
                    self.send(packet(0xD0))
            elif first == 0xE0:
                tell("disconnect")


def run(client, turn):
    if scenario.startswith("raw:"):
        client.read()
        client.send(bytes.fromhex(scenario[4:]))
        while client.read()[0] is not None:
            pass
    elif scenario == "order":
        if client.greet(0):
            client.serve([publish(b"t/a", b'{"n": %d}' % n, n) for n in range(1, 6)])
    elif scenario == "again":
        if turn == 0 and client.greet(0):
            client.serve([publish(b"t/a", b'{"n": 7}', 7), publish(b"t/a", b"eight", 8)], confirms=False)
        elif turn > 0 and client.greet(1):
            for message in (
                publish(b"t/a", b'{"n": 7}', 7, duplicate=True),
                publish(b"t/a", b"eight", 8, duplicate=True),
                publish(b"t/a", b'{"n": 9}', 9, duplicate=True),
                publish(b"t/a", b'{"n": 7}', 7),
                publish(b"t/a", b'{"n": 10}', 8, duplicate=True),
                publish(b"t/old", b'{"n": 0}', 11, retained=True),
            ):
                client.send(message)
            client.serve([])
    elif scenario.startswith("hex:"):
        parts = [[]]
        for line in open(scenario[4:]).read().splitlines():
            parts.append([]) if line.startswith("#") else parts[-1].append(bytes.fromhex(line))
        packets = parts[min(turn, len(parts) - 1)]
        if client.greet(packets[0][2]):
            client.serve(packets[2:], confirms=turn + 1 >= len(parts), acknowledged=turn + 1 < len(parts))
            client.connection.shutdown(socket.SHUT_RDWR)
    elif scenario.startswith("burst:"):
        if client.greet(0):
            client.serve([publish(b"t/a", b'{"n": %d}' % n, n) for n in range(1, int(scenario[6:]) + 1)])
    elif scenario == "refuse":
        if client.greet(0):
            client.serve([publish(b"t/a", b"1", 1)])
    elif scenario == "silent":
        if turn == 1:
            client.read()
            tell("connect without an answer")
            client.connection.shutdown(socket.SHUT_RDWR)
        elif client.greet(1 if turn else 0):
            client.serve([publish(b"t/a", b'{"n": %d}' % turn, 1)])
    elif scenario == "lost":
        if client.greet(0):
            client.serve([publish(b"t/a", b'{"n": %d}' % turn, 1)])


listener = socket.create_server(("127.0.0.1", 0))
tell(listener.getsockname()[1])
turn = 0
while True:
    client = Client(listener.accept()[0])
    try:
        run(client, turn)
    except (OSError, IndexError):
        pass
    client.connection.close()
    turn += 1
