"""The examples of deploy/docs/data.md for the read API, and schemathesis, on the real receiver.

A part is skipped by its name where pandas, requests, R (with readr and curl), duckdb or schemathesis are not installed.
"""
import http.client
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent)]

import site_day as site

BUILT = [ROOT / ".build" / kind / "waypost-receiver" for kind in ("debug", "release")]
RECEIVER = next((str(path) for path in BUILT if path.exists()), None)
PAGE = (ROOT / "deploy/docs/data.md").read_text()
SCHEMATHESIS = pathlib.Path(sys.executable).with_name("schemathesis")


def example(name):
    """A code block of the page, by the name before it."""
    return re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)[1]


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


def has_r():
    check = 'quit(status = !all(c("readr", "curl") %in% rownames(installed.packages())))'
    return shutil.which("Rscript") and subprocess.run(["Rscript", "-e", check], capture_output=True).returncode == 0


@unittest.skipUnless(RECEIVER, "waypost-receiver is not built")
class ReadAPITests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="waypost-api-test.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        data = f"{cls.folder}/data"
        process = subprocess.Popen([RECEIVER, "--listen", "127.0.0.1:0", "--data", data, "--quiet"], stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(process.stdout.close)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        cls.port = int(process.stdout.readline().split("127.0.0.1:")[1].split(",")[0].split()[0].rstrip("/"))
        added = subprocess.run([RECEIVER, "viewers", "add", "analysis", "--data", data], check=True, capture_output=True, text=True)
        cls.token = added.stdout.strip()
        cls.send()

    @classmethod
    def send(cls):
        """Two hours of two days: more rows of a quantity than a page has."""
        connection = http.client.HTTPConnection("127.0.0.1", cls.port)
        for day in (21, 22):
            for beacon in range(2):
                lines = [json.dumps({
                    "id": f"{day}-{beacon}-{second}", "timestamp": f"2026-11-{day}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z",
                    "kind": "ruuvi", "beacon_id": f"b{beacon}", "rssi": -60, "telemetry": {"temperature_c": 10 * beacon + second // 3600},
                }) for second in range(0, 7200, 2)]
                site.post(connection, "lake-7", site.BEACONS, f"{day}-{beacon}", lines)
        fix = '{"id":"f","timestamp":"2026-11-21T01:00:00Z","latitude":46.5,"longitude":6.5}'
        site.post(connection, "lake-7", site.PLACES, "f", [fix])
        gap = '{"id":"g","timestamp":"2026-11-21T01:00:00Z","kind":"gap","source":"audio","detail":{"records":1}}'
        site.post(connection, "lake-7", "waypost_events", "g", [gap])
        sound = '{"id":"s","timestamp_start":"2026-11-21T01:00:00Z","duration":1,"audio_data":"T2dnUw==","audio_format":"ogg"}'
        site.post(connection, "lake-7", site.SOUND, "s", [sound])
        while True:
            connection.request("GET", "/api/v1/devices/lake-7/days", headers={"Authorization": f"Bearer {cls.token}"})
            answer = json.loads(connection.getresponse().read())
            if sum(day["records"] for day in answer.get("data", [])) == 14403:
                break
        connection.close()

    def run_example(self, *command):
        environment = os.environ | {"WAYPOST_URL": f"http://127.0.0.1:{self.port}", "WAYPOST_TOKEN": self.token}
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def expect_means(self, printed):
        """Each hour of each day and beacon, and its mean."""
        found = [(line[0], float(line[-1])) for line in re.findall(r"(b\d)?.*?2026-11-2\d \d\d(?::00:00\S*)?\s+([0-9.]+)$", printed, re.MULTILINE)]
        self.assertEqual(sorted(mean for _, mean in found), [0, 0, 1, 1, 10, 10, 11, 11], printed)

    @unittest.skipUnless(has("pandas", "requests"), "pandas or requests is not installed")
    def test_pandas(self):
        self.expect_means(self.run_example(sys.executable, "-c", example("pandas")))

    @unittest.skipUnless(has_r(), "R, readr or curl is not installed")
    def test_R(self):
        self.expect_means(self.run_example("Rscript", "-e", example("R")))

    @unittest.skipUnless(has("duckdb"), "duckdb is not installed")
    def test_DuckDB(self):
        self.run_example("bash", "-euc", example("curl"))
        script = f"import duckdb; [print(*row) for row in duckdb.sql({self.as_text(example('DuckDB'))!r}).fetchall()]"
        self.expect_means(self.run_example(sys.executable, "-c", script))

    @staticmethod
    def as_text(query):
        """The same with its hours as text, because duckdb needs another package for times with a zone."""
        return f"SELECT beacon, hour::VARCHAR, mean FROM ({query.strip().rstrip(';')})"

    @unittest.skipUnless(SCHEMATHESIS.exists(), "schemathesis is not installed")
    def test_schemathesis(self):
        """No answer is a server error, and each is as described."""
        # Left out is only that valid queries are accepted: a cursor is one of the server's own, and from is before to.
        self.run_example(str(SCHEMATHESIS), "run", f"http://127.0.0.1:{self.port}/api/v1/openapi.json", "--header",
                         f"Authorization: Bearer {self.token}", "--checks", "all", "--exclude-checks", "positive_data_acceptance", "--max-examples",
                         "40", "--request-timeout", "120", "--max-response-time", "120", "--seed", "1", "--no-color")


if __name__ == "__main__":
    unittest.main()
