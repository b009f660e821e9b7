"""Compares the records promised to a producer with those in the sink: lost and doubled."""
import array
import pathlib
import time


def now():
    """Nanoseconds of the clock that all the logs are dated by."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    """Triples of 64-bit numbers, appended in one write each time, so that a kill leaves whole ones."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)

    def add(self, values):
        self.file.write(array.array("Q", values).tobytes())


def read(path):
    """The triples of a log that may not be there."""
    values = array.array("Q")
    if pathlib.Path(path).exists():
        data = pathlib.Path(path).read_bytes()
        values.frombytes(data[:len(data) // 24 * 24])
    return list(zip(values[0::3], values[1::3], values[2::3]))


def promised(path, before=None):
    """Numbers of the records that the producer had an answer for; the log has time, first number, count."""
    return {number for at, first, count in read(path) if before is None or at <= before
            for number in range(first, first + count)}


def arrived(path, before=None):
    """Number and id of each record in the order of arrival; the log has time, number, id (0: it has none)."""
    return [(number, id) for at, number, id in read(path) if before is None or at <= before]


class Account:
    """Sums over one or many runs."""

    def __init__(self):
        self.tried = 0
        self.promised = 0
        self.lost = 0
        self.doubled = 0
        # Sent again with an id that the server knows: it is kept once.
        self.recognised = 0
        self.notes = []

    def enter(self, acknowledged, came):
        """Compares: numbers that were answered for, and (number, id) of all that ever arrived."""
        seen = {}
        for number, id in came:
            if number not in seen:
                seen[number] = {id}
            elif id and id in seen[number]:
                self.recognised += 1
            else:
                seen[number].add(id)
                self.doubled += 1
        missing = acknowledged - seen.keys()
        self.promised += len(acknowledged)
        self.lost += len(missing)
        return missing

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def figures(self):
        return {"tried": self.tried, "promised": self.promised, "lost": self.lost, "doubled": self.doubled,
                "recognised": self.recognised, "notes": self.notes}
