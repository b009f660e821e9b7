"""The disk of a device whose power is cut while it runs: what a cut leaves is made of the log of its writes."""
import os
import shutil
import types

import diskimage
from disk import Journalled, Logged


class PlainDisk:
    """A folder that is never cut."""

    def __init__(self, folder):
        self.mounted = folder / "disk"
        self.mounted.mkdir()

    def end(self):
        pass


class PowerDisk:
    """A folder whose writes are logged (writelog.c); `cut` leaves in it what an ext4 may hold."""

    def __init__(self, folder, writelog, random):
        self.folder, self.random = folder, random
        self.programs = types.SimpleNamespace(writelog=writelog)
        self.logged = Logged(self.programs, folder)
        self.mounted = self.logged.mounted

    def cut(self):
        """After the death of every program that uses it."""
        self.logged.end()
        entries = diskimage.read_log(self.logged.log)
        disk, left = Journalled(entries, self.mounted), self.folder / "left"
        disk.advance(len(entries))
        disk.image(left, self.random, entries[-1].time if entries else 0)
        self.logged.log.unlink()
        shutil.rmtree(self.folder / "backing")
        self.mounted.rmdir()
        self.logged = Logged(self.programs, self.folder)
        self.fill(left)
        shutil.rmtree(left)

    def fill(self, left):
        """Copies what was left, by synced writes that the new log has, too."""
        for path in left.rglob("*"):
            to = self.mounted / path.relative_to(left)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                with open(to, "wb") as file:
                    file.write(path.read_bytes())
                    file.flush()
                    os.fsync(file.fileno())

    def end(self):
        self.logged.end()
