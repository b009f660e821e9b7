"""The calls that are made to hang, the expected report of each, and the table of results."""
import dataclasses

# Parts whose hang holds up every record.
TRANSIENT = ("storage",)


@dataclasses.dataclass
class Case:
    name: str
    # As Tests/FieldFaults/hangs.c knows it; or whose silence it is: gpsd, server, h4.
    call: str
    when: str
    # The source that it is in, or upload, storage.
    part: str
    # Part of a reason in `status`.
    words: str
    host: str = ""
    # When it has to be reported; None: as promised for all.
    limit: int = None
    # For as long as it lasts nobody feeds the watchdog, after some minutes.
    is_lost: bool = True


CASES = [
    Case("libasound, open, at the start", "snd_pcm_open", "start", "audio", "snd_pcm_open"),
    Case("libasound, read", "snd_pcm_readi", "run", "audio", "snd_pcm_readi"),
    Case("gpsd's name, at the start", "getaddrinfo", "start", "location", "name server", host="gpsd.example"),
    Case("gpsd's name", "getaddrinfo", "run", "location", "name server", host="gpsd.example"),
    Case("the server's name, at the start", "getaddrinfo", "start", "upload", "Resolving timed out", host="server.example"),
    Case("the server's name", "getaddrinfo", "run", "upload", "Resolving timed out", host="server.example"),
    Case("ioctl(HCIDEVUP), at the start", "HCIDEVUP", "start", "beacons", "HCIDEVUP"),
    Case("ioctl(HCIDEVUP)", "HCIDEVUP", "run", "beacons", "HCIDEVUP"),
    # A quiet place is no fault: 90 s of silence come first.
    Case("H4 controller hangs (SIGSTOP)", "h4", "run", "beacons", "h4:", limit=150),
    Case("disk, fsync, at the start", "fsync", "start", "storage", "starting: no answer"),
    Case("disk, fsync", "fsync", "run", "storage", "the disk"),
    Case("disk, pwrite, at the start", "pwrite", "start", "storage", "starting: no answer"),
    Case("disk, pwrite", "pwrite", "run", "storage", "the disk"),
    Case("disk, pread, at the start", "pread", "start", "storage", "starting: no answer"),
    Case("server accepts and never answers, at the start", "server", "start", "upload", "no progress"),
    Case("server accepts and never answers", "server", "run", "upload", "no progress"),
    Case("gpsd says nothing, at the start", "gpsd", "start", "location", "gpsd"),
    Case("gpsd says nothing", "gpsd", "run", "location", "gpsd"),
]

WATCHED = [
    Case("watchdog: disk, pwrite", "pwrite", "run", "storage", ""),
    Case("watchdog: libasound, read", "snd_pcm_readi", "run", "audio", ""),
    Case("watchdog: ioctl(HCIDEVUP)", "HCIDEVUP", "run", "beacons", ""),
    Case("watchdog: gpsd's name", "getaddrinfo", "run", "location", "", host="gpsd.example", is_lost=False),
]

HEADINGS = ("hang", "told after", "status in", "stopped after", "lost", "counted", "recovered")


def table(hangs):
    """Lines for deploy/docs/measurements.md."""
    lines = [HEADINGS, ["---"] * len(HEADINGS)]
    for hang in hangs:
        figure = lambda name, unit=" s", digits=0: (
            f"{hang.figures[name]:.{digits}f}{unit}" if name in hang.figures else "–")
        lost = figure("lost", "") if hang.heard else "–"
        counted = figure("counted", "") if hang.heard else "–"
        if hang.case.part == "audio":
            counted += f", {hang.figures.get('sound', 0):.0f} s of sound in {hang.figures.get('gaps', 0)} gaps"
        # Where there is no Bluetooth, what was hung fails in another way.
        recovered = "–" if hang.case.call == "HCIDEVUP" else figure("recovered")
        lines.append((hang.name, figure("told"), f"{hang.slowest * 1000:.0f} ms", figure("stopped", digits=1), lost,
                      counted, recovered))
    return ["| " + " | ".join(line) + " |" for line in lines]
