#!/usr/bin/env python3
"""The root file system, cut off behind its last block in use and put onto a card that holds something else there."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
SIZE = 192 << 20


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT, check=True, **options).stdout


class LayoutTests(unittest.TestCase):
    def test_root_is_whole_on_a_card_that_was_used(self):
        with tempfile.TemporaryDirectory() as folder:
            tree, image = pathlib.Path(folder, "tree"), pathlib.Path(folder, "root.img")
            tree.mkdir()
            # Zeros and holes are content, too: they must not be what the card held.
            (tree / "zeros").write_bytes(bytes(3 << 20))
            (tree / "words").write_bytes(os.urandom(5 << 20))
            text = (ROOT / "deploy/parts/card-image").read_text()
            options = re.search(r"-O (\S+) -m 0", text).group(1), re.search(r"-E (num_backup_sb=0,\S+?),hash_seed", text).group(1)
            image.touch()
            os.truncate(image, SIZE)
            run("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-J", "size=16", "-O", options[0], "-E", options[1], "-d", tree, image)
            used = int(run(ROOT / "deploy/parts/used-blocks", input=run("dumpe2fs", image)))
            self.assertLess(used * 4096, SIZE // 2)
            os.truncate(image, used * 4096)
            with open(image, "ab") as card:
                card.write(b"\xa5" * (SIZE - used * 4096))
            run("e2fsck", "-f", "-n", image)
            for name in ("zeros", "words"):
                copy = pathlib.Path(folder, name)
                run("debugfs", "-R", f"dump /{name} {copy}", image)
                self.assertEqual(copy.read_bytes(), (tree / name).read_bytes())


if __name__ == "__main__":
    unittest.main()
