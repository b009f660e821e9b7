#!/usr/bin/env python3
"""`apt purge`: the package's script in a folder of its own, with a data folder that is a mount point, as it is on the card."""
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/debian/waypost.postrm"
# The kernel removes no folder on which something is mounted.
MOUNTED = """
mountpoint() { [ "$2" = "$data" ]; }
rm() {
    command rm "$@"
    for path; do [ "$path" != "$data" ] || { mkdir -p "$data"; return 1; }; done
}
"""


class PurgeTests(unittest.TestCase):
    def purge(self, commands):
        """Returns the remaining files and the exit status."""
        with tempfile.TemporaryDirectory() as folder:
            root, script = pathlib.Path(folder), SCRIPT.read_text()
            for name in ("etc", "run", "var"):
                script = script.replace(f" /{name}/", f" {folder}/{name}/")
            for name in ("etc/waypost/waypost.toml", "etc/credstore/waypost.token", "etc/credstore/other", "run/waypost/led",
                         "var/lib/waypost/queue.sqlite", "var/lib/waypost/lost+found/a"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).touch()
            users = "getent() { false; }\n"
            done = subprocess.run(["dash", "-c", users + commands + script, "postrm", "purge"], stderr=subprocess.DEVNULL,
                                  env={"PATH": "/usr/bin:/bin", "data": f"{folder}/var/lib/waypost"})
            left = sorted(str(path.relative_to(root)) for path in root.rglob("*") if not any(path.glob("*")))
        return left, done.returncode

    def test_nothing_is_left(self):
        self.assertEqual(self.purge(""), (["etc/credstore/other", "run", "var/lib"], 0))

    def test_a_disk_that_is_mounted_at_its_folder_is_emptied_and_the_purge_ends(self):
        self.assertEqual(self.purge(MOUNTED), (["etc/credstore/other", "run", "var/lib/waypost"], 0))


if __name__ == "__main__":
    unittest.main()
