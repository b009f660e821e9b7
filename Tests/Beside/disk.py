"""Disks: an ext4 of its own whose bytes are counted, a folder whose writes are logged, and what a power cut leaves of it."""
import os
import pathlib
import subprocess
import time

import diskimage
from bench import ENDS_WITH_US
from peer import Missing, wait


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{command[0]}: {done.stderr.strip()[-200:]}")
    return done.stdout.strip()


class Counted:
    """An ext4 in a file, for root; elsewhere the folder as it is, whose disk others may write to, too."""

    def __init__(self, folder, megabytes=3072):
        self.folder, self.image, self.loop = pathlib.Path(folder), None, None
        self.root = self.folder / "disk"
        self.root.mkdir()
        if os.geteuid() != 0:
            return
        self.image = self.folder / "disk.img"
        # Written, not only allocated: or its first use would cost the file system below it, too.
        run("dd", "if=/dev/zero", f"of={self.image}", "bs=1M", f"count={megabytes}", "conv=fsync")
        self.loop = run("losetup", "--find", "--show", "--direct-io=on", self.image)
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.loop)
        run("mount", self.loop, self.root)

    @property
    def is_own(self):
        return self.loop is not None

    def written(self):
        """Bytes that the disk was given so far (Documentation/block/stat), what waits in memory included."""
        subprocess.run(["sync", "--file-system", self.root], check=True)
        device = os.stat(self.root).st_dev
        path = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
        return int(path.read_text().split()[6]) * 512 if path.exists() else None

    def end(self):
        if self.loop:
            subprocess.run(["umount", "--lazy", self.root])
            subprocess.run(["losetup", "--detach", self.loop])
            self.image.unlink(missing_ok=True)


class Logged:
    """A folder below which every change is logged (writelog.c)."""

    def __init__(self, programs, folder):
        self.mounted, self.log = folder / "logged", folder / "writes"
        (folder / "backing").mkdir()
        self.mounted.mkdir()
        with open(folder / "writelog.log", "ab") as words:
            self.process = subprocess.Popen(
                [*ENDS_WITH_US, programs.writelog, folder / "backing", self.log, self.mounted], stdout=words, stderr=words)
        wait("the logging file system", lambda: os.path.ismount(self.mounted))

    def end(self):
        for _ in range(50):
            if subprocess.run(["umount", self.mounted], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", "--lazy", self.mounted])
        self.process.kill()
        self.process.wait()


class OrderedFile(diskimage.File):
    """As ext4 keeps a file (data=ordered): what it grew by is there, or it is shorter.

    Of each sector the changes since the last sync are there up to one of them: small writes into one sector that came
    one after the other do not reach the disk in another order, for they stand in one page.
    """

    def after_cut(self, random, share, sure=0):
        """Returns the content after a power cut; changes before `sure` in the log are kept."""
        content = bytearray(self.durable)
        safe = sum(1 for entry in self.pending if entry.at < sure)
        known = random.randint(safe, len(self.pending))
        sectors = {}
        for number, entry in enumerate(self.pending):
            if entry.kind == "w":
                for sector in range(entry.offset // diskimage.SECTOR, -(-(entry.offset + entry.length) // diskimage.SECTOR)):
                    sectors.setdefault(sector, []).append(number)
        reached = {}
        for sector, changes in sectors.items():
            count = len(changes) if random.random() < share else random.randint(0, len(changes) - 1) if share else 0
            reached[sector] = changes[count - 1] if count else -1
        size, end = len(content), None
        for number, entry in enumerate(self.pending):
            if entry.kind == "w":
                for start, piece, sector in pieces(entry):
                    if number < safe or number <= reached[sector]:
                        diskimage.put(content, start, piece)
                    elif start + len(piece) > len(self.durable):
                        end = start if end is None else min(end, start)
            elif number < known and entry.kind == "t":
                del content[entry.offset:]
                end = None if entry.offset == 0 else end
            if number < known:
                size = diskimage.size_after(size, entry)
        if end is not None:
            size = min(size, max(end, len(self.durable)))
        del content[size:]
        content.extend(bytes(size - len(content)))
        return content


def pieces(entry):
    """A write by sectors: where, what, which."""
    at, end = entry.offset, entry.offset + entry.length
    while at < end:
        sector = at // diskimage.SECTOR
        next = min(end, (sector + 1) * diskimage.SECTOR)
        yield at, entry.data[at - entry.offset:next - entry.offset], sector
        at = next


class Journalled(diskimage.Disk):
    """As ext4 keeps names: in their order, each sync makes all before it last, and so do five seconds (commit=5); a file
    that takes another's name is written out before the name is (auto_da_alloc)."""

    COMMIT = 5_000_000_000

    def __init__(self, entries, folder):
        super().__init__(entries, folder)
        self.replacing, self.times = {}, {}

    def name(self, entry, names):
        self.times[entry.at] = entry.time
        super().name(entry, names)

    def apply(self, entry):
        if entry.kind == "o" and entry.flag == 1:
            file = self.files[entry.inode] = OrderedFile()
            return self.name(entry, {entry.path: file})
        if entry.kind == "r" and self.current.get(entry.other):
            self.replacing[entry.at] = self.current.get(entry.path)
        super().apply(entry)
        if entry.kind == "s":
            while self.pending and self.pending[0][0] < entry.covers:
                at, names = self.pending.pop(0)
                self.names.update(names)
                file = self.replacing.pop(at, None)
                if file:
                    file.settle(at)
        return None

    def image(self, to, random, now):
        names, sure = dict(self.names), {}
        old = sum(1 for at, _ in self.pending if self.times[at] < now - self.COMMIT)
        for at, change in self.pending[:random.randint(old, len(self.pending))]:
            names.update(change)
            if at in self.replacing:
                sure[self.replacing[at]] = at
        share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        pathlib.Path(to).mkdir(parents=True)
        for path, file in names.items():
            if file is None or not path.startswith(self.folder + "/") or path.endswith("-shm"):
                continue
            target = pathlib.Path(to) / os.path.relpath(path, self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.after_cut(random, share, sure.get(file, 0)))


def unmount_below(folder):
    """Unmounts what an aborted run left mounted."""
    for line in reversed(pathlib.Path("/proc/mounts").read_text().splitlines()):
        place = line.split()[1]
        if place.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", place])
