"""A small panel for each series, in one SVG."""
from html import escape

from verdict import DAY, amount

COLUMNS, WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 3, 330, 150, 52, 34, 20
STYLE = """text{font:11px sans-serif;fill:#333}.name{font-weight:bold}.bad{fill:#b00020;font-weight:bold}
.axis{stroke:#bbb;fill:none}.line{stroke:#1f6f8b;fill:none;stroke-width:1.2}
.slope{stroke:#d9822b;stroke-dasharray:4 3;fill:none}.warm{fill:#f1f1f1}"""


def draw(verdicts, days, warm_up, title):
    """The whole picture, as text."""
    rows = -(-len(verdicts) // COLUMNS)
    width, height = COLUMNS * WIDTH + 10, rows * HEIGHT + 34
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
             f"<style>{STYLE}</style>", f'<rect width="{width}" height="{height}" fill="#fff"/>',
             f'<text class="name" x="10" y="20">{escape(title)}</text>']
    for number, verdict in enumerate(verdicts):
        x, y = number % COLUMNS * WIDTH + 5, number // COLUMNS * HEIGHT + 30
        parts.append(f'<g transform="translate({x},{y})">{panel(verdict, days, warm_up)}</g>')
    return "\n".join([*parts, "</svg>", ""])


def panel(verdict, days, warm_up):
    series = verdict.series
    name = escape(f"{series.name}{', ' if series.unit else ''}{series.unit}")
    style = ' class="bad"' if verdict.grows else ""
    parts = [f'<text class="name" x="4" y="12">{name}</text><text{style} x="4" y="26">{escape(verdict.words)}</text>']
    if not series.points:
        return parts[0]
    top = 1.05 * max(value for _, _, value in series.points) or 1
    # From nought on, so that a wiggle does not look like a mountain.
    right, low = WIDTH - 12, HEIGHT - BOTTOM

    def place(moment, value):
        return (f"{LEFT + moment / DAY / days * (right - LEFT):.1f},"
                f"{low - min(top, max(0, value)) / top * (low - TOP):.1f}")

    warm = LEFT + min(1, warm_up / DAY / days) * (right - LEFT)
    parts.append(f'<rect class="warm" x="{LEFT}" y="{TOP}" width="{warm - LEFT:.1f}" height="{low - TOP}"/>'
                 f'<path class="axis" d="M{LEFT} {TOP}V{low}H{right}"/>'
                 f'<text x="{LEFT - 4}" y="{TOP + 9}" text-anchor="end">{amount(top / 1.05)}</text>'
                 f'<text x="{LEFT - 4}" y="{low}" text-anchor="end">0</text>'
                 f'<text x="{right}" y="{low + 14}" text-anchor="end">{days:.3g} days</text>')
    lives = {}
    for moment, life, value in series.points:
        lives.setdefault(life if series.life else 0, []).append(place(moment, value))
    parts += [f'<polyline class="line" points="{" ".join(points)}"/>' for points in lives.values()]
    if verdict.slope == verdict.slope:
        for life in verdict.lives:
            # Through the middle of the life, with the slope of them all.
            moments, values = [point[0] for point in life], sorted(point[1] for point in life)
            middle, level = (moments[0] + moments[-1]) / 2, values[len(values) // 2]
            ends = [place(moment, level + verdict.slope * (moment - middle) / DAY) for moment in (moments[0], moments[-1])]
            parts.append(f'<polyline class="slope" points="{" ".join(ends)}"/>')
    return "".join(parts)
