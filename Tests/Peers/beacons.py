#!/usr/bin/env python3
"""Beacons without a radio: a Bluetooth controller over TCP (H4) that hears four beacons.

Needs Bumble (PyPI `bumble`). A TCP client gets a real HCI controller; on the same simulated air an
iBeacon, an Eddystone (UID and TLM in turn), a RuuviTag and a second iBeacon advertise, the RSSI of each
rising and falling as if someone carried it about.
"""
import argparse
import asyncio
import math
import struct
import sys
import time

from bumble import hci, ll
from bumble.controller import Controller
from bumble.link import LocalLink
from bumble.transport.common import StreamPacketSource

PHONE = hci.Address("C0:FF:EE:00:00:01")
SIGN = hci.Address("C0:FF:EE:00:00:02")
EDDY = hci.Address("C0:FF:EE:00:00:03")
RUUVI = hci.Address("CB:B8:33:4C:88:4F")


def structure(kind, payload):
    return bytes([len(payload) + 1, kind]) + payload


def ibeacon(major, minor):
    uuid = bytes.fromhex("f7826da64fa24e988024bc5b71e0893e")
    body = b"\x4c\x00\x02\x15" + uuid + struct.pack(">HHb", major, minor, -59)
    return structure(0x01, b"\x06") + structure(0xFF, body)


def eddystone(frame):
    return structure(0x01, b"\x06") + structure(0x03, b"\xaa\xfe") + structure(0x16, b"\xaa\xfe" + frame)


def eddystone_uid():
    return eddystone(b"\x00" + struct.pack("b", -18) + bytes.fromhex("edd1ebeac04e5defa017") + bytes.fromhex("0bdb87539b67"))


def eddystone_tlm(count, seconds):
    return eddystone(b"\x20\x00" + struct.pack(">HhII", 2987, int(21.5 * 256), count, int(seconds * 10)))


def ruuvi(sequence, seconds):
    temperature = 18 + 4 * math.sin(seconds / 40)
    body = struct.pack(
        ">BhHHhhhHBH", 5, round(temperature / 0.005), round(55.3 / 0.0025), 101325 - 50000,
        4, -4, 1036, (2977 - 1600) << 5 | 22, 66, sequence & 0xFFFF)
    return structure(0x01, b"\x06") + structure(0xFF, b"\x99\x04" + body + bytes.fromhex("cbb8334c884f"))


def strength(address, seconds):
    phase = bytes(address)[0]
    return round(-65 + 15 * math.sin(seconds / 7 + phase) + 2 * math.sin(seconds * 3 + phase))


SCAN_RESPONSES = (
    hci.HCI_LE_Extended_Advertising_Report_Event.EventType.SCAN_RESPONSE,
    hci.HCI_LE_Advertising_Report_Event.EventType.SCAN_RSP,
)


class Ear(Controller):
    """A controller whose reports carry a moving RSSI; Bumble's own is always the same."""

    started = time.monotonic()

    @classmethod
    def choose(cls, radio):
        if radio == "legacy":
            cls.le_features = Controller.le_features & ~hci.LeFeatureMask.LE_EXTENDED_ADVERTISING
        if radio == "extended":
            cls.supported_commands = Controller.supported_commands | {
                hci.HCI_LE_SET_EXTENDED_SCAN_PARAMETERS_COMMAND, hci.HCI_LE_SET_EXTENDED_SCAN_ENABLE_COMMAND}

    def send_hci_packet(self, packet):
        for report in getattr(packet, "reports", None) or []:
            # A passive scan hears no scan responses; Bumble sends one after each report all the same.
            if report.event_type in SCAN_RESPONSES:
                return
            report.rssi = strength(report.address, time.monotonic() - self.started)
        super().send_hci_packet(packet)


class Client(asyncio.Protocol):
    """One TCP connection: a controller of its own on the common air."""

    def __init__(self, air):
        self.air = air

    def connection_made(self, transport):
        self.transport = transport
        self.source = StreamPacketSource()
        # A kernel takes no controller without an address.
        self.controller = Ear(
            "ear", host_source=self.source, host_sink=self, link=self.air, public_address="F0:F1:F2:F3:F4:F5")

    def on_packet(self, packet):
        self.transport.write(bytes(packet))

    def data_received(self, data):
        self.source.data_received(data)

    def connection_lost(self, error):
        self.air.remove_controller(self.controller)


async def advertise(air, address, interval, payload):
    sender = Controller(str(address), link=air)
    count = 0
    while True:
        count += 1
        sender.send_advertising_pdu(ll.AdvInd(address, payload(count, time.monotonic() - Ear.started)))
        await asyncio.sleep(interval)


def advertisers(air):
    """The beacons, each as something to run."""
    return (
        advertise(air, PHONE, 0.3, lambda count, _: ibeacon(1, 7)),
        advertise(air, SIGN, 0.5, lambda count, _: ibeacon(1, 8)),
        advertise(air, EDDY, 0.5, lambda count, at: eddystone_uid() if count % 4 else eddystone_tlm(count, at)),
        # Measures every 1.5 s and sends each measurement three times.
        advertise(air, RUUVI, 0.5, lambda count, _: ruuvi(count // 3, count // 3 * 1.5)),
    )


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="TCP port on 127.0.0.1; 0 chooses one")
    parser.add_argument(
        "--radio", choices=["mixed", "legacy", "extended"], default="mixed",
        help="mixed: legacy commands, extended reports, as Bumble's own; legacy or extended: both alike")
    parser.add_argument("--quiet", action="store_true", help="no beacons: a controller that hears nobody")
    arguments = parser.parse_args()
    port = arguments.port
    Ear.choose(arguments.radio)
    air = LocalLink()
    server = await asyncio.get_running_loop().create_server(lambda: Client(air), "127.0.0.1", port)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.gather(server.serve_forever(), *([] if arguments.quiet else advertisers(air)))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
