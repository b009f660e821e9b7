#!/usr/bin/env python3
"""Runs the families of faults against the real programs and prints what became of the records.

Started by deploy/torture, which builds the programs and the library that fails.
"""
import argparse
import importlib
import sys
import traceback

# No compiled files among the sources; before the imports of our own.
sys.dont_write_bytecode = True

from bench import Settings
from process import exit_with
from report import Progress, Row, show

# Each family with its share of the time.
FAMILIES = {"crash": 0.32, "power": 0.22, "full": 0.16, "failing": 0.14, "corruption": 0.08, "clock": 0.08,
            "network": 0.2, "sound": 0.2, "gpsd": 0.2}
# Those that take as long as they take, and run only when they are named.
NAMED = {"radio": 0.2, "hang": 0.2}
# A family whose name another part has already.
MODULES = {"gpsd": "gpsd_faults"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, help="folder with waypost and waypost-receiver")
    parser.add_argument("--faults", required=True, help="the library to preload")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(FAMILIES))
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    unknown = set(chosen) - set(FAMILIES | NAMED)
    if unknown:
        parser.error(f"--only takes {', '.join(FAMILIES | NAMED)}; not {', '.join(sorted(unknown))}")
    progress = Progress()
    shares = FAMILIES | NAMED
    whole = sum(shares[name] for name in chosen)
    rows = []
    for number, name in enumerate(chosen):
        seconds = arguments.seconds * shares[name] / whole
        settings = Settings(arguments.programs, arguments.faults, seconds, arguments.seed * 100 + number, progress)
        try:
            rows += importlib.import_module(MODULES.get(name, name)).run(settings)
        except Exception as error:
            # The other families are worth running all the same.
            traceback.print_exc()
            row = Row(name)
            row.problem(f"the bench itself failed: {error!r}")
            rows.append(row)
        progress.clear()
    show(rows)
    is_good = all(row.is_good for row in rows)
    print("torture: ok" if is_good else f"torture: FAILED (seed {arguments.seed})")
    return 0 if is_good else 1


if __name__ == "__main__":
    exit_with(main)
