"""The judge of a measurement (Peers/figures.py): a good one passes, and each of these is noticed."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Peers"))

import figures

SIZES = {"median": 5_000_000, "p95": 5_000_000, "max": 5_000_000}
GOOD = {
    "model": "a board", "kernel": "6.12", "architecture": "aarch64", "program": "aarch64", "version": "0.1.0",
    "installed_as": "card image", "began_at": "2026-11-30T07:12:09Z", "seconds": 60.4, "samples": 7, "pss_bytes": SIZES,
    "private_bytes": SIZES, "resident_bytes": SIZES, "cpu_percent": 3.1, "board_busy_percent": 9.5, "wakeups_per_s": 6.51,
    "threads": {"control": 0.6, "queue": 5.91}, "own_written_bytes": 0, "lost": {}, "temperature_c": None,
    "unknown": {"temperature_c": "no sensor"}}


class FiguresTests(unittest.TestCase):
    def problems(self, *known, values=None, **changes):
        return figures.problems(json.dumps(GOOD | changes), known, **(values or {}))

    def test_good_measurement(self):
        self.assertEqual(self.problems("lost", values={"model": "a board"}), [])

    def test_each_fault_is_named(self):
        for word, problems in (
                ("temperature_c is unknown: no sensor", self.problems("temperature_c")),
                ("temperature_c: unknown without", self.problems(unknown={})),
                ("or known with one", self.problems(temperature_c=1)),
                ("model is 'a board'", self.problems(values={"model": "another"})),
                ("memory", self.problems(private_bytes=SIZES | {"max": 0})),
                ("memory", self.problems(pss_bytes=SIZES | {"max": 6_000_000})),
                ("of a core", self.problems(cpu_percent=0)), ("busy", self.problems(board_busy_percent=0)),
                ("threads are missing", self.problems(threads={"queue": 6.51})),
                ("wake-ups", self.problems(wakeups_per_s=0)), ("samples", self.problems(samples=2))):
            self.assertEqual([word in problem for problem in problems], [True], (word, problems))


if __name__ == "__main__":
    unittest.main()
