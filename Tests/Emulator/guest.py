#!/usr/bin/env python3
"""Inside the guest: runs the scenarios and reports each as a line of JSON in /bench/reports."""
import argparse
import dataclasses
import importlib
import json
import pathlib
import random
import subprocess
import sys
import traceback

PARTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(PARTS), str(PARTS.parent / "Peers"), str(PARTS.parent / "Torture")]

from pace import Pace
from report import Row

GROUPS = {"bluetooth": "bluetooth", "sound": "soundcard", "service": "service"}


class Guest:
    """The settings of every scenario, named as those of deploy/torture, whose bench it uses."""

    faults = ""
    folder = pathlib.Path("/run/waypost-bench")

    def __init__(self, programs, python):
        self.programs = pathlib.Path(programs)
        self.python = python
        self.random = random.Random(1)
        self.reports = open("/bench/reports", "a", buffering=1, encoding="utf-8")
        self.folder.mkdir(exist_ok=True)

    def say(self, text):
        self.report(text=text)

    def report(self, **what):
        self.reports.write(json.dumps(what) + "\n")

    def run(self, *command, limit=60, check=True):
        """A command's output; raises when it fails, unless it may."""
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout.strip()}")
        return done.stdout


def attempt(guest, name, scenario):
    """Runs one scenario; a bench that fails is a scenario that fails."""
    row = Row(name, (scenario.__doc__ or "").strip())
    try:
        scenario(row)
    except Exception as error:
        traceback.print_exc()
        row.check(False, f"the bench itself: {error!r}")
    guest.report(row=dataclasses.asdict(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True)
    parser.add_argument("--python", required=True, help="one that has Bumble")
    parser.add_argument("--host-pace", type=float, required=True)
    parser.add_argument("--only", default=",".join(GROUPS))
    arguments = parser.parse_args()
    guest = Guest(arguments.programs, arguments.python)
    Pace.measure(arguments.host_pace)
    up = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    guest.say(f"the guest is up after {up:.0f} s and computes {Pace.slower:.0f} times slower than its host")
    chosen = arguments.only.split(",")
    for group, module in GROUPS.items():
        wanted = [name for name in chosen if name.split(".")[0] == group]
        if not wanted:
            continue
        scenarios = importlib.import_module(module).Scenarios(guest)
        try:
            for name, scenario in scenarios.all():
                if group in wanted or f"{group}.{name}" in wanted:
                    Pace.measure(arguments.host_pace)
                    wider = f", bounds {Pace.patience:.1f} times wider" if Pace.patience > 1 else ""
                    guest.say(f"{group}.{name} ... (at 1/{Pace.slower:.0f} speed{wider})")
                    attempt(guest, f"{group}.{name}", scenario)
        finally:
            scenarios.end()


if __name__ == "__main__":
    main()
