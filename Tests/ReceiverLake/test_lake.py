"""`deploy/lake` on what the real receiver wrote and on objects as gateways put them into a bucket.

Needs DuckDB (deploy/test installs it); Spark is left out where pyspark or Java are missing, the receiver where it is not built.
"""
import gzip
import http.client
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "deploy/parts/lake")]

import site_day as site
import duckdb

DAY, NEXT = "2026-11-20", "2026-11-21"
FIX = '{"id":"%s","timestamp":"%sT04:30:07.123Z","latitude":46.46,"longitude":6.84,"fix":"3d","clock":"synced"}'


def built(name):
    paths = [ROOT / ".build" / kind / name for kind in ("debug", "release")]
    return next((str(path) for path in paths if path.exists()), None)


def has_spark():
    return importlib.util.find_spec("pyspark") is not None and shutil.which("java", path=os.path.join(
        os.environ.get("JAVA_HOME", "/usr"), "bin")) is not None


class LakeTests(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="waypost-lake-test."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data, self.lake = self.folder / "data", self.folder / "lake"

    def run_lake(self, *arguments, status=0):
        done = subprocess.run([sys.executable, "-B", str(ROOT / "deploy/parts/lake/main.py"), *map(str, arguments)],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr[-3000:])
        return done.stdout + done.stderr

    def convert(self, status=0):
        return self.run_lake("convert", "--from", self.data, "--to", self.lake, status=status)

    def check(self, *engines, status=0):
        return self.run_lake("check", "--from", self.data, "--lake", self.lake,
                             *(f"--engine={name}" for name in engines or ["duckdb"]), status=status)

    def write(self, name, lines, end="\n", stream="linux_gpsd_location", date=DAY, device="pi-1"):
        path = self.data / f"stream={stream}/date={date}/device={device}/{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(line + "\n" for line in lines)[:-1].encode() + end.encode() if lines else b""
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    def parquet(self, query, stream="linux_gpsd_location"):
        return duckdb.sql(query.format(f"read_parquet('{self.lake}/stream={stream}/*/*.parquet')")).fetchall()

    def start_store(self):
        """An object store, what it said of itself, and a file with its keys; the lake reads from it."""
        store = subprocess.Popen([sys.executable, str(ROOT / "Tests/Peers/store.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(store.communicate)
        access = json.loads(store.stdout.readline())
        keys = self.folder / "s3"
        keys.touch(0o600)
        keys.write_text(f"{access['id']}:{access['secret']}\n")
        os.environ.update(AWS_ENDPOINT_URL=access["endpoint"], AWS_ACCESS_KEY_ID=access["id"],
                          AWS_SECRET_ACCESS_KEY=access["secret"], AWS_DEFAULT_REGION="us-east-1")
        return store, access, keys

    def start_receiver(self, *arguments):
        """A receiver of the test's own; a connection to it."""
        process = subprocess.Popen([built("waypost-receiver"), "--listen", "127.0.0.1:0", *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = next(line for line in process.stdout if "listening on" in line)
        connection = http.client.HTTPConnection("127.0.0.1", int(line.split("127.0.0.1:")[1].split(",")[0].split()[0]))
        self.addCleanup(connection.close)
        return connection

    @unittest.skipUnless(built("waypost-receiver"), "waypost-receiver is not built")
    def test_receiver_asItWritesThem(self):
        """All streams through the real receiver, once more under another key, and late; counted beside the lake."""
        connection = self.start_receiver("--data", self.data)
        weather = ['{"id":"w-%d","timestamp":"%sT01:02:%02d.000Z","clock":"synced","temperature_c":21.50,"raining":true,"where":"lake"}'
                   % (number, DAY, number) for number in range(20)]
        for number in range(2):
            device = site.Device(number, DAY)
            for stream, lines in {**device.sync(0), "weather": weather if number else []}.items():
                site.post(connection, device.name, stream, f"{stream}-1", lines)
                site.post(connection, device.name, stream, f"{stream}-2", lines)
            # A minute before midnight of the next day: late, and of two days.
            late = list(device.sightings(86400 - 60, 1, 120))
            if number == 0:
                self.convert()
            site.post(connection, device.name, site.BEACONS, "late", late)
        self.assertIn("linux_bluez_beacons", self.convert())
        told = self.check(*(("duckdb", "spark") if has_spark() else ("duckdb",)))
        self.assertIn("all agree", told)
        expected = {(site.BEACONS, DAY): 2 * 3060, (site.BEACONS, NEXT): 2 * 60, (site.PLACES, DAY): 60, (site.SOUND, DAY): 22,
                    ("weather", DAY): 20}
        seen = {tuple(line.split()[:2]): [int(cell.replace(",", "")) for cell in line.split()[2:]]
                for line in told.splitlines() if "2026-" in line}
        self.assertEqual({key: set(cells) for key, cells in seen.items()}, {key: {count} for key, count in expected.items()})
        self.assertEqual(self.convert().strip(), "nothing has changed")
        self.assertEqual(self.parquet("SELECT DISTINCT capture_device, count(record) FROM {} GROUP BY 1", site.SOUND), [("hw:1", 0)])
        self.assertEqual(self.parquet("SELECT DISTINCT numbers['temperature_c'], numbers['raining'], record LIKE '%21.50%' FROM {}",
                                      "weather"), [(21.5, 1.0, True)])
        if not has_spark():
            self.skipTest("Spark is left out: pyspark or Java are missing; deploy/lake --check-self has both")

    @unittest.skipUnless(built("waypost-receiver"), "waypost-receiver is not built")
    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "pyarrow is missing")
    def test_everyStream_isAHiveDatasetAsItStands(self):
        """Arrow and DuckDB read the folder of each stream; `device` is the partition's, and no file is foreign."""
        import pyarrow.dataset

        connection = self.start_receiver("--data", self.data)
        own = '{"id":"%s-%d","timestamp":"%sT01:02:03.000Z","clock":"synced",%s}'
        members = {
            "weather": '"temperature_c":21.5',
            "waypost_events": '"kind":"gap","source":"audio","detail":{"records":3}',
            "waypost_health": '"state":"degraded","reasons":["storage is low"],"pending":{"weather":3},"sources":{"audio":"loaded"}',
        }
        devices = [site.Device(number, DAY) for number in range(2)]
        sent = {}
        for device in devices:
            batches = device.sync(0) | {stream: [own % (stream, number, DAY, member) for number in range(3)]
                                        for stream, member in members.items()}
            for stream, lines in batches.items():
                site.post(connection, device.name, stream, stream, lines)
                sent[stream] = sent.get(stream, 0) + len(lines)
        self.assertEqual({path.name for path in self.data.glob("stream=*/**/*") if path.is_file()}, {"records.ndjson"})
        names = {device.name for device in devices}
        for stream, records in sent.items():
            folder = self.data / f"stream={stream}"
            table = pyarrow.dataset.dataset(folder, format="json", partitioning="hive").to_table()
            self.assertEqual((stream, table.num_rows), (stream, records))
            self.assertEqual(set(table["device"].to_pylist()), names)
            self.assertEqual(duckdb.sql(f"""
                SELECT count(*), count(DISTINCT device), count(DISTINCT date)
                FROM read_ndjson('{folder}/**/*', hive_partitioning=true)""").fetchall(), [(records, 2, 1)])
        sound = pyarrow.dataset.dataset(self.data / f"stream={site.SOUND}", format="json", partitioning="hive").to_table()
        self.assertEqual(set(sound["capture_device"].to_pylist()), {"hw:1"})
        for row in sound.select(["device", "audio_file"]).to_pylist():
            self.assertEqual((self.data / "audio" / site.SOUND / DAY / row["device"] / row["audio_file"]).read_bytes(), b"OggS")

    @unittest.skipUnless(built("waypost") and importlib.util.find_spec("moto"), "waypost is not built, or moto is missing")
    def test_bucket_asTheGatewayWritesIt(self):
        """The gateway replays a capture into an object store, and the lake is made from there."""
        store, access, keys = self.start_store()
        configuration = self.folder / "waypost.toml"
        configuration.write_text(f"""
            device_id = "pi-1"
            state_directory = "{self.folder}/state"
            runtime_directory = "{self.folder}/run"
            upload.destination = "s3"
            upload.bucket_url = "{access['endpoint']}/{access['bucket']}"
            upload.credentials_file = "{keys}"
            upload.interval = "500ms"
            beacons.source = "btsnoop:{ROOT}/Tests/Fixtures/beacons/capture.btsnoop"
            beacons.replay_speed = 0
            location.enabled = false
            audio.enabled = false
            """)
        (self.folder / "run").mkdir(mode=0o700)
        gateway = subprocess.Popen([built("waypost"), "run", "--config", str(configuration)], stderr=subprocess.DEVNULL)
        self.addCleanup(gateway.wait)
        self.addCleanup(gateway.kill)
        for line in store.stdout:
            if "linux_bluez_beacons" in line:
                break
        subprocess.run([built("waypost"), "sync", "--wait", "60", "--config", str(configuration)], check=True, stdout=subprocess.DEVNULL)
        status = subprocess.run([built("waypost"), "status", "--json", "--config", str(configuration)], capture_output=True, text=True)
        gateway.terminate()
        gateway.wait()
        sent = json.loads(status.stdout)["streams"]["linux_bluez_beacons"]["uploaded"]
        self.data = f"s3://{access['bucket']}"
        self.convert()
        self.assertEqual(self.parquet("SELECT count(*), count(DISTINCT id) FROM {}", "linux_bluez_beacons"), [(sent, sent)])
        self.assertIn("all agree", self.check())

    @unittest.skipUnless(built("waypost-receiver") and importlib.util.find_spec("moto"), "waypost-receiver is not built, or moto is missing")
    def test_bucket_asReceiversBeforeItWriteIt(self):
        """A batch at one receiver, again at the other, and its records under another key: each record is once in the lake."""
        store, access, keys = self.start_store()
        self.data = f"s3://{access['bucket']}/site"
        device = site.Device(0, DAY)
        batches = {**device.sync(0), site.BEACONS: list(device.sightings(86400 - 60, 1, 120))}
        for number in range(2):
            connection = self.start_receiver("--data", self.data, "--bucket-url", f"{access['endpoint']}/{access['bucket']}",
                                             "--credentials-file", keys)
            for stream, lines in batches.items():
                site.post(connection, device.name, stream, f"{stream}-1", lines)
        site.post(connection, device.name, site.BEACONS, "again", batches[site.BEACONS])
        self.convert()
        self.assertEqual(self.parquet("SELECT date::VARCHAR, count(*), count(DISTINCT id) FROM {} GROUP BY 1 ORDER BY 1", site.BEACONS),
                         [(DAY, 60, 60), (NEXT, 60, 60)])
        self.assertEqual(self.parquet("SELECT count(*), count(DISTINCT audio_file), any_value(capture_device), count(record) FROM {}",
                                      site.SOUND), [(11, 11, "hw:1", 0)])
        self.assertIn("all agree", self.check())

    def test_overlappingObjects_brokenLines_emptyOnes_eachRecordOnceAndTold(self):
        self.write("a.ndjson.gz", [FIX % (f"id-{n}", DAY) for n in range(10)])
        self.write("b.ndjson.gz", [FIX % (f"id-{n}", DAY) for n in range(5, 15)] + ['{"id":"cut","timest', "[1]", '{"id":"no-time"}'])
        self.write("c.ndjson.gz", [])
        self.write("d.ndjson.gz", [FIX % ("id-3", DAY)], device="pi-2")
        self.write("empty.ndjson", [], stream="weather")
        told = self.convert(status=1)
        self.assertIn("16 records, 3 broken lines, 5 read twice", told)
        self.assertIn("stream=linux_gpsd_location/date=2026-11-20/device=pi-1/b.ndjson.gz: 3 broken lines", told)
        self.assertEqual(self.parquet("SELECT count(*), count(DISTINCT (device, id)), count(record) FROM {}"), [(16, 16, 0)])
        self.assertIn("3 broken", self.check())

    def test_truncatedObject_isToldAndTheOthersGoIn_andItIsTriedAgain(self):
        self.write("a.ndjson.gz", [FIX % ("a", DAY)])
        whole = self.write("b.ndjson.gz", [FIX % (f"b-{n}", DAY) for n in range(1000)])
        data = whole.read_bytes()
        whole.write_bytes(data[:len(data) // 2])
        self.assertIn("b.ndjson.gz cannot be read", self.convert(status=1))
        self.assertEqual(self.parquet("SELECT count(*) FROM {}"), [(1,)])
        self.assertIn("1 files unreadable", self.convert(status=1))
        whole.write_bytes(data)
        self.assertIn("1,001 records", self.convert())

    def test_lineThatIsBeingWritten_isNotBroken(self):
        self.write("records.ndjson", [FIX % ("a", DAY), (FIX % ("b", DAY))[:40]], end="")
        self.assertIn("1 records\n", self.convert())

    def test_archivedFiles_stayInTheLake(self):
        gone = self.write("a.ndjson.gz", [FIX % ("a", DAY)])
        self.write("b.ndjson.gz", [FIX % ("b", DAY)], device="pi-2")
        self.convert()
        gone.unlink()
        self.write("c.ndjson.gz", [FIX % ("c", DAY)], device="pi-2")
        self.assertIn("3 records, 1 kept", self.convert())
        self.assertIn("1 kept", self.check())

    def test_typesStay_whateverADayHolds_andNewMembersAreKept(self):
        whole = '{"id":"w","timestamp":"%sT01:00:00Z","latitude":46,"longitude":6,"satellites":5,"clock":"synced"}'
        odd = '{"id":"o","timestamp":"%sT02:00:00+02:00","latitude":"north","satellites":5.5,"heading":12.50}'
        self.write("a.ndjson", [whole % DAY])
        self.write("a.ndjson", [odd % NEXT], date=NEXT)
        self.convert()
        self.assertEqual(self.parquet("SELECT typeof(latitude), typeof(satellites), latitude, satellites, timestamp::VARCHAR, record "
                                      "FROM {} ORDER BY date"), [
            ("DOUBLE", "INTEGER", 46.0, 5, f"{DAY} 01:00:00", None),
            ("DOUBLE", "INTEGER", None, None, f"{NEXT} 00:00:00", odd % NEXT)])

    def test_partition_isSorted_andSaysItsBounds(self):
        self.write("a.ndjson", [FIX % (f"b{n}", DAY) for n in (3, 1, 2)], device="pi-2")
        self.write("a.ndjson", [FIX % ("a", DAY)], device="pi-1")
        self.convert()
        self.assertEqual(self.parquet("SELECT id FROM {}"), [("a",), ("b1",), ("b2",), ("b3",)])
        file = next(self.lake.glob("stream=*/date=*/*.parquet"))
        bounds = dict(duckdb.sql(f"SELECT path_in_schema, stats_min_value FROM parquet_metadata('{file}')").fetchall())
        self.assertEqual((bounds["device"], bounds["timestamp"][:10]), ("pi-1", DAY))

    def test_filesOfAnOlderVersion_haveNoSuchColumnAndAreRead(self):
        self.write("a.ndjson", [FIX % ("a", DAY)])
        self.convert()
        file = next(self.lake.glob("stream=*/date=*/*.parquet"))
        duckdb.sql(f"COPY (SELECT * EXCLUDE (satellites) FROM read_parquet('{file}', hive_partitioning=false)) TO '{file}.new' (FORMAT parquet)")
        os.replace(f"{file}.new", file)
        told = self.run_lake("query", "SELECT id, satellites FROM location", "--lake", self.lake, "--csv")
        self.assertEqual(told.split(), ["id,satellites", "a,"])

    def test_check_tellsWhatDiffers(self):
        self.write("a.ndjson", [FIX % ("a", DAY)])
        self.convert()
        self.write("a.ndjson", [FIX % ("a", DAY), FIX % ("b", DAY)])
        self.assertIn("the files differ: convert again", self.check(status=1))

    def test_idOfAnotherDevice_isAnotherRecord_whateverSlicesTheyFallInto(self):
        """A device that uses ids of others hides none of their records; its own are there once."""
        import convert
        import sources
        shared = FIX % ("0d31a3b0-aaaa-8e49-91c4-010000000001", DAY)
        for number in range(4):
            self.write("a.ndjson", [FIX % (f"own-{number}", DAY), shared, shared], device=f"pi-{number}")
        for size in (convert.SLICE, 1):
            before, convert.SLICE = convert.SLICE, size
            self.addCleanup(setattr, convert, "SLICE", before)
            shutil.rmtree(self.lake, ignore_errors=True)
            (_, _, counts, _), = convert.Converter(sources.Folder(self.data), self.lake, "200MB", 1).run()
            self.assertEqual((counts.records, counts.repeated), (8, 4))
            self.assertEqual(self.parquet("SELECT count(*), count(DISTINCT (device, id)) FROM {}"), [(8, 8)])
            self.assertIn("all agree", self.check())

    def test_idOfAnotherDevice_takesNothingFromWhatIsKept(self):
        """The file of one is archived; another device's record with its id stays another record."""
        gone = self.write("a.ndjson", [FIX % ("x", DAY)])
        self.convert()
        gone.unlink()
        self.write("a.ndjson", [FIX % ("x", DAY)], device="pi-2")
        self.assertIn("2 records, 1 kept", self.convert())

    @unittest.skipUnless(built("waypost-receiver"), "waypost-receiver is not built")
    def test_recordsThatBreakDuckDB_areRefusedByTheReceiver(self):
        """Each of these lines alone, stored by one device, made every query of the stream fail, or lose its columns."""
        deep = "[" * 500 + "]" * 500
        lines = ['"v":1,"v":2', '"v":1,"\\u0076":2', '"o":{"v":1,"V":2}', f'"o":{deep}', '"":1']
        connection = self.start_receiver("--data", self.data)
        good = '{"id":"good","timestamp":"%sT01:00:00Z","v":1,"o":{"v":1}}' % DAY
        site.post(connection, "pi-1", "weather", "good", [good])
        query = f"SELECT id, v FROM read_ndjson_auto('{self.data}/stream=weather/**/*.ndjson', hive_partitioning=true)"
        for number, members in enumerate(lines):
            line = '{"id":"bad","timestamp":"%sT01:00:00Z",%s}' % (DAY, members)
            with self.assertRaisesRegex(AssertionError, "record 0: "):
                site.post(connection, "pi-2", "weather", f"bad-{number}", [line])
            self.assertEqual(duckdb.sql(query).fetchall(), [("good", 1)])
            # As it would have been.
            broken = self.write("records.ndjson", [line], stream="weather", device="pi-2")
            with self.assertRaises(duckdb.Error):
                duckdb.sql(query).fetchall()
            broken.unlink()


if __name__ == "__main__":
    unittest.main()
