"""The tables of deploy/docs/report.md, of results and of the project's history."""
import collections
import json
import pathlib

from rows import table

HERE = pathlib.Path(__file__).resolve().parent


def rows(results, name, heading):
    """A step's own table; a step that has not run says so."""
    found = results.get(name, {}).get("rows")
    return table(heading, [[*row, *[""] * (len(heading) - len(row))] for row in found]) if found else "Not run yet.\n"


def runs(results):
    lines = [[one["shows"], f"`{one['command']}`", one["commit"], one["date"], f"{one['minutes']:.0f}",
              ("" if one["status"] == 0 else "**failed**: ") + one["result"]] for one in results.values()]
    return table(["what", "command", "commit", "date", "minutes", "result"], lines)


def losses(found):
    kinds = collections.Counter(one["kind"] for one in found)
    ways = collections.Counter(one["found"] for one in found)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    by = ", ".join(f"{count} by {way}" for way, count in ways.most_common())
    lines = [[one["date"], one["commit"], one["kind"], one["history"], one["found"], f"`{one['holds']}`"] for one in found]
    return f"{len(found)} faults: {counted}.\nFound: {by}.\n\n" + table(["mended", "commit", "data was", "history", "found by", "held by"], lines)


def blocks():
    """All blocks of the report by their names."""
    path = HERE / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    return {"runs": runs(results),
            "faults": rows(results, "faults", ["fault", "property", "steps", "of the simulator"]),
            "mutants": rows(results, "mutants", ["mutant", "seeds", "invariant"]),
            "torture": rows(results, "torture", ["fault", "tried", "committed before", "lost", "doubled", "start failures", ""]),
            "rivals": rows(results, "peers", ["program", "promises", "lost, doubled: 50 kill -9", "20 power cuts"]),
            "losses": losses(json.loads((HERE / "losses.json").read_text()))}
