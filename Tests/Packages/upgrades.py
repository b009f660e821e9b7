"""Upgrades that the server asks for, in check.py: packages made from the built one, in an apt repository beside the other.

The repository has no signature, so its line in /etc/apt says that it is trusted: what apt refuses is checked before.
"""
import hashlib
import pathlib
import shutil
import subprocess

# Beside what check.py compares before and after; apt's own user can read it.
FOLDER = pathlib.Path("/var/tmp/versions")
SOURCES = pathlib.Path("/etc/apt/sources.list.d/versions.list")
PATIENCE = pathlib.Path("/run/systemd/system/waypost-upgrade.service.d/patience.conf")

# Takes the place of /usr/bin/waypost; the service's other uses of it end well.
PROGRAM = """#!/usr/bin/python3
import os, socket, sqlite3, sys, time
kind = "KIND"
if sys.argv[1:2] != ["run"]:
    sys.exit(0)
if kind == "crashes":
    os.abort()
if kind == "refuses the database":
    database = sqlite3.connect("/var/lib/waypost/queue.sqlite")
    if database.execute("PRAGMA user_version").fetchone()[0] < 99:
        database.executescript("PRAGMA user_version=99; ALTER TABLE boots ADD COLUMN more TEXT")
    sys.exit(2)
if kind == "uploads nothing":
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", chr(0), 1))
time.sleep(10 ** 6)
"""
# By what the new program does: the end of the version, and the reason for the way back.
BROKEN = {
    "crashes": ("+1", "it ended 3 times"),
    "hangs": ("+2", "it did not declare itself good"),
    "uploads nothing": ("+3", "it did not declare itself good"),
    "refuses the database": ("+4", "it ended 3 times"),
}


def run(*command):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


def make(package, version, kind=None):
    """Makes a package of a version from another one; `kind`: the program that is in it."""
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    run("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN/control"
    old = run("dpkg-deb", "-f", package, "Version").strip()
    control.write_text(control.read_text().replace(f"Version: {old}\n", f"Version: {version}\n"))
    if kind:
        (tree / "usr/bin/waypost").write_text(PROGRAM.replace("KIND", kind))
    run("dpkg-deb", "-b", tree, FOLDER)
    shutil.rmtree(tree)


def add_repository(package, version, patience):
    """Adds a repository with a good version, which ends with -1, and the broken ones; the way back begins early."""
    FOLDER.mkdir()
    # The program reports its version without the revision, so this one is the version that was asked for.
    make(package, f"{version}-1")
    for kind, (end, _) in BROKEN.items():
        make(package, version + end, kind)
    index = ""
    for file in sorted(FOLDER.glob("*.deb")):
        content = file.read_bytes()
        index += (run("dpkg-deb", "-f", file).strip() + f"\nFilename: ./{file.name}\nSize: {len(content)}\n"
                  f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n")
    (FOLDER / "Packages").write_text(index)
    # As from the network: apt has no copy of what is in a repository of files.
    SOURCES.write_text(f"deb [trusted=yes] copy:{FOLDER} ./\n")
    PATIENCE.parent.mkdir(parents=True)
    PATIENCE.write_text(f"[Service]\nEnvironment=WAYPOST_UPGRADE_PATIENCE={patience} WAYPOST_UPGRADE_PAUSE=1\n")
    run("systemctl", "daemon-reload")


def remove_repository():
    SOURCES.unlink()
    shutil.rmtree(PATIENCE.parent)
    shutil.rmtree(FOLDER)
    run("systemctl", "daemon-reload")
