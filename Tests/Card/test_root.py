#!/usr/bin/env python3
"""Which of two cards is the root's: the script of the initramfs in a folder of its own."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/card/root/usr/share/initramfs-tools/scripts/local-top/waypost-root"
COMMANDS = 'sleep() { :; }; wait_for_udev() { :; }; blkid() { cat "$5"; }\n'


class RootTests(unittest.TestCase):
    def root(self, labels, root="LABEL=waypost-root", slot=True):
        """The root that is chosen, with partitions of these labels; nothing: by the label alone."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("dev", "conf", "sys/class/mmc_host/" + ("mmc0" if slot else "")):
                pathlib.Path(folder, name).mkdir(parents=True)
            for name, label in labels.items():
                pathlib.Path(folder, "dev", name).write_text(label)
            script = SCRIPT.read_text().replace(". /scripts/functions", COMMANDS)
            for name in ("dev", "conf", "sys"):
                script = script.replace(f"/{name}/", f"{folder}/{name}/")
            done = subprocess.run(["dash", "-c", script], env={"PATH": "/usr/bin:/bin", "ROOT": root},
                                  stderr=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0)
            chosen = pathlib.Path(folder, "conf/param.conf")
            return chosen.read_text().strip().replace(folder, "") if chosen.exists() else ""

    def test_card_in_the_slot_is_the_root(self):
        both = {"sda2": "waypost-root", "mmcblk1p1": "WAYPOST", "mmcblk1p2": "waypost-root", "mmcblk1p3": "waypost-root-b"}
        self.assertEqual(self.root(both), "ROOT=/dev/mmcblk1p2")
        self.assertEqual(self.root(both, "LABEL=waypost-root-b"), "ROOT=/dev/mmcblk1p3")
        self.assertEqual(self.root(both, "/dev/sda2"), "")

    def test_without_one_there_the_label_decides(self):
        self.assertEqual(self.root({"sda2": "waypost-root"}, slot=False), "")
        self.assertEqual(self.root({"sda2": "waypost-root", "mmcblk0p2": "rootfs"}), "")


if __name__ == "__main__":
    unittest.main()
