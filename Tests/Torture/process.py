"""Processes: their figures in proc(5), and how a program of ours ends."""
import os
import pathlib
import signal
import sys


def memory(pid):
    """Private bytes that the kernel cannot take back, resident bytes, and the proportional share (PSS)."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes["Private_Dirty"], sizes["Rss"], sizes["Pss"]


def cpu(pid):
    """Seconds of CPU that it has used so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def exit_with(main):
    """Ends with what `main` gives; ended by somebody else, what has been started is ended and cleared away first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
