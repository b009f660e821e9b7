"""Exports for science of the real receiver, read by PyPI's frictionless, guano, soundfile and mutagen.

A month of two devices with schedules, gaps, a move and a change of format, and some days of a third one that sends no effort.
Skipped where these packages are not installed. The schemas of Camtrap DP 1.0.2 are in Tests/Fixtures/camtrap-dp.
"""
import csv
import datetime
import base64
import http.client
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent)]

import site_day as site

PLACES = [ROOT / ".build" / kind / "waypost-receiver" for kind in ("debug", "release")]
RECEIVER = next((str(path) for path in PLACES if path.exists()), None)
PEERS = ("frictionless", "guano", "soundfile", "mutagen", "jsonschema")
SCHEMAS = ROOT / "Tests/Fixtures/camtrap-dp"
UTC = datetime.timezone.utc
START = datetime.datetime(2026, 10, 1, tzinfo=UTC)
DAYS, HOUR = 31, 3600


def at(second):
    return (START + datetime.timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(text):
    return (datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) - START).total_seconds()


def wave(rate, number):
    samples = b"".join(struct.pack("<h", (number * 37 + place * 101) % 30000 - 15000) for place in range(rate // 100))
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


class Device:
    """A device that records from 04:00 to 10:00 each day, a short file each half hour, 1 min later each day as the sun would have it.

    The ridge's window ends at 15:00 from its 19th day on.
    """

    def __init__(self, name, days, faults=(), effort=True):
        self.name, self.days, self.faults, self.effort = name, days, faults, effort
        self.sounds, self.intervals = {}, []

    def records(self, day):
        """The batches of a day: stream -> lines."""
        midnight = day * 86400
        opens, closes = midnight + 4 * HOUR, midnight + 10 * HOUR + 60 * day
        if self.name == "ridge.2" and day >= 18:
            closes = midnight + 15 * HOUR
        lost = [fault for fault in self.faults if midnight <= fault[0] < midnight + 86400]
        batches = {site.SOUND: list(self.audio(day, opens, closes, lost)), site.PLACES: list(self.fixes(day))}
        if self.effort:
            batches["waypost_effort"] = list(self.tiles(midnight, opens, closes, lost))
        return {stream: lines for stream, lines in batches.items() if lines}

    def audio(self, day, opens, closes, lost):
        for number, second in enumerate(range(opens, closes - 600, HOUR // 2)):
            if any(begin <= second < end for begin, end, _, _ in lost):
                continue
            rate = 48000 if self.name == "ridge.2" and day >= 9 else 16000
            self.sounds[f"{self.name}-{second}"] = file = wave(rate, number)
            yield json.dumps({
                "id": f"{self.name}-{second}", "timestamp_start": at(second + 0.123), "timestamp_end": at(second + 0.133), "duration": 0.01,
                "audio_data": base64.b64encode(file).decode(), "audio_format": "wav", "sample_rate": rate, "overlap_duration": 0,
                "device": "hw:1,0", "clock": "unsynced" if day == 20 else "synced"})

    def fixes(self, day):
        if self.name != "lake-7":
            return
        north = 46.46 if day < 15 else 46.47
        for hour in range(24):
            yield json.dumps({"id": f"{self.name}-{day}-{hour}", "timestamp": at(day * 86400 + hour * HOUR), "latitude": north + hour * 1e-6,
                              "longitude": 6.84, "fix": "3d", "horizontal_accuracy": 4.5, "altitude": 372.1, "clock": "synced"})

    def tiles(self, midnight, opens, closes, lost):
        edges = [(midnight, opens, "scheduled_off", "window closed")]
        begin = opens
        for start, end, state, reason in lost:
            edges += [(begin, start, "recorded", ""), (start, end, state, reason)]
            begin = end
        edges += [(begin, closes, "recorded", ""), (closes, midnight + 86400, "scheduled_off", "window closed")]
        for start, end, state, reason in edges:
            if start == end:
                continue
            self.intervals.append((start, end, state))
            record = {"id": f"{self.name}-e{start}", "timestamp": at(start), "source": "audio", "state": state, "from": at(start), "to": at(end),
                      "records": 3, "clock": "synced"}
            yield json.dumps(record | ({"reason": reason} if reason else {}))


LAKE = Device("lake-7", DAYS, [
    (3 * 86400 + 5 * HOUR, 3 * 86400 + 6 * HOUR, "failed", 'device "hw:1,0" absent,\nover'),
    (8 * 86400 + 7 * HOUR, 8 * 86400 + 8 * HOUR, "off", "not running"),
    (12 * 86400 + 4 * HOUR, 12 * 86400 + 10 * HOUR, "unknown", "power cut"),
])
RIDGE = Device("ridge.2", DAYS, [(9 * 86400 + 4 * HOUR, 9 * 86400 + 5 * HOUR, "failed", "overrun")])
QUIET = Device("quiet", 3, [(4 * HOUR, 6 * HOUR, "failed", "never told")], effort=False)


@unittest.skipUnless(RECEIVER, "waypost-receiver is not built")
@unittest.skipUnless(all(importlib.util.find_spec(name) for name in PEERS), f"needs {', '.join(PEERS)}")
class ScienceTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="waypost-science-test.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.data = f"{cls.folder}/data"
        cls.process = subprocess.Popen([RECEIVER, "--listen", "127.0.0.1:0", "--data", cls.data, "--quiet"], stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.process.stdout.close)
        cls.addClassCleanup(cls.process.wait)
        cls.addClassCleanup(cls.process.kill)
        port = int(cls.process.stdout.readline().split("127.0.0.1:")[1].split(",")[0].split()[0].rstrip("/"))
        cls.connection = connection = http.client.HTTPConnection("127.0.0.1", port)
        cls.addClassCleanup(connection.close)
        for device in (LAKE, RIDGE, QUIET):
            for day in range(device.days):
                for stream, lines in device.records(day).items():
                    site.post(connection, device.name, stream, f"{stream}-{day}", lines)
        # A detector's records: in a file, and at a time without one.
        for name, second in (("in", 4 * HOUR + 0.125), ("out", 4 * HOUR + 60)):
            line = json.dumps({"id": name, "timestamp": at(second), "species": 'Strix "aluco", L.', "confidence": 0.75, "duration_s": 3, "model": "M"})
            site.post(connection, "lake-7", "birds", name, [line])

    def export(self, *arguments, status=0):
        done = subprocess.run([RECEIVER, "export", *map(str, arguments), "--data", self.data], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def out(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"

    def table(self, package, name):
        with open(package / f"{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    def package(self, *arguments):
        out = self.out()
        devices = [] if "--device" in arguments else [word for name in ("lake-7", "ridge.2", "quiet") for word in ("--device", name)]
        self.export("camtrap-dp", "--out", out, "--position", "ridge.2=47,-7.5", "--position", "quiet=0.5,0", *devices, *arguments)
        return out

    def validate(self, package):
        """The errors of frictionless, with the profile and the schemas of Tests/Fixtures in place of their addresses."""
        import frictionless
        import jsonschema
        descriptor = json.loads((package / "datapackage.json").read_text())
        profile = json.loads(re.sub(r'"\$ref": "http[^"]*"', '"type": "object"', (SCHEMAS / "camtrap-dp-profile.json").read_text()))
        errors = [error.message for error in jsonschema.Draft4Validator(profile).iter_errors(descriptor)]
        base = "https://raw.githubusercontent.com/tdwg/camtrap-dp/1.0.2/"
        self.assertEqual(descriptor.pop("profile"), base + "camtrap-dp-profile.json")
        for resource in descriptor["resources"]:
            if isinstance(resource["schema"], str):
                self.assertTrue(resource["schema"].startswith(base))
                name = resource["schema"][len(base):]
                shutil.copy(SCHEMAS / name, package)
                resource["schema"] = name
        (package / "local.json").write_text(json.dumps(descriptor))
        report = frictionless.validate(str(package / "local.json"))
        return errors + report.flatten(["title", "message"]) + [error.message for error in report.errors]

    def test_month_is_valid(self):
        package = self.package()
        self.assertEqual(self.validate(package), [])
        media = self.table(package, "media")
        expected = {**LAKE.sounds, **RIDGE.sounds, **QUIET.sounds}
        self.assertEqual(len(media), len(expected))
        self.assertEqual({row["mediaID"].split("/")[1] for row in media}, set(expected))
        self.assertTrue(all((package / row["filePath"]).is_file() for row in media))
        self.assertEqual(len(list((package / "media").iterdir())), len(media))

    def test_fault_in_a_package_is_found(self):
        package = self.package()
        text = (package / "media.csv").read_text()
        (package / "media.csv").write_text(text.replace("lake-7_", "nowhere_", 1))
        self.assertNotEqual(self.validate(package), [])

    def test_deployments_end_where_place_or_format_changes(self):
        package = self.package()
        rows = self.table(package, "deployments")
        spans = {name: [(row["deploymentStart"], row["deploymentEnd"]) for row in rows if row["cameraID"] == name]
                 for name in ("lake-7", "ridge.2", "quiet")}
        moved, changed, scheduled = (at(second)[:19] + "Z" for second in (15 * 86400, 9 * 86400 + 5 * HOUR, 18 * 86400 + 10 * HOUR))
        first, last = at(0)[:19] + "Z", at(DAYS * 86400)[:19] + "Z"
        self.assertEqual(spans["lake-7"], [(first, moved), (moved, last)])
        self.assertEqual(spans["ridge.2"], [(first, changed), (changed, scheduled), (scheduled, last)])
        self.assertEqual(len(spans["quiet"]), 1)
        lake = [row for row in rows if row["cameraID"] == "lake-7"]
        self.assertEqual([round(float(row["latitude"]), 3) for row in lake], [46.46, 46.47])
        self.assertEqual({row["coordinateUncertainty"] for row in lake}, {"5"})
        self.assertEqual([row["timestampIssues"] for row in lake], ["false", "true"])
        ridge = [row for row in rows if row["cameraID"] == "ridge.2"]
        self.assertEqual([row["deploymentComments"] for row in ridge], ["16000 Hz wav", "48000 Hz wav", "48000 Hz wav"])
        self.assertEqual({row["longitude"] for row in ridge}, {"-7.5000000"})
        # Each file lies in its deployment.
        ends = {row["deploymentID"]: (row["deploymentStart"], row["deploymentEnd"]) for row in rows}
        for row in self.table(package, "media"):
            begin, end = ends[row["deploymentID"]]
            self.assertTrue(begin <= row["timestamp"] <= end, row)

    def test_failures_are_those_of_the_effort_and_no_others(self):
        package = self.package()
        rows = self.table(package, "failures")
        told = [(seconds(row["failureStart"]), seconds(row["failureEnd"]), row["state"]) for row in rows]
        expected = [interval for device in (LAKE, RIDGE) for interval in device.intervals if interval[2] in ("failed", "off", "unknown")]
        self.assertEqual(sorted(told), sorted(expected))
        self.assertIn('device "hw:1,0" absent,?over', [row["reason"] for row in rows])
        alone = self.out()
        self.export("camtrap-dp", "--out", alone, "--device", "quiet", "--position", "quiet=1,2", "--tables-only")
        self.assertEqual(self.table(alone, "failures"), [])
        self.assertEqual(self.validate(alone), [])
        self.assertFalse((alone / "media").exists())

    def test_detections_are_observations(self):
        package = self.package("--device", "lake-7")
        rows = {row["observationID"]: row for row in self.table(package, "observations")}
        self.assertEqual({name: row["mediaID"] for name, row in rows.items()},
                         {"lake-7/in": f"lake-7/lake-7-{4 * HOUR}", "lake-7/out": ""})
        self.assertEqual({row["scientificName"] for row in rows.values()}, {'Strix "aluco", L.'})
        self.assertEqual({row["classifiedBy"] for row in rows.values()}, {"M"})
        self.assertEqual({row["classificationProbability"] for row in rows.values()}, {"0.7500"})

    def test_range_is_of_the_times_that_are_wanted(self):
        out = self.out()
        self.export("camtrap-dp", "--out", out, "--device", "lake-7", "--since", "2026-10-04T05:30:00Z", "--until", "2026-10-05")
        self.assertEqual(self.validate(out), [])
        deployment, = self.table(out, "deployments")
        self.assertEqual((deployment["deploymentStart"], deployment["deploymentEnd"]), ("2026-10-04T05:30:00Z", "2026-10-05T00:00:00Z"))
        failure, = self.table(out, "failures")
        self.assertEqual((failure["failureStart"], failure["failureEnd"]), ("2026-10-04T05:30:00Z", "2026-10-04T06:00:00Z"))

    def test_audio_is_read_by_other_programs_and_stays_as_it_was(self):
        out = self.out()
        self.export("audio", "--out", out, "--device", "lake-7", "--until", "2026-10-02")
        files = sorted(map(str, out.iterdir()))
        sounds = [sound for name, sound in LAKE.sounds.items() if int(name.split("-")[2]) < 86400]
        self.assertEqual(len(files), len(sounds))
        self.assertEqual(os.path.basename(files[0]), "lake-7_20261001T040000.123000+0000_+46.46000+006.84000.wav")
        script = [sys.executable, "-B", str(ROOT / "Tests/Peers/science.py"), *files]
        facts = json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout)
        for (path, found), sound in zip(sorted(facts.items()), sounds):
            with open(path, "rb") as file:
                self.assertEqual(file.read()[8:len(sound)], sound[8:])
            self.assertEqual((found["frames"], found["rate"]), (160, 16000))
            self.assertEqual([round(number, 4) for number in found["place"]], [46.46, 6.84])
            self.assertEqual((found["accuracy"], found["length"]), (4.5, 0.01))
            self.assertTrue(found["time"].endswith(".123000+00:00"), found["time"])
            self.assertEqual(found["own"]["Clock"], "synced")
            self.assertEqual(found["own"]["Microphone"], "hw:1,0")
            self.assertIn(found["own"]["Record ID"], LAKE.sounds)

    def test_hostile_device_spoils_only_its_own_rows(self):
        files = [json.dumps({"id": f"twin{number}", "timestamp_start": at(100), "duration": 1e300, "audio_data": base64.b64encode(wave(8000, number)).decode(),
                             "audio_format": "wav", "sample_rate": 1e18, "device": "\n=1+1,\"", "clock": "synced"}) for number in range(3)]
        fakes = [json.dumps({"id": f"fake{number}", "timestamp": at(200 + number), "audio_file": name, "sample_rate": 16000, "clock": "synced"})
                 for number, name in enumerate(("../../../../etc/passwd", ".receiver.sqlite", "a/b.wav", "x" * 300 + ".wav"))]
        lies = [json.dumps({"id": "lie", "timestamp": at(300), "source": "audio", "state": "recorded", "from": "0001-01-01T00:00:00Z", "to": "0001-01-01T06:00:00Z"}),
                json.dumps({"id": "turned", "timestamp": at(300), "source": "audio", "state": "failed", "from": at(300), "to": at(200)}),
                json.dumps({"id": "long", "timestamp": at(100), "source": "audio", "state": "off", "from": at(100), "to": "9999-12-31T23:59:59Z"})]
        birds = [json.dumps({"id": "bird", "timestamp": at(100), "scientific_name": "a\r\nb,\"c\"", "confidence": 2, "duration_s": -1})]
        for stream, lines in ((site.SOUND, files), (site.SOUND, fakes), ("waypost_effort", lies), ("birds", birds)):
            site.post(self.connection, "hostile", stream, f"hostile-{stream}-{len(lines)}", lines)
        out = self.out()
        self.export("camtrap-dp", "--out", out, "--device", "hostile", "--position", "hostile=-90,180")
        self.assertEqual(self.validate(out), [])
        self.assertEqual(len(self.table(out, "media")), 3)
        contents = {path.read_bytes()[44:100] for path in (out / "media").iterdir()}
        self.assertEqual(contents, {wave(8000, number)[44:100] for number in range(3)})
        deployment, = self.table(out, "deployments")
        self.assertEqual(deployment["deploymentStart"], at(100)[:19] + "Z")
        self.assertEqual(len(self.table(out, "failures")), 1)

    def test_what_cannot_be_is_said_and_writes_nothing(self):
        out = self.out()
        told = self.export("camtrap-dp", "--out", out, "--device", "ridge.2", "--device", "quiet", status=1)
        self.assertIn("--position quiet=LAT,LON --position ridge.2=LAT,LON", told)
        self.assertFalse(out.exists() and any(out.iterdir()))
        self.assertIn("no records of the device lake-8", self.export("audio", "--out", out, "--device", "lake-8", status=1))
        out.mkdir(exist_ok=True)
        (out / "mine").write_text("mine")
        for kind in ("audio", "camtrap-dp"):
            self.assertIn("is not empty", self.export(kind, "--out", out, "--device", "lake-7", status=1))
        self.assertEqual([path.name for path in out.iterdir()], ["mine"])
        self.assertIn("lie in each other", self.export("audio", "--out", f"{self.data}/new", status=1))
        for wrong in (("--since", "yesterday"), ("--position", "lake-7=91,0"), ("--since", "2026-10-02", "--until", "2026-10-01")):
            self.export("audio", "--out", out, *wrong, status=64)

    def test_audio_that_is_gone_is_left_out_and_counted(self):
        copy = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "data"
        shutil.copytree(self.data, copy)
        gone = sorted((copy / f"audio/{site.SOUND}/2026-10-02/lake-7").iterdir())[0]
        gone.unlink()
        # Nor is a link followed, which could lead to any file.
        linked = sorted((copy / f"audio/{site.SOUND}/2026-10-03/lake-7").iterdir())[0]
        linked.unlink()
        linked.symlink_to("/etc/passwd")
        out = self.out()
        done = subprocess.run([RECEIVER, "export", "camtrap-dp", "--out", out, "--device", "lake-7", "--data", copy], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("because their audio was deleted: 2", done.stderr)
        self.assertEqual(len(self.table(out, "media")), len(LAKE.sounds) - 2)
        self.assertEqual(self.validate(out), [])


if __name__ == "__main__":
    unittest.main()
