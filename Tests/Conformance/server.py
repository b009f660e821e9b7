"""A server that keeps the whole protocol, and faults that each break one thing of it.

server.py --fault NAME [PORT] starts one with the token `t` and the code `c`; --list prints the faults.
"""
import importlib.util
import json
import pathlib
import re
import select
import socket
import sys
import threading
import time
import types

TOP = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("example", TOP / "deploy/examples/python/server.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
example.MAX = 1 << 20
Refused = example.Refused
# The expansion of columns is the one of the protocol's page.
PAGE = (TOP / "deploy/man/waypost-protocol.7.scd").read_text()
exec(re.search(r"```\n(from datetime import.*?)```", PAGE, re.DOTALL)[1])


class Server(example.Ingest):
    """The example, with columns, jobs and enrolment."""

    def do_GET(self):
        if self.headers["X-Device-Token"] not in self.tokens:
            return self.reply(401, {"error": "the token is not known"})
        return self.reply(200, self.jobs())

    def jobs(self):
        return {"tag": "t1", "jobs": [{"id": "j1", "kind": "report"}]}

    def reply(self, status, answer, kind="application/json"):
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answered(self, body):
        if self.path == "/api/device/enroll":
            return self.enrol(json.loads(body))
        answer = super().answered(body)
        return {**answer, "columns": 1, "jobs": "t1"}

    def enrol(self, asked):
        owner = self.codes.get(asked["code"])
        if owner not in ("", asked["device_id"]):
            raise Refused(403, "this code is not valid")
        self.codes[asked["code"]] = self.owners[asked["token"]] = asked["device_id"]
        self.tokens.add(asked["token"])
        return {"token": asked["token"]}

    def inflated(self, body):
        text = super().inflated(body)
        owner = self.owners.get(self.headers["X-Device-Token"])
        if owner or b'"columns"' in text:
            batch = json.loads(text)
            if owner and batch["device_id"] != owner:
                raise Refused(403, "the token is of another device")
            if "columns" in batch:
                batch["data"] = self.rows(batch.pop("columns"))
                text = json.dumps(batch)
        return text

    def rows(self, columns):
        return expand(columns)  # noqa: F821

    def log_message(self, *_):
        """Logs nothing."""

    @property
    def is_upload(self):
        return self.path == "/api/ingest"

    @property
    def key(self):
        return self.headers["Idempotency-Key"]


FAULTS = {}


def fault(*lines, status=None):
    """Declares a fault: a function that changes a class of servers, the lines that must fail, and an exit status of its own."""
    def declare(change):
        FAULTS[change.__name__] = (change, set(lines), status)
        return change
    return declare


def wrapped(method):
    """Declares a fault that replaces a method of the class; the replacement gets the old one."""
    def declare(function):
        def change(server):
            old = getattr(server, method)
            setattr(server, method, lambda self, *given: function(self, lambda *new: old(self, *(new or given)), *given))
        change.__name__ = function.__name__
        return change
    return declare


def refusal(name, pattern, status, *lines):
    """Declares a fault that answers some refusals with another status."""
    @wrapped("answered")
    def change(self, old, body):
        try:
            return old()
        except Refused as refused:
            raise Refused(status if re.search(pattern, str(refused.args)) else refused.args[0], refused.args[1]) from None
    change.__name__ = name
    fault(*lines)(change)


def stored(server, device, records):
    """For each record a row if the server has its id, else None."""
    with server.store.lock:
        return [server.store.database.execute("SELECT 1 FROM records WHERE device=? AND id=?", (device, record["id"])).fetchone()
                for record in records]


refusal("zstd_is_500", r"zstd is not known", 500, "zstd")
refusal("bad_gzip_is_200", r"too long or damaged.*$(?<!413)", 200, "cut-gzip")
refusal("bomb_is_500", r"^\(413, 'the gzip", 500, "inflated")
refusal("record_without_id_is_500", r"KeyError\(.id", 500, "bad-record")
refusal("wrong_type_is_500", r"is not a text", 500, "types")
refusal("deep_json_is_500", r"RecursionError", 500, "deep")
refusal("large_number_is_500", r"Exceeds the limit|Out of range", 500, "numbers")
refusal("half_surrogate_is_500", r"UnicodeEncodeError", 500, "texts")
refusal("no_json_is_200", r"JSONDecodeError", 200, "json")


@fault("id-again")
def duplicates_are_stored(server):
    server.store.add = lambda device, stream, records: len(records)


@fault(status=3)
def nothing_is_stored(server):
    """Its answers do not have duplicates, so that it cannot be seen."""
    @wrapped("answered")
    def silent(self, old, body):
        old()
        return {"columns": 1, "jobs": "t1"} if self.is_upload else old()
    server.store.add = lambda device, stream, records: len(json.dumps(records, allow_nan=False))
    silent(server)


@fault("verify", "enrol")
@wrapped("answered")
def secrets_are_quoted(self, old, body):
    answer = old()
    if self.path == "/api/device/verify" or self.headers["X-Device-Token"] in self.owners:
        raise Refused(500, {"token": "secret of a member", "known": [*self.codes, *self.tokens]})
    return answer


@fault("at-once")
def answer_before_the_disk(server):
    """Needs a --patience of 20, so that the checks' pauses are longer than this one, which is longer than their speed."""
    add = server.store.add

    def late(device, stream, records):
        json.dumps(records, allow_nan=False)  # raises an error for what cannot be stored
        known = stored(server, device, records)
        threading.Timer(1.2, add, (device, stream, records)).start()
        return known.count(None)
    server.store.add = late


@fault("mixed")
def a_known_record_makes_all_known(server):
    add = server.store.add

    def all_or_nothing(device, stream, records):
        known = stored(server, device, records)
        return 0 if any(known) else add(device, stream, records)
    server.store.add = all_or_nothing


@fault("better-dates")
def other_content_is_409(server):
    add, database = server.store.add, server.store.database

    def same(device, stream, records):
        with server.store.lock:
            for record in records:
                row = database.execute("SELECT record FROM records WHERE device=? AND id=?", (device, record["id"])).fetchone()
                if row and json.loads(row[0])["timestamp"] != record["timestamp"]:
                    raise Refused(409, "another record has this id")
        return add(device, stream, records)
    server.store.add = same


@fault("id-of-device")
def ids_of_all_devices_are_one(server):
    add = server.store.add
    server.store.add = lambda device, stream, records: add("", stream, records)


@fault("gzip")
@wrapped("inflated")
def gzip_is_ignored(self, old, body):
    if self.headers["Content-Encoding"] == "gzip":
        return body
    return old()


@fault("answer-json")
@wrapped("send_response")
def accepted_with_a_page(self, old, status, *_):
    if status != 200 or not self.is_upload:
        return old()
    old(201)
    self.send_header("Content-Type", "text/html")
    self.send_header("Content-Length", "13")
    self.end_headers()
    self.wfile.write(b"<html>Thanks!")
    raise ConnectionError  # ends the connection


@fault("answer-denies")
@wrapped("answered")
def accepted_with_an_error(self, old, body):
    return {**old(), "error": "disk full"} if self.is_upload else old()


@fault("fresh")
@wrapped("answered")
def new_records_are_called_duplicates(self, old, body):
    answer = old()
    return {**answer, "duplicates": answer["duplicates"] or 3} if self.is_upload else answer


@fault("token")
@wrapped("answered")
def any_token_uploads(self, old, body):
    if self.is_upload and self.headers["X-Device-Token"] not in self.tokens:
        del self.headers["X-Device-Token"]
        self.headers["X-Device-Token"] = "t"
    return old()


@fault("verify-token")
@wrapped("answered")
def any_token_is_verified(self, old, body):
    return {"ok": True, "max_body": example.MAX} if self.path == "/api/device/verify" else old()


@fault("verify-token")
@wrapped("do_POST")
def a_wrong_token_gets_a_page(self, old):
    if self.path == "/api/device/verify" and self.headers["X-Device-Token"] not in self.tokens:
        self.body()
        return self.reply(401, b"<html>Log in</html>", "text/html")
    return old()


@fault("verify")
@wrapped("answered")
def verify_is_500(self, old, body):
    answer = old()
    if self.path == "/api/device/verify":
        raise Refused(500, "out of order")
    return answer


@fault("max-body")
@wrapped("answered")
def max_body_is_not_reported(self, old, body):
    return {name: value for name, value in old().items() if name != "max_body"}


@fault("too-large")
@wrapped("answered")
def max_body_is_smaller_than_reported(self, old, body):
    answer = old()
    return {**answer, "max_body": example.MAX // 2} if "max_body" in answer else answer


@fault("64-mb")
@wrapped("body")
def a_huge_body_is_hung_up_on(self, old):
    if int(self.headers["Content-Length"]) > 32 << 20:
        raise ConnectionError
    return old()


@fault()
@wrapped("body")
def a_huge_body_is_read_slowly(self, old):
    """Is right: the link takes longer than any --patience, but does not stand still."""
    stream = self.rfile
    if int(self.headers["Content-Length"]) > 32 << 20:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.rfile = types.SimpleNamespace(read=lambda count: time.sleep(0.55) or stream.read(count))
    try:
        return old()
    finally:
        self.rfile = stream


@fault("key-again")
@wrapped("answered")
def a_repeated_key_is_409(self, old, body):
    if self.is_upload and self.key in self.keys:
        raise Refused(409, "this key was used")
    answer = old()
    self.keys.add(self.key)
    return answer


def is_left(server):
    """Locks the key of a raw connection, which names no program, and waits whether its client goes away without the answer."""
    if "User-Agent" in server.headers:
        return False
    server.keys.add(server.key)
    if select.select([server.connection], [], [], 1)[0] and not server.connection.recv(1, socket.MSG_PEEK):
        return True
    server.keys.discard(server.key)
    return False


@fault("parts")
@wrapped("answered")
def a_lost_answer_is_forgotten(self, old, body):
    if self.key in self.keys:
        return {"accepted": 0, "duplicates": len(json.loads(body)["data"])}
    if is_left(self):
        raise ConnectionError
    return old()


@fault("lost-answer")
@wrapped("answered")
def a_lost_answer_locks_its_key(self, old, body):
    if self.key in self.keys:
        raise Refused(500, "locked")
    is_left(self)
    return old()


@fault("cut")
def a_cut_body_uses_its_key(server):
    @wrapped("body")
    def remembered(self, old):
        try:
            return old()
        except ConnectionError:
            self.keys.add(self.key)
            raise

    @wrapped("answered")
    def known(self, old, body):
        return {"accepted": 0, "duplicates": 3} if self.is_upload and self.key in self.keys else old()
    remembered(server)
    known(server)


@fault("slow")
@wrapped("body")
def a_slow_body_is_refused(self, old):
    start = time.monotonic()
    body = old()
    if len(body) < 10_000 and time.monotonic() - start > 0.7:
        raise Refused(408, "too slow")
    return body


@fault("beside")
def one_request_at_a_time(server):
    lock = threading.Lock()

    @wrapped("do_POST")
    def alone(self, old):
        with lock:
            old()
    alone(server)


@fault("bad-record")
@wrapped("inflated")
def a_record_gets_an_id(self, old, body):
    text = old()
    return text.replace(b'{"timestamp":', b'{"id":"made","timestamp":') if isinstance(text, bytes) else text


@fault("rest")
@wrapped("answered")
def a_refused_batch_taints_its_records(self, old, body):
    try:
        ids = {record["id"] for record in json.loads(body)["data"] if isinstance(record, dict)}
    except (ValueError, TypeError, KeyError, RecursionError):
        ids = set()
    if ids & self.keys:
        raise Refused(422, "refused before")
    try:
        return old()
    except Refused:
        self.keys.update(ids)
        raise


@fault("order")
@wrapped("answered")
def an_earlier_sequence_is_refused(self, old, body):
    found = re.search(rb'"first_sequence":(\d+)', body) if self.is_upload else None
    first = int(found[1]) if found else 1
    if 1 < first < max(self.sequences, default=0):
        raise Refused(422, "out of order")
    self.sequences.append(first)
    return old()


@fault("columns")
@wrapped("rows")
def columns_are_refused(self, old, columns):
    raise Refused(422, "data is missing")


@fault("columns")
@wrapped("rows")
def steps_of_ids_are_ignored(self, old, columns):
    rows = old()
    return [{**row, "id": rows[0]["id"]} for row in rows]


@fault("columns-refused")
@wrapped("rows")
def wrong_columns_are_accepted(self, old, columns):
    try:
        return old()
    except ValueError:
        return [{"id": "unknown"}]


@fault("jobs")
@wrapped("do_GET")
def jobs_are_a_page(self, old):
    self.reply(200, b"<html></html>", "text/html")


@fault("jobs")
@wrapped("jobs")
def a_job_has_no_id(self, old):
    return {"tag": "t1", "jobs": [{"kind": "report"}]}


@fault("jobs")
@wrapped("jobs")
def jobs_are_too_many(self, old):
    return {"tag": "t1", "jobs": [{"id": f"j{n}", "kind": "sync"} for n in range(65)]}


@fault("jobs-token")
@wrapped("do_GET")
def jobs_for_anybody(self, old):
    self.reply(200, self.jobs())


@fault("accept-encoding")
@wrapped("send_header")
def codings_are_not_named(self, old, name, value):
    if name != "Accept-Encoding":
        old()


@fault("code")
@wrapped("enrol")
def an_unknown_code_is_408(self, old, asked):
    if asked["code"] not in self.codes:
        raise Refused(408, "try again")
    return old()


@fault("code-once")
@wrapped("enrol")
def a_code_is_good_for_ever(self, old, asked):
    if asked["code"] in self.codes:
        self.codes[asked["code"]] = ""
    return old()


@fault("enrol-again")
@wrapped("enrol")
def a_repeated_enrolment_is_refused(self, old, asked):
    if self.codes.get(asked["code"]):
        raise Refused(403, "this code was used")
    return old()


@fault("enrol")
@wrapped("enrol")
def the_token_is_not_stored(self, old, asked):
    answer = old()
    self.tokens.discard(asked["token"])
    return answer


@fault("own-device")
@wrapped("enrol")
def a_token_is_good_for_all_devices(self, old, asked):
    answer = old()
    self.owners.clear()
    return answer


@fault("deep")
@wrapped("answered")
def deep_json_hangs(self, old, body):
    if b"[[[[" in body:
        time.sleep(60)
    return old()


@fault("numbers")
@wrapped("answered")
def an_answer_never_ends(self, old, body):
    if b'"number":1e999' in body:
        for _ in range(60):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(1)
    return old()


@fault("serves")
@wrapped("answered")
def hostile_text_ends_it(self, old, body):
    if self.keys:
        raise Refused(503, "crashed")
    if b"%s%n\",\"timestamp" in body:
        self.keys.add("crashed")
    return old()


def start(name=None, port=0, **more):
    """Starts a server with a fault, or a good one, and with other tokens, codes or owners; returns it."""
    state = {"tokens": {"t"}, "codes": {"c": ""}, "owners": {}, "keys": set(), "sequences": [],
             "store": example.Store(":memory:"), **more}
    handler = type("Handler", (Server,), state)
    if name:
        FAULTS[name][0](handler)
    server = example.http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    if sys.argv[1:2] != ["--fault"]:
        print("\n".join(sorted(FAULTS)))
        sys.exit(sys.argv[1:] != ["--list"])
    print(start(sys.argv[2], int((sys.argv[3:] or ["0"])[0])).server_port, flush=True)
    threading.Event().wait()
