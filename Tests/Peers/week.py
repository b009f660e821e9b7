#!/usr/bin/env python3
"""A made-up week of three devices, sent to a receiver as gateways send it (waypost-protocol(7)).

week.py load URL TOKEN    sends the last seven days: sensors, positions, sound, events, health
week.py season URL TOKEN  sends those, 53 thinner days before them, and the effort of all sixty
week.py late DATA         makes `boat` silent since five hours, in the data of a receiver that is stopped
week.py live URL TOKEN    sends the present of the other two, once a minute, until it is killed

`reed-bed` is well. `oak-edge` has lost records, some of them today. `boat` is late: it was last heard five hours ago.
In the season oak-edge lacks the sound of three days (LACKING), boat was off for two days (OFF), and reed-bed has sightings
of today that are not at the server yet.
"""
import array
import base64
import io
import json
import math
import random
import sqlite3
import subprocess
import sys
import time
import urllib.request
import uuid
import wave
from collections import defaultdict
from datetime import datetime, timezone

RATE, SECONDS = 16000, 6
HOUR, DAY = 3600, 86400
START = time.time() - 7 * DAY
LATE = 5 * HOUR
SEASON = 60
# How many days ago oak-edge had no sound, and why.
LACKING = {"microphone": 12, "schedule": 20, "room": 31}
# How many days ago boat had no power.
OFF = (23, 24)
SOURCES = {"audio": "linux_alsa_audio", "beacons": "linux_bluez_beacons", "location": "linux_gpsd_location"}
WAITING = 240
# When reed-bed heard an owl yesterday.
QUARTER = 4 * HOUR + 15 * 60
DEVICES = {"reed-bed": (46.4639, 6.8457), "oak-edge": (46.4571, 6.8502), "boat": (46.4652, 6.8361)}
# Two tags of each device: where they are, and their mean temperature and humidity.
TAGS = {"reed-bed": (("c1:a0:52:10:00:01", 9, 88), ("c1:a0:52:10:00:02", 6, 95)),
        "oak-edge": (("c1:a0:52:10:00:03", 8, 71), ("c1:a0:52:10:00:04", 10, 64)),
        "boat": (("c1:a0:52:10:00:05", 11, 78), ("c1:a0:52:10:00:06", 9, 83))}
# Each sound is a list of notes: from Hz, to Hz, seconds, and the pause after it.
SOUNDS = {"cuckoo": [(667, 660, .25, .1), (556, 550, .45, .9)] * 3, "warbler": [(3200, 4700, .12, .05)] * 9 + [(0, 0, 0, 1.2)],
          "owl": [(390, 380, .8, 2.2), (400, 370, 1.4, 1.0)]}


def stamp(second):
    return datetime.fromtimestamp(second, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record(second, **members):
    return {"id": str(uuid.uuid4()), "timestamp": stamp(second), **members, "clock": "synced"}


def warmth(second):
    """-1 in the coldest hour of the day, 1 in the warmest."""
    return math.cos((second % DAY - 14 * HOUR) / DAY * 2 * math.pi)


def sighting(device, tag, second):
    address, mean, humidity = TAGS[device][tag]
    drift = math.sin(second / DAY * 1.3 + tag)
    telemetry = {"temperature_c": round(mean + 4 * warmth(second) + 2 * drift + random.gauss(0, .1), 2),
                 "humidity_percent": round(min(100, humidity - 9 * warmth(second) + 3 * drift), 2),
                 "pressure_pa": round(97600 + 500 * math.sin(second / DAY * .9)),
                 "battery_mv": round(2950 - tag * 140 - (second - START) / DAY * (2 + 7 * tag))}
    return record(second, kind="ruuvi", beacon_id=address, address=address, address_type="random_static",
                  rssi=round(random.gauss(-68 - 9 * tag, 3)), telemetry=telemetry)


def fix(device, second):
    latitude, longitude = DEVICES[device]
    if device == "boat":
        # A round on the lake in the daytime, at its buoy by night.
        angle = max(0.0, min(1.0, (second % DAY - 7 * HOUR) / (9 * HOUR))) * 2 * math.pi
        latitude += .011 * math.sin(angle)
        longitude -= .018 * (1 - math.cos(angle)) + .003 * math.sin(2 * angle)
    shake = random.gauss(0, 1e-5)
    return record(second, latitude=round(latitude + shake, 7), longitude=round(longitude - shake, 7), altitude=373.2,
                  horizontal_accuracy=2.4, fix="3d", satellites=11)


def power(device, second):
    percent = {"reed-bed": 84, "oak-edge": 63, "boat": 47}[device] + 9 * warmth(second - 3 * HOUR)
    return record(second, battery_percent=round(percent), battery_v=round(3.5 + percent / 150, 2))


def detections(second, number):
    """What a detector heard in a sound: the species of its notes, sometimes two."""
    names = ("Cuculus canorus", "Phylloscopus trochilus", "Strix aluco")
    for name in (names[number], *names[:random.randint(0, 1)]):
        yield record(second + random.randint(0, SECONDS - 1), species=name, confidence=round(random.uniform(.3, .98), 3), offset_s=1.5,
                     duration_s=3, model="BirdNET_GLOBAL_6K_V2.4")


def health(device, second, start):
    is_losing = device == "oak-edge" and second > time.time() - DAY / 2
    return record(
        second, state="healthy", reasons=[], version="0.1.0",
        uptime_s=int(second - start), free_bytes=22_400_000_000 - int(second - start) * 900, database_bytes=6_300_000,
        pending={"linux_bluez_beacons": 6, "linux_gpsd_location": 1}, lost_24h={"linux_alsa_audio": 62} if is_losing else {},
        sources={"beacons": "loaded", "location": "loaded", "audio": "loaded"},
        cpu_temperature_c=round(41 + 6 * warmth(second), 1), undervoltage=False, load_1m=.07,
        memory_available_bytes=312_000_000, wifi_rssi_dbm=-61)


def event(second, kind, source, **detail):
    return record(second, kind=kind, source=source, detail=detail)


def events(device, start, end):
    yield event(start, "started", "gateway")
    if device == "oak-edge":
        # A microphone that came loose two days ago, and one hour of sound that found no room today.
        yield event(end - 50 * HOUR, "source_lost", "audio", since=stamp(end - 50 * HOUR), reason="the USB microphone is not there")
        yield event(end - 47 * HOUR, "source_recovered", "audio", since=stamp(end - 50 * HOUR), until=stamp(end - 47 * HOUR))
        yield event(end - 4 * HOUR, "evicted", "storage", stream="linux_alsa_audio", records=62, code="E004",
                    **{"from": stamp(end - 5 * HOUR), "to": stamp(end - 4 * HOUR)})
    if device == "boat":
        yield event(end - 30 * HOUR, "gap", "gateway", stream="linux_bluez_beacons", reason="power cut", records=12,
                    **{"from": stamp(end - 31 * HOUR), "to": stamp(end - 30 * HOUR)})


def encoded(notes):
    """A sound as Ogg Opus in base64, with the hiss of a quiet night behind it."""
    frames = array.array("h", (int(random.gauss(0, 40)) for _ in range(RATE * SECONDS)))
    place = RATE // 2
    for low, high, seconds, pause in notes:
        phase, count = 0.0, int(seconds * RATE)
        for n in range(min(count, len(frames) - place)):
            phase += 2 * math.pi * (low + (high - low) * n / count) / RATE
            frames[place + n] += int(7000 * math.sin(phase) * math.sin(math.pi * n / count))
        place = min(len(frames), place + count + int(pause * RATE))
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, RATE, 0, "NONE", ""))
        sound.writeframes(frames.tobytes())
    made = subprocess.run(["opusenc", "--quiet", "--bitrate", "24", "-", "-"], input=file.getvalue(), capture_output=True, check=True)
    return base64.b64encode(made.stdout).decode()


def sound(second, data):
    made = record(second, duration=SECONDS, audio_data=data, audio_format="ogg", sample_rate=RATE, overlap_duration=0,
                  average_db_level=round(random.gauss(-31, 2), 1), device="default")
    made["timestamp_start"], made["timestamp_end"] = made.pop("timestamp"), stamp(second + SECONDS)
    return made


def week(device, start, end, sounds):
    """Yields each stream with its records, in order of time."""
    def every(step, make):
        return [make(second) for second in range(start, end, step)]

    yield "linux_bluez_beacons", [sighting(device, tag, second) for second in range(start, end, 600) for tag in (0, 1)]
    yield "linux_gpsd_location", every(600, lambda second: fix(device, second))
    yield "linux_alsa_audio", [
        sound(second + 20 * number, data) for second in range(start + 2 * HOUR, end, 6 * HOUR) for number, data in enumerate(sounds)]
    quarter = int(time.time()) // DAY * DAY - DAY + QUARTER
    if device == "reed-bed":
        yield "linux_alsa_audio", [sound(quarter, sounds[2])]
        yield "birds", [record(quarter + 2, species="Strix aluco", confidence=.913, offset_s=1.5, duration_s=3, model="BirdNET_GLOBAL_6K_V2.4")]
    yield "birds", [
        one for second in range(start + 2 * HOUR, end, 6 * HOUR) for number in range(len(sounds)) for one in detections(second + 20 * number, number)]
    yield "power", every(HOUR, lambda second: power(device, second))
    yield "waypost_health", every(1800, lambda second: health(device, second, start))
    yield "waypost_events", list(events(device, start, end))


class Server:
    """A receiver, and the numbers that its devices' records have had."""

    def __init__(self, url, token):
        self.url, self.token, self.numbers = url, token, defaultdict(lambda: 1)
        # How many records of each device, stream and day it has.
        self.days = defaultdict(int)

    def send(self, device, stream, records):
        for one in records:
            self.days[device, stream, (one.get("timestamp") or one["timestamp_start"])[:10]] += 1
        first, key = self.numbers[device, stream], str(uuid.uuid4())
        self.numbers[device, stream] += len(records)
        body = {"stream_name": stream, "device_id": device, "data": records, "batch_metadata": {
            "total_records": len(records), "app_version": "0.1.0", "batch_id": key, "first_sequence": first,
            "last_sequence": first + len(records) - 1, "sent_at": stamp(time.time()), "clock": "synced"}}
        request = urllib.request.Request(self.url + "/api/ingest", json.dumps(body).encode(), {
            "Content-Type": "application/json", "Idempotency-Key": f'"{key}"', "X-Device-Token": self.token})
        with urllib.request.urlopen(request, timeout=60) as answer:
            if (stored := json.load(answer))["accepted"] != len(records):
                raise SystemExit(f"week.py: the server did not accept all records of {device}: {stored}")


def load(server, sounds=None):
    sounds = sounds or [encoded(notes) for notes in SOUNDS.values()]
    now, total = int(time.time()), 0
    for device in DEVICES:
        end = now - LATE if device == "boat" else now
        for stream, records in week(device, now - 7 * DAY, end, sounds):
            server.send(device, stream, records)
            total += len(records)
    print(f"{total} records of {len(DEVICES)} devices")


def silence(device, source, ago):
    """The state and the reason of a source that recorded nothing on a day; None if it did."""
    if device == "boat" and ago in OFF:
        return "off", "the battery was disconnected"
    if (device, source) == ("oak-edge", "audio"):
        return {LACKING["microphone"]: ("failed", "the USB microphone is not there"),
                LACKING["schedule"]: ("scheduled_off", "audio.schedule")}.get(ago)
    return None


def before(device, start, end, sounds):
    """Yields the streams of the days before the week, a record every two hours."""
    today = int(time.time()) // DAY * DAY

    def every(step, source, make):
        lost = LACKING["room"] if (device, source) == ("oak-edge", "audio") else None
        agos = ((second, (today - second // DAY * DAY) // DAY) for second in range(start, end, step))
        return [make(second) for second, ago in agos if ago != lost and not silence(device, source, ago)]

    yield "linux_bluez_beacons", every(2 * HOUR, "beacons", lambda second: sighting(device, 0, second))
    yield "linux_gpsd_location", every(2 * HOUR, "location", lambda second: fix(device, second))
    yield "linux_alsa_audio", every(12 * HOUR, "audio", lambda second: sound(second + HOUR, sounds[second // DAY % len(sounds)]))
    yield "power", every(6 * HOUR, "power", lambda second: power(device, second))


def interval(source, state, start, end, reason=None, records=None):
    made = {"source": source, "state": state, "from": stamp(start), "to": stamp(end)}
    return record(start, **made, **({"reason": reason} if reason else {}), **({"records": records} if records is not None else {}))


def effort(device, source, day, now, stored):
    """Yields the intervals of a source's day; `stored`: how many records of it the server has."""
    today, end = int(time.time()) // DAY * DAY, min(day + DAY, now)
    ago = (today - day) // DAY
    if quiet := silence(device, source, ago):
        return (yield interval(source, quiet[0], day, end, quiet[1]))
    if ago == 0:
        # The interval of today is open, unless something ended it.
        if (device, source) == ("reed-bed", "beacons"):
            middle = day + (now - day) // 2
            yield interval(source, "recorded", day, middle, records=stored + WAITING)
            yield interval(source, "failed", middle, middle + 5, "the adapter was reset")
        return
    made = 24 if device == "oak-edge" and source == "audio" and ago == LACKING["room"] else stored
    if (device, source) == ("reed-bed", "audio") and ago % 9 == 4:
        yield interval(source, "recorded", day, day + 16 * HOUR, records=made)
        yield interval(source, "failed", day + 16 * HOUR, day + 19 * HOUR, "overrun: records came faster than they could be stored")
        return (yield interval(source, "recorded", day + 19 * HOUR, end, records=0))
    yield interval(source, "recorded", day, end, records=made)


def season(server):
    sounds = [encoded(notes) for notes in SOUNDS.values()]
    load(server, sounds)
    now = int(time.time())
    today, week_start = now // DAY * DAY, now - 7 * DAY
    first = today - (SEASON - 1) * DAY
    for device in DEVICES:
        end = now - LATE if device == "boat" else now
        # A batch has at most 32 days.
        for start in range(first, week_start, 28 * DAY):
            for stream, records in before(device, start, min(start + 28 * DAY, week_start), sounds):
                server.send(device, stream, records)
        for start in range(first, end, 28 * DAY):
            server.send(device, "waypost_effort", [
                one for day in range(start, min(start + 28 * DAY, end), DAY) for source, stream in SOURCES.items()
                for one in effort(device, source, day, end, server.days[device, stream, stamp(day)[:10]])])
    room = today - LACKING["room"] * DAY
    server.send("oak-edge", "waypost_events", [
        event(room + 2 * DAY, "evicted", "storage", stream="audio", records=24, code="E004", **{"from": stamp(room), "to": stamp(room + DAY - 1)})])
    held = health("reed-bed", now, first) | {"pending": {"linux_bluez_beacons": WAITING}, "oldest_pending_at": stamp(max(today, now - 3 * HOUR))}
    server.send("reed-bed", "waypost_health", [held])


def make_late(data):
    """A server dates a contact itself, so a contact in the past has to be written into its index."""
    with sqlite3.connect(f"{data}/.receiver.sqlite") as index:
        changed = index.execute("UPDATE devices SET last_seen=last_seen-? WHERE device='boat'", (LATE * 1000,)).rowcount
    if changed != 1:
        raise SystemExit("week.py: the server's index does not know boat")


def live(server):
    start = time.time() - 7 * DAY
    while True:
        time.sleep(60)
        now = time.time()
        for device in ("reed-bed", "oak-edge"):
            server.send(device, "linux_bluez_beacons", [sighting(device, tag, now) for tag in (0, 1)])
            for stream, make in (("linux_gpsd_location", fix), ("power", power)):
                server.send(device, stream, [make(device, now)])
            server.send(device, "waypost_health", [health(device, now, start)])


def main():
    match sys.argv[1:]:
        case ["load", url, token]:
            load(Server(url, token))
        case ["season", url, token]:
            season(Server(url, token))
        case ["late", data]:
            make_late(data)
        case ["live", url, token]:
            live(Server(url, token))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
