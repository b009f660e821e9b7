"""Measured figures as Markdown, and where they stand in the documents."""
import importlib.util
import json
import pathlib
import re

from rows import figure, table, text

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = tuple(ROOT / "deploy/docs" / name for name in ("measurements.md", "field.md", "report.md"))
MARK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- /figures -->)", re.DOTALL)

# Of one thread: `7zr b -mmt1` here, a quarter of what four make there (github.com/ThomasKaiser/sbc-bench, Results.md, 1.0 and 1.8 GHz).
HERE_MIPS, BOARDS = 4000, {"Pi 4": 1450, "Pi Zero 2 W": 760}

# Nucleus lite 2.5.0, all nine daemons under realistic load: median PSS in KiB, per cent of CPU idle. From its benchmark/REPORT.md
# (github.com/aws-greengrass/aws-greengrass-lite, commit e9fb1f74).
GREENGRASS = (("Greengrass nucleus lite, Raspberry Pi 4, arm64", 15_798, 90.6),
              ("Greengrass nucleus lite, Raspberry Pi 3 B, armv7l", 12_393, 76.5))

# Cards by their labels, the GB of a card that the system takes (deploy/docs/build.md), and what ext4 leaves of a partition.
CARDS, SYSTEM, EXT4 = (16, 32, 64, 128), 4.8, 0.984
# MB a day of two presets in deploy/docs/configure.md.
DAWN, FLAC = 115, 382

# The parts of the table of costs, in its order.
COSTS = {
    "queue": "records into the queue, beside a C loop that inserts the same rows",
    "writes": "the same on a card: ext4 with a journal, no cache to flush", "upload": "a backlog to a server on the same machine",
    "instructions": "instructions per sighting (callgrind; without the kernel's)", "line": "a backlog over a line of 10 Mbit/s",
    "wire": "uploads at the interface, TLS and TCP included",
    "month": "a site's first day on the card: 10 sightings per second, a fix every 10 s, Opus all day",
    "audio": "audio, beside each codec's own tool",
    "idle": "all three sources quiet, files in memory", "disk": "all three sources quiet, files on a disk",
    "card": "all three sources quiet, files on a card: ext4 with a journal, no cache to flush",
    "drain": "while a backlog is uploaded", "receiver": "a thousand gateways on one server, 64 at a time, beside nginx storing the bodies",
    "page": "the pages of 1,000 devices",
}

# Labels of the benches, as the documents write them.
PLAIN = (
    (r"\bmemory of its own\b", "private memory"), (r"\bmemory resident\b", "resident memory"),
    (r"\ba commit a second\b", "one commit per second"), (r"\b100 a commit\b", "100 per commit"),
    (r"\b(a|an) (second|day|sighting)$", r"per \2"), (r"\buploading's marks\b", "recording uploads"),
    (r"\bchunks of sound\b", "chunks of audio"), (r"\ban hour of sound\b", "an hour of audio"), (r"^sound, ", "audio, "),
    (r"\breader that never rests\b", "reader that never pauses"), (r"^instructions, out of it\b", "instructions, uploading"),
    (r"\bthat the disk got then\b", "written to the disk in that time"), (r"^receiver, ", "server, "),
)


def plain(label):
    """A bench's label in the words of the documents."""
    for old, new in PLAIN:
        label = re.sub(old, new, label)
    return label


def rendered(document, known):
    """The document with each block as it should be, and names that nothing is known of."""
    missing = [name for _, name, _ in MARK.findall(document) if name not in known]
    return MARK.sub(lambda match: match[1] + known.get(match[2], "") + match[3], document), missing


def blocks():
    """All blocks by their names."""
    figures = json.loads((HERE / "figures.json").read_text())
    beside = json.loads((HERE / "beside.json").read_text())
    return {"costs": costs(figures), "growth": growth(figures["parts"]["growth"]), "estimates": estimates(figures),
            "boards": boards(sorted((HERE / "boards").glob("*.json"))), "air": air(figures["parts"]["air"]),
            "room": room(figures["parts"]["air"]),
            "beside": others(beside["peers"]), "mqtt": messages(json.loads((HERE / "mqtt.json").read_text())),
            "outputs": outputs(json.loads((HERE / "outputs.json").read_text())),
            "advertisements": advertisements(json.loads((HERE / "advertisements.json").read_text())),
            "summary": summary(figures), **report()}


def report():
    """The blocks of report.md, of Tests/Report."""
    known = importlib.util.spec_from_file_location("report_tables", ROOT / "Tests/Report/tables.py")
    tables = importlib.util.module_from_spec(known)
    known.loader.exec_module(tables)
    return tables.blocks()


def machine(figures):
    known = figures["machine"]
    packaged = "; memory and wake-ups as packaged" if figures["is_packaged"] else ""
    return f"{known['cpu']}, {known['cores']} cores, {known['file_system']} on a {known['disk']}, {figures['date']}{packaged}.\n"


def costs(figures):
    lines = []
    for part, title in COSTS.items():
        if part not in figures["parts"]:
            continue
        lines.append([f"**{title}**", "", "", "", ""])
        for one in figures["parts"][part]["rows"]:
            beside = f"{text(one['baseline'])} ({one['against']})" if "against" in one else ""
            goal = plain(one.get("goal", "")).replace("<=", "≤").replace(">=", "≥") + ("" if one.get("met", True) else ", **missed**")
            what = f"{plain(one['what'])}, {plain(one['unit'])}"
            lines.append([what, text(one["ours"]), beside, text(one.get("ratio")), goal])
    return machine(figures) + "\n" + table(["what", "Waypost", "beside", "ratio", "goal"], lines)


def growth(part):
    made = []
    for title, name in (("rows", "by_rows"), ("beacons", "by_beacons")):
        lines = [[f"{size[title]:,}", *(text(size[key]) for key in
                 ("ingest_cpu_us", "start_ms", "status_ms", "batch_cpu_us", "retention_cpu_us"))] for size in part[name]]
        made.append(table([title, "ingest, CPU µs per row", "start, ms", "status, ms", "batch, CPU µs per record",
                           "retention, CPU µs per row"], lines))
    return "\n".join(made)


def air(part):
    lines = [[plain(what), *(text(size) for size in sizes)] for what, sizes in part["megabytes"].items()]
    return table(["MB per day, one upload every", *part["ways"]], lines)


def room(part):
    """Days for which a card has room: half of its data partition, without the 2 % that are always free."""
    beside, sound = figure(part, "sightings, stored"), figure(part, "sound, stored")
    collected = {"beacons and positions": 0, "also the dawn chorus (4 h of Opus)": DAWN, "also Opus day and night, the default": sound,
                 "also FLAC, 1 of 10 minutes": FLAC}
    halves = {card: (card - SYSTEM) * 1000 * EXT4 / 2 * 0.98 for card in CARDS}
    lines = [[name, f"{beside + more:.0f} MB", *(f"{half / (beside + more):,.0f}" for half in halves.values())] for name, more in collected.items()]
    return table(["collected", "per day", *(f"{card} GB" for card in CARDS)], lines)


def boards(files):
    """What `waypost measure` found, and what Greengrass nucleus lite publishes."""
    lines = [board(json.loads(file.read_text())) for file in files]
    lines += [[name, f"{pss:,}", "", "", f"{100 - idle:.1f}", "", ""] for name, pss, idle in GREENGRASS]
    return table(["", "PSS, KiB", "private, KiB", "CPU, % of a core", "all programs, % of all cores", "wake-ups/s",
                  "written by it, MB per day"], lines)


def board(found):
    """The line of one measurement; a figure that the board did not give is unknown."""
    def known(value, scale=1):
        return "unknown" if value is None else text(value * scale)

    def median(name):
        return "unknown" if found[name] is None else f"{found[name]['median'] / 1024:,.0f}"

    model = found["model"] or f"no board: {found['architecture']}"
    return [f"{model}, {found['installed_as']}, {found['seconds'] / 60:.0f} min", median("pss_bytes"), median("private_bytes"),
            known(found["cpu_percent"]), known(found["board_busy_percent"]), known(found["wakeups_per_s"]),
            known(found["own_written_bytes"], 86400 / found["seconds"] / 1e6)]


def estimates(figures):
    """Estimates a board's needs: the machine's figures, scaled by how much slower 7-Zip is there."""
    parts = figures["parts"]
    pace, opus = figure(parts["queue"], "CPU of the whole path, at a site"), figure(parts["audio"], "an hour of sound as opus")
    both = figure(parts["upload"], "CPU in and out")
    lines = []
    for name, mips in (("this machine", HERE_MIPS), *BOARDS.items()):
        times = HERE_MIPS / mips
        lines.append([name, f"{mips:,}", text(pace * times), f"{pace * times * 10 / 1e4:.2f} %", text(opus * times),
                      f"{opus * times / 36:.2f} %", text(both * times)])
    return table(["", "7-Zip, MIPS per thread", "µs per sighting at a site's pace", "of a core, 10 per second", "s per hour of Opus",
                  "of a core", "µs per record in and out, full speed"], lines)


def others(peers):
    lines = []
    for peer in peers:
        if "missing" in peer:
            continue
        speed = peer.get("speed", {})
        accounts = [f"{peer[phase]['lost']:,}, {peer[phase]['doubled']:,}" if phase in peer else "–" for phase in ("kills", "cuts")]
        figures = [text(speed[name] / scale) if speed.get(name) else "–" for name, scale in
                   (("cpu_in_us", 1), ("cpu_out_us", 1), ("bytes", 1), ("private", 1e6), ("resident", 1e6),
                    ("in_per_s", 1), ("out_per_s", 1))]
        lines.append([f"{peer['title']} ({peer['version']})", *figures, *accounts])
    kills, cuts = (next((peer[phase]["tried"] for peer in peers if phase in peer), 0) for phase in ("kills", "cuts"))
    return table(["", "CPU µs per record: in", "out", "bytes at the disk per record", "private MB", "resident MB", "records/s in",
                  "out", f"lost, duplicated: {kills} kill -9", f"{cuts} power cuts"], lines)


def messages(found):
    lines = [[peer["title"], text(peer["memory"]), f"{peer['missing']:,}", f"{peer['twice']:,}"] for peer in found["peers"]]
    what = (f"{found['messages']:,} messages in {found['seconds'] / 60:.0f} minutes, {found['kills']} kill -9, {found['power']} power cuts, "
            f"{found['cuts']} cuts of\nthe link, {found['restarts']} restarts of the broker, no server for a third of the time:\n\n")
    return what + table(["", "private MB", "missing", "twice"], lines)


def outputs(found):
    none = found["cases"][0]
    lines = []
    for case in found["cases"]:
        more = [f"`{name}`, {text(woken)} wake-ups/s" for name, woken in case["threads"].items() if name not in none["threads"]]
        lines.append([case["title"], text(case["private"]), text(case["wakes"]), str(len(case["threads"])), "; ".join(more),
                      ", ".join(case["more_libraries"]) or "none"])
    return table([f"in {found['seconds']} s", "private MB", "wake-ups/s", "threads", "thread more", "libraries more"], lines)


def advertisements(found):
    rate, core, private = (text(one["ours"]) for one in found["rows"])
    order = "all byte for byte, in their order" if found["rows"][0]["ours"] else "**not all the same**"
    return (f"{found['sent']:,} advertisements in {found['seconds']:.0f} s, {order}: {rate} per second (goal: ≥ 1,000),\n"
            f"{core} % of a core, {private} MB private memory.\n")


def summary(figures):
    """The figures that matter most, in one sentence."""
    def of(part, what):
        return text(figure(figures["parts"][part], what))
    return (f"As packaged, the gateway takes {of('idle', 'memory of its own')} MB of private memory\n"
            f"({of('idle', 'memory resident')} MB resident, with the system's libraries), wakes up {of('disk', 'wake-ups')} times "
            f"per second with its\nfiles on a disk, and needs {of('queue', 'CPU of the whole path, at full')} µs of a PC's CPU "
            f"per sighting at full speed.\n")
