#!/usr/bin/env python3
"""The gateway's Bluetooth proxy as Home Assistant's library sees it.

    proxy.py PORT KEY H4PORT COUNT   # needs aioesphomeapi (PyPI)

Plays a Bluetooth controller on H4PORT (TCP) for `beacons.source = "h4:…"`, which sends COUNT advertisements at
1,000 per second once a client of the API on PORT has subscribed. Prints what happened as one JSON object.
"""
import asyncio
import json
import random
import struct
import sys

from aioesphomeapi import APIClient, APIConnectionError

RATE = 1000


class Controller:
    """Answers each command with success, and sends advertising reports when asked to."""

    def __init__(self):
        self.scans = asyncio.Event()
        self.sent = []

    async def serve(self, port):
        self.server = await asyncio.start_server(self.talk, "127.0.0.1", port)

    async def talk(self, reader, writer):
        self.writer = writer
        while head := await reader.read(4):
            head += await reader.readexactly(4 - len(head))
            _, opcode, length = struct.unpack("<BHB", head)
            body = await reader.readexactly(length)
            # Supported commands and features: none, so that the legacy scan is used.
            writer.write(struct.pack("<BBBBHB", 4, 0x0E, 4 + 64, 1, opcode, 0) + bytes(64))
            if opcode == 0x200C and body[0] == 1:
                self.scans.set()

    def advertise(self, number, random_source):
        """One event with one or two reports."""
        body = b""
        reports = 1 + number % 5 // 4
        for part in range(reports):
            address = random_source.getrandbits(48)
            kind = random_source.choice([0, 1])
            rssi = random_source.choice([127, -127, -1, -59, 20])
            data = random_source.randbytes(random_source.choice([0, 3, 24, 31]))
            self.sent.append([address, kind, -127 if rssi == 127 else rssi, data.hex()])
            body += struct.pack("<BB", 3, kind) + address.to_bytes(6, "little") + bytes([len(data)]) + data
            body += struct.pack("<b", rssi)
        body = struct.pack("<BB", 2, reports) + body
        self.writer.write(struct.pack("<BBB", 4, 0x3E, len(body)) + body)

    async def send(self, count):
        source, loop = random.Random(7), asyncio.get_running_loop()
        begun = loop.time()
        for number in range(count):
            self.advertise(number, source)
            if (ahead := begun + number / RATE - loop.time()) > 0.005:
                await self.writer.drain()
                await asyncio.sleep(ahead)
        await self.writer.drain()
        return loop.time() - begun


def client(port, key):
    return APIClient("127.0.0.1", port, None, noise_psk=key, client_info="test")


async def refusal(port, key):
    one = client(port, key)
    try:
        await one.connect(login=True)
    except APIConnectionError as error:
        return type(error).__name__
    await one.disconnect()
    return "accepted"


def plain(info):
    names = ["name", "mac_address", "project_name", "manufacturer", "suggested_area", "bluetooth_proxy_feature_flags"]
    return {name: getattr(info, name) for name in names} | {"entities": None}


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


async def main():
    port, key, h4, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    controller = Controller()
    await controller.serve(h4)
    await asyncio.wait_for(controller.scans.wait(), 60)
    one, result, got, states = client(port, key), {}, [], []
    await one.connect(login=True)
    result["info"] = plain(await one.device_info())
    result["info"]["entities"] = [len(part) for part in await one.list_entities_services()]
    one.subscribe_states(lambda state: None)
    one.subscribe_bluetooth_scanner_state(lambda state: states.append([int(state.state), int(state.mode)]))

    def take(message):
        got.extend([a.address, a.address_type, a.rssi, a.data.hex()] for a in message.advertisements)

    unsubscribe = one.subscribe_bluetooth_le_raw_advertisements(take)
    await until(lambda: states)
    result["seconds"] = await controller.send(count)
    await until(lambda: len(got) >= len(controller.sent))
    result |= {"sent": len(controller.sent), "same": got == controller.sent, "states": list(states)}
    result["wrong key"] = await refusal(port, "A" * 43 + "=")
    result["no key"] = await refusal(port, None)
    others = [client(port, key) for _ in range(3)]
    for other in others:
        await other.connect(login=True)
    result["fifth"] = await refusal(port, key)
    await others[0].disconnect()
    await asyncio.sleep(0.2)
    result["after one left"] = await refusal(port, key)
    unsubscribe()
    # A client that vanishes, and comes back.
    await one.disconnect(force=True)
    again = client(port, key)
    await again.connect(login=True)
    got.clear()
    controller.sent.clear()
    states.clear()
    again.subscribe_bluetooth_scanner_state(lambda state: states.append(1))
    again.subscribe_bluetooth_le_raw_advertisements(take)
    await until(lambda: states)
    await controller.send(100)
    await until(lambda: len(got) >= len(controller.sent))
    result["again"] = got == controller.sent
    print(json.dumps(result), flush=True)
    for one in [again, *others[1:]]:
        await one.disconnect()


asyncio.run(main())
