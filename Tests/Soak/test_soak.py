"""The judges of a soak: what they must call a growth, a loss, a double, and what not."""
import math
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "Torture"))

from arrived import Sum  # noqa: E402
from records import Seeds, sqlite3  # noqa: E402
from samples import Series  # noqa: E402
from verdict import DAY, Verdict  # noqa: E402

HOUR = 3600


def judged(value, days=20, lives=(0,), noise=0.5, seed=1):
    """The verdict on `value(day of this life, chance)` each hour; `lives`: the days on which one begins."""
    chance = random.Random(seed)
    series = Series("memory", "MB", noise, "gateway")
    for hour in range(int(days * 24)):
        life = max(number for number, begins in enumerate(lives) if begins <= hour / 24)
        series.points.append((hour * HOUR, life, value(hour / 24 - lives[life], chance)))
    return Verdict(series, DAY)


class VerdictTests(unittest.TestCase):
    def test_noise_is_flat(self):
        for seed in range(40):
            self.assertFalse(judged(lambda day, chance: 8 + chance.gauss(0, 0.3), seed=seed).grows, seed)

    def test_a_day_has_a_shape(self):
        self.assertFalse(judged(lambda day, chance: 8 + 2 * math.sin(2 * math.pi * day)).grows)

    def test_outages_are_no_growth(self):
        def pending(day, chance):
            return 80_000 * (day % 3) if day % 3 < 0.2 else chance.uniform(0, 3000)
        self.assertFalse(judged(pending, noise=5000).grows)

    def test_a_warm_up_is_no_growth(self):
        self.assertFalse(judged(lambda day, chance: 8 - 4 * math.exp(-day * 6) + chance.gauss(0, 0.1)).grows)

    def test_a_file_as_long_as_the_longest_outage_made_it_is_no_growth(self):
        self.assertFalse(judged(lambda day, chance: 10 if day < 2 else 14 if day < 6 else 16).grows)

    def test_a_small_leak_is_found(self):
        verdict = judged(lambda day, chance: 8 + 0.1 * day + chance.gauss(0, 0.2))
        self.assertTrue(verdict.grows)
        self.assertAlmostEqual(verdict.slope, 0.1, delta=0.02)

    def test_a_leak_is_found_though_each_start_ends_it(self):
        verdict = judged(lambda day, chance: 8 + 0.1 * day + chance.gauss(0, 0.1), lives=(0, 4, 9, 15))
        self.assertTrue(verdict.grows)

    def test_a_start_that_needs_more_is_no_leak(self):
        verdict = judged(lambda day, chance: 8 + chance.gauss(0, 0.1), lives=(0, 5, 10, 15))
        self.assertFalse(verdict.grows)

    def test_a_descriptor_a_day_is_found(self):
        self.assertTrue(judged(lambda day, chance: 51 + int(day) + chance.randrange(2), noise=1).grows)

    def test_less_than_a_day_says_nothing(self):
        verdict = judged(lambda day, chance: 8 + 3 * day, days=1.5)
        self.assertFalse(verdict.grows)
        self.assertEqual(verdict.words, "too short to tell")


TABLES = """
CREATE TABLE sequences(database INTEGER, stream INTEGER, next INTEGER, uploaded INTEGER, evicted INTEGER);
CREATE TABLE batches(id INTEGER PRIMARY KEY, database INTEGER, stream INTEGER, first INTEGER, last INTEGER, state INTEGER);
CREATE TABLE losses(stream INTEGER, kind TEXT, records INTEGER);
CREATE TABLE id_seeds(stream INTEGER, first INTEGER, seed BLOB);
CREATE TABLE location(id INTEGER PRIMARY KEY); CREATE TABLE chunks(id INTEGER PRIMARY KEY);
CREATE TABLE sightings(id INTEGER PRIMARY KEY); CREATE TABLE events(id INTEGER PRIMARY KEY);
CREATE TABLE surveys(id INTEGER PRIMARY KEY);
"""


class SumTests(unittest.TestCase):
    """Ten thousand sightings of two starts of the program; three are reported as lost."""

    def summed(self, change=lambda lines: lines, told=3):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            connection = sqlite3.connect(folder / "queue.sqlite")
            connection.executescript(TABLES)
            for stream in range(1, 6):
                next, lost = (10_001, told) if stream == 3 else (1, 0)
                connection.execute("INSERT INTO sequences VALUES(0,?,?,?,?)", (stream, next, next - 1 - lost, lost))
            connection.execute("INSERT INTO losses VALUES(3,'evicted',?)", (told,))
            for first, byte in ((1, b"\x5a"), (4001, b"\xa5")):
                connection.execute("INSERT INTO id_seeds VALUES(3,?,?)", (first, byte * 16))
            connection.commit()
            seeds = Seeds(connection)
            connection.close()
            lines = ['{"id":"%s","rssi":-60}\n' % seeds.id(3, row) for row in range(1, 10_001) if row not in (5, 4000, 4001)]
            there = folder / "received/stream=linux_bluez_beacons/date=2026-11-23/device=one"
            there.mkdir(parents=True)
            (there / "records.ndjson").write_text("".join(change(lines)))
            return Sum(folder / "queue.sqlite", folder / "received")

    def test_what_is_told_as_lost_may_be_missing(self):
        sum = self.summed()
        self.assertEqual((sum.problems, sum.accepted, sum.missing, sum.told), ([], 10_000, 3, 3))

    def test_one_that_is_missing_is_found(self):
        self.assertIn("4 of 10000 are not at the receiver", " ".join(self.summed(lambda lines: lines[:-1]).problems))

    def test_one_that_is_there_twice_is_found(self):
        self.assertIn("1 records are at the receiver twice", self.summed(lambda lines: lines + lines[:1]).problems)

    def test_one_of_somebody_else_is_found(self):
        strange = ['{"id":"00000000-0000-8000-8000-000000000000","rssi":1}\n']
        self.assertIn("1 records arrived that the queue never had", self.summed(lambda lines: lines + strange).problems)

    def test_half_a_line_is_found(self):
        self.assertIn("1 lines at the receiver are no records", self.summed(lambda lines: lines + [lines[0][:20]]).problems)


if __name__ == "__main__":
    unittest.main()
