"""deploy/systemd/upgrade: which versions it installs, when it goes back, and what a kill between two steps leaves.

A machine is a folder, with apt, dpkg and systemctl that only note what they were asked for. Programs that the script uses
on files are the real ones, through wrappers that count, so that each step can be the last one before the power fails.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = TOP / "deploy/systemd/upgrade"
OLD, NEW = "0.1.0", "0.2.0"

# Counts the steps; at one of them the script is killed. `timeout` makes process groups of its own; the session is the script's.
COUNT = """#!/bin/sh
w=$WAYPOST_TEST_WORLD
read -r step <$w/steps; step=$((step + 1)); echo $step >$w/steps
kill_at() {
    if [ "$step $1" = "$WAYPOST_TEST_KILL" ]; then
        read -r _ _ _ _ _ session _ </proc/$$/stat
        kill -9 $session; kill -9 0
    fi
}
kill_at before
"""

# `kind` is what the new program does, `installed` the version, `dpkg` is there while dpkg was interrupted.
FAKES = {
    "apt-get": r"""
echo "apt-get $*" >>$w/log
offers() { grep -qx "$1" $w/offered; }
unpack() {
    touch $w/dpkg; [ $1 = OLD ] || echo $step >$w/unpacks; kill_at inside; echo $1 >$w/installed; rm $w/dpkg; echo 0 >$w/restarts
    [ $1 = OLD ] || { ! grep -qx configuration $w/kind || echo "new = 1" >$w/etc/waypost/waypost.toml
                      ! grep -qx database $w/kind || echo 2 >$w/var/lib/waypost/queue.sqlite; }
    sh $w/start
}
case " $* " in
*" update "*) ! grep -qx offline $w/kind ;;
*" download waypost=OLD "*) offers OLD && echo OLD >waypost_OLD_arm64.deb ;;
*" --download-only "*" waypost=NEW "*) offers NEW ;;
*" --allow-downgrades "*/previous.deb*)
    [ "$WAYPOST_DOWNGRADE" = yes ] && [ ! -e $w/dpkg ] && ! grep -qx stuck $w/kind && unpack OLD ;;
*" --no-download "*" waypost=NEW "*) ! grep -qx uninstallable $w/kind && unpack NEW ;;
*) exit 100 ;;
esac""",
    "apt-cache": r"""
echo "apt-cache $*" >>$w/log
sed 's|.*|   waypost \| & \| http://deb.example.org trixie/main arm64 Packages|' $w/offered
echo '   waypost | 0.9.9 | http://deb.example.org trixie/main Sources'""",
    "dpkg-query": r"""if [ -e $w/dpkg ]; then echo "half-configured $(cat $w/installed)"; else echo "installed $(cat $w/installed)"; fi""",
    "dpkg-deb": r"""[ $3 = Package ] && echo waypost || cat $2""",
    "dpkg": r"""
case "$*" in
--compare-versions*) exec REAL_DPKG "$@" ;;
--audit) [ ! -e $w/dpkg ] || echo "waypost is half installed" ;;
*--configure*) rm -f $w/dpkg; sh $w/start ;;
esac""",
    "systemctl": r"""
echo "systemctl $*" >>$w/log
is_new() { [ $(cat $w/installed) = NEW ]; }
case "$*" in
*ActiveState*) if is_new && grep -qx fails $w/kind; then echo failed; else echo active; fi ;;
*NRestarts*)
    is_new && grep -qx crashes $w/kind && echo $(($(cat $w/restarts) + 1)) >$w/restarts
    ! is_new || ! grep -qx good $w/kind || echo NEW >$w/run/waypost/upgrade-good
    is_new && grep -qx other $w/kind && echo 0.3.0 >$w/installed
    cat $w/restarts ;;
is-active*) [ -e $w/active ] ;;
stop\ waypost) rm -f $w/active ;;
restart\ waypost) sh $w/start ;;
esac""",
    "setpriv": r"""shift 3; exec "$@" """,
    "mount": "", "sleep": "", "waypost": r"""exit $(cat $w/check)""",
}
# What a start of the program does: the old one refuses the database of the new one.
START = r"""w=$WAYPOST_TEST_WORLD
if [ $(cat $w/installed) = OLD ] && [ "$(cat $w/var/lib/waypost/queue.sqlite 2>/dev/null)" = 2 ]; then
    rm -f $w/active
    echo "the database has schema version 2, this Waypost knows up to 1: install" >$w/run/waypost/start-error
else
    [ -e $w/var/lib/waypost/queue.sqlite ] || echo 1 >$w/var/lib/waypost/queue.sqlite
    rm -f $w/run/waypost/start-error; touch $w/active
fi
"""
REAL = ("mv", "rm", "cp", "sync", "mkdir")


def filled(text):
    return text.replace("REAL_DPKG", shutil.which("dpkg") or "").replace("OLD", OLD).replace("NEW", NEW)


class Machine:
    """A device with the old version; its repositories have both."""

    def __init__(self, kind="good", patience=60):
        self.folder = tempfile.TemporaryDirectory()
        self.root, self.patience = pathlib.Path(self.folder.name), patience
        for name in "bin", "run/waypost", "etc/waypost", "var/lib/waypost", "var/lib/dpkg/updates", "usr":
            (self.root / name).mkdir(parents=True)
        for name, text in (("installed", OLD), ("offered", f"{OLD}\n{NEW}"), ("kind", kind), ("steps", 0), ("restarts", 0), ("log", ""),
                           ("active", ""), ("check", 0), ("start", filled(START)), ("var/lib/waypost/queue.sqlite", 1),
                           ("etc/waypost/waypost.toml", "mine = 1")):
            self.write(name, text)
        for name, text in FAKES.items():
            self.program(name, COUNT + filled(text))
        for name in REAL:
            self.program(name, f'{COUNT}exec {shutil.which(name)} "$@"')

    def program(self, name, text):
        self.write(f"bin/{name}", text)
        (self.root / "bin" / name).chmod(0o755)

    def write(self, name, text):
        (self.root / name).write_text(f"{text}\n")

    def read(self, name):
        path = self.root / name
        return path.read_text().strip() if path.exists() else None

    def run(self, kill=""):
        """One start of the unit; `kill`: the step, and whether before it or inside."""
        self.write("steps", 0)
        environment = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}", WAYPOST_UPGRADE_ROOT=str(self.root),
                           WAYPOST_UPGRADE_PATIENCE=str(self.patience), WAYPOST_UPGRADE_PAUSE="0", WAYPOST_TEST_WORLD=str(self.root),
                           WAYPOST_TEST_KILL=kill)
        process = subprocess.Popen([SCRIPT], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.output, _ = process.communicate(timeout=60)
        return process.returncode

    def boot(self):
        """The power was cut: what is in /run is lost, and the service starts."""
        for path in (self.root / "run/waypost").iterdir():
            path.unlink()
        subprocess.run(["sh", self.root / "start"], env=dict(os.environ, WAYPOST_TEST_WORLD=str(self.root)))
        for _ in range(5):
            if self.run() == 0:
                return

    def ask(self, text=NEW):
        self.write("run/waypost/upgrade", text)
        return self.run()

    @property
    def result(self):
        """Version, state and reason."""
        lines = (self.read("var/lib/waypost-upgrade/result") or "\n").split("\n")
        return f"{lines[0]} {lines[1]}".strip()

    @property
    def apt(self):
        return [line for line in self.read("log").split("\n") if line.startswith("apt-get")]


@unittest.skipUnless(shutil.which("dpkg"), "needs dpkg")
class UpgradeTests(unittest.TestCase):
    def machine(self, *arguments, **options):
        machine = Machine(*arguments, **options)
        self.addCleanup(machine.folder.cleanup)
        return machine

    def check_ended(self, machine, installed):
        """Everything but the result is as before, or the new version is there."""
        self.assertEqual(machine.read("installed"), installed, machine.output)
        self.assertFalse((machine.root / "dpkg").exists())
        self.assertTrue((machine.root / "active").exists(), machine.output)
        left = {path.name for path in (machine.root / "var/lib/waypost-upgrade").glob("*")}
        # The next upgrade overwrites what was fetched for one that was not begun.
        self.assertLessEqual(left, {"result", "result.new"} if machine.result else {"fetch", "previous.deb", "waypost.toml", "state.new"})
        self.assertEqual(machine.read("etc/waypost/waypost.toml"), "mine = 1")

    def test_good_version_is_kept(self):
        machine = self.machine()
        self.assertEqual(machine.ask(), 0)
        self.assertEqual(machine.result, f"{NEW} kept", machine.output)
        self.check_ended(machine, NEW)
        self.assertEqual((machine.root / "var/lib/waypost-upgrade/result").stat().st_mode & 0o777, 0o644)
        self.assertFalse((machine.root / "run/waypost/upgrade").exists())
        # Only after the way back is there the program is touched, and apt never gets more than a version.
        what = [" ".join(word for word in line.split() if not word.startswith(("-o", "DPkg", "Dpkg", "APT"))) for line in machine.apt]
        self.assertEqual(what, ["apt-get -q -y update", f"apt-get -q -y download waypost={OLD}",
                                f"apt-get -q -y install --download-only --no-remove waypost={NEW}",
                                f"apt-get -q -y install --no-download --no-remove waypost={NEW}"])
        for line in machine.apt:
            self.assertIn("Dpkg::Options::=--force-confold", line)

    def test_result_differs_each_time(self):
        machine = self.machine()
        machine.ask(OLD)
        first = machine.read("var/lib/waypost-upgrade/result")
        machine.ask(OLD)
        self.assertEqual(first.split("\n")[:2], machine.read("var/lib/waypost-upgrade/result").split("\n")[:2])
        self.assertNotEqual(first, machine.read("var/lib/waypost-upgrade/result"))

    def test_broken_versions_go_back(self):
        for kind, why in (("crashes", "it ended 3 times"), ("hangs", "it did not declare itself good within 1 seconds"),
                          ("uploads nothing", "it did not declare itself good"), ("fails", "its service failed"),
                          ("uninstallable", "it cannot be installed"), ("configuration", "it did not declare itself good")):
            with self.subTest(kind):
                machine = self.machine(kind, patience=1 if "declare" in why else 60)
                self.assertEqual(machine.ask(), 0)
                self.assertTrue(machine.result.startswith(f"{NEW} rolled_back {why}"), (machine.result, machine.output))
                self.check_ended(machine, OLD)
                self.assertEqual(machine.read("var/lib/waypost/queue.sqlite"), "1")

    def test_newer_database_is_moved_aside(self):
        machine = self.machine("database\ncrashes")
        data = machine.root / "var/lib/waypost"
        (data / "queue.sqlite-wal").write_text("journal")
        machine.ask()
        self.assertTrue(machine.result.endswith(f"its database is too new for {OLD} and was moved aside"), machine.result)
        self.check_ended(machine, OLD)
        aside = sorted(path for path in data.iterdir() if ".corrupt-" in path.name)
        self.assertRegex(aside[0].name, r"^queue\.sqlite\.corrupt-\d{8}T\d{6}Z$")
        self.assertEqual([path.read_text().strip() for path in aside], ["2", "journal"])
        self.assertEqual(machine.read("var/lib/waypost/queue.sqlite"), "1")

    def test_refusals(self):
        for prepare, version, why in (
                (lambda machine: None, OLD, f"refused it is not newer than {OLD}"),
                (lambda machine: None, "0.0.9", "refused it is not newer"),
                (lambda machine: None, "0.9.9", "refused no configured repository has it"),
                (lambda machine: machine.write("offered", NEW), NEW, f"refused no configured repository has {OLD}"),
                (lambda machine: (machine.root / "active").unlink(), NEW, "refused the service is not running")):
            with self.subTest(why):
                machine = self.machine()
                prepare(machine)
                machine.ask(version)
                self.assertTrue(machine.result.startswith(f"{version} {why}"), (machine.result, machine.output))
                self.assertEqual(machine.read("installed"), OLD)
                self.assertFalse(any("--no-download" in line for line in machine.apt))

    def test_lists_of_before_count_without_a_network(self):
        machine = self.machine("offline\ngood")
        machine.ask()
        self.assertEqual(machine.result, f"{NEW} kept", machine.output)

    def test_hostile_files(self):
        """Neither a link nor a long text nor characters of the shell reach apt, and none stays."""
        texts = ["", "; touch hacked", "0.2.0;reboot", "$(touch hacked)", "`id`", "-o Dpkg::x=y", "--help", "0.2.0 hello", "0.2.0\n0.3.0",
                 "0.2.0/trixie", "0.2.0*", "../0.2.0", "0.2.0=1", "1:2:3", "a:1", ":1", "\u00e9", "0.2.0\u00e9", "0" * 65, "0" * 100_000,
                 "0.2.0\x1b[2J", "waypost", "0.2.0+"]
        for text in texts[:-1]:
            with self.subTest(text[:20]):
                machine = self.machine()
                self.assertEqual(machine.ask(text), 0)
                self.assertEqual((machine.apt, machine.result), ([], ""), machine.output)
                self.assertFalse((machine.root / "run/waypost/upgrade").exists())
        for kind in "link", "dangling", "pipe", "folder":
            with self.subTest(kind):
                machine = self.machine()
                path, other = machine.root / "run/waypost/upgrade", machine.root / "other"
                other.write_text(NEW)
                {"link": lambda: path.symlink_to(other), "dangling": lambda: path.symlink_to("/nowhere"),
                 "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
                self.assertEqual(machine.run(), 0)
                self.assertEqual((machine.apt, machine.result), ([], ""), machine.output)
                self.assertEqual(other.read_text(), NEW)

    def test_link_does_not_declare_good(self):
        machine = self.machine("hangs", patience=1)
        (machine.root / "secret").write_text(NEW)
        link = f"ln -s {machine.root}/secret {machine.root}/run/waypost/upgrade-good\n"
        machine.write("start", machine.read("start") + "\n" + link)
        machine.ask()
        self.assertIn("rolled_back", machine.result)
        self.check_ended(machine, OLD)

    def test_way_back_that_fails_is_tried_again(self):
        machine = self.machine("stuck\ncrashes")
        self.assertEqual(machine.ask(), 1)
        self.assertEqual(machine.result, "")
        self.assertEqual(machine.run(), 1)
        machine.write("kind", "crashes")
        self.assertEqual(machine.run(), 0)
        self.assertEqual(machine.result, f"{NEW} rolled_back it ended 3 times")
        self.check_ended(machine, OLD)
        # However long it takes: nothing else would help a device that nobody can reach.
        machine = self.machine("stuck\ncrashes")
        self.assertEqual([machine.ask()] + [machine.run() for _ in range(6)], [1] * 7)
        machine.write("kind", "crashes")
        self.assertEqual(machine.run(), 0)
        self.check_ended(machine, OLD)

    def test_wrong_configuration_on_the_disk(self):
        """No program would start with it, so nothing is installed."""
        machine = self.machine()
        machine.write("check", "2")
        machine.ask()
        self.assertIn("refused the configuration on the device has errors", machine.result)
        self.check_ended(machine, OLD)

    def test_version_of_somebody_else_stays(self):
        machine = self.machine("other")
        machine.ask()
        self.assertIn("failed another version was installed", machine.result)
        self.assertEqual(machine.read("installed").strip(), "0.3.0")

    def test_power_cut_at_each_step(self):
        """The next boot ends it: the new version is kept, the old one is back, or nothing was begun."""
        for kind in "good", "database\ncrashes":
            steps = self.machine(kind)
            steps.ask()
            # Up to the installation the two are the same.
            unpacks = int(steps.read("unpacks"))
            first = unpacks if kind == "good" else 1
            cuts = [f"{step} before" for step in range(first, int(steps.read("steps")) + 1)] + [f"{unpacks} inside"]
            for cut in cuts:
                machine = self.machine(kind)
                machine.write("run/waypost/upgrade", NEW)
                with self.subTest(kind=kind, cut=cut):
                    self.assertEqual(machine.run(cut), -signal.SIGKILL)
                    machine.boot()
                    kept = machine.result == f"{NEW} kept"
                    self.assertTrue(kept or machine.result == "" or "rolled_back" in machine.result, machine.result)
                    self.assertFalse(kept and kind != "good")
                    self.check_ended(machine, NEW if kept else OLD)

    def test_version_that_ends_the_machine_goes_back(self):
        machine = self.machine("hangs")
        machine.program("sleep", COUNT + "step=0; kill_at before")
        machine.write("run/waypost/upgrade", NEW)
        ends = []
        while machine.result == "" and len(ends) < 9:
            ends.append(machine.run("0 before"))
        self.assertEqual(ends, [-signal.SIGKILL] * 3 + [0])
        self.assertEqual(machine.result, f"{NEW} rolled_back it was interrupted 3 times")
        self.check_ended(machine, OLD)


if __name__ == "__main__":
    unittest.main()
