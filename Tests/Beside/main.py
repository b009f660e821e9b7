"""The bench beside others: what it runs, in which order, and what came of it."""
import argparse
import concurrent.futures
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

import cuts
import disk
import kills
import speed
import table
from bench import capture
from install import Programs
from journal import Journal
from mosquitto import Mosquitto
from peer import HERE, Missing
from rsyslog import Rsyslog, RsyslogUnsynced
from thingsboard import ThingsBoard
from waypost import Sightings, Waypost

ROOT = HERE.parent.parent
KINDS = {kind.name: kind for kind in (Waypost, Sightings, Rsyslog, RsyslogUnsynced, Mosquitto, ThingsBoard, Journal)}
# Asked for, and nothing to run: told, not left out.
ABSENT = {"collectd": "keeps what it cannot send in memory alone: it has no queue on the disk to compare with",
          "telegraf": "not in Debian"}
# At a time, for what is not timed.
ASIDE = 3


def options():
    parser = argparse.ArgumentParser(prog="peers", description="Waypost beside others: CPU, bytes, memory, losses.")
    parser.add_argument("--only", default=",".join(KINDS), metavar="NAMES", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--records", type=int, default=200_000, help="at most, in and out; 0: not measured")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build/release", help="where waypost is")
    parser.add_argument("--directory", default="/var/tmp", help="on the disk that is to be measured")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all figures, for programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forget", type=int, default=0, metavar="N",
                        help="the server forgets each Nth record: the bench must notice")
    arguments = parser.parse_args()
    unknown = set(arguments.only.split(",")) - set(KINDS)
    if unknown:
        parser.error(f"--only takes {', '.join(KINDS)}; not {', '.join(sorted(unknown))}")
    return arguments


class Run:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.programs = Programs(arguments.build, ROOT / ".build/peers")
        self.began = time.monotonic()
        self.results = {}

    def progress(self, words):
        print(f"{time.monotonic() - self.began:5.0f} s  {words}", file=sys.stderr, flush=True)

    def random(self, name, phase):
        return random.Random(f"{self.arguments.seed} {name} {phase}")

    def place(self, *names):
        path = self.folder.joinpath(*names)
        path.mkdir(parents=True)
        return path

    def attempt(self, name, phase, work):
        """Measures one peer and phase; a failure is reported with the others' figures."""
        try:
            self.results[name][phase] = work()
        except Missing as why:
            self.results[name]["problems"].append(f"{phase}: {why}")
        except Exception as error:
            traceback.print_exc()
            self.results[name]["problems"].append(f"{phase}: {error!r}")

    def install(self):
        for name in self.arguments.only.split(","):
            self.progress(f"{name}: installing what is missing")
            try:
                self.programs.install(name)
                kind = KINDS[name]
                self.results[name] = {"name": name, "title": kind.title, "promise": kind.promise,
                                      "version": self.programs.version(name), "problems": []}
            except Missing as why:
                self.results[name] = {"name": name, "missing": str(why), "problems": []}

    def there(self):
        return [name for name, result in self.results.items() if "missing" not in result]

    # MARK: Phases

    def measure(self):
        """One after the other, on one disk."""
        self.progress("making a disk")
        ground = disk.Counted(self.folder)
        try:
            for name in self.there():
                self.progress(f"{KINDS[name].title}: in and out")
                self.attempt(name, "speed", lambda name=name: self.measure_one(name, ground))
                shutil.rmtree(ground.root / name, ignore_errors=True)
        finally:
            ground.end()
        return ground.is_own

    def measure_one(self, name, ground):
        state = ground.root / name
        state.mkdir()
        peer = KINDS[name](self.programs, state, self.folder / "speed" / name)
        kind = speed.Speed
        if name == "sightings":
            kind = speed.SightingsSpeed
            capture(peer.work / "capture", self.arguments.records)
        return kind(peer, ground, self.arguments.records, self.arguments.forget).run()

    def kill(self, name):
        folder = self.place("kills", name)
        peer = KINDS[name](self.programs, self.place("kills", name, "state"), folder / "work")
        return kills.Kills(peer, self.random(name, "kills"), self.arguments.kills, self.progress,
                           self.arguments.forget).run().figures()

    def cut(self, name):
        return cuts.Cuts(KINDS[name], self.programs, self.place("cuts", name), self.random(name, "cuts"),
                         self.arguments.cuts, self.progress).run().figures()

    def break_all(self):
        """Kills and cuts, several peers at a time: nothing of it is timed."""
        names = [name for name in self.there() if name != "sightings"]
        if self.arguments.cuts and names:
            self.programs.build_writelog()
        with concurrent.futures.ThreadPoolExecutor(ASIDE) as pool:
            for phase, count, work in (("kills", self.arguments.kills, self.kill), ("cuts", self.arguments.cuts, self.cut)):
                for name in names if count else ():
                    pool.submit(self.attempt, name, phase, lambda name=name, work=work: work(name))

    # MARK: The end

    def is_good(self):
        own = self.results.get("waypost", {})
        lost = [own[phase] for phase in ("kills", "cuts") if phase in own and (own[phase]["lost"] or own[phase]["doubled"])]
        return not lost and not any(result["problems"] for result in self.results.values())

    def run(self):
        self.install()
        is_own_disk = self.measure() if self.arguments.records else True
        if self.arguments.kills or self.arguments.cuts:
            self.break_all()
        results = list(self.results.values())
        if self.arguments.only == ",".join(KINDS):
            results += [{"name": name, "missing": why, "problems": []} for name, why in ABSENT.items()]
        self.progress("done")
        table.show(results, self.arguments.kills, self.arguments.cuts, is_own_disk)
        if self.arguments.json:
            self.arguments.json.write_text(json.dumps({"bench": "beside", "peers": results, "rows": table.rows(results)}) + "\n")
        return 0 if self.is_good() else 1


def main():
    arguments = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peers-", dir=arguments.directory))
    try:
        return Run(arguments, folder).run()
    finally:
        disk.unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)
