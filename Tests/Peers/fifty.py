#!/usr/bin/env python3
"""Writes a Bluetooth capture of fifty beacons (btsnoop, H4), and what they say at its end.

Fifteen RuuviTags, three Ruuvi Airs, twenty BTHome devices that have every object of BTHome v2 between them, five
Eddystone beacons with telemetry, three without and four iBeacons. Each is heard every two seconds and measures every
four.

Usage: fifty.py CAPTURE EXPECTED [SECONDS]
EXPECTED gets JSON: for each address, the value of each quantity under Waypost's key for it, and the RSSI.
"""
import json
import math
import struct
import sys
import time

EPOCH = 0x00DCDDB30F2F8000  # µs from year 0 to 1970, as btsnoop counts
PERIOD, MEASURES = 2.0, 4.0

# BTHome v2 (bthome.io/format): object id, struct format ("3" is three bytes), factor, Waypost's key, value. The objects of one row
# are one device; a value of a moving kind gets the wave added.
BTHOME = (
    [(0x01, "B", 1, "battery_percent", 87), (0x02, "h", 0.01, "temperature_c", 21.53), (0x03, "H", 0.01, "humidity_percent", 48.21)],
    [(0x04, "3", 1, "pressure_pa", 100812), (0x05, "3", 0.01, "illuminance_lux", 1234.56), (0x08, "h", 0.01, "dew_point_c", -3.25)],
    [(0x06, "H", 0.01, "mass_kg", 80.3), (0x09, "B", 1, "count", 96), (0x0C, "H", 0.001, "voltage_v", 3.074)],
    [(0x07, "H", 0.01, "mass_lb", 74.86), (0x0A, "3", 0.001, "energy_kwh", 1346.067), (0x0B, "3", 0.01, "power_w", 69.14)],
    [(0x0D, "H", 1, "pm2_5_ug_m3", 12), (0x0E, "H", 1, "pm10_ug_m3", 27), (0x12, "H", 1, "co2_ppm", 1250), (0x13, "H", 1, "tvoc_ug_m3", 307)],
    [(0x14, "H", 0.01, "moisture_percent", 30.74), (0x3F, "h", 0.1, "rotation_degrees", 307.4), (0x40, "H", 0.001, "distance_m", 0.012)],
    [(0x42, "3", 0.001, "duration_s", 13.39), (0x43, "H", 0.001, "current_a", 13.39), (0x44, "H", 0.01, "speed_m_s", 133.9)],
    [(0x46, "B", 0.1, "uv_index", 5.0), (0x47, "H", 0.1, "volume_l", 2215.1), (0x49, "H", 0.001, "volume_flow_m3_h", 13.39)],
    [(0x4B, "3", 0.001, "gas_m3", 1346.067), (0x4F, "I", 0.001, "water_l", 19551.879)],
    [(0x50, "I", 1, "timestamp_unix_s", 1684093277), (0x51, "H", 0.001, "acceleration_m_s2", 22.151), (0x52, "H", 0.001, "gyroscope_degrees_s", 22.151)],
    [(0x55, "I", 0.001, "volume_storage_l", 19551.879), (0x56, "H", 1, "conductivity_us_cm", 1000), (0x5E, "H", 0.01, "direction_degrees", 90.74)],
    [(0x5F, "H", 0.1, "precipitation_mm", 6.4), (0x60, "B", 1, "channel", 3), (0x61, "H", 1, "rotational_speed_rpm", 3000), (0x64, "B", 1, "light_level", 1), (0x65, "B", 1, "settings_revision", 2)],
    [(0x0F, "B", 1, "on", True), (0x10, "B", 1, "power_on", True), (0x11, "B", 1, "open", False), (0x15, "B", 1, "battery_low", True), (0x16, "B", 1, "battery_charging", False), (0x17, "B", 1, "carbon_monoxide", False)],
    [(0x18, "B", 1, "cold", True), (0x19, "B", 1, "connected", True), (0x1A, "B", 1, "door_open", True), (0x1B, "B", 1, "garage_door_open", False), (0x1C, "B", 1, "gas", True), (0x1D, "B", 1, "hot", False)],
    [(0x1E, "B", 1, "light", True), (0x1F, "B", 1, "unlocked", False), (0x20, "B", 1, "wet", True), (0x21, "B", 1, "motion", True), (0x22, "B", 1, "moving", False), (0x23, "B", 1, "occupied", True)],
    [(0x24, "B", 1, "plugged_in", True), (0x25, "B", 1, "present", False), (0x26, "B", 1, "problem", True), (0x27, "B", 1, "running", True), (0x28, "B", 1, "safe", True), (0x29, "B", 1, "smoke", False)],
    [(0x2A, "B", 1, "sound", True), (0x2B, "B", 1, "tamper", False), (0x2C, "B", 1, "vibration", True), (0x2D, "B", 1, "window_open", True)],
    [(0x3A, "B", 1, "button", 1), (0xF0, "H", 1, "device_type_id", 1), (0xF1, "4s", None, "firmware_version", (b"\0\1\2\4", "4.2.1.0"))],
    [(0x53, "13p", None, "text", (b"Hello, world", "Hello, world"))],
    [(0x54, "6p", None, "raw", (b"\x48\x65\x6c\x6c\x6f", "48656c6c6f"))],
)
# What swings around the value, by this much.
MOVING = {"temperature_c": 1.5, "humidity_percent": 4, "pressure_pa": 150, "illuminance_lux": 300, "co2_ppm": 80, "power_w": 9, "count": 9}


def structure(kind, payload):
    return bytes([len(payload) + 1, kind]) + payload


FLAGS = structure(0x01, b"\x06")


def wave(number, count):
    return math.sin(count / 9 + number)


def bthome(row):
    """A device that has the objects of the row."""
    def at(number, count):
        says, body = {"packet_id": count & 0xFF}, bytes([0x40, 0x00, count & 0xFF])
        for identifier, form, factor, key, value in row:
            if factor is None:
                value, says[key] = value
                raw = struct.pack("<" + form, value)
            else:
                steps = round((value + MOVING.get(key, 0) * wave(number, count)) / factor)
                is_flag = isinstance(value, bool)
                says[key] = {"button": "press"}.get(key) or (value if is_flag else round(steps * factor, 6))
                raw = steps.to_bytes(3, "little") if form == "3" else struct.pack("<" + form, steps)
            body += bytes([identifier]) + raw
        return FLAGS + structure(0x16, b"\xd2\xfc" + body), says
    return at


def climate(number, count):
    """Temperature, humidity and pressure, in Ruuvi's steps and in Waypost's."""
    temperature, humidity = round(1800 + 40 * number + 300 * wave(number, count)), round(5200 + 50 * number + 500 * wave(number + 1, count))
    pressure = round(100900 + 300 * wave(number, count / 5))
    return ((temperature * 2, humidity * 4, pressure - 50000),
            {"temperature_c": temperature / 100, "humidity_percent": humidity / 100, "pressure_pa": pressure})


def ruuvi(number, count):
    steps, says = climate(number, count)
    battery, axes = 2900 + number, (4 + number, -12, 1030 + number)
    body = struct.pack(">BhHHhhhHBH", 5, *steps, *axes, (battery - 1600) << 5 | 22, count % 200, count & 0xFFFF) + mac(number)
    says |= {"acceleration_x_mg": axes[0], "acceleration_y_mg": axes[1], "acceleration_z_mg": axes[2], "battery_mv": battery, "tx_power_dbm": 4,
             "movement_counter": count % 200, "sequence": count & 0xFFFF}
    return FLAGS + structure(0xFF, b"\x99\x04" + body), says


def air(number, count):
    """A Ruuvi Air in format 6, for receivers with legacy advertising."""
    steps, says = climate(number, count)
    fine, co2, voc, nox = 80 + number, 500 + round(200 * wave(number, count)), 100, 2
    body = struct.pack(">BhHHHHBBBBBB", 6, *steps, fine, co2, voc >> 1, nox >> 1, 0, 0xFF, count & 0xFF, 0) + mac(number)[3:]
    says |= {"pm2_5_ug_m3": fine / 10, "co2_ppm": co2, "voc_index": voc, "nox_index": nox, "illuminance_lux": 0, "sequence": count & 0xFF,
             "calibrating": False}
    return FLAGS + structure(0xFF, b"\x99\x04" + body), says


def air_extended(number, count):
    """A Ruuvi Air in format E1, in extended advertising."""
    steps, says = climate(number, count)
    dust, co2, voc, nox, light = (11, 22, 33, 44), 700 + round(90 * wave(number, count)), 120, 4, 13027
    body = (b"\xe1" + struct.pack(">hHHHHHHHBB", *steps, *dust, co2, voc >> 1, nox >> 1) + light.to_bytes(3, "big") + b"\xff" * 3
            + count.to_bytes(3, "big") + b"\0" + b"\xff" * 5 + mac(number))
    says |= {f"pm{size}_ug_m3": value / 10 for size, value in zip(("1", "2_5", "4", "10"), dust)}
    says |= {"co2_ppm": co2, "voc_index": voc, "nox_index": nox, "illuminance_lux": light / 100, "sequence": count, "calibrating": False}
    return structure(0xFF, b"\x99\x04" + body), says


def eddystone(frame):
    return FLAGS + structure(0x03, b"\xaa\xfe") + structure(0x16, b"\xaa\xfe" + frame)


def telemetry(number, count):
    battery, temperature, tenths = 2900 + number, round(256 * (18 + 2 * wave(number, count))), count * 40
    says = {"battery_mv": battery, "temperature_c": round(temperature / 256 + 1e-9, 2), "advertisement_count": count, "uptime_s": tenths / 10}
    return eddystone(b"\x20\x00" + struct.pack(">HhII", battery, temperature, count, tenths)), says


def uid(number, count):
    return eddystone(b"\x00\xee" + bytes.fromhex("edd1ebeac04e5defa017") + number.to_bytes(6, "big")), {}


def ibeacon(number, count):
    uuid = bytes.fromhex("f7826da64fa24e988024bc5b71e0893e")
    return FLAGS + structure(0xFF, b"\x4c\x00\x02\x15" + uuid + struct.pack(">HHb", 1, number, -59)), {}


BEACONS = [ruuvi] * 15 + [air] * 2 + [air_extended] + [bthome(row) for row in BTHOME] + [telemetry] * 5 + [uid] * 3 + [ibeacon] * 4


def mac(number):
    return bytes([0xC0 | number >> 4, 0xFF, 0xEE, 0x50, 0x00, number])


def event(number, data, rssi, is_extended):
    """The HCI event of one report, as H4."""
    address, strength = b"\x01" + mac(number)[::-1], struct.pack("b", rssi)
    if is_extended:
        report = b"\x0d\x01\x00\x00" + address + b"\x01\x01\x00\x7f" + strength + bytes(9) + bytes([len(data)]) + data
    else:
        report = b"\x02\x01\x00" + address + bytes([len(data)]) + data + strength
    return b"\x04\x3e" + bytes([len(report)]) + report


def main():
    capture, expected = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 120
    begin, says = int(time.time() * 1e6) + EPOCH, {}
    with open(capture, "wb") as file:
        file.write(b"btsnoop\0" + struct.pack(">II", 1, 1002))
        for turn in range(int(seconds / PERIOD)):
            for number, beacon in enumerate(BEACONS):
                data, values = beacon(number, int(turn * PERIOD / MEASURES))
                rssi = round(-65 + 12 * wave(number, turn))
                packet = event(number, data, rssi, beacon is air_extended)
                stamp = begin + int((turn + number / len(BEACONS)) * PERIOD * 1e6)
                file.write(struct.pack(">IIIIq", len(packet), len(packet), 3, 0, stamp) + packet)
                says[":".join(f"{byte:02X}" for byte in mac(number))] = values | {"rssi": rssi}
    with open(expected, "w") as file:
        json.dump(says, file, indent=1)


if __name__ == "__main__":
    main()
