#!/usr/bin/env python3
"""Records for some minutes beside three programs that listen, and counts what they cost.

    python3 Tests/Torture/listen_trial.py [--minutes 60] [--programs .build/release]

One program runs the marker detector (Tests/Peers/marker_detector.py) on segments, one writes to a
file and is killed each 10 s, one connects and never reads. The microphone's samples are known (a
ramp; its jump once in 65536 samples is the marker). Prints one JSON object: samples missing in the
stored recording, the largest error of a marker's time, private memory with and without readers.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from microphone import RATE, Microphone, ramp

TREE = pathlib.Path(__file__).resolve().parents[2]


class Site:
    """A gateway, a server, and the microphone, in a folder of their own."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        library = folder / "soundfaults.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                        TREE / "Tests/FieldFaults/soundfaults.c", "-lasound", "-lm"], check=True)
        Microphone(folder, library)
        (folder / "token").write_text("demo-token")
        (folder / "token").chmod(0o600)
        (folder / "tokens").write_text("demo-token\n")
        self.environment = dict(os.environ, ALSA_CONFIG_PATH=str(folder / "asound.conf"))
        self.server = subprocess.Popen(
            [programs / "waypost-receiver", "--listen", "127.0.0.1:0", "--data", folder / "data",
             "--tokens", folder / "tokens"], stdout=subprocess.PIPE, text=True)
        self.port = re.search(r"127\.0\.0\.1:(\d+)", self.server.stdout.readline())[1]
        self.configure(True)
        self.gateway = self.start("run")

    def configure(self, audio):
        (self.folder / "waypost.toml").write_text(f"""
state_directory = "{self.folder}/state"
runtime_directory = "{self.folder}/run"
[upload]
endpoint = "http://127.0.0.1:{self.port}/api/ingest"
token_file = "{self.folder}/token"
interval = "1m"
[beacons]
enabled = false
[location]
enabled = false
[audio]
enabled = {str(audio).lower()}
device = "mic"
codec = "wav"
chunk = "30s"
overlap = "2s"
[stream.markers]
""")

    def start(self, *arguments, **others):
        command = [self.programs / "waypost", *arguments, "--config", self.folder / "waypost.toml"]
        return subprocess.Popen(command, env=self.environment, **others)

    def run(self, *arguments):
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return process.communicate()[0]

    def status(self):
        try:
            return json.loads(self.run("status", "--json"))
        except ValueError:
            return {}

    def records(self, stream):
        files = (self.folder / "data").glob(f"stream={stream}/*/*/*.ndjson")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def until(what, condition, limit=120):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not in time: {what}")
        time.sleep(0.5)


def milliseconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def listen(site, minutes):
    """Runs the three programs; returns the detector's messages and the number of kills."""
    detector = site.start(
        "listen", "--segments", "3s", "--put", "markers", "--exec",
        f"{sys.executable} {TREE}/Tests/Peers/marker_detector.py",
        stderr=subprocess.PIPE, text=True)
    silent = socket.socket(socket.AF_UNIX)
    silent.connect(str(site.folder / "run/listen"))
    end, kills, peak = time.monotonic() + minutes * 60, 0, 0
    while time.monotonic() < end:
        with open(os.devnull, "wb") as null:
            killed = site.start("listen", stdout=null)
            time.sleep(10)
            peak = max(peak, site.status().get("daemon", {}).get("private_bytes", 0))
            killed.kill()
            killed.wait()
        kills += 1
    lost = site.status()["outputs"]["listen"]["dropped"]
    silent.close()
    detector.send_signal(signal.SIGTERM)
    return detector.communicate()[1], kills, lost, peak


def judge(site):
    """Returns stored chunks, samples missing in them, markers, and their largest error in ms."""
    chunks = []
    for record in site.records("linux_alsa_audio"):
        path = next((site.folder / "data/audio").rglob(record["audio_file"]))
        first, frames, problem = ramp(path)
        if problem:
            sys.exit(f"{path}: {problem}")
        chunks.append((milliseconds(record["timestamp_start"]), first, frames, record["overlap_duration"]))
    chunks.sort()
    missing = 0
    for (_, first, frames, _), (_, following, _, overlap) in zip(chunks, chunks[1:]):
        missing += (following - first - frames + round(overlap * RATE)) % 65536
    markers = [milliseconds(record["timestamp"]) for record in site.records("markers")]
    worst, unseen = 0, 0
    for start, first, frames, _ in chunks:
        for jump in range((32768 - first) % 65536, frames, 65536):
            time_of_jump = start + jump / RATE * 1000
            error = min((abs(marker - time_of_jump) for marker in markers), default=1e9)
            # The detector did not listen before its first and after its last marker.
            if markers and min(markers) < time_of_jump < max(markers):
                unseen += error > 1000
            # In the overlap the marker is dated as the newer chunk dates it.
            if error <= 1000 and jump < frames - 2 * RATE:
                worst = max(worst, error)
    return len(chunks), missing, len(markers), round(worst, 3), unseen


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--programs", type=pathlib.Path, default=TREE / ".build/release")
    options = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="waypost-listen-trial-"))
    site = Site(folder, options.programs.resolve())
    try:
        until("audio", lambda: site.status().get("sources", {}).get("audio", {}).get("records", 0) > 0, 300)
        before = site.status()["daemon"]["private_bytes"]
        messages, kills, lost, peak = listen(site, options.minutes)
        site.configure(False)
        site.gateway.send_signal(signal.SIGHUP)
        until("the end of audio", lambda: site.status()["sources"]["audio"]["state"] == "disabled")
        site.run("sync", "--wait", "60")
        status = site.status()
        chunks, missing, markers, worst, unseen = judge(site)
        print(json.dumps({
            "minutes": options.minutes, "chunks": chunks, "missing_samples": missing,
            "losses": status.get("losses", []), "kills": kills, "lost_by_silent_reader": lost,
            "markers": markers, "unseen_markers": unseen, "largest_error_ms": worst,
            "private_bytes": before, "private_bytes_with_readers": peak,
            "detector": messages.strip().splitlines()[-2:],
        }, indent=1))
    finally:
        for process in (site.gateway, site.server):
            process.terminate()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


main()
