"""The records of a batch as other programs would send them, to compare sizes.

protobuf: one message per record, a field number per member (protobuf.dev, Encoding).
OTLP: log records with attributes (opentelemetry-proto, logs/v1/logs.proto).
Theengs: the JSON that Theengs Gateway publishes for an advertisement, one per line; it has neither ids nor times.
"""
import datetime
import json
import struct
import uuid

TIMES = ("timestamp",)
# By a member of Waypost's record: that of Theengs (decoder.theengs.io, Use).
THEENGS = {"address": "id", "address_type": "mac_type", "rssi": "rssi", "data": "manufacturerdata", "tx_power": "txpower",
           "temperature_c": "tempc", "humidity_percent": "hum", "battery_percent": "batt", "pressure_hpa": "pres"}


def varint(number):
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(made + bytes([number]))


def field(number, wire, content):
    length = varint(len(content)) if wire == 2 else b""
    return varint(number << 3 | wire) + length + content


def nanoseconds(text):
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000


def compact(name, value):
    """The shortest form of a value: wire type and bytes."""
    if isinstance(value, bool):
        return 0, varint(int(value))
    if isinstance(value, int):
        return 0, varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if isinstance(value, float):
        return 1, struct.pack("<d", value)
    if name in TIMES:
        return 0, varint(nanoseconds(value) // 1_000_000)
    try:
        return 2, uuid.UUID(value).bytes if name == "id" else bytes.fromhex(value) if name == "data" else value.encode()
    except (ValueError, AttributeError):
        return 2, json.dumps(value).encode()


def protobuf(records):
    numbers, made = {}, b""
    for record in records:
        parts = b""
        for name, value in record.items():
            parts += field(numbers.setdefault(name, len(numbers) + 1), *compact(name, value))
        made += field(1, 2, parts)
    return made


def any_value(value):
    if isinstance(value, bool):
        return field(2, 0, varint(int(value)))
    if isinstance(value, int):
        return field(3, 0, varint(value & (1 << 64) - 1))
    if isinstance(value, float):
        return field(4, 1, struct.pack("<d", value))
    return field(1, 2, value.encode() if isinstance(value, str) else json.dumps(value).encode())


def otlp(records):
    made = b""
    for record in records:
        parts = field(1, 1, struct.pack("<Q", nanoseconds(record["timestamp"])))
        for name, value in record.items():
            if name not in TIMES:
                parts += field(6, 2, field(1, 2, name.encode()) + field(2, 2, any_value(value)))
        made += field(2, 2, parts)
    # ResourceLogs, ScopeLogs.
    return field(1, 2, field(2, 2, made))


def theengs(records):
    lines = [{THEENGS[name]: value for name, value in record.items() if name in THEENGS} for record in records]
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()


PEERS = {"OTLP": otlp, "protobuf rows": protobuf, "Theengs' JSON": theengs}
