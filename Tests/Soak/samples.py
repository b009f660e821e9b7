"""The samples taken each hour of the fast clock, and their series."""
import os

from process import cpu, memory

MB, KB = 1 << 20, 1 << 10
BACKLOG = 0.2


class Series:
    """One figure over the time: (moment in s, life of its program, value)."""

    def __init__(self, name, unit="", noise=0.0, life="", is_judged=True, share=0.01):
        self.name, self.unit, self.is_judged = name, unit, is_judged
        # The growth in a soak that is tolerated: an amount, or a share of the median.
        self.noise, self.share = noise, share
        # The program whose start resets it; "": it is never reset.
        self.life = life
        self.points = []


def figures(pid):
    """Returns the figures of a process from /proc; None if it is not there."""
    try:
        private, resident, _ = memory(pid)
        return dict(private=private, resident=resident, descriptors=len(os.listdir(f"/proc/{pid}/fd")),
                    threads=len(os.listdir(f"/proc/{pid}/task")), cpu=cpu(pid))
    except (OSError, KeyError, ValueError):
        return None


def size(path):
    try:
        return path.stat().st_size
    except OSError:
        return 0


class Samples:
    def __init__(self, site):
        self.site, self.clock = site, site.clock
        self.series = {}
        self.before = {}
        self.missed = self.taken = 0
        for program in ("gateway", "receiver"):
            # A program keeps what the longest backlog needed, which may be its second or third.
            self.add(f"{program} private", "MB", 0.5, program, share=BACKLOG)
            self.add(f"{program} resident", "MB", 1.5, program, share=BACKLOG / 4)
            self.add(f"{program} descriptors", "", 1, program)
            self.add(f"{program} threads", "", 1, program)
            self.add(f"{program} CPU an hour", "s", 0.3, program)
            self.add(f"{program} log an hour", "kB", 1)
        # A file is as long as the longest outage made it: six hours, where twelve are kept.
        self.add("database", "MB", 1, share=0.5)
        self.add("journal", "MB", 0.5)
        self.add("database in use", "MB", 1, share=BACKLOG)
        self.add("pending records", "", 5000)
        self.add("losses an hour", "", 50)
        self.add("errors an hour", "", 5)
        self.add("uploaded an hour", "", 1500)
        self.add("ledger rows", "", 2)
        self.add("index at the receiver", "MB", 0, is_judged=False)

    def add(self, name, *arguments, **options):
        self.series[name] = Series(name, *arguments, **options)

    def note(self, name, value, life=0):
        self.series[name].points.append((self.clock.seconds(), life, value))

    def grown(self, name, value, life=0):
        """Of a figure that only goes up: what came since the sample before, an hour."""
        now = self.clock.seconds()
        before, self.before[name] = self.before.get(name), (now, life, value)
        if before and before[1] == life and value >= before[2] and now > before[0]:
            self.note(name, (value - before[2]) / (now - before[0]) * 3600, life)

    def take(self):
        self.taken += 1
        site = self.site
        for program, process, log in (("gateway", site.gateway.daemon, site.gateway.log),
                                      ("receiver", site.receiver.process, site.receiver.log)):
            found = figures(process.pid) if process and process.poll() is None else None
            life = site.lives[program]
            if found:
                self.note(f"{program} private", found["private"] / MB, life)
                self.note(f"{program} resident", found["resident"] / MB, life)
                self.note(f"{program} descriptors", found["descriptors"], life)
                self.note(f"{program} threads", found["threads"], life)
                self.grown(f"{program} CPU an hour", found["cpu"], life)
            self.grown(f"{program} log an hour", size(log) / KB, life if program == "receiver" else 0)
        database = site.gateway.state / "queue.sqlite"
        self.note("database", size(database) / MB)
        self.note("journal", size(database.with_name("queue.sqlite-wal")) / MB)
        self.note("index at the receiver", sum(map(size, site.receiver.data.glob(".receiver*.sqlite*"))) / MB)
        self.status(site.gateway.status())

    def status(self, status):
        """Adds the figures of `waypost status --json`."""
        if not status:
            self.missed += 1
            return
        streams = status["streams"].values()
        storage = status["storage"]
        self.note("database in use", (storage["database_bytes"] - storage["reusable_bytes"]) / MB)
        self.note("pending records", sum(stream["pending"] for stream in streams))
        self.note("ledger rows", len(status["losses"]))
        self.grown("losses an hour", sum(loss["records"] for loss in status["losses"]))
        self.grown("errors an hour", sum(status["error_totals"].values()))
        self.grown("uploaded an hour", sum(stream["uploaded"] for stream in streams))
