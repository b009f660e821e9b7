#!/usr/bin/env python3
"""Records what Tests/Peers/beacons.py sends into capture.btsnoop, and what Bumble makes of it into
capture.expected: one line `kind id address address_type rssi` a report.

Usage: record.py PORT SECONDS (with beacons.py listening on PORT)
"""
import asyncio
import pathlib
import struct
import sys
import time

from bumble import hci
from bumble.core import AdvertisingData
from bumble.transport.common import StreamPacketSource

HERE = pathlib.Path(__file__).parent
EPOCH = 0x00DCDDB30F2F8000  # µs from year 0 to 1970, as btsnoop counts


def identify(data):
    """Kind and id by Bumble's own parser; None: the address is the id."""
    parts = AdvertisingData.from_bytes(data).ad_structures
    for kind, value in parts:
        if kind == 0xFF and value[:4] == b"\x4c\x00\x02\x15":
            raw = value[4:20].hex()
            uuid = "-".join([raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]])
            return "ibeacon", "%s/%d/%d" % (uuid, *struct.unpack(">HH", value[20:24]))
        if kind == 0xFF and value[:3] == b"\x99\x04\x05":
            return "ruuvi", None
        if kind == 0x16 and value[:3] == b"\xaa\xfe\x00":
            return "eddystone_uid", value[4:14].hex() + "/" + value[14:20].hex()
        if kind == 0x16 and value[:3] == b"\xaa\xfe\x20":
            return "eddystone_tlm", None
    raise ValueError(data.hex())


class Recorder(asyncio.Protocol):
    def __init__(self, capture, expected):
        self.capture, self.expected = capture, expected

    def connection_made(self, transport):
        source = StreamPacketSource()
        source.set_packet_sink(self)
        self.data_received = source.data_received
        for command in ("01030c00", "010c20020100"):
            self.write(bytes.fromhex(command), 2)
            transport.write(bytes.fromhex(command))

    def write(self, packet, flags):
        stamp = int(time.time() * 1e6) + EPOCH
        self.capture.write(struct.pack(">IIIIq", len(packet), len(packet), flags, 0, stamp) + packet)

    def on_packet(self, packet):
        self.write(packet, 3)
        for report in getattr(hci.HCI_Packet.from_bytes(packet), "reports", []):
            kind, name = identify(report.data)
            address = report.address.to_string(False)
            self.expected.write(f"{kind} {name or address} {address} random_static {report.rssi}\n")


async def main():
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    with open(HERE / "capture.btsnoop", "wb") as capture, open(HERE / "capture.expected", "w") as expected:
        capture.write(b"btsnoop\0" + struct.pack(">II", 1, 1002))
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: Recorder(capture, expected), "127.0.0.1", port)
        await asyncio.sleep(seconds)
        transport.abort()


asyncio.run(main())
