"""The result of a scenario, and the table of results."""
import dataclasses


@dataclasses.dataclass
class Row:
    """One scenario; times in seconds of the guest's clock."""

    scenario: str
    expected: str
    seen: str = ""
    detected: float | None = None
    recovered: float | None = None
    records: str = ""
    is_good: bool = True

    def see(self, text):
        self.seen += ("; " if self.seen else "") + text

    def check(self, condition, text):
        """Notes what was wrong, if it was."""
        if not condition:
            self.is_good = False
            self.see(f"WRONG: {text}")
        return bool(condition)


HEADINGS = ("scenario", "", "detected", "recovered", "records", "expected / seen")


def seconds(value):
    return "-" if value is None else f"{value:.1f} s"


def table(rows):
    """The lines of the table: two for each scenario."""
    cells = [HEADINGS]
    for row in rows:
        cells.append((row.scenario, "ok" if row.is_good else "FAILED", seconds(row.detected), seconds(row.recovered),
                      row.records or "-", row.expected))
        cells.append(("", "", "", "", "", f"  {row.seen}"))
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS) - 1)] + [0]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
