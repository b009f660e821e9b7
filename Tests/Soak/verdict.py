"""Does a figure grow? The slope of Theil and Sen with its spread: what lies far off does not count."""
import math
import statistics

DAY = 86400
# Medians of so many stretches are looked at: an hour's figure says little of itself.
STRETCHES = 48
# Of a normal distribution: the slope lies in the spread 99 times of 100.
SURE = 2.576
# Days after the warm-up below which nothing is called a growth.
LEAST = 1


class Verdict:
    """The verdict on a series after its warm-up; `words` for people."""

    def __init__(self, series, warm_up):
        self.series = series
        self.first = self.last = self.middle = self.slope = self.low = self.high = math.nan
        self.grows, self.words = False, "too short to tell"
        self.lives = settled(series, warm_up)
        points = [point for life in self.lives for point in life]
        if not points:
            return
        self.first, self.last = points[0][1], points[-1][1]
        self.middle = statistics.median(value for _, value in points)
        stretch = max(1.0, sum(life[-1][0] - life[0][0] for life in self.lives) / STRETCHES)
        self.judge([medians(life, stretch) for life in self.lives])

    def judge(self, lives):
        whole = slope(lives)
        if not whole:
            return
        self.slope, self.low, self.high = whole
        days = sum(life[-1][0] - life[0][0] for life in lives) / DAY
        # How far each stretch lies from the line of its life.
        residuals = []
        for life in lives:
            rest = [value - self.slope * moment / DAY for moment, value in life]
            middle = statistics.median(rest)
            residuals += [abs(value - middle) for value in rest]
        noise = max(self.series.noise, self.series.share * abs(self.middle), 2 * statistics.median(residuals))
        # A series that grew once and then stayed (a file as long as the longest outage made it) does not grow.
        half = (lives[0][0][0] + lives[-1][-1][0]) / 2
        late = slope([rest for life in lives if len(rest := [point for point in life if point[0] >= half]) > 1])
        is_growing = (self.series.is_judged and self.low > 0 and self.slope * days > noise
                      and (late is None or late[1] > 0))
        # Memory that a program takes in its first hours is not yet growth.
        self.grows = is_growing and days >= LEAST
        grown = f"grows by {amount(self.slope)} {self.series.unit}".rstrip() + " a day"
        calm = "too short to tell" if is_growing else "flat" if self.series.is_judged else "by design"
        self.words = grown if self.grows else calm


def slope(lives):
    """A day's growth and the two values between which it is 99 times of 100; None of too few points."""
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) * DAY
                    for life in lives for place, a in enumerate(life) for b in life[place + 1:])
    if len(slopes) < 28:
        return None
    # The variance of Kendall's S, of all lives together.
    variance = sum(len(life) * (len(life) - 1) * (2 * len(life) + 5) / 18 for life in lives)
    off = SURE * math.sqrt(variance)
    at = lambda place: slopes[min(len(slopes) - 1, max(0, round(place)))]
    return statistics.median(slopes), at((len(slopes) - off) / 2), at((len(slopes) + off) / 2)


def settled(series, warm_up):
    """The points of each life of its program, without those of its beginning."""
    lives = {}
    for moment, life, value in series.points:
        lives.setdefault(life if series.life else 0, []).append((moment, value))
    rest = []
    for number, points in enumerate(lives.values()):
        # The first begins with the soak itself.
        begins = (points[0][0] if number else 0) + warm_up
        rest.append([point for point in points if point[0] >= begins])
    return [life for life in rest if len(life) > 1]


def medians(points, stretch):
    """The median of each stretch of time, at its middle."""
    parts = {}
    for moment, value in points:
        parts.setdefault(int((moment - points[0][0]) / stretch), []).append((moment, value))
    return [(statistics.mean(moment for moment, _ in part), statistics.median(value for _, value in part))
            for part in parts.values()]


def amount(value):
    """A number with three digits that count."""
    if value != value:
        return "-"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if abs(value) >= 0.001 else f"{value:.0e}"


def table(verdicts):
    """The lines of the table: 100 columns."""
    lines = [("AFTER THE WARM-UP", "FIRST", "MEDIAN", "LAST", "A DAY", "99 % LIE BETWEEN", "")]
    for verdict in verdicts:
        name = f"{verdict.series.name}{', ' if verdict.series.unit else ''}{verdict.series.unit}"
        spread = f"{amount(verdict.low)} and {amount(verdict.high)}" if verdict.low == verdict.low else "-"
        lines.append((name, amount(verdict.first), amount(verdict.middle), amount(verdict.last), amount(verdict.slope),
                      spread, verdict.words))
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    return ["  ".join([line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:6], widths[1:])] +
                      [line[6]]).rstrip() for line in lines]
