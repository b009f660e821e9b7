#!/usr/bin/env python3
"""A month of the real programs in an hour: does anything grow, is anything lost?

Started by deploy/soak, which builds the programs and the libraries. The gateway and the receiver run under a clock that
goes by faster; a hundred beacons, a gpsd, sound, a program that puts records, and what happens to a site in a month.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

# No compiled files among the sources; before the imports of our own.
sys.dont_write_bytecode = True
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "Torture"))

from arrived import Sum  # noqa: E402
from bench import NeverStarted, Settings  # noqa: E402
from fastclock import FastClock  # noqa: E402
from faults import DAY, HOUR, Faults  # noqa: E402
from place import Site  # noqa: E402
from plot import draw  # noqa: E402
from process import exit_with  # noqa: E402
from samples import Samples  # noqa: E402
from sources import LATE  # noqa: E402
from verdict import Verdict, amount, table  # noqa: E402


class Soak:
    def __init__(self, arguments):
        self.arguments = arguments
        settings = Settings(arguments.programs.resolve(), arguments.library, 0, arguments.seed, None)
        settings.rate = arguments.rate
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="wpsoak-", dir=arguments.directory))
        self.archive = pathlib.Path(tempfile.mkdtemp(prefix="wpsoak-", dir=arguments.archive))
        self.clock = FastClock(self.directory, settings.faults, arguments.speed)
        self.problems = []
        self.site = Site(settings, self.clock, arguments.sound, arguments.retention, self.directory, self.archive,
                         arguments.preload)
        self.faults = Faults(self.site, arguments.days, settings.random)
        self.samples = Samples(self.site)
        self.warm_up = min(DAY, arguments.days * DAY / 4)
        self.period = min(HOUR, arguments.days * DAY / 96)
        self.days = arguments.days
        self.is_terminal = sys.stdout.isatty()
        self.shown = 0.0
        self.falls = 0

    def problem(self, text):
        if text not in self.problems:
            self.problems.append(text)

    def run(self):
        """All of its days, hour by hour."""
        self.site.start()
        began, first, turn = time.monotonic(), self.clock.seconds(), 0
        while (now := self.clock.seconds()) < self.arguments.days * DAY:
            if now >= turn * self.period:
                self.samples.take()
                turn = int(now // self.period) + 1
                self.show()
            self.faults.act()
            if not self.site.is_running():
                self.fell()
            if self.arguments.minutes and time.monotonic() - began > self.arguments.minutes * 60:
                break
            self.clock.until(min(turn * self.period, self.faults.next, self.clock.seconds() + 0.1 * self.clock.speed))
        self.days = self.clock.seconds() / DAY
        self.took = time.monotonic() - began
        self.reached = (self.clock.seconds() - first) / self.took

    def fell(self):
        """The gateway ended by itself: a service manager would start it again."""
        self.falls += 1
        self.problem(f"the gateway ended by itself: exit status {self.site.gateway.daemon.returncode}")
        if self.falls > 20:
            raise NeverStarted("it ends again and again")
        self.site.restart()

    def show(self):
        now = time.monotonic()
        if now - self.shown < (0 if self.is_terminal else 30):
            return
        self.shown = now
        last = lambda name: amount(self.samples.series[name].points[-1][2]) if self.samples.series[name].points else "-"
        line = (f"day {self.clock.seconds() / DAY:5.2f} of {self.arguments.days:g}: gateway {last('gateway private')} MB, "
                f"receiver {last('receiver private')} MB, database {last('database')} MB, "
                f"{last('pending records')} pending, {sum(self.faults.counts.values())} events")
        print(f"\r\033[K{line[:100]}" if self.is_terminal else line, end="" if self.is_terminal else "\n", flush=True)

    def settle(self):
        """Everything out, and the sum of it all."""
        site = self.site
        # Brings back everything that is still away.
        site.hold_receiver(False)
        if site.receiver.process.poll() is not None:
            site.begin_receiver()
        self.clock.step(0)
        # A stop has 5 s: no time at all, if they went by as fast.
        self.clock.slow_down()
        if self.is_terminal:
            print("\r\033[K", end="")
        print("the days are over; sending what is left, and counting", flush=True)
        try:
            site.drain(limit=600)
        except NeverStarted as error:
            self.problem(str(error))
        # Its row is anything that takes problems.
        status = site.gateway.last_status(self)
        self.sum = Sum(site.gateway.state / "queue.sqlite", site.receiver.data)
        for text in self.sum.problems + self.faults.problems:
            self.problem(text)
        self.losses = {}
        if status:
            self.losses = {f"{loss['stream']}, {loss['kind']}": loss["records"] for loss in status["losses"]}
            self.check_status(status)

    def check_status(self, status):
        """Compares the gateway's status with its database."""
        numbered = ("evicted", "discarded", "corrupt")
        told = sum(count for name, count in self.losses.items() if name.split(", ")[1] in numbered)
        if told != self.sum.told:
            self.problem(f"{told} records lost in status, {self.sum.told} in the database")
        # Records that `put` got an answer for were on the disk, regardless of later kills.
        putter, put = self.site.putter, status["streams"]["tide"]["uploaded"]
        if not putter.acknowledged <= put <= putter.given:
            self.problem(f"{putter.acknowledged} records put of {putter.given} were acknowledged, {put} arrived")
        said = sum(stream["uploaded"] for stream in status["streams"].values())
        if said != self.sum.accepted - self.sum.missing:
            self.problem(f"{said} records are uploaded as status has it, {self.sum.accepted - self.sum.missing} arrived")

    def report(self):
        """The table, what was done and what is wrong; the exit status."""
        verdicts = [Verdict(series, self.warm_up) for series in self.samples.series.values()]
        for verdict in verdicts:
            if verdict.grows:
                self.problem(f"{verdict.series.name} {verdict.words}")
        print("\n".join(["", *table(verdicts), ""]))
        sources = (self.site.controller, self.site.gpsd)
        hangs = self.site.gateway.log.read_text(errors="replace").count("error: hangs")
        cpu = {name: self.samples.series[f"{name} CPU an hour"].points for name in ("gateway", "receiver")}
        print(f"{self.days:.2f} days in {self.took / 60:.1f} min, {self.reached:.0f} times as fast (asked for "
              f"{self.arguments.speed}), sound: {self.arguments.sound}")
        late, worst = sum(part.late for part in sources), max(part.worst for part in sources)
        print(f"{self.samples.taken} times looked at, {self.samples.missed} without an answer of status; sources {late} times "
              f"late by more than {LATE} s, at most {worst:.0f}; {hangs} hangs told")
        for name, points in cpu.items():
            if points:
                print(f"{name}: {sum(point[2] for point in points) / len(points):.2f} s of CPU an hour, "
                      f"{self.site.lives[name]} starts")
        print("happened: " + ", ".join(f"{count} x {name}" for name, count in sorted(self.faults.counts.items())))
        print(f"records: {self.sum.accepted:,} accepted, {self.sum.arrived.count:,} at the receiver, "
              f"{self.sum.doubled} of them twice, {self.sum.missing} missing: {self.sum.told} told as lost, "
              f"{self.sum.left} made by the stop")
        if self.losses:
            print("ledger: " + "; ".join(f"{name}: {count:,}" for name, count in self.losses.items()))
        for text in self.problems:
            print(f"PROBLEM: {text}")
        print("soak: ok" if not self.problems else f"soak: FAILED (seed {self.arguments.seed})")
        self.save(verdicts)
        return 1 if self.problems else 0

    def save(self, verdicts):
        arguments = self.arguments
        if arguments.json:
            arguments.json.write_text(json.dumps(dict(
                days=self.days, speed=arguments.speed, sound=arguments.sound, rate=arguments.rate, seed=arguments.seed,
                took_s=self.took, reached=self.reached, events=self.faults.counts, lives=self.site.lives, losses=self.losses,
                accepted=self.sum.accepted, arrived=self.sum.arrived.count, doubled=self.sum.doubled,
                missing=self.sum.missing, problems=self.problems,
                series={verdict.series.name: dict(
                    unit=verdict.series.unit, points=verdict.series.points, verdict=verdict.words, grows=verdict.grows,
                    a_day=number(verdict.slope), low=number(verdict.low), high=number(verdict.high))
                    for verdict in verdicts})) + "\n")
        if arguments.plot:
            arguments.plot.write_text(draw(verdicts, self.days, self.warm_up,
                                           f"{self.days:.3g} days, sound: {arguments.sound}, seed {arguments.seed}"))

    def end(self, keep):
        self.site.end(keep=keep)
        if keep:
            print(f"kept in {self.directory} and {self.archive}")
        else:
            shutil.rmtree(self.archive, ignore_errors=True)


def check_clock(library, speed):
    """Ends all of it where the fast clock does not do here what it is for."""
    with tempfile.TemporaryDirectory() as folder:
        clock = FastClock(pathlib.Path(folder), library, speed)
        wrong = clock.check()
        clock.end()
    if wrong:
        sys.exit(f"soak: the fast clock is none on this machine:\n{wrong}")


def number(value):
    """JSON has no NaN."""
    return value if value == value else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder with waypost and waypost-receiver")
    parser.add_argument("--libraries", type=pathlib.Path, required=True, help="folder with what deploy/soak compiles")
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--speed", type=int, default=730)
    parser.add_argument("--sound", choices=("none", "opus", "flac", "aac", "wav"), default="none")
    parser.add_argument("--rate", type=float, default=10, help="sightings a second")
    parser.add_argument("--minutes", type=float, default=0, help="end after so long, wherever it is")
    parser.add_argument("--retention", help="of the gateway (default: 12h, in a short soak less)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--directory", default="/dev/shm", help="where the gateway's files are")
    parser.add_argument("--archive", default="/var/tmp", help="where the receiver's files are")
    parser.add_argument("--preload", action="append", default=[], help="one more library, into the gateway alone")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    # The database must have its size when the warm-up is over.
    arguments.retention = arguments.retention or f"{min(720, round(arguments.days * 180))}m"
    arguments.library = arguments.libraries.resolve() / "libfastclock.so"
    check_clock(arguments.library, arguments.speed)
    soak = Soak(arguments)
    is_good = False
    try:
        soak.run()
        soak.settle()
        code = soak.report()
        is_good = code == 0
        return code
    finally:
        soak.end(keep=arguments.keep or not is_good)


if __name__ == "__main__":
    exit_with(main)
