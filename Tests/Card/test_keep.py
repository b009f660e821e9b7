#!/usr/bin/env python3
"""The journal's warnings on their way to the data partition: the script in a folder of its own, over a journal that is a file."""
import pathlib
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
        for name in ("data/log", "run"):
            (self.folder / name).mkdir(parents=True)
        self.warnings = self.folder / "data/log/warnings"

    def keep(self, journal):
        """The exit status, with this journal since the boot."""
        (self.folder / "journal").write_text(journal)
        script = SCRIPT.read_text().replace("/data/", f"{self.folder}/data/").replace("/run/", f"{self.folder}/run/")
        return subprocess.run(["dash", "-c", JOURNAL + script], env={"PATH": "/usr/bin:/bin", "folder": str(self.folder)},
                              stderr=subprocess.DEVNULL).returncode

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
