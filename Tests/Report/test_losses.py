"""Checks losses.json: the losses found in Waypost, how each was found, and what holds it now.

kind:  lost (never arrived, or arrived with wrong content), doubled, misdated, unreported (a loss
       that was hidden or counted wrongly), leaked (somebody got a secret or data of others)
found: simulator (seed, if known), reading (of the code), test (an automatic one, or a trial of the
       programs), torture (deploy/torture), field (a recording or report of the field, tried on
       Waypost), model (Spin), fuzzer
holds: a test function, a mutant of Tests/Simulation/mutants, or an invariant of the simulator
"""

import json
import pathlib
import re
import subprocess
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
LOSSES = json.loads((HERE / "losses.json").read_text())
KINDS = {"lost", "doubled", "misdated", "unreported", "leaked"}
FOUND = {"simulator", "reading", "test", "torture", "field", "model", "fuzzer"}


def git(*arguments):
    command = ["git", "-C", str(HERE), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def has_history():
    try:
        return git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    except FileNotFoundError:
        return False


def names():
    """Returns the functions, mutants and invariants of the tests."""
    found = {path.stem for path in (TESTS / "Simulation/mutants").glob("*.patch")}
    for path in TESTS.rglob("*.swift"):
        text = path.read_text()
        found.update(re.findall(r"\bfunc (\w+)", text))
        if "Simulation" in path.parts:
            found.update(re.findall(r'Violation\(\s*"([^"]+)"', text))
    for path in TESTS.rglob("test_*.py"):
        found.update(re.findall(r"\bdef (test_\w+)", path.read_text()))
    return found


class LossesTests(unittest.TestCase):
    def test_each_is_held_by_a_test_a_mutant_or_an_invariant(self):
        missing = {loss["holds"] for loss in LOSSES} - names()
        self.assertEqual(missing, set())

    def test_members_are_of_their_lists(self):
        for loss in LOSSES:
            with self.subTest(loss["history"]):
                self.assertIn(loss["kind"], KINDS)
                self.assertIn(loss["found"], FOUND)
                self.assertRegex(loss["commit"], r"^[0-9a-f]{8}$")
                if "seed" in loss:
                    self.assertEqual(loss["found"], "simulator")
                expected = {"date", "commit", "kind", "history", "found", "holds"}
                self.assertEqual(set(loss) - {"seed"}, expected)

    def test_dates_ascend(self):
        dates = [loss["date"] for loss in LOSSES]
        self.assertEqual(dates, sorted(dates))
        self.assertTrue(all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates))

    def test_histories_are_short_sentences(self):
        histories = [loss["history"] for loss in LOSSES]
        self.assertEqual(len(set(histories)), len(histories))
        for history in histories:
            self.assertLessEqual(len(history), 160, history)
            self.assertTrue(history.endswith("."), history)

    @unittest.skipUnless(has_history(), "needs a checkout with its whole history")
    def test_commits_exist_with_these_dates(self):
        for commit, date in {(loss["commit"], loss["date"]) for loss in LOSSES}:
            shown = git("log", "-1", "--format=%ad", "--date=short", commit, "--")
            self.assertEqual(shown.stdout.strip(), date, commit)


if __name__ == "__main__":
    unittest.main()
