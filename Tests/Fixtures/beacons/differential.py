#!/usr/bin/env python3
"""Compares `waypost decode` with other people's decoders on generated payloads, the same at each run.

Usage: differential.py WAYPOST {bthome,bthome_encrypted,ruuvi,ibeacon} COUNT

Prints one JSON object: how many were compared, how many readings, how many differences of each explained
kind, and the first of those that nothing explains.
"""
import collections
import datetime
import json
import logging
import os
import random
import re
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal

ADDRESS = "54:48:E6:8F:80:A5"
KEY = "231d39c1d7cc1ab1aee224cd096db932"

# Differences that are meant, each with its reason.
EXPLAINED = {
    "factor_0.35": "object 0x58 counts 0.35 °C: bthome-ble rounds to 0.1 °C, ours is exact",
    "event_none": "bthome-ble fires no event for code 0; ours says none, which a second button needs",
    "event_unknown": "a code newer than the decoder: bthome-ble leaves it out, ours gives its number",
    "invalid_utf8": "bthome-ble leaves a text out that is not UTF-8; ours marks the wrong bytes",
    "two_decimals": "ours rounds to 0.01 °C and 0.01 %, halves away from zero; ruuvitag-sensor keeps "
                    "three decimals (formats 6, E1) or rounds a binary fraction (format 5)",
    "axis_unavailable": "ruuvitag-sensor drops all three axes when one is not available; ours keeps the others",
    "not_available": "a counter with all bits set is not available (docs.ruuvi.com); ruuvitag-sensor gives it",
}


def structure(kind, payload):
    return bytes([len(payload) + 1, kind]) + payload


def ours(waypost, payloads):
    environment = dict(os.environ, WAYPOST_BEACONS_BINDKEYS=f"{ADDRESS}={KEY}", WAYPOST_UPLOAD_REQUIRED="false")
    run = subprocess.run(
        [waypost, "decode", "-", "--address", ADDRESS, "--config", "/dev/null"], env=environment,
        input="\n".join(payload.hex() for payload in payloads) + "\n", capture_output=True, text=True, check=False)
    objects = [json.loads(line, parse_float=Decimal) for line in run.stdout.splitlines()]
    if len(objects) != len(payloads):
        sys.exit(f"{len(objects)} answers to {len(payloads)} payloads: {run.stderr[:500]}")
    return objects


class Tally:
    def __init__(self):
        self.readings = 0
        self.explained = collections.Counter()
        self.unexplained = []

    def explain(self, reason):
        assert reason in EXPLAINED
        self.explained[reason] += 1

    def compare(self, payload, mine, theirs, why=None):
        """One reading; `why` gives the reason of a difference, or None."""
        self.readings += 1
        if mine == theirs:
            return
        reason = why and why(mine, theirs)
        if reason:
            self.explain(reason)
        else:
            self.unexplained.append(f"{payload.hex()}: ours {mine}, theirs {theirs}")


# BTHome: our key and the factor from their unit to ours, by their device class and unit.
BTHOME = {
    ("packet_id", None): ("packet_id", 1), ("battery", "%"): ("battery_percent", 1),
    ("temperature", "°C"): ("temperature_c", 1), ("humidity", "%"): ("humidity_percent", 1),
    ("pressure", "mbar"): ("pressure_pa", 100), ("illuminance", "lx"): ("illuminance_lux", 1),
    ("mass", "kg"): ("mass_kg", 1), ("mass", "lb"): ("mass_lb", 1), ("dew_point", "°C"): ("dew_point_c", 1),
    ("count", None): ("count", 1), ("energy", "kWh"): ("energy_kwh", 1), ("power", "W"): ("power_w", 1),
    ("voltage", "V"): ("voltage_v", 1), ("pm25", "µg/m³"): ("pm2_5_ug_m3", 1), ("pm10", "µg/m³"): ("pm10_ug_m3", 1),
    ("carbon_dioxide", "ppm"): ("co2_ppm", 1), ("volatile_organic_compounds", "µg/m³"): ("tvoc_ug_m3", 1),
    ("moisture", "%"): ("moisture_percent", 1), ("rotation", "°"): ("rotation_degrees", 1),
    ("distance", "mm"): ("distance_m", Decimal("0.001")), ("distance", "m"): ("distance_m", 1),
    ("duration", "s"): ("duration_s", 1), ("current", "A"): ("current_a", 1), ("speed", "m/s"): ("speed_m_s", 1),
    ("uv_index", None): ("uv_index", 1), ("volume", "L"): ("volume_l", 1),
    ("volume", "mL"): ("volume_l", Decimal("0.001")), ("volume_flow_rate", "m³/h"): ("volume_flow_m3_h", 1),
    ("gas", "m³"): ("gas_m3", 1), ("water", "L"): ("water_l", 1), ("timestamp", None): ("timestamp_unix_s", 1),
    ("acceleration", "m/s²"): ("acceleration_m_s2", 1), ("gyroscope", "°/s"): ("gyroscope_degrees_s", 1),
    ("text", None): ("text", 1), ("raw", None): ("raw", 1), ("volume_storage", "L"): ("volume_storage_l", 1),
    ("conductivity", "µS/cm"): ("conductivity_us_cm", 1), ("direction", "°"): ("direction_degrees", 1),
    ("precipitation", "mm"): ("precipitation_mm", 1), ("channel", None): ("channel", 1),
    ("rotational_speed", "rpm"): ("rotational_speed_rpm", 1), ("light_level", None): ("light_level", 1),
    ("settings_revision", None): ("settings_revision", 1),
}
BTHOME_FLAGS = {
    "generic": "on", "power": "power_on", "opening": "open", "battery": "battery_low",
    "battery_charging": "battery_charging", "carbon_monoxide": "carbon_monoxide", "cold": "cold",
    "connectivity": "connected", "door": "door_open", "garage_door": "garage_door_open", "gas": "gas", "heat": "hot",
    "light": "light", "lock": "unlocked", "moisture": "wet", "motion": "motion", "moving": "moving",
    "occupancy": "occupied", "plug": "plugged_in", "presence": "present", "problem": "problem",
    "running": "running", "safety": "safe", "smoke": "smoke", "sound": "sound", "tamper": "tamper",
    "vibration": "vibration", "window": "window_open",
}


def bthome_objects(rng):
    """Objects as sensors send them, some out of order, of any id, unknown or cut short."""
    from bthome_ble.const import MEAS_TYPES
    known = sorted(MEAS_TYPES)
    ids = sorted(rng.choices(known, k=rng.randint(1, 6)))
    if rng.random() < 0.2:
        rng.shuffle(ids)
    if rng.random() < 0.3:
        ids += [rng.choice(ids)]
    if rng.random() < 0.1:
        ids.insert(rng.randrange(len(ids)), rng.randrange(256))
    data = b""
    for number in ids:
        kind = MEAS_TYPES.get(number)
        data += bytes([number])
        if kind is None:
            data += rng.randbytes(rng.randint(0, 3))
        elif kind.data_format == "command":
            length = rng.randint(0, 4)
            data += bytes([length | rng.choice([0, 0, 0x20]), rng.choice([0, 1, 2, 3, 4, 9])]) + rng.randbytes(length)
        elif kind.data_format in ("string", "raw"):
            length = rng.randint(0, 6)
            text = "".join(rng.choice("abcé€1\"\\\n") for _ in range(length)).encode()[:12]
            data += bytes([len(text)]) + text if rng.random() < 0.8 else bytes([length]) + rng.randbytes(length)
        elif number in (0x3A, 0x3C):
            data += bytes([rng.choice([0, 1, 2, 3, 4, 5, 6, 0x80, 0x81, 0x77])]) + rng.randbytes(kind.data_length - 1)
        else:
            extreme = rng.choice([b"\x00", b"\xff", b"\x7f", b"\x80"]) * kind.data_length
            data += extreme if rng.random() < 0.1 else rng.randbytes(kind.data_length)
    return data[:rng.randint(1, len(data))] if rng.random() < 0.1 else data


def bthome_reference(bindkey):
    from bthome_ble import BTHomeBluetoothDeviceData

    class Reference(BTHomeBluetoothDeviceData):
        """Notes each reading as it is found: the library's own result keeps one of a name."""

        def __init__(self):
            super().__init__(bindkey)
            self.found = []

        def update_sensor(self, key, native_unit_of_measurement, native_value, device_class, **more):
            unit = native_unit_of_measurement and str(getattr(native_unit_of_measurement, "value", native_unit_of_measurement))
            if str(device_class) != "signal_strength":
                self.found.append(("sensor", str(device_class), unit, native_value))
            return super().update_sensor(key, native_unit_of_measurement, native_value, device_class, **more)

        def update_binary_sensor(self, key, device_class, native_value, **more):
            self.found.append(("flag", str(device_class), None, native_value))
            return super().update_binary_sensor(key=key, device_class=device_class, native_value=native_value, **more)

        def fire_event(self, key, event_type, event_properties=None, **more):
            self.found.append(("event", re.sub(r"_\d+$", "", key), event_type, event_properties or {}))
            return super().fire_event(key=key, event_type=event_type, event_properties=event_properties, **more)

        def set_device_sw_version(self, version):
            if not version.startswith("BTHome"):
                self.found.append(("firmware", None, None, version))
            return super().set_device_sw_version(version)

    return Reference


def bthome_theirs(found):
    """Their readings under our keys and in our units, in the order of the payload."""
    readings = []
    for kind, name, unit, value in found:
        if kind == "sensor":
            key, factor = BTHOME[(name, unit)]
            if isinstance(value, datetime.datetime):
                value = Decimal(int(value.timestamp()))
            readings.append((key, value if isinstance(value, str) else Decimal(str(value)) * factor))
        elif kind == "flag":
            readings.append((BTHOME_FLAGS[name], value))
        elif kind == "firmware":
            readings.append(("firmware_version", value))
        else:
            readings.append((name, unit))
            if name == "dimmer":
                readings.append(("dimmer_steps", Decimal(value["steps"])))
            if name == "command":
                readings.append(("command_arguments", value["args"]))
    return readings


def bthome_compare(payload, plain, mine, found, device_type, tally):
    readings = [(re.sub(r"_\d+$", "", key), value) for key, value in mine.get("telemetry", {}).items()]
    readings = [(key, value if isinstance(value, (bool, str)) else Decimal(value)) for key, value in readings]
    # The library keeps the last device type as an attribute.
    types = [value for key, value in readings if key == "device_type_id"]
    tally.compare(payload, types[-1] if types else None, None if device_type is None else Decimal(device_type))
    readings = [reading for reading in readings if reading[0] != "device_type_id"]
    theirs = bthome_theirs(found)
    place = 0
    skipping = None
    for key, value in readings:
        if skipping and key == skipping:
            skipping = None
            continue
        skipping = None
        if place < len(theirs) and theirs[place] == (key, value):
            tally.readings += 1
            place += 1
            continue
        follower = {"dimmer": "dimmer_steps", "command": "command_arguments"}.get(key)
        if key in ("button", "dimmer", "command") and value == "none":
            tally.explain("event_none")
            skipping = follower
        elif key in ("button", "dimmer", "command") and str(value).startswith("event_"):
            tally.explain("event_unknown")
            skipping = follower
        elif key == "text" and "\ufffd" in value:
            tally.explain("invalid_utf8")
        elif (key == "temperature_c" and b"\x58" in plain and place < len(theirs) and theirs[place][0] == key
                and value * 100 % 35 == 0 and abs(value - theirs[place][1]) <= Decimal("0.05")):
            tally.explain("factor_0.35")
            place += 1
        else:
            tally.compare(payload, (key, value), theirs[place] if place < len(theirs) else None)
            return
    if place < len(theirs):
        tally.compare(payload, None, theirs[place])


def bthome(waypost, count, tally, encrypted):
    from bleak.backends.device import BLEDevice
    from bthome_ble.parser import BluetoothServiceInfoBleak
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM
    rng = random.Random(20261121 + encrypted)
    address = bytes.fromhex(ADDRESS.replace(":", ""))
    reference = bthome_reference(bytes.fromhex(KEY) if encrypted else None)
    cases = []
    for _ in range(count):
        plain = bthome_objects(rng)
        while encrypted and len(plain) < 2:
            plain = bthome_objects(rng)
        information = 0x40 | encrypted | rng.choice([0, 2]) | rng.choice([0, 4])
        data = bytes([information]) + (address[::-1] if information & 2 else b"")
        if encrypted:
            counter = rng.randbytes(4)
            sealed = AESCCM(bytes.fromhex(KEY), tag_length=4).encrypt(
                address + b"\xd2\xfc" + bytes([information]) + counter, plain, None)
            if rng.random() < 0.05:
                sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
            data += sealed[:-4] + counter + sealed[-4:]
        else:
            data += plain
        cases.append((plain, data))
    payloads = [structure(0x16, b"\xd2\xfc" + data) for _, data in cases]
    for payload, (plain, data), mine in zip(payloads, cases, ours(waypost, payloads)):
        parser = reference()
        service = "0000fcd2-0000-1000-8000-00805f9b34fb"
        parser.update(BluetoothServiceInfoBleak(
            name="sensor", address=ADDRESS, rssi=-60, manufacturer_data={}, service_data={service: data},
            service_uuids=[service], source="", device=BLEDevice(ADDRESS, "sensor", {}), advertisement=None,
            connectable=False, time=0.0, tx_power=None))
        tally.compare(payload, mine["kind"], "bthome")
        tally.compare(payload, mine["beacon_id"], ADDRESS)
        bthome_compare(payload, plain, mine, parser.found, parser.device_type_id, tally)


def rounded(exact, step="0.01"):
    return exact.quantize(Decimal(step), rounding=ROUND_HALF_UP)


def ruuvi(waypost, count, tally):
    from ruuvitag_sensor.decoder import get_decoder
    rng = random.Random(5)
    lengths = {3: 13, 5: 23, 6: 19, 0xE1: 39}
    cases = []
    for number in range(count):
        form = (3, 5, 6, 0xE1)[number % 4]
        body = bytearray(rng.randbytes(lengths[form]))
        if rng.random() < 0.2:
            for _ in range(rng.randint(1, 8)):
                start = rng.randrange(len(body))
                body[start:start + 2] = rng.choice([b"\xff\xff", b"\x80\x00", b"\x00\x00", b"\x7f\xff"])
        cases.append((form, bytes(body[:lengths[form]])))
    payloads = [structure(0xFF, b"\x99\x04" + bytes([form]) + body) for form, body in cases]
    names = {"humidity": "humidity_percent", "temperature": "temperature_c", "pressure": "pressure_pa",
             "acceleration_x": "acceleration_x_mg", "acceleration_y": "acceleration_y_mg",
             "acceleration_z": "acceleration_z_mg", "battery": "battery_mv", "tx_power": "tx_power_dbm",
             "movement_counter": "movement_counter", "measurement_sequence_number": "sequence",
             "pm_1": "pm1_ug_m3", "pm_2_5": "pm2_5_ug_m3", "pm_4": "pm4_ug_m3", "pm_10": "pm10_ug_m3",
             "co2": "co2_ppm", "voc": "voc_index", "nox": "nox_index", "luminosity": "illuminance_lux",
             "calibration_in_progress": "calibrating"}
    for payload, (form, body), mine in zip(payloads, cases, ours(waypost, payloads)):
        theirs = get_decoder("E1" if form == 0xE1 else form).decode_data((bytes([form]) + body).hex())
        telemetry = mine.get("telemetry", {})
        tally.compare(payload, mine["kind"], "ruuvi")
        if form in (5, 0xE1):
            told = theirs["mac"].replace(":", "").upper()
            told = ":".join(told[place:place + 2] for place in range(0, 12, 2))
            tally.compare(payload, mine["beacon_id"], ADDRESS if told == "FF:FF:FF:FF:FF:FF" else told)
        tally.compare(payload, set(telemetry) - set(names.values()), set())
        axes = [telemetry.get(f"acceleration_{axis}_mg") for axis in "xyz"]
        for name, key in names.items():
            value, other = telemetry.get(key), theirs.get(name)
            if isinstance(other, float):
                # Their sums of binary fractions show 6.029999999999999.
                other = Decimal(str(round(other, 6))) * (100 if name == "pressure" else 1)

            def why(value, other):
                if name == "temperature" and value is not None and form != 3:
                    exact = Decimal(int.from_bytes(body[0:2], "big", signed=True)) / 200
                    if value == rounded(exact) and abs(other - exact) <= Decimal("0.005"):
                        return "two_decimals"
                if name == "humidity" and value is not None and form != 3:
                    exact = Decimal(int.from_bytes(body[2:4], "big")) / 400
                    if value == rounded(exact) and abs(other - exact) <= Decimal("0.005"):
                        return "two_decimals"
                if name.startswith("acceleration") and other is None and None in axes:
                    return "axis_unavailable"
                if value is None and (name, other) in (("movement_counter", 255), ("measurement_sequence_number", 65535)):
                    return "not_available"
                return None

            tally.compare(payload, value, other, why)


def ibeacon(waypost, count, tally):
    from home_assistant_bluetooth import BluetoothServiceInfo
    from ibeacon_ble import iBeaconParser
    rng = random.Random(2)
    cases = []
    for _ in range(count):
        data = b"\x02\x15" + rng.randbytes(21)
        chance = rng.random()
        if chance < 0.05:
            data = rng.randbytes(2) + data[2:]
        elif chance < 0.1:
            data = data[:rng.randint(2, 22)]
        elif chance < 0.15:
            data += rng.randbytes(rng.randint(1, 3))
        cases.append(data)
    payloads = [structure(0xFF, b"\x4c\x00" + data) for data in cases]
    for payload, data, mine in zip(payloads, cases, ours(waypost, payloads)):
        # Without colons in the address it does not look up who made the device.
        theirs = iBeaconParser().parse(BluetoothServiceInfo(
            name="beacon", address="hidden", rssi=-60, manufacturer_data={76: data}, service_data={},
            service_uuids=[], source=""))
        told = theirs and (f"{theirs.uuid}/{theirs.major}/{theirs.minor}", theirs.power)
        value = (mine["beacon_id"], mine["tx_power"]) if mine["kind"] == "ibeacon" else None
        tally.compare(payload, value, told)


def main():
    logging.disable(logging.CRITICAL)
    waypost, which, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    tally = Tally()
    if which.startswith("bthome"):
        bthome(waypost, count, tally, which == "bthome_encrypted")
    else:
        {"ruuvi": ruuvi, "ibeacon": ibeacon}[which](waypost, count, tally)
    print(json.dumps({
        "compared": count, "readings": tally.readings, "explained": tally.explained,
        "differences": len(tally.unexplained), "first": tally.unexplained[:5]}))


if __name__ == "__main__":
    main()
