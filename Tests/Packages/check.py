#!/usr/bin/env python3
"""Inside a Debian 13 under systemd: what the packages do to a gateway that collects.

Started by deploy/parts/check-package. /packages/now and /packages/before hold the packages of two versions, /release an
apt repository with both (a trial of deploy/release), /other the same signed by another key.
"""
import functools
import grp
import hashlib
import http.cookiejar
import http.server
import json
import os
import pathlib
import pwd
import re
import shutil
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Torture"))

import records
import upgrades
from bench import ENDS_WITH_US, TOKEN, wait
from gpsd import Walk

PLACES = "linux_gpsd_location"
CONFIGURATION, STATE, RUN = (pathlib.Path(path) for path in ("/etc/waypost", "/var/lib/waypost", "/run/waypost"))
LIMIT = 90


def run(*command, environment=(), is_good=True):
    """Exit status and output; a status that is not as expected ends the check."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **dict(environment)))
    if is_good is not None and (done.returncode == 0) != is_good:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout.strip()[-2000:]}")
    return done.stdout


def package(name, which):
    return str(next(pathlib.Path("/packages", which).glob(f"{name}_*.deb")))


def version(which):
    return run("dpkg-deb", "-f", package("waypost", which), "Version").strip()


def install(which, *options, environment=(), is_good=True, name="waypost"):
    # Asks nothing, as an unattended upgrade would: a question fails it.
    return run("apt-get", "install", "-y", "-q", "--no-install-recommends", *options, f"{name}={version(which)}",
               environment={"DEBIAN_FRONTEND": "noninteractive", **dict(environment)}, is_good=is_good)


def service(name):
    return run("systemctl", "show", "-P", name, "waypost", is_good=None).strip()


def status():
    done = subprocess.run(["waypost", "status", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    report = json.loads(done.stdout or b"{}")
    return report if report.get("daemon", {}).get("running") else {}


def count(what):
    return status().get("streams", {}).get(PLACES, {}).get(what, 0)


def collects():
    """Waits until places come that were not there before."""
    before = status().get("sources", {}).get("location", {}).get("records", 0)
    wait("the next places", lambda: status().get("sources", {}).get("location", {}).get("records", 0) > before, LIMIT)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Repository:
    """The repository's site on loopback, at the address in waypost.sources."""

    SOURCES = pathlib.Path("/etc/apt/sources.list.d/waypost.sources")

    def serve(self, folder):
        """Serves a folder at the address of /release, in place of the folder before."""
        if hasattr(self, "server"):
            self.server.shutdown()
            self.server.server_close()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 8090), functools.partial(Handler, directory=folder))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def update(self, is_good=True):
        # Not Debian's own: there is no network here, and its packages were fetched before.
        return run("apt-get", "update", "-o", f"Dir::Etc::sourcelist={self.SOURCES}", "-o", "Dir::Etc::sourceparts=-",
                   "-o", "APT::Get::List-Cleanup=0", "-o", "APT::Update::Error-Mode=any", is_good=is_good)


def ask(path, body=None, fields=()):
    """Status and answer of the package's own server; 0 without one."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:8080{path}", data, dict(fields))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError as error:
        return 0, str(error)


class Viewer:
    """Who has logged in to the server's page with a link."""

    def __init__(self, link, authority):
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority))
        self.browser = urllib.request.build_opener(tls, urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.site, secret = link.split("/login?once=")
        self.browser.open(f"{self.site}/login", f"once={urllib.parse.quote(secret)}".encode(), timeout=30)

    def sees(self, path):
        with self.browser.open(self.site + path, timeout=30) as answer:
            return answer.read().decode()


class Server:
    """The receiver of its own package, at an address that stays."""

    # Not that of the package's own service.
    address, data = "127.0.0.1:8180", pathlib.Path("/root/received")

    def start(self):
        tokens = pathlib.Path("/root/tokens")
        tokens.write_text(TOKEN + "\n")
        self.log = open("/root/receiver.log", "wb")
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, "waypost-receiver", "--listen", self.address, "--data", self.data, "--tokens", tokens],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait("the receiver", lambda: b"listening on" in pathlib.Path("/root/receiver.log").read_bytes())

    def stop(self):
        self.process.kill()
        self.process.wait()

    def places(self):
        return records.received(self.data)[1]


class Check:
    def __init__(self):
        self.server, self.walk, self.repository = Server(), Walk(), Repository()
        self.before = set()

    def all(self):
        return [self.other_key, self.server_installed, self.server_enrols, self.installed, self.enrolled, self.upgraded,
                self.rolled_back, self.newer_data, self.newer_database, self.wrong_configuration, self.disabled,
                self.asked_for, self.removed, self.purged, self.first_data, self.server_purged]

    def other_key(self):
        """a repository that another key signed: refused, nothing can be installed; the right one is accepted"""
        shutil.copy("/release/apt/waypost.sources", Repository.SOURCES)
        self.repository.serve("/other")
        words = self.repository.update(is_good=False)
        assert "not signed" in words or "Missing key" in words, words
        run("apt-get", "install", "-y", "waypost", is_good=False)
        self.repository.serve("/release")
        self.repository.update()
        return next(line.strip() for line in words.splitlines() if "sign" in line)[:200]

    def server_installed(self):
        """apt install waypost-receiver: a service in its sandbox that refuses every device, and words on what comes next"""
        words = install("now", name="waypost-receiver")
        assert words.count("sudo ") == 3 and "waypost-receiver setup" in words, words
        wait("the server", lambda: ask("/healthz")[0] == 200, LIMIT)
        assert ask("/live.js")[0] == 200
        assert run("systemctl", "is-enabled", "waypost-receiver").strip() == "enabled"
        assert ask("/api/device/verify", {}, {"X-Device-Token": "anything"})[0] == 401
        file = pathlib.Path("/etc/waypost-receiver/waypost-receiver.toml")
        assert (file.stat().st_mode & 0o777, file.group()) == (0o640, "waypost-receiver"), oct(file.stat().st_mode)
        run("waypost-receiver", "config", "check")
        run("systemd-analyze", "security", "--threshold=25", "--no-pager", "waypost-receiver")
        words = run("waypost-receiver", "setup", "--host", "data.example.org", is_good=False)
        assert "sudo apt install caddy" in words, words
        for shell in "bash-completion/completions/waypost-receiver", "zsh/vendor-completions/_waypost-receiver", \
                "fish/vendor_completions.d/waypost-receiver.fish":
            assert pathlib.Path("/usr/share", shell).stat().st_size > 1000
        return "401 without a code; exposure at most 2.5"

    def server_enrols(self):
        """codes add by root, without --data: the service accepts the code, and no file is root's"""
        # Beside words about it, on standard error.
        code = re.search(r"\b(\w{4}-){3}\w{4}\b", run("waypost-receiver", "codes", "add"))[0]
        status, answer = ask("/api/device/enroll", {"code": code, "device_id": "d1"})
        assert status == 200, answer
        assert ask("/api/device/verify", {}, {"X-Device-Token": json.loads(answer)["token"]})[0] == 200
        left = run("find", "/var/lib/waypost-receiver", "!", "-user", "waypost-receiver").split()
        assert not left, left
        open_to_all = run("find", "/var/lib/waypost-receiver", "-perm", "/007").split()
        assert not open_to_all, open_to_all
        return run("waypost-receiver", "devices").splitlines()[-1].strip()

    def first_data(self):
        """setup with Caddy's own authority, and the commands that it prints: places and health are on the page, over TLS"""
        with open("/etc/hosts", "a") as hosts:
            hosts.write("127.0.0.1 server.lan\n")
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", "caddy")
        words = run("waypost-receiver", "setup", "--host", "server.lan")
        enroll, copy = re.findall(r"^  sudo (.*)$", words, re.MULTILINE)
        os.chdir("/root")
        # Server and device are one machine here: nothing to send.
        run("sh", "-c", copy.split(" && scp ")[0])
        install("now")
        file = CONFIGURATION / "waypost.toml"
        file.write_text(file.read_text().replace(
            "[location]", f'[location]\ngpsd = "{self.walk.address}"\ninterval = "1s"').replace("[upload]", '[upload]\ninterval = "10s"'))
        began = time.monotonic()
        run(*enroll.split())
        viewer = Viewer(re.search(r"https://server\.lan/login\S+", words)[0], "/root/root.crt")
        device = (STATE / "device_id").read_text().strip()
        for stream in PLACES, "waypost_health":
            wait(stream, lambda: stream in viewer.sees(f"/api/v1/devices/{device}"), 4 * LIMIT)
        assert device in viewer.sees("/") and "Waiting on the device" in viewer.sees(f"/device/{device}")
        return f"{time.monotonic() - began:.0f} s after it was enrolled"

    def server_purged(self):
        """apt purge waypost-receiver: the records stay, and words on how to delete them"""
        words = run("apt-get", "purge", "-y", "-q", "waypost-receiver")
        assert "sudo rm -rf /var/lib/waypost-receiver" in words, words
        assert pathlib.Path("/var/lib/waypost-receiver/.receiver.sqlite").exists()
        assert not pathlib.Path("/etc/waypost-receiver").exists()
        return "the data is left"

    def installed(self):
        """apt install on a fresh system: running, no failure, and words on what comes next"""
        self.before = files()
        words = install("before")
        assert "waypost enroll" in words, words
        assert service("ActiveState") == "active" and service("NRestarts") == "0", service("Result")
        assert run("systemctl", "is-enabled", "waypost").strip() == "enabled"
        file = CONFIGURATION / "waypost.toml"
        assert file.stat().st_mode & 0o777 == 0o640 and file.group() == "waypost", oct(file.stat().st_mode)
        run("waypost", "config", "check")
        assert status()["version"] == version("before")
        told = run("waypost", "status", is_good=None)
        assert "endpoint" in told, told
        return "status: " + next(line.strip() for line in told.splitlines() if "endpoint" in line)

    def enrolled(self):
        """waypost enroll: places are collected and arrive, without a restart"""
        pid = service("MainPID")
        file = CONFIGURATION / "waypost.toml"
        file.write_text(file.read_text().replace(
            "[location]", f'[location]\ngpsd = "{self.walk.address}"\ninterval = "1s"').replace(
            "[upload]", '[upload]\ninterval = "1s"'))
        self.server.start()
        token = pathlib.Path("/root/token")
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        run("waypost", "enroll", "--endpoint", f"http://{self.server.address}/api/ingest", "--token-file", str(token))
        collects()
        wait("a place at the server", lambda: self.server.places(), LIMIT)
        assert service("MainPID") == pid, "it was started again"
        assert file.group() == "waypost" and file.stat().st_mode & 0o777 == 0o640, "others can read the configuration"
        return f"{len(self.server.places())} places arrived"

    def upgraded(self):
        """upgrade while it collects and the server is away: queue, ids, configuration kept, all arrives once"""
        self.server.stop()
        wait("pending places", lambda: count("pending") >= 10, LIMIT)
        kept = self.kept()
        pending, began = count("pending"), time.monotonic()
        install("now")
        took = time.monotonic() - began
        assert status()["version"] == version("now")
        assert self.kept() == kept, "configuration, token or device id changed"
        assert count("pending") >= pending, f"{count('pending')} places are pending, {pending} were"
        collects()
        self.server.start()
        wait("an empty queue", lambda: count("pending") == 0 and count("uploaded"), LIMIT)
        self.check_all_arrived()
        return f"{pending} were pending; {took:.1f} s in all; {len(self.server.places())} arrived, none twice, none missing"

    def check_all_arrived(self):
        """Fails unless the server has every place exactly once."""
        places = self.server.places()
        same_id, same_content = records.twice(places)
        assert not same_id and not same_content, f"{same_id} ids and {same_content} places twice"
        rows = sorted(map(records.row_of, places))
        assert rows == list(range(1, len(rows) + 1)), f"rows with holes: {rows}"

    def kept(self):
        """Returns what no upgrade may change."""
        return [path.read_bytes() for path in
                (CONFIGURATION / "waypost.toml", CONFIGURATION / "token", STATE / "device_id")]

    def rolled_back(self):
        """apt install waypost=OLD while it collects and the server is away: as an upgrade, back and forth"""
        self.server.stop()
        wait("pending places", lambda: count("pending") >= 10, LIMIT)
        kept, pending = self.kept(), count("pending")
        for which in ("before", "now", "before"):
            install(which, "--allow-downgrades")
            assert status()["version"] == version(which)
            assert self.kept() == kept, "configuration, token or device id changed"
            assert count("pending") >= pending, f"{count('pending')} places are pending, {pending} were"
            collects()
        install("now")
        collects()
        self.server.start()
        wait("an empty queue", lambda: count("pending") == 0 and count("uploaded"), LIMIT)
        self.check_all_arrived()
        return f"{pending} were pending; {len(self.server.places())} arrived, none twice, none missing"

    def newer_data(self):
        """a version that stores other data, then apt install waypost=OLD: refused with the way back, it goes on collecting"""
        tree, newer = "/root/newer", "/root/newer.deb"
        run("dpkg-deb", "-R", package("waypost", "now"), tree)
        control = pathlib.Path(tree, "DEBIAN/control")
        words, count = re.subn(r"(?m)^Waypost-Data: (\d+)$", lambda data: f"Waypost-Data: {int(data[1]) + 1}", control.read_text())
        assert count == 1, words
        control.write_text(words.replace(f"Version: {version('now')}\n", f"Version: {version('now')}+newer\n"))
        run("dpkg-deb", "-b", tree, newer)
        run("apt-get", "install", "-y", "-q", newer)
        collects()
        pid = service("MainPID")
        words = install("now", "--allow-downgrades", is_good=False)
        assert f"WAYPOST_DOWNGRADE=yes apt install waypost={version('now')}" in words, words
        assert run("dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", "waypost") == f"{version('now')}+newer installed"
        assert run("dpkg", "--audit") == ""
        collects()
        return next(line.strip() for line in words.splitlines() if "stores data" in line) + \
            ("; the same process" if service("MainPID") == pid else "; started again")

    def newer_database(self):
        """WAYPOST_DOWNGRADE=yes over a newer database: the older program names it, changes nothing, and goes on once it is back"""
        database, copy = STATE / "queue.sqlite", pathlib.Path("/root/queue.sqlite")
        run("systemctl", "stop", "waypost")
        run("cp", "-a", database, copy)
        connection = sqlite3.connect(database)
        connection.executescript("PRAGMA user_version=99; ALTER TABLE boots ADD COLUMN more TEXT")
        connection.close()
        newer = hashlib.sha256(database.read_bytes()).digest()
        install("now", "--allow-downgrades", environment={"WAYPOST_DOWNGRADE": "yes"})
        run("systemctl", "start", "waypost", is_good=False)
        wait("its words", lambda: "install the newer Waypost again" in run("journalctl", "-u", "waypost", "-n", "20"), LIMIT)
        words = run("journalctl", "-u", "waypost", "-n", "20", "-o", "cat")
        run("systemctl", "stop", "waypost")
        assert hashlib.sha256(database.read_bytes()).digest() == newer, "the database was changed"
        run("cp", "-a", copy, database)
        run("systemctl", "start", "waypost")
        collects()
        wait("an empty queue", lambda: count("pending") == 0, LIMIT)
        self.check_all_arrived()
        return next(line.strip() for line in words.splitlines() if "newer Waypost" in line)

    def wrong_configuration(self):
        """upgrade with a wrong configuration: the upgrade is done, the service stays down and is not tried again"""
        file = CONFIGURATION / "waypost.toml"
        good = file.read_text()
        file.write_text(good + "\n[beacon]\n")
        install("now", "--reinstall")
        assert (service("ActiveState"), service("ExecMainStatus")) == ("failed", "78"), service("ActiveState")
        assert service("NRestarts") == "0"
        words = run("waypost", "config", "check", is_good=False)
        file.write_text(good)
        run("systemctl", "start", "waypost")
        collects()
        return "exit 78; config check: " + words.strip().splitlines()[0]

    def disabled(self):
        """systemctl disable --now, then an upgrade: it stays off"""
        run("systemctl", "disable", "--now", "waypost")
        install("now", "--reinstall")
        assert service("ActiveState") == "inactive"
        assert run("systemctl", "is-enabled", "waypost", is_good=False).strip() == "disabled"
        run("systemctl", "enable", "--now", "waypost")
        collects()
        return "off until enabled"

    def asked_for(self):
        """upgrades that the server asks for: a good one is kept; one that crashes, hangs, uploads nothing or refuses the database goes back"""
        file, now = CONFIGURATION / "waypost.toml", version("now")
        file.write_text(file.read_text() + '\n[remote]\nallow = ["upgrade"]\n')
        run("systemctl", "restart", "waypost")
        upgrades.add_repository(package("waypost", "now"), now, patience=60)
        kept, words = self.kept(), []
        assert self.ask_for(f"{now}-1") == "kept", run("journalctl", "-u", "waypost-upgrade", "-n", "40")
        assert run("dpkg-query", "-W", "-f", "${Version}", "waypost") == f"{now}-1"
        install("now", "--allow-downgrades")
        for kind, (end, reason) in upgrades.BROKEN.items():
            began = time.monotonic()
            assert self.ask_for(now + end) == "rolled_back", run("journalctl", "-u", "waypost-upgrade", "-n", "40")
            words.append(f"{kind}: {time.monotonic() - began:.0f} s")
            result = pathlib.Path("/var/lib/waypost-upgrade/result").read_text()
            assert reason in result, result
            assert run("dpkg-query", "-W", "-f", "${Version}", "waypost") == now and self.kept() == kept
            collects()
        assert list(STATE.glob("queue.sqlite.corrupt-*")), "the newer database was not moved aside"
        assert records.twice(self.server.places())[0] == 0, "ids twice"
        # Without the permission nothing is asked of root.
        file.write_text(file.read_text().replace('["upgrade"]', "[]"))
        upgrades.remove_repository()
        return "; ".join(words)

    def ask_for(self, wanted):
        """Asks for a version as the server's people do; returns the last state of the job."""
        device = (STATE / "device_id").read_text().strip()
        run("waypost-receiver", "job", "--data", str(self.server.data), device, "upgrade", "--version", wanted)

        stored = STATE / "upgrade.json"

        def ends():
            upgrade = json.loads(stored.read_text()) if stored.exists() else {}
            return upgrade.get("state") if upgrade.get("version") == wanted and upgrade.get("state") != "trial" else None

        def answered():
            return ((status().get("remote") or {}).get("last_job") or {}).get("state")

        wait("the end of the upgrade", ends, 4 * LIMIT)
        wait("its answer", lambda: answered() == ends(), LIMIT)
        return ends()

    def removed(self):
        """apt remove while it collects: data and configuration stay; installed again it goes on as the same device"""
        kept, before = self.kept(), len(self.server.places())
        run("apt-get", "remove", "-y", "-q", "waypost")
        assert not pathlib.Path("/usr/bin/waypost").exists() and service("ActiveState") == "inactive"
        assert self.kept() == kept and (STATE / "queue.sqlite").exists()
        install("now")
        collects()
        wait("new places at the server", lambda: len(self.server.places()) > before, LIMIT)
        same_id, _ = records.twice(self.server.places())
        assert same_id == 0, f"{same_id} ids twice"
        return f"{len(self.server.places())} arrived, none twice"

    def purged(self):
        """apt purge while it collects: nothing of it is left"""
        run("apt-get", "purge", "-y", "-q", "waypost")
        run("apt-get", "autoremove", "--purge", "-y", "-q")
        assert service("LoadState") == "not-found"
        for base, name in ((pwd.getpwall, "user"), (grp.getgrall, "group")):
            assert not any(entry[0] == "waypost" for entry in base()), f"the {name} is left"
        left = sorted(files() - self.before)
        assert not left, f"left: {left}"
        return "files as before it was installed, no user, no group"


# Files of apt, dpkg, logs and any run of a system.
OTHERS = "/(var/(lib/(dpkg|apt|misc|systemd/timers|waypost-receiver)|cache|log|tmp)|tmp|run|proc|sys|dev|root|check|packages|tests)"


def files():
    """Every path of this system but OTHERS."""
    found = run("find", "/", "-xdev", "-regextype", "egrep", "-regex", OTHERS, "-prune", "-o", "-print")
    return set(found.splitlines()) | {str(path) for path in (CONFIGURATION, STATE, RUN) if path.exists()}


def main():
    check, failed = Check(), 0
    steps = check.all()
    for step in steps:
        try:
            print(f"ok      {step.__doc__}\n        {step()}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {step.__doc__}\n        {error}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            # Each step goes on from where the last one ended.
            break
    print(run("journalctl", "-u", "waypost", "-n", "40", "--no-pager") if failed else f"{len(steps)} of {len(steps)}", flush=True)
    pathlib.Path("/check/exit").write_text(f"{failed}\n")


if __name__ == "__main__":
    main()
