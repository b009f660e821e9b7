"""A server for Waypost's gateways, of Python's standard library: server.py TOKEN_FILE DATABASE [PORT]."""
import contextlib, http.server, json, sqlite3, sys, threading, zlib

MAX = 16 << 20  # bytes of a body, before and after compression
class Refused(Exception): """An answer other than 200: its status and the reason."""
class Store:
    """The records in SQLite, each once per device and id."""
    def __init__(self, path):
        self.lock, self.database = threading.Lock(), sqlite3.connect(path, check_same_thread=False)
        self.database.execute("CREATE TABLE IF NOT EXISTS records(device, id, stream, record, PRIMARY KEY(device, id))")

    def add(self, device, stream, records):
        """Stores the records that are new, and returns how many they are: these are then on the disk."""
        rows = [(device, record["id"], stream, json.dumps(record, allow_nan=False)) for record in records]
        with self.lock, self.database:  # one transaction: all of a batch or nothing
            return self.database.executemany("INSERT OR IGNORE INTO records VALUES (?,?,?,?)", rows).rowcount

class Ingest(http.server.BaseHTTPRequestHandler):
    protocol_version, timeout, store, tokens = "HTTP/1.1", 60, None, set()

    def handle(self):
        with contextlib.suppress(ConnectionError):  # the gateway is gone, and will come again
            super().handle()

    def do_POST(self):
        try:
            status, answer = 200, self.answered(self.body())
        except Refused as refused:
            status, answer = refused.args[0], {"error": refused.args[1]}
        self.send_response(status)
        body = json.dumps(answer).encode()
        for header in ("Content-Type: application/json", f"Content-Length: {len(body)}", "Accept-Encoding: gzip"):
            self.send_header(*header.split(": "))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        """Returns the body; one that is too long is read to its end, so that the answer gets through."""
        if "Content-Length" not in self.headers:  # in chunks: the data is not to blame, and its end is not known
            self.close_connection = True
            raise Refused(411, "Content-Length is missing")
        left, body = (length := int(self.headers["Content-Length"])), b""
        while left > 0 and (piece := self.rfile.read(min(left, MAX))):
            left, body = left - len(piece), piece
        if left > 0:
            raise ConnectionError("the body ends early")
        if length > MAX:
            raise Refused(413, f"the body is longer than {MAX} bytes")
        return body

    def inflated(self, body):
        coding = self.headers["Content-Encoding"] or "identity"
        if coding not in ("gzip", "identity"):
            raise Refused(415, f"{coding} is not known")
        stream = zlib.decompressobj(31)
        with contextlib.suppress(zlib.error):
            body = stream.decompress(body, MAX) if coding == "gzip" else body
        if coding == "gzip" and not stream.eof:
            raise Refused(413 if stream.unconsumed_tail else 400, "the gzip data is too long or damaged")
        return body

    def answered(self, body):
        if self.headers["X-Device-Token"] not in self.tokens:
            raise Refused(401, "the token is not known")
        if self.path == "/api/device/verify":
            return {"ok": True, "max_body": MAX}
        if self.path != "/api/ingest":
            raise Refused(404, "nothing is here")
        try:
            batch = json.loads(self.inflated(body))
            device, stream, records = (batch[name] for name in ("device_id", "stream_name", "data"))
            if {type(text) for text in [device, stream, *(record["id"] for record in records)]} != {str}:
                raise TypeError("a name or an id is not a text")
            new = self.store.add(device, stream, records)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Refused(422, f"not a batch: {error!r}") from None
        return {"accepted": new, "duplicates": len(records) - new, "rejected": 0}
if __name__ == "__main__":
    Ingest.tokens, Ingest.store = set(open(sys.argv[1]).read().split()), Store(sys.argv[2])
    http.server.ThreadingHTTPServer(("127.0.0.1", int((sys.argv[3:] or ["8080"])[0])), Ingest).serve_forever()
