#!/usr/bin/env python3
"""A Bluetooth controller for this kernel (/dev/vhci) that hears the demo's beacons.

Takes a command a line and answers each with one line of JSON:
open mixed|legacy|extended, close, state, flood COUNT, other (a second controller, which hears nothing), end_other.
"""
import asyncio
import json
import os
import pathlib
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Peers"))

import beacons
from bumble import hci
from bumble.controller import Controller
from bumble.link import LocalLink
from bumble.transport.common import StreamPacketSource

VENDOR, PRIMARY = 0xFF, 0


class Radio:
    """One controller behind /dev/vhci."""

    def __init__(self, make):
        self.index = asyncio.get_running_loop().create_future()
        self.file = os.open("/dev/vhci", os.O_RDWR | os.O_NONBLOCK)
        self.source = StreamPacketSource()
        self.controller = make(self.source, self)
        asyncio.get_running_loop().add_reader(self.file, self.read)
        os.write(self.file, bytes([VENDOR, PRIMARY]))

    def read(self):
        try:
            data = os.read(self.file, 4096)
        except BlockingIOError:
            return
        if data[0] == VENDOR:
            self.index.set_result(data[2] | data[3] << 8)
        else:
            self.source.data_received(data)

    def on_packet(self, packet):
        os.write(self.file, bytes(packet))

    def close(self):
        asyncio.get_running_loop().remove_reader(self.file)
        os.close(self.file)


class Ear(beacons.Ear):
    """Records the commands that it receives, which a real one does not show."""

    scans = []

    def note(self, command):
        fields = {name: int(value) for name, value in vars(command).items() if isinstance(value, int)}
        self.scans.append({"command": command.name, **fields})

    def on_hci_reset_command(self, command):
        # A reset ends a scan; Bumble's goes on.
        self.le_scan_enable = False
        return super().on_hci_reset_command(command)

    def on_hci_le_set_scan_enable_command(self, command):
        self.note(command)
        return super().on_hci_le_set_scan_enable_command(command)

    def on_hci_le_set_extended_scan_enable_command(self, command):
        self.note(command)
        return super().on_hci_le_set_extended_scan_enable_command(command)


def report(number):
    """A legacy advertising report of a RuuviTag, each of a tag of its own: none is too soon after another."""
    address = b"\xCB\xB8\x33\x4C" + struct.pack(">H", number)
    body = struct.pack(">BhHHhhhHBH", 5, 4860, 22120, 51325, 4, -4, 1036, (2977 - 1600) << 5 | 22, 66,
                       number & 0xFFFF) + address
    data = b"\x02\x01\x06" + bytes([len(body) + 3, 0xFF, 0x99, 0x04]) + body
    fields = b"\x01\x00\x01" + address[::-1] + bytes([len(data)]) + data + b"\xC4"
    return b"\x04\x3E" + bytes([len(fields) + 1, 0x02]) + fields


class Air:
    plain = (Controller.le_features, Controller.supported_commands)

    def __init__(self):
        self.link = LocalLink()
        self.radio = self.second = None
        self.flooded = 0

    async def open(self, kind):
        beacons.Ear.le_features, beacons.Ear.supported_commands = self.plain
        beacons.Ear.choose(kind)
        Ear.scans = []
        self.radio = Radio(lambda source, sink: Ear(
            "ear", host_source=source, host_sink=sink, link=self.link, public_address="F0:F1:F2:F3:F4:F5"))
        return {"index": await self.radio.index}

    async def other(self):
        self.second = Radio(lambda source, sink: Controller(
            "other", host_source=source, host_sink=sink, link=LocalLink(), public_address="F0:F1:F2:F3:F4:F6"))
        return {"index": await self.second.index}

    async def end_other(self):
        if self.second:
            self.second.close()
        self.second = None
        return {}

    async def close(self):
        if self.radio:
            self.radio.close()
            self.link.remove_controller(self.radio.controller)
        self.radio = None
        return await self.end_other()

    async def state(self):
        controller = self.radio.controller
        return {"scanning": controller.le_scan_enable, "duplicates_filtered": controller.filter_duplicates,
                "active": controller.le_scan_type == 1, "scans": Ear.scans}

    async def flood(self, count):
        for _ in range(int(count)):
            os.write(self.radio.file, report(self.flooded))
            self.flooded += 1
        return {"flooded": self.flooded}

    async def answer(self, line):
        command, *arguments = line.split()
        if command not in ("open", "other", "end_other", "close", "state", "flood"):
            return {"error": f"unknown: {command}"}
        try:
            return await getattr(self, command)(*arguments)
        except Exception as error:
            return {"error": repr(error)}


async def main():
    air = Air()
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    tasks = [asyncio.create_task(task) for task in beacons.advertisers(air.link)]
    print(json.dumps({"ready": True}), flush=True)
    while line := await lines.readline():
        print(json.dumps(await air.answer(line.decode())), flush=True)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
