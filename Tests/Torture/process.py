"""What the system tells of a process (proc(5))."""
import os
import pathlib


def memory(pid):
    """Bytes of its own that the kernel cannot take back, and resident."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
    return sizes["Private_Dirty"], sizes["Rss"]


def cpu(pid):
    """Seconds of CPU that it has used so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
