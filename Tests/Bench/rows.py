"""The rows that benches written in Python give to `waypost-bench all`, as those of Row.swift."""
import json


def row(what, unit, ours, beside=None, limit=None, of_ratio=False, at_least=False):
    """One figure; `beside` is the name and the figure of what did the same work."""
    made = {"what": what, "unit": unit, "ours": ours}
    if beside:
        made["against"], made["baseline"] = beside
        if beside[1]:
            made["ratio"] = ours / beside[1]
    if limit is not None:
        made["goal"] = f"{'>=' if at_least else '<='} {limit:g} {'x' if of_ratio else unit}"
        measured = made.get("ratio") if of_ratio else ours
        if measured is not None:
            made["met"] = measured >= limit if at_least else measured <= limit
    return made


def save(path, bench, rows, **more):
    """One object on one line, where a bench was asked for it."""
    if path:
        path.write_text(json.dumps({"bench": bench, **more, "rows": rows}) + "\n")


def figure(part, what):
    """The first of a bench's figures whose name begins so."""
    return next(one["ours"] for one in part["rows"] if one["what"].startswith(what))


def text(value):
    """Three digits that count."""
    if value is None:
        return ""
    size = abs(value)
    return f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:,.0f}"


def table(heading, lines):
    """A table in Markdown."""
    made = ["| " + " | ".join(heading) + " |", "| " + " | ".join("---" for _ in heading) + " |"]
    return "\n".join(made + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"
