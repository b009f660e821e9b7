"""From the log of the fault library to what a disk may hold after a power cut.

What was synced is there. Of everything else a random part is: each 512-byte sector of a write may have reached
the disk or not, in any order; sizes, truncations and names that were not synced may be old.
"""
import os
import pathlib
import struct

# time, inode, offset, length, covers, began, paths, kind, flag: `struct entry` of fieldfaults.c.
ENTRY = struct.Struct("<6QIBB2x")
SECTOR = 512


class Entry:
    __slots__ = ("at", "time", "inode", "offset", "length", "covers", "began", "kind", "flag", "path", "other", "data")


def read_log(path):
    """The entries, in the order in which the changes were made."""
    log = memoryview(pathlib.Path(path).read_bytes())
    entries, at = [], 0
    while at + ENTRY.size <= len(log):
        entry = Entry()
        entry.at = at
        (entry.time, entry.inode, entry.offset, entry.length, entry.covers, entry.began, paths, kind,
         entry.flag) = ENTRY.unpack_from(log, at)
        entry.kind = chr(kind)
        at += ENTRY.size
        first, second = paths & 0xFFFF, paths >> 16
        entry.path = bytes(log[at:at + first]).decode()
        entry.other = bytes(log[at + first:at + first + second]).decode()
        at += first + second
        size = entry.length if entry.kind == "w" else 0
        entry.data = log[at:at + size]
        at += size
        if at > len(log):
            break
        entries.append(entry)
    return entries


class File:
    """One file: what is durable of it, and the changes since."""

    def __init__(self):
        self.durable = bytearray()
        self.pending = []

    def settle(self, covers):
        """A sync has made everything before `covers` in the log durable."""
        count = 0
        for count, entry in enumerate(self.pending, 1):
            if entry.at >= covers:
                count -= 1
                break
            change(self.durable, entry)
        del self.pending[:count]

    def after_cut(self, random, share):
        """The content after a cut; `share` of the sectors not synced have reached the disk."""
        content = bytearray(self.durable)
        # Sizes are metadata: those up to a random point in time are known to the disk.
        known = random.randint(0, len(self.pending))
        size = len(content)
        for number, entry in enumerate(self.pending):
            if entry.kind == "w":
                for start in range(0, entry.length, SECTOR):
                    if random.random() < share:
                        put(content, entry.offset + start, entry.data[start:start + SECTOR])
            elif number < known and entry.kind == "t":
                del content[entry.offset:]
            if number < known:
                size = size_after(size, entry)
        del content[size:]
        content.extend(bytes(size - len(content)))
        return content


def put(content, offset, data):
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset:offset + len(data)] = data


def size_after(size, entry):
    return entry.offset if entry.kind == "t" else max(size, entry.offset + entry.length)


def change(content, entry):
    if entry.kind == "w":
        put(content, entry.offset, entry.data)
    else:
        size = size_after(len(content), entry)
        del content[size:]
        content.extend(bytes(size - len(content)))


class Disk:
    """Replays a log up to any instant, forwards only; the folder was empty when the log began."""

    def __init__(self, entries, folder):
        self.entries = entries
        self.folder = str(folder)
        self.next = 0
        self.files = {}
        # Names that are durable, those as the kernel sees them, and the changes between.
        self.names, self.current, self.pending = {}, {}, []

    def advance(self, index):
        """Applies the entries before `index`."""
        while self.next < index:
            self.apply(self.entries[self.next])
            self.next += 1

    def apply(self, entry):
        if entry.kind == "o":
            if entry.flag == 1:
                self.files[entry.inode] = File()
                self.name(entry, {entry.path: self.files[entry.inode]})
        elif entry.kind in "wta":
            if entry.inode in self.files:
                self.files[entry.inode].pending.append(entry)
        elif entry.kind == "r":
            self.name(entry, {entry.path: None, entry.other: self.current.get(entry.path)})
        elif entry.kind == "l":
            self.name(entry, {entry.other: self.current.get(entry.path)})
        elif entry.kind == "u":
            self.name(entry, {entry.path: None})
        elif entry.inode in self.files:
            self.files[entry.inode].settle(entry.covers)
        else:
            # A folder: its names are durable now.
            while self.pending and self.pending[0][0] < entry.covers:
                self.names.update(self.pending.pop(0)[1])

    def name(self, entry, names):
        self.current.update(names)
        self.pending.append((entry.at, names))

    def image(self, to, random):
        """Writes what the disk may hold at this instant into a new folder."""
        os.makedirs(to)
        names = dict(self.names)
        # A file system's own journal keeps the order of names: some first ones of the pending are there.
        for _, change_of_names in self.pending[:random.randint(0, len(self.pending))]:
            names.update(change_of_names)
        share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for path, file in names.items():
            # The shared memory file is in memory only.
            if file is None or not path.startswith(self.folder + "/") or path.endswith("-shm"):
                continue
            target = pathlib.Path(to) / os.path.relpath(path, self.folder)
            target.write_bytes(file.after_cut(random, share))
