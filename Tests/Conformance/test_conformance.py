"""`waypost-receiver conformance` on Waypost's server, the examples, and servers with a fault each.

WAYPOST_PHP names a program in place of php.
"""
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

import server

TOP = server.TOP
PROGRAM = TOP / ".build/debug/waypost-receiver"
EXAMPLES = TOP / "deploy/examples"
# Seconds that the command waits for an answer, on a machine that runs many servers beside each other.
PATIENCE = 5
TOKEN = tempfile.NamedTemporaryFile("w", suffix=".token")
TOKEN.write("t\n")
TOKEN.flush()


def tried(port, *options, patience=PATIENCE):
    done = subprocess.run([PROGRAM, "conformance", f"http://127.0.0.1:{port}", "--token", TOKEN.name, "--json",
                           "--patience", str(patience), *options], text=True, capture_output=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def verdicts(document, verdict):
    return {line["name"] for line in document["results"] if line["verdict"] == verdict}


def shown(document, names):
    return "\n".join(f"{line['sentence']} sent {line['sent']}, expected {line['reason']}, got {line['got']}"
                     for line in document["results"] if line["name"] in names)


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


def tried_in_place(name, *options):
    """Tries a server of this process, which has a fault or, without a name, none."""
    place = server.start(name)
    try:
        patience = 20 if name == "answer_before_the_disk" else PATIENCE
        return tried(place.server_port, *options, patience=patience)
    finally:
        place.shutdown()
        place.server_close()


def tried_program(make, *options, patience=PATIENCE, **environment):
    """Tries a program, whose command line `make` returns for a folder and a port."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        port = free_port()
        environment = {name: str(value).replace("FOLDER", folder) for name, value in environment.items()}
        program = subprocess.Popen([*map(str, make(pathlib.Path(folder), port))], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment},
                                   start_new_session=True)
        stack.callback(program.wait)
        # PHP's server has workers.
        stack.callback(os.killpg, program.pid, signal.SIGKILL)
        for _ in range(600):
            with socket.socket() as client:
                if program.poll() is not None or client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        return tried(port, *(option(folder) if callable(option) else option for option in options), patience=patience)


def new_code(folder):
    printed = subprocess.run([PROGRAM, "codes", "add", "--data", "data"], cwd=folder, text=True, capture_output=True, check=True)
    return re.search(r"[0-9A-Z]{4}(?:-[0-9A-Z]{4})+", printed.stdout)[0]


PHP = os.environ.get("WAYPOST_PHP", "php")
# Each is tried once, all beside each other: most of the time passes in pauses.
RUNS = {
    "good": lambda: tried_in_place(None, "--code", "c"),
    "good without a code": lambda: tried_in_place(None),
    "receiver": lambda: tried_program(
        lambda folder, port: [PROGRAM, "--listen", f"127.0.0.1:{port}", "--data", "data", "--tokens", TOKEN.name],
        "--code", new_code),
    "python": lambda: tried_program(
        lambda folder, port: ["python3", "-B", EXAMPLES / "python/server.py", TOKEN.name, folder / "records.sqlite", port]),
    "node": lambda: tried_program(lambda folder, port: ["node", EXAMPLES / "node/server.js", TOKEN.name, folder, port]),
    "php": lambda: tried_program(
        lambda folder, port: [PHP, "-d", "enable_post_data_reading=0", "-d", "memory_limit=512M", "-S", f"127.0.0.1:{port}",
                              EXAMPLES / "php/server.php"],
        patience=15, WAYPOST_TOKENS=TOKEN.name, WAYPOST_DATABASE="FOLDER/records.sqlite", PHP_CLI_SERVER_WORKERS=4),
    **{name: functools.partial(tried_in_place, name, "--code", "c") for name in server.FAULTS},
}
ABSENT = {name for name, program in (("node", "node"), ("php", PHP)) if not shutil.which(program)}


@unittest.skipUnless(PROGRAM.exists(), "the program is not built: swift build --product waypost-receiver")
class ConformanceTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The longest runs begin first.
        names = sorted(RUNS.keys() - ABSENT, key=lambda name: name not in ("answer_before_the_disk", "php"))
        with concurrent.futures.ThreadPoolExecutor(30) as pool:
            cls.results = dict(zip(names, pool.map(lambda name: RUNS[name](), names)))

    def expect_kept(self, name):
        """Expects that no sentence is broken; returns the names of those that were skipped."""
        if name in ABSENT:
            self.skipTest(f"{name} is not installed")
        status, document = self.results[name]
        failed = verdicts(document, "failed")
        self.assertEqual((status, failed), (0, set()), shown(document, failed))
        return verdicts(document, "skipped")

    def test_each_fault_fails_its_line(self):
        for name, (_, lines) in server.FAULTS.items():
            status, document = self.results[name]
            with self.subTest(name):
                failed = verdicts(document, "failed")
                self.assertEqual(failed, lines, shown(document, failed))
                required = {line["name"] for line in document["results"] if line["weight"] == "required"}
                self.assertEqual(status, 1 if failed & required else 0)
        self.assertGreaterEqual(len(server.FAULTS), 20)

    def test_each_sentence_has_a_fault(self):
        names = {line["name"] for line in self.results["good"][1]["results"]}
        # A server without that one keeps nothing.
        self.assertEqual(names - set().union(*(lines for _, lines in server.FAULTS.values())), {"identity"})

    def test_a_good_server_keeps_all(self):
        self.assertEqual(self.expect_kept("good"), set())
        self.assertEqual(self.expect_kept("good without a code"), {"enrol", "enrol-again", "code-once", "own-device"})

    def test_waypost_receiver(self):
        self.assertEqual(self.expect_kept("receiver"), set())

    def test_examples(self):
        for name in ("python", "node", "php"):
            with self.subTest(name):
                self.expect_kept(name)

    def test_examples_are_short(self):
        for example in EXAMPLES.glob("*/server.*"):
            self.assertLessEqual(len(example.read_text().splitlines()), 80, example)

    def test_page_has_each_sentence(self):
        part = server.PAGE.partition("# A SERVER OF YOUR OWN")[2].partition("\n# ")[0].replace("\\", "")
        listed = dict(re.findall(r"^- (.*) \((required|recommended)\)$", part, re.M))
        document = self.results["good"][1]
        self.assertEqual(listed, {line["sentence"]: line["weight"] for line in document["results"]})

    def test_a_server_that_is_not_there(self):
        status, message = tried(free_port())
        self.assertEqual(status, 2)
        self.assertIn("check that the server runs", message)

    def served(self, *given, **more):
        place = server.start(*given, **more)
        self.addCleanup(place.server_close)
        self.addCleanup(place.shutdown)
        return place.server_port

    def test_a_server_that_stores_nothing_does_not_pass(self):
        status, document = tried(self.served(kind=server.NothingIsStored))
        self.assertEqual((status, document["passed"], verdicts(document, "failed")), (3, False, set()))
        unseen = {"id-again", "at-once", "mixed", "parts", "gzip", "columns", "cut"}
        self.assertLessEqual(unseen, verdicts(document, "skipped"))

    def test_no_secret_is_printed(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("a-secret-of-the-operator\n")
            file.flush()
            for kind in (server.Echo, server.Server):
                port = self.served("a_repeated_enrolment_is_refused" if kind is server.Server else None, kind=kind,
                                   tokens={"a-secret-of-the-operator"})
                done = subprocess.run([PROGRAM, "conformance", f"http://127.0.0.1:{port}", "--token", file.name, "--code", "c",
                                       "--patience", str(PATIENCE)], text=True, capture_output=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("FAILED", done.stdout)
                self.assertNotIn("a-secret-of-the-operator", done.stdout)
                self.assertNotRegex(done.stdout, r'"token": ?"[^…]')

    def test_wrong_addresses_and_tokens_end_it_at_once(self):
        port = self.served()
        for path, status, words in (("/api/ingest/", 0, ""), ("/api/ingest?x=1", 2, "nothing takes uploads"),
                                    ("/else", 2, "nothing takes uploads")):
            done = subprocess.run([PROGRAM, "conformance", f"http://127.0.0.1:{port}{path}", "--token", TOKEN.name,
                                   "--patience", str(PATIENCE)], text=True, capture_output=True)
            with self.subTest(path):
                self.assertEqual(done.returncode, status, done.stderr + done.stdout)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout == "", status == 2)

    def test_a_client_that_verifies_gets_past_the_portal(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            port = free_port()
            program = subprocess.Popen([PROGRAM, "--listen", f"127.0.0.1:{port}", "--data", folder, "--tokens", TOKEN.name,
                                        "--torment", "7"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            stack.callback(program.wait)
            stack.callback(program.kill)

            def answer(path):
                request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", b"{}", {"X-Device-Token": "t"})
                with contextlib.suppress(OSError, http.client.HTTPException):
                    with urllib.request.urlopen(request, timeout=10) as response:
                        return response.read()
                return b""

            for _ in range(600):
                if answer("/api/device/verify") or program.poll() is not None:
                    break
                time.sleep(0.1)
            self.assertTrue(any(b"<html>" in answer("/api/ingest") for _ in range(500)), "the seed draws no portal")
            self.assertTrue(any(b"ok" in answer("/api/device/verify") for _ in range(8)))

    def test_lines(self):
        place = server.start("a_wrong_token_gets_a_page")
        self.addCleanup(place.server_close)
        self.addCleanup(place.shutdown)
        done = subprocess.run([PROGRAM, "conformance", f"http://127.0.0.1:{place.server_port}/", "--token", TOKEN.name,
                               "--patience", str(PATIENCE)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^ok       required     A batch in gzip is accepted")
        self.assertRegex(done.stdout, r"(?m)^FAILED   required     verify answers .*\n"
                         r" +sent +POST /api/device/verify\n +expected +a JSON object\n +got +HTTP 401: <html>Log in</html>$")
        self.assertRegex(done.stdout, r"(?m)^skipped  required     A code is exchanged .* \(needs --code\)$")


if __name__ == "__main__":
    unittest.main()
