"""The measured figures as one table, and where another program is ahead of Waypost."""
from rows import row

# Name in the figures, heading, how it is shown, whether less is better.
SPEED = (
    ("cpu_in_us", "in", "{:.1f}", True), ("cpu_out_us", "out", "{:.1f}", True), ("cpu_us", "both", "{:.1f}", True),
    ("bytes", "B/rec", "{:.0f}", True), ("private", "priv.", "{:.1f}", True), ("resident", "res.", "{:.1f}", True),
    ("in_per_s", "in", "{:.0f}", False), ("out_per_s", "out", "{:.0f}", False))
TITLES = {"cpu_in_us": "CPU a record, in", "cpu_out_us": "CPU a record, out", "cpu_us": "CPU a record, in and out",
          "bytes": "bytes at the disk a record", "private": "private memory", "resident": "resident memory",
          "in_per_s": "records a second in", "out_per_s": "records a second out"}
GROUPS = (("CPU us a record", 3), ("disk", 1), ("memory MB", 2), ("records/s", 2))


def text(name, form, value):
    if value is None:
        return "-"
    return form.format(value / 1e6 if name in ("private", "resident") else value)


def cells(result):
    speed = result.get("speed", {})
    line = [text(name, form, speed.get(name)) for name, _, form, _ in SPEED]
    for phase in ("kills", "cuts"):
        account = result.get(phase)
        line += [str(account["lost"]), str(account["doubled"])] if account else ["-", "-"]
    return line


def table(results, kills, cuts):
    """The lines: a heading over groups of columns, one a column, one a peer."""
    lines = [["", *(heading for _, heading, _, _ in SPEED), "lost", "twice", "lost", "twice"]]
    lines += [[result["title"], *cells(result)] for result in results if "title" in result]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    over, at = " " * widths[0], 1
    for title, count in (*GROUPS, (f"{kills} kill -9", 2), (f"{cuts} cuts", 2)):
        short = len(title) - sum(widths[at:at + count]) - 2 * (count - 1)
        widths[at] += max(0, short)
        over += "  " + title.rjust(sum(widths[at:at + count]) + 2 * (count - 1))
        at += count
    return [over] + ["  ".join([line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])])
                     for line in lines]


def ahead(results):
    """For each figure, who is better than Waypost in the same form of the work, `put`."""
    own = next((result.get("speed") for result in results if result["name"] == "waypost"), None)
    if not own:
        return []
    lines = []
    for name, _, form, is_less in SPEED:
        better = [
            f"{result['title']} {text(name, form, result['speed'][name])}" for result in results
            if result["name"] not in ("waypost", "sightings") and name in result.get("speed", {}) and name in own
            and (result["speed"][name] < own[name]) == is_less and result["speed"][name] != own[name]]
        if better:
            lines.append(f"  {TITLES[name]}: Waypost {text(name, form, own[name])}; {', '.join(better)}")
    return lines


def rows(results):
    """For each figure `put` beside the best of the others, for `waypost-bench all`."""
    own = next((result["speed"] for result in results if result["name"] == "waypost" and "speed" in result), {})
    made = []
    for name, _, _, is_less in SPEED:
        others = [(result["speed"][name], result["name"]) for result in results
                  if result["name"] not in ("waypost", "sightings") and result.get("speed", {}).get(name)]
        if name not in own or not others:
            continue
        best, who = min(others) if is_less else max(others)
        scale = 1e-6 if name in ("private", "resident") else 1
        unit = "MB" if scale < 1 else "a second" if name.endswith("per_s") else "B" if name == "bytes" else "us"
        made.append(row(TITLES[name], unit, own[name] * scale, (who, best * scale), 1, of_ratio=True, at_least=not is_less))
    return made


def notes(results):
    """A paragraph a peer: version, what its answer promises, what was seen."""
    lines = []
    for result in results:
        if "missing" in result:
            lines.append(f"{result['name']}: not run: {result['missing']}")
            continue
        lines.append(f"{result['title']}: {result['version']}; promises {result['promise']}")
        speed = result.get("speed")
        if speed:
            lines.append(f"  {speed['records']} records in {speed['seconds_in']:.1f} s, {speed['arrived']} arrived"
                         + (f", {speed['missing']} not within the time" if speed["missing"] else ""))
        for phase, words in (("kills", "kill -9"), ("cuts", "power cuts")):
            if account := result.get(phase):
                again = f", {account['recognised']} more came again under an id that the server knows" if account["recognised"] else ""
                lines.append(f"  {account['tried']} {words}: of {account['promised']} promised {account['lost']} lost, "
                             f"{account['doubled']} twice{again}")
                lines += [f"    {note}" for note in account["notes"]]
        lines += [f"  FAILED: {problem}" for problem in result["problems"]]
    return lines


def show(results, kills, cuts, is_own_disk):
    print("\n".join(table(results, kills, cuts)))
    print()
    print("\n".join(notes(results)))
    if better := ahead(results):
        print("\nWhere another is ahead of `waypost put`:")
        print("\n".join(better))
    if not is_own_disk:
        print("\nThe bytes are those of a disk that others write to, too: run as root for one of its own.")
