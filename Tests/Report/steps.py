"""What deploy/report runs, and what it keeps of each."""
import dataclasses
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAVED = ROOT / "Tests/Report/results.json"


def last(lines):
    """A program's summary."""
    return {"result": next((line for line in reversed(lines) if line.strip()), "nothing was printed")}


def model(lines):
    """All lines: the sizes of the searches, and whether each property holds."""
    return {"result": "; ".join(line for line in lines if line.strip())}


def markdown(lines):
    """The rows of a table in Markdown."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    return {"result": f"{len(rows)} of them, see below", "rows": rows}


def torture(lines):
    """The rows between the headings and the last line: the fault, figures, and ok or FAILED."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if re.search(r"(\s+\d+){5}\s+(ok|FAILED)$", line)]
    return {"result": last(lines)["result"], "rows": rows}


def peers(lines):
    """What each program promises, what it lost and what it doubled."""
    found = json.loads(next(line for line in reversed(lines) if line.startswith('{"bench"')))["peers"]
    rows = []
    for peer in found:
        if "missing" in peer:
            rows.append([peer["name"], "not tried: " + peer["missing"], "", ""])
        elif "kills" in peer:
            counts = [f"{peer[phase]['lost']:,}, {peer[phase]['doubled']:,} of {peer[phase]['promised']:,}" for phase in ("kills", "cuts")]
            rows.append([f"{peer['title']} ({peer['version']})", peer["promise"], *counts])
    return {"result": f"{sum('kills' in peer for peer in found)} programs, see below", "rows": rows}


@dataclasses.dataclass
class Step:
    """A command; `keep` makes of its lines what the report shows."""

    name: str
    shows: str
    command: list
    keep: object
    as_root: bool = False
    prepare: list = None


def steps(seeds, mutants):
    """All steps, in their order."""
    return [
        Step("model", "every order of the protocol's steps", ["deploy/model"], model),
        Step("faults", "faults of the protocol that the model finds", ["deploy/model", "--faults"], markdown),
        Step("simulate", "histories drawn from seeds, on the real code", ["deploy/simulate", "--seeds", str(seeds)], last),
        Step("mutants", "faults of the code that the simulator finds", ["Tests/Simulation/count-mutants", *mutants], markdown),
        Step("torture", "the real programs, with real kills and disks", ["deploy/torture", "--seconds", "600", "--release"], torture),
        Step("peers", "other programs in the same harness",
             ["Tests/Bench/peers", "--records", "0", "--kills", "50", "--cuts", "20", "--json", "/dev/stdout"], peers, as_root=True,
             prepare=["swift", "build", "-c", "release", "--product", "waypost"]),
    ]
