"""What deploy/report keeps of each program's output."""
import json
import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Torture"), str(HERE.parent / "Bench")]
import records  # noqa: E402
import report as torture  # noqa: E402
import steps  # noqa: E402
import tables  # noqa: E402


class StepTests(unittest.TestCase):
    def test_commands_are_there(self):
        for step in steps.steps(10, ["ids-of-the-database"]):
            self.assertTrue((steps.ROOT / step.command[0]).exists(), step.command)

    def test_table_of_faults_is_kept_whole(self):
        lines = ["building", "| fault | property |", "| --- | --- |", "| a key is drawn again | RETRY |", "1 of 2 faults …"]
        self.assertEqual(steps.markdown(lines)["rows"], [["a key is drawn again", "RETRY"]])

    def test_torture_rows_keep_failures(self):
        rows = [torture.Row("kill -9"), torture.Row("disk full")]
        rows[0].tried, rows[0].committed = 12, 3400
        lines = ["  10 s  kill -9: 3 tried, 12 records", *torture.table(rows), "torture: FAILED (seed 1)"]
        kept = steps.torture(lines)
        self.assertEqual(kept["rows"], [["kill -9", "12", "3400", "0", "0", "0", "ok"], ["disk full", *["0"] * 5, "FAILED"]])
        self.assertEqual(kept["result"], "torture: FAILED (seed 1)")

    def test_torture_knows_each_stream(self):
        declared = {}
        for path in (steps.ROOT / "Sources/Records").glob("*.swift"):
            declared |= {int(number): name for number, name in re.findall(r'Stream\((\d+), "(\w+)"', path.read_text())}
        self.assertEqual(sorted(declared), sorted(records.TABLES))

    def test_peers_that_did_not_run_are_named(self):
        found = {"bench": "beside", "peers": [
            {"title": "rsyslog", "version": "8", "promise": "an answer", "kills": {"lost": 1, "doubled": 2, "promised": 3000},
             "cuts": {"lost": 0, "doubled": 0, "promised": 10}}, {"name": "telegraf", "missing": "not in Debian"}]}
        rows = steps.peers(["some progress", json.dumps(found)])["rows"]
        self.assertEqual(rows[0][2:], ["1, 2 of 3,000", "0, 0 of 10"])
        self.assertEqual(rows[1][1], "not tried: not in Debian")

    def test_failed_step_is_shown_as_failed(self):
        one = {"shows": "a", "command": "b", "commit": "c", "date": "d", "minutes": 1.2, "status": 1, "result": "e"}
        self.assertIn("**failed**: e", tables.runs({"model": one}))

    def test_silent_program_is_no_result(self):
        self.assertEqual(steps.last([])["result"], "nothing was printed")


if __name__ == "__main__":
    unittest.main()
