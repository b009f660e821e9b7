#!/usr/bin/env python3
"""The journal's warnings on their way to the data partition: the script in a folder of its own, over a journal that is a file."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/card/root/usr/lib/waypost-card/keep"
JOURNAL = """
journalctl() {
    seen=$(cat "$cursor" 2>/dev/null || echo 0)
    tail -n "+$((seen + 1))" "$folder/journal"
    wc -l <"$folder/journal" >"$cursor"
}
"""


class KeepTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("data/log", "run/waypost", "proc", "boot/firmware"):
            (self.folder / name).mkdir(parents=True)
        self.board()
        self.warnings = self.folder / "data/log/warnings"

    def board(self, uptime=10, error=None):
        """`error`: what the kernel says to each write to the data partition."""
        (self.folder / "proc/uptime").write_text(f"{uptime}.05 100.00\n")
        self.touch = f"touch() {{ echo \"touch: cannot touch '$1': {error}\" >&2; return 1; }}\n" if error else ""

    def keep(self, journal, commands="", when=""):
        """The exit status, with this journal since the boot."""
        (self.folder / "journal").write_text(journal)
        script = SCRIPT.read_text()
        for name in ("data", "run", "proc", "boot"):
            script = script.replace(f"/{name}/", f"{self.folder}/{name}/")
        return subprocess.run(["dash", "-c", JOURNAL + self.touch + commands + script, "keep", *when.split()], env={"PATH": "/usr/bin:/bin", "folder": str(self.folder)},
                              stderr=subprocess.DEVNULL).returncode

    def test_data_partition_after_an_error_is_checked_by_another_start(self):
        started = self.folder / "started"
        script = f"systemctl() {{ : >{started}; }}\n"
        for error, uptime, is_started in (
                (None, 9000, False), ("No space left on device", 9000, False), ("Input/output error", 599, False),
                ("Input/output error", 600, True), ("Read-only file system", 600, True)):
            started.unlink(missing_ok=True)
            self.board(uptime, error)
            self.keep("a\n", script)
            self.assertEqual(started.exists(), is_started, (error, uptime))

    def test_losses_that_the_data_partition_did_not_take_go_over_the_start(self):
        run, card = self.folder / "run/waypost", self.folder / "boot/firmware/waypost-lost"
        losses = {"losses-not-entered": "b\n1 dropped 2\n", "records-in-flight": "b\n1 0 3\n", "losses-not-entered.a": "a\n1 dropped 7\n"}
        for name, text in losses.items():
            (run / name).write_text(text)
        (run / "status.json").write_text("{}")
        self.assertEqual(self.keep("", when="last"), 0)
        self.assertFalse(card.exists())
        self.board(error="Input/output error")
        self.assertEqual(self.keep("", when="last"), 0)
        self.board()
        # The power may go before Waypost has entered them, and before what it entered is gone from the card.
        for _ in range(2):
            shutil.rmtree(self.folder / "run")
            (self.folder / "run").mkdir()
            self.assertEqual(self.keep("", when="first"), 0)
            taken = {file.name: file.read_text() for file in run.iterdir()}
            self.assertEqual(taken, {
                "losses-not-entered.b": "b\n1 dropped 2\n", "records-in-flight.b": "b\n1 0 3\n",
                "losses-not-entered.a": "a\n1 dropped 7\n"})
        self.assertEqual(self.keep("a\n"), 0)
        self.assertEqual(len(list(card.iterdir())), 3)
        (run / "losses-not-entered.b").unlink()
        self.assertEqual(self.keep("a\n"), 0)
        self.assertEqual(sorted(file.name for file in card.iterdir()), ["losses-not-entered.a", "records-in-flight.b"])
        for file in run.iterdir():
            file.unlink()
        for when in ("", "", "first", ""):
            self.assertEqual(self.keep("a\n", when=when), 0)
            self.assertFalse(card.exists())

    def test_folder_of_losses_without_one_goes_away(self):
        card = self.folder / "boot/firmware/waypost-lost"
        card.mkdir()
        self.assertEqual(self.keep("", when="first"), 0)
        self.assertEqual(self.keep(""), 0)
        self.assertFalse(card.exists())

    def test_each_warning_is_kept_once(self):
        self.assertEqual(self.keep("a\n"), 0)
        self.assertEqual(self.keep("a\nb\n"), 0)
        self.assertEqual(self.warnings.read_text(), "a\nb\n")

    def test_what_the_disk_does_not_take_is_kept_later(self):
        self.warnings.mkdir()
        self.assertNotEqual(self.keep("a\n"), 0)
        self.assertNotEqual(self.keep("a\n" + "b" * 300_000 + "\n"), 0)
        self.assertLessEqual((self.folder / "run/waypost-keep.new").stat().st_size, 200_000)
        self.warnings.rmdir()
        self.assertEqual(self.keep("a\n" + "b" * 300_000 + "\nc\n"), 0)
        self.assertEqual(self.warnings.read_text()[-4:], "b\nc\n")


if __name__ == "__main__":
    unittest.main()
