"""The peers' programs: from Debian's archive and PyPI into a folder, with nothing installed in the system or started."""
import os
import pathlib
import re
import subprocess
import sys

from peer import HERE, Missing

PACKAGES = {"rsyslog": ("rsyslog", "rsyslog-relp"), "mosquitto": ("mosquitto",), "journald": ("systemd", "systemd-journal-remote")}
STORAGE = "thingsboard-gateway==3.8.5"


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)


class Programs:
    """Where things are: Waypost's own in `build`, the peers' below `root` or, where they are installed, in the system."""

    def __init__(self, build, folder):
        self.build, self.folder = pathlib.Path(build).resolve(), pathlib.Path(folder).resolve()
        self.root = self.folder / "root"
        self.storage_python = self.folder / "venv/bin/python3"
        self.writelog = self.folder / "writelog"
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self):
        libraries = [path for path in self.root.glob("usr/lib/*-linux-gnu*")]
        libraries += [path / "systemd" for path in libraries] + [self.root / "lib/systemd", self.root / "usr/lib/systemd"]
        return {"LD_LIBRARY_PATH": ":".join(map(str, libraries))} if libraries else {}

    def find(self, *places):
        """The first of some paths that is there, what was fetched before what is installed."""
        for base in (self.root, pathlib.Path("/")):
            for place in places:
                for path in sorted(base.glob(place)):
                    return path
        raise Missing(f"{places[0]} is not there")

    def fetch(self, peer):
        """Debian's packages of a peer with what they need, unpacked; what the system has is not fetched."""
        names = PACKAGES[peer]
        planned = run("apt-get", "--simulate", "--no-install-recommends", "install", *names)
        missing = re.findall(r"^Inst (\S+)", planned.stdout, re.M)
        if planned.returncode != 0:
            raise Missing(f"apt-get cannot install {' '.join(names)}: {planned.stderr.strip()[-200:]}")
        archives = self.folder / "archives"
        archives.mkdir(exist_ok=True)
        missing = [name for name in missing if not (archives / f"{name}.there").exists()]
        if not missing:
            return
        done = run("apt-get", "download", *missing, cwd=archives)
        if done.returncode != 0:
            raise Missing(f"apt-get download: {done.stderr.strip()[-200:]}")
        for archive in archives.glob("*.deb"):
            run("dpkg-deb", "--extract", archive, self.root, check=True)
            archive.unlink()
        for name in missing:
            (archives / f"{name}.there").touch()

    def install(self, name):
        """Makes a peer's programs be there; Missing says why they cannot be."""
        if name.startswith("rsyslog"):
            name = "rsyslog"
        if name in PACKAGES:
            self.fetch(name)
        elif name == "thingsboard":
            self.install_storage()
        elif not (self.build / "waypost").exists():
            raise Missing(f"{self.build}/waypost: swift build -c release --product waypost")

    def install_storage(self):
        if not self.storage_python.exists():
            run(sys.executable, "-m", "venv", self.folder / "venv", check=True)
        # Its storage needs none of the gateway's other packages.
        done = run(self.storage_python, "-m", "pip", "install", "-q", "--no-deps", STORAGE)
        if done.returncode != 0:
            raise Missing(f"pip install {STORAGE}: {done.stderr.strip()[-200:]}")

    def build_writelog(self):
        """The file system that logs; it needs libfuse3-dev and /dev/fuse."""
        if not os.access("/dev/fuse", os.W_OK):
            raise Missing("/dev/fuse cannot be used")
        flags = run("pkg-config", "--cflags", "--libs", "fuse3")
        if flags.returncode != 0:
            raise Missing("apt-get install libfuse3-dev fuse3 pkg-config")
        run("cc", "-O2", "-o", self.writelog, HERE / "writelog.c", *flags.stdout.split(), check=True)

    def version(self, name):
        def first(pattern, *command):
            found = re.search(pattern, run(*command, env={**os.environ, **self.environment}).stdout)
            return found[1] if found else "?"
        if name.startswith("rsyslog"):
            return "rsyslog " + first(r"rsyslogd\s+(\S+)", self.find("usr/sbin/rsyslogd"), "-v")
        if name == "mosquitto":
            return "mosquitto " + first(r"version (\S+)", self.find("usr/sbin/mosquitto"), "-h")
        if name == "journald":
            upload = self.find("lib/systemd/systemd-journal-upload", "usr/lib/systemd/systemd-journal-upload")
            return "systemd " + first(r"\((\S+)\)", upload, "--version")
        if name == "thingsboard":
            return STORAGE.replace("==", " ")
        return "waypost " + first(r"(\S+)\s*$", self.build / "waypost", "--version")
