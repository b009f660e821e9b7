#!/usr/bin/env python3
"""Boots the guest, follows what it reports and prints the table.

Started by deploy/emulator, which builds the programs and fetches the kernel.
"""
import argparse
import json
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# No compiled files among the sources; before the imports of our own.
sys.dont_write_bytecode = True

from machine import Machine
from pace import pace
from report import Row, table

PARTS = pathlib.Path(__file__).resolve().parent
START = """export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
ip link set lo up
timeout -k 10 {limit} python3 {guest} --programs {programs} --python {bumble} --host-pace {pace} --only {only} \\
    > /bench/guest.log 2>&1
echo $? > /bench/exit
dmesg > /bench/kernel.log
busybox poweroff -f
"""
# The guest is slow, and one that hangs must not hang us.
BOOT_LIMIT, SILENCE_LIMIT, LIMIT = 240, 300, 3000


# Groups of scenarios by what they boot into.
BOOTS = {"plain": ["bluetooth", "sound"], "systemd": ["service"]}


class Reports:
    """The lines the guest has written since the last look."""

    def __init__(self, path):
        self.path, self.offset = path, 0

    def new(self):
        if not self.path.exists():
            return []
        with open(self.path, encoding="utf-8") as file:
            file.seek(self.offset)
            text = file.read()
        whole = text[:text.rfind("\n") + 1]
        self.offset += len(whole.encode())
        return [json.loads(line) for line in whole.splitlines()]


def follow(machine, folder, began):
    """Shows progress until the guest has ended; gives the rows and, if it did not end well, the reason."""
    reports, rows, ready = Reports(folder / "reports"), [], False
    heard = time.monotonic()
    while True:
        is_running = machine.is_running
        for report in reports.new():
            ready, heard = True, time.monotonic()
            if "row" in report:
                row = Row(**report["row"])
                rows.append(row)
                report["text"] = f"{'ok' if row.is_good else 'FAILED'}  {row.scenario}: {row.seen}"
            print(f"{heard - began:5.0f} s  {report['text']}", flush=True)
        silence = time.monotonic() - heard
        if not is_running:
            ended = folder / "exit"
            code = ended.read_text().strip() if ended.exists() else "none"
            return rows, None if code == "0" else f"the guest ended with exit status {code}"
        if silence > (SILENCE_LIMIT if ready else BOOT_LIMIT):
            return rows, f"the guest {'said nothing' if ready else 'did not come up'} for {silence:.0f} s"
        if time.monotonic() - began > LIMIT:
            return rows, f"not done after {LIMIT} s"
        time.sleep(0.3)


def last_words(folder):
    for name in ("guest.log", "console.log", "qemu.log"):
        path = folder / name
        if path.exists():
            for line in path.read_text(errors="replace").splitlines()[-8:]:
                print(f"{name}: {line[:200]}")


def boot(arguments, folder, wanted, has_systemd):
    """Runs some groups in a guest of their own; gives the rows and what went wrong with the guest."""
    start = START.format(
        limit=LIMIT, guest=shlex.quote(str(PARTS / "guest.py")), pace=pace(), only=shlex.quote(",".join(wanted)),
        programs=shlex.quote(str(pathlib.Path(arguments.programs).resolve())),
        bumble=shlex.quote(str(pathlib.Path(".build/tools/bin/python3").absolute())))
    # Its calls hang where a scenario wants that (bluetooth.hung).
    source = PARTS.parent / "FieldFaults/hangs.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(folder / "hangs.so"), str(source), "-ldl"], check=True)
    began = time.monotonic()
    print(f"    0 s  booting {arguments.version} for {', '.join(wanted)}; logs in {folder}", flush=True)
    machine = Machine(arguments.kernel, arguments.version, folder, start, arguments.kvm, has_systemd)
    try:
        rows, problem = follow(machine, folder, began)
    finally:
        machine.end()
    if problem:
        last_words(folder)
    return rows, problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, help="folder with waypost and waypost-receiver")
    parser.add_argument("--kernel", required=True, type=pathlib.Path, help="folder a kernel package was unpacked in")
    parser.add_argument("--version", required=True, help="its version")
    parser.add_argument("--only", default="bluetooth,sound,service", help="groups or scenarios, with commas")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--kvm", action="store_true")
    arguments = parser.parse_args()
    known = [group for groups in BOOTS.values() for group in groups]
    for word in arguments.only.split(","):
        if word.split(".")[0] not in known:
            parser.error(f"--only takes {', '.join(known)} or one of their scenarios; not {word}")
    chosen = arguments.only.split(",")
    rows, problems, folders = [], [], []
    for name, groups in BOOTS.items():
        wanted = [word for word in chosen if word.split(".")[0] in groups]
        if wanted:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="waypost-emulator-"))
            folders.append(folder)
            more, problem = boot(arguments, folder, wanted, has_systemd=name == "systemd")
            rows += more
            problems += [problem] if problem else []
    print()
    print("\n".join(table(rows)))
    for problem in problems:
        print(f"PROBLEM: {problem}")
    is_good = bool(rows) and not problems and all(row.is_good for row in rows)
    for folder in folders:
        if is_good and not arguments.keep:
            shutil.rmtree(folder)
        else:
            print(f"kept in {folder}")
    print("emulator: ok" if is_good else "emulator: FAILED")
    return 0 if is_good else 1


if __name__ == "__main__":
    # So that what has been started is ended and cleared away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
