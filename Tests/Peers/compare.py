#!/usr/bin/env python3
"""Compares what a demo's queue accepted with what its receiver holds, and shows what arrived.

The queue is read from its own database, the receiver from its files: neither is asked for its opinion.
Usage: compare.py DEMO KEEP: the demo's folder, and a folder for a picture of the track and a piece of the sound.
"""
import json
import math
import pathlib
import shutil
import sqlite3
import subprocess
import sys

# No compiled files among the sources; before the import of our own.
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Torture"))

import records as queue

TABLES = {
    "linux_gpsd_location": "location", "linux_alsa_audio": "chunks",
    "linux_bluez_beacons": "sightings", "waypost_events": "events",
}
CODES = {"linux_gpsd_location": 1, "linux_alsa_audio": 2, "linux_bluez_beacons": 3, "waypost_events": 4}


def accepted(database, stream):
    """How many numbers the queue gave out; the ids of those whose rows are still there; how many it says are sent."""
    code = CODES[stream]
    highest, uploaded = database.execute(
        "SELECT next-1, uploaded FROM sequences WHERE database=0 AND stream=?", (code,)).fetchone()
    seeds = queue.Seeds(database)
    ids = {row: seeds.id(code, row) for row, in database.execute(f"SELECT id FROM {TABLES[stream]}")}
    return highest, ids, uploaded


def received(directory, stream):
    records = []
    # Other devices may have sent theirs, too (week.py).
    for path in sorted(directory.glob(f"stream={stream}/date=*/device=demo/*.ndjson")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            record["_folder"] = queue.audio_folder(directory, path.parent)
            records.append(record)
    return records


def picture(fixes, width=64, height=12):
    """The track in dots of braille, two by four to a character, north up."""
    latitudes = [fix["latitude"] for fix in fixes]
    longitudes = [fix["longitude"] for fix in fixes]
    south, west = min(latitudes), min(longitudes)
    span = max(max(latitudes) - south, (max(longitudes) - west) * 0.69, 1e-9)
    cells = [[0] * width for _ in range(height)]
    scale = min((height * 4 - 1) / span, (width * 2 - 1) / span)
    bits = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    for fix in fixes:
        x = int((fix["longitude"] - west) * 0.69 * scale)
        y = height * 4 - 1 - int((fix["latitude"] - south) * scale)
        cells[y // 4][x // 2] |= bits[y % 4][x % 2]
    return [line for line in ("".join(chr(0x2800 + c) if c else " " for c in row).rstrip() for row in cells) if line]


def drawing(fixes):
    """The track as an SVG, north up."""
    across = math.cos(math.radians(fixes[0]["latitude"]))
    points = [(fix["longitude"] * across * 1e5, -fix["latitude"] * 1e5) for fix in fixes]
    west, north = min(x for x, _ in points), min(y for _, y in points)
    size = max(max(x for x, _ in points) - west, max(y for _, y in points) - north, 1)
    line = " ".join(f"{(x - west) / size * 380 + 10:.1f},{(y - north) / size * 380 + 10:.1f}" for x, y in points)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 400"><rect width="400" height="400" fill="#fff"/>'
            f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="3"/></svg>\n')


def check(database, directory):
    problems = []
    arrived = {}
    table = [f"{'STREAM':<22} {'ACCEPTED':>9} {'RECEIVED':>9}"]
    for stream in TABLES:
        highest, ids, uploaded = accepted(database, stream)
        records = arrived[stream] = received(directory, stream)
        got = {record["id"]: queue.row_of(record) for record in records}
        table.append(f"{stream:<22} {highest:>9} {len(records):>9}")
        if len(records) != len(got):
            problems.append(f"{stream}: {len(records) - len(got)} records arrived twice")
        # All of them have come by the end of the sync; those that were purged since have no row.
        missing = set(range(1, highest + 1)) - set(got.values())
        if missing:
            problems.append(f"{stream}: {len(missing)} records are missing, first {min(missing)}")
        strange = [id for id, row in got.items() if row > highest or ids.get(row, id) != id]
        if strange:
            problems.append(f"{stream}: {len(strange)} records that the queue never had, first {min(strange)}")
        if uploaded != len(got):
            problems.append(f"{stream}: the queue says {uploaded} were uploaded, {len(got)} arrived")
        if not records:
            problems.append(f"{stream}: nothing arrived")
    return arrived, problems, table


def check_sound(chunks):
    problems = []
    for chunk in chunks:
        path = chunk["_folder"] / chunk["audio_file"]
        decoded = subprocess.run(
            ["opusdec", "--quiet", "--rate", "16000", "--force-wav", str(path), "-"], capture_output=True)
        # 44 bytes of header, two bytes a frame.
        frames = (len(decoded.stdout) - 44) // 2
        if decoded.returncode or abs(frames / 16000 - chunk["duration"]) > 0.001:
            problems.append(f"{path.name}: decodes to {frames / 16000:.3f} s, says {chunk['duration']} s")
    return problems


def main():
    demo, keep = map(pathlib.Path, sys.argv[1:3])
    keep.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(f"file:{demo}/state/queue.sqlite?mode=ro", uri=True)
    arrived, problems, table = check(database, demo / "received")
    problems += check_sound(arrived["linux_alsa_audio"])
    fixes = arrived["linux_gpsd_location"]
    if fixes:
        last = fixes[-1]
        where = f"{last['latitude']}/{last['longitude']}"
        print(f"the walk, {len(fixes)} fixes, north up:")
        print("\n".join(picture(fixes)))
        print(f"https://www.openstreetmap.org/?mlat={last['latitude']}&mlon={last['longitude']}#map=17/{where}")
        (keep / "track.svg").write_text(drawing(fixes))
        print(f"  {keep / 'track.svg'}")
    kinds = sorted({record["kind"] + " " + record["beacon_id"] for record in arrived["linux_bluez_beacons"]})
    print("\nbeacons:", *kinds, sep="\n  ")
    if arrived["linux_alsa_audio"]:
        longest = max(arrived["linux_alsa_audio"], key=lambda chunk: chunk["duration"])
        shutil.copy(longest["_folder"] / longest["audio_file"], keep / "sound.ogg")
        print(f"\nsound, {longest['duration']} s at {longest['average_db_level']} dBFS; plays in opusdec, ffplay, VLC:")
        print(f"  opusdec '{keep / 'sound.ogg'}'")
    daemon = json.loads((demo / "running.json").read_text())["daemon"]
    print(f"\ngateway: {daemon['rss_bytes'] / 1e6:.1f} MB memory ({daemon['private_bytes'] / 1e6:.1f} MB private), "
          f"{daemon['cpu_s']} s CPU in {daemon['uptime_s']} s")
    # Last, where it stays on a small screen.
    print("", *table, sep="\n")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
