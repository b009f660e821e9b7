"""The result of each kind of fault: rows of the table, problems as text, a line of progress."""
import sys
import time


class Row:
    """One line of the table: a kind of fault and what it did."""

    def __init__(self, fault):
        self.fault = fault
        self.tried = 0
        self.committed = 0
        self.lost = 0
        self.doubled = 0
        self.start_failures = 0
        self.problems = []
        self.notes = []

    def problem(self, text):
        """Something that must not be; the same words count once."""
        if text not in self.problems:
            self.problems.append(text)

    def note(self, text):
        self.notes.append(text)

    @property
    def is_good(self):
        return not (self.lost or self.doubled or self.start_failures or self.problems) and self.tried > 0


class Progress:
    """One line that is written over on a terminal, and a line every ten seconds elsewhere."""

    def __init__(self):
        self.started = time.monotonic()
        self.shown = 0.0
        self.is_terminal = sys.stdout.isatty()

    def show(self, row, text=""):
        now = time.monotonic()
        if now - self.shown < (0.1 if self.is_terminal else 10):
            return
        self.shown = now
        line = f"{now - self.started:5.0f} s  {row.fault}: {row.tried} tried, {row.committed} records"
        line += f", {text}" if text else ""
        if self.is_terminal:
            print(f"\r\033[K{line[:100]}", end="", flush=True)
        else:
            print(line, flush=True)

    def clear(self):
        if self.is_terminal:
            print("\r\033[K", end="", flush=True)


HEADINGS = ("fault", "tried", "committed before", "lost", "doubled", "start failures", "")


def table(rows):
    """The lines of the table."""
    lines = [HEADINGS]
    for row in rows:
        lines.append((row.fault, str(row.tried), str(row.committed), str(row.lost), str(row.doubled),
                      str(row.start_failures), "ok" if row.is_good else "FAILED"))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return ["  ".join([line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])])
            for line in lines]


def show(rows):
    """Prints the table, what was noted and what went wrong."""
    for row in rows:
        for text in row.notes:
            print(f"{row.fault}: {text}")
    print()
    print("\n".join(table(rows)))
    for row in rows:
        for text in row.problems:
            print(f"PROBLEM: {row.fault}: {text}")
        if row.tried == 0:
            print(f"PROBLEM: {row.fault}: nothing was tried")


def spread(values):
    """The least, the middle, nine of ten and the most of some numbers, as text."""
    ordered = sorted(values)
    if not ordered:
        return "none"
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return f"min {ordered[0]:.0f}, median {at(0.5):.0f}, 90 % {at(0.9):.0f}, max {ordered[-1]:.0f}"
