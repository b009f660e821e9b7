"""`waypost-receiver conformance` on Waypost's server, the examples, and servers with a fault each."""
import concurrent.futures
import contextlib
import functools
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

import server

TOP = server.TOP
PROGRAM = TOP / ".build/debug/waypost-receiver"
EXAMPLES = TOP / "deploy/examples"
# Seconds that the command waits for an answer, on a machine that runs many servers beside each other.
PATIENCE = 5
TOKEN = tempfile.NamedTemporaryFile("w", suffix=".token")
TOKEN.write("t\n")
TOKEN.flush()
# The token of one device.
BOUND = tempfile.NamedTemporaryFile("w", suffix=".token")
BOUND.write("# of one device\nt d1 # the only one\n")
BOUND.flush()


def run(url, *options, token=TOKEN, patience=PATIENCE):
    return subprocess.run([PROGRAM, "conformance", url, "--token", token.name, "--patience", str(patience), *options],
                          text=True, capture_output=True)


def tried(port, *options, path="", **more):
    done = run(f"http://127.0.0.1:{port}{path}", "--json", *options, **more)
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


def tried_in_place(name, *options, path="", token=TOKEN, **more):
    """Tries a server of this process, which has a fault or, without a name, none."""
    place = server.start(name, **more)
    try:
        patience = 20 if name == "answer_before_the_disk" else PATIENCE
        return tried(place.server_port, *options, path=path, token=token, patience=patience)
    finally:
        place.shutdown()
        place.server_close()


def tried_program(make, *options, patience=PATIENCE, token=TOKEN, **environment):
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
        return tried(port, *(option(folder) if callable(option) else option for option in options), patience=patience,
                     token=token)


def new_code(folder):
    printed = subprocess.run([PROGRAM, "codes", "add", "--data", "data"], cwd=folder, text=True, capture_output=True, check=True)
    return re.search(r"[0-9A-Z]{4}(?:-[0-9A-Z]{4})+", printed.stdout)[0]


# Each is tried once, all beside each other: most of the time passes in pauses.
RUNS = {
    "good": lambda: tried_in_place(None, "--code", "c"),
    "good without a code": lambda: tried_in_place(None, path="/api/ingest//"),
    "device": lambda: tried_in_place(None, "--code", "c", "--device", "d1", owners={"t": "d1"}),
    "wrong device": lambda: tried_in_place(None, owners={"t": "d1"}),
    "wrong path": lambda: tried_in_place(None, path="/api"),
    "query": lambda: tried_in_place(None, path="/api/ingest?x=1"),
    "receiver": lambda: tried_program(
        lambda folder, port: [PROGRAM, "--listen", f"127.0.0.1:{port}", "--data", "data", "--tokens", TOKEN.name],
        "--code", new_code),
    "receiver of one device": lambda: tried_program(
        lambda folder, port: [PROGRAM, "--listen", f"127.0.0.1:{port}", "--data", "data", "--tokens", BOUND.name],
        "--code", new_code, token=BOUND),
    "python": lambda: tried_program(
        lambda folder, port: ["python3", "-B", EXAMPLES / "python/server.py", TOKEN.name, folder / "records.sqlite", port]),
    "node": lambda: tried_program(lambda folder, port: ["node", EXAMPLES / "node/server.js", TOKEN.name, folder, port]),
    "php": lambda: tried_program(
        lambda folder, port: ["php", "-d", "enable_post_data_reading=0", "-d", "memory_limit=512M", "-S", f"127.0.0.1:{port}",
                              EXAMPLES / "php/server.php"],
        patience=15, WAYPOST_TOKENS=TOKEN.name, WAYPOST_DATABASE="FOLDER/records.sqlite", PHP_CLI_SERVER_WORKERS=4),
    **{name: functools.partial(tried_in_place, name, "--code", "c") for name in server.FAULTS},
}
ABSENT = {name for name in ("node", "php") if not shutil.which(name)}


@unittest.skipUnless(PROGRAM.exists(), "the program is not built: swift build --product waypost-receiver")
class ConformanceTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The longest runs begin first.
        names = sorted(RUNS.keys() - ABSENT, key=lambda name: name not in ("answer_before_the_disk", "a_huge_body_is_read_slowly", "php"))
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
        for name, (_, lines, own) in server.FAULTS.items():
            status, document = self.results[name]
            with self.subTest(name):
                failed = verdicts(document, "failed")
                self.assertEqual(failed, lines, shown(document, failed))
                required = {line["name"] for line in document["results"] if line["weight"] == "required"}
                self.assertEqual(status, own or (1 if failed & required else 0))
                self.assertEqual(document["passed"], status == 0)
        self.assertGreaterEqual(len(server.FAULTS), 20)

    def test_each_sentence_has_a_fault(self):
        names = {line["name"] for line in self.results["good"][1]["results"]}
        # A server without that one keeps nothing.
        self.assertEqual(names - set().union(*(lines for _, lines, _ in server.FAULTS.values())), {"identity"})

    def test_a_good_server_keeps_all(self):
        self.assertEqual(self.expect_kept("good"), set())
        self.assertEqual(self.expect_kept("good without a code"), {"enrol", "enrol-again", "code-once", "own-device"})

    def test_waypost_receiver(self):
        self.assertEqual(self.expect_kept("receiver"), set())

    def test_the_token_of_one_device(self):
        for name in ("device", "receiver of one device"):
            self.assertEqual(self.expect_kept(name), {"id-of-device"})
            self.assertEqual(self.results[name][1]["device_id"], "d1")

    def test_a_target_that_is_not_the_one(self):
        for name, text in (("wrong device", "--device"), ("wrong path", "/api/api/ingest"), ("query", "has a query")):
            with self.subTest(name):
                status, message = self.results[name]
                self.assertEqual(status, 2)
                self.assertRegex(message, f"\\Awaypost-receiver: .*{text}.*\n\\Z")

    def test_what_is_not_seen_is_skipped(self):
        document = self.results["nothing_is_stored"][1]
        unseen = {line["name"] for line in document["results"] if line["reason"] == "storing cannot be seen"}
        self.assertEqual(unseen, verdicts(document, "skipped"))
        self.assertLessEqual({"id-again", "mixed", "gzip", "columns", "cut", "parts", "order"}, unseen)

    def test_a_raw_request_is_named(self):
        results = self.results["a_slow_body_is_refused"][1]["results"]
        (line,) = (line for line in results if line["name"] == "slow")
        self.assertRegex(line["sent"], r"^POST /api/ingest, 3 records in pieces, key [0-9a-f-]{36}$")
        self.assertEqual(line["got"], "HTTP 408")

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

    def test_secrets_are_not_shown(self):
        with tempfile.NamedTemporaryFile("w") as token:
            token.write("secret-token\n")
            token.flush()
            for option in ("--json", "--device=d"):
                place = server.start("secrets_are_quoted", tokens={"secret-token"}, codes={"secret-code": ""}, owners={})
                self.addCleanup(place.server_close)
                self.addCleanup(place.shutdown)
                done = run(f"http://127.0.0.1:{place.server_port}", "--code", "secret-code", option, token=token)
                self.assertEqual((done.returncode, done.stderr), (1, ""))
                self.assertIn("known", done.stdout)
                (issued,) = place.RequestHandlerClass.owners
                for secret in ("secret", issued):
                    self.assertNotIn(secret, done.stdout)
        for url in ("http://user:pa55word@127.0.0.1:1/", "user:pa55word@127.0.0.1", "http://user:pa55word@h/?x"):
            done = run(url)
            self.assertEqual(done.returncode, 2)
            self.assertNotIn("pa55word", done.stdout + done.stderr)

    def test_a_token_without_encryption(self):
        # An address that belongs to nobody (RFC 5737).
        self.assertIn("http:// shows the token", run("http://192.0.2.1", patience=1).stderr)
        self.assertNotIn("http:// shows the token", run(f"http://localhost:{free_port()}", patience=1).stderr)

    def test_a_body_without_a_length(self):
        place = server.start()
        self.addCleanup(place.server_close)
        self.addCleanup(place.shutdown)
        with socket.create_connection(("127.0.0.1", place.server_port), PATIENCE) as client, client.makefile("rb") as stream:
            client.sendall(b"POST /api/ingest HTTP/1.1\r\nHost: h\r\nX-Device-Token: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"2\r\n{}\r\n0\r\n\r\n")
            answers = stream.read()
        # Neither 400 nor 422, as the data is not to blame; and the chunks are not the next request.
        self.assertRegex(answers, rb"^HTTP/1.1 411 ")
        self.assertEqual(answers.count(b"HTTP/1.1"), 1)

    def test_lines(self):
        place = server.start("a_wrong_token_gets_a_page")
        self.addCleanup(place.server_close)
        self.addCleanup(place.shutdown)
        done = run(f"http://127.0.0.1:{place.server_port}/")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^ok       required     A batch in gzip is accepted")
        self.assertRegex(done.stdout, r"(?m)^FAILED   required     verify answers .*\n"
                         r" +sent +POST /api/device/verify\n +expected +a JSON object\n +got +HTTP 401: <html>Log in</html>$")
        self.assertRegex(done.stdout, r"(?m)^skipped  required     A code is exchanged .* \(needs --code\)$")


if __name__ == "__main__":
    unittest.main()
