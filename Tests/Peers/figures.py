"""Judges what `waypost measure --json` wrote: the figures that every board gives, and a reason for each other one."""
import json
import math

# What any Linux gives, whatever is plugged in.
ALWAYS = """model kernel architecture version installed_as began_at seconds samples pss_bytes private_bytes resident_bytes
    program cpu_percent board_busy_percent wakeups_per_s threads own_written_bytes lost""".split()


def problems(text, known=(), **values):
    """Returns what is wrong, as a list of sentences. `known`: figures that this board gives beside ALWAYS."""
    figures = json.loads(text)
    unknown = figures.pop("unknown")
    wrong = [f"{name} is unknown: {unknown.get(name)}" for name in [*ALWAYS, *known] if figures.get(name) is None]
    nulls = {name for name, value in figures.items() if value is None}
    wrong += [f"{name}: unknown without a reason, or known with one" for name in nulls ^ set(unknown)]
    wrong += [f"{name} is {figures.get(name)!r}, not {value!r}" for name, value in values.items() if figures.get(name) != value]
    return wrong or list(disagreements(figures))


def disagreements(figures):
    """Yields figures that cannot be right beside each other."""
    private, whole, resident = (figures[name]["max"] for name in ("private_bytes", "pss_bytes", "resident_bytes"))
    if not 500_000 < private <= whole <= resident:
        yield f"memory: {private} private, {whole} PSS, {resident} resident"
    if not 0 < figures["cpu_percent"] < 100 * 4:
        yield f"the gateway took {figures['cpu_percent']} % of a core"
    if not 0 < figures["board_busy_percent"] <= 100:
        yield f"the cores were busy {figures['board_busy_percent']} % of the time"
    threads = figures["threads"]
    if not {"control", "queue"} <= set(threads):
        yield f"threads are missing: {', '.join(threads)}"
    # Each rate is rounded to two decimals.
    if not math.isclose(sum(threads.values()), figures["wakeups_per_s"], abs_tol=0.01 * len(threads)):
        yield f"{figures['wakeups_per_s']} wake-ups per second, of the threads {sum(threads.values()):.2f}"
    if figures["samples"] < figures["seconds"] / 10:
        yield f"{figures['samples']} samples in {figures['seconds']} s"
