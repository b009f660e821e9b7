"""deploy/release: what a trial release holds, what apt accepts of it, and what is refused.

The packages are small ones with our control fields, made here; apt, gpg and git are the real ones.
"""
import datetime
import email.utils
import functools
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("apt-get", "apt-ftparchive", "dpkg-deb", "dpkg-parsechangelog", "gpg", "gpgv", "git", "scdoc", "mandoc", "xz")
OLD, NEW = "9.8.0", "9.9.0"


def run(*command, is_good=True, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if (done.returncode == 0) != is_good:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def make_package(folder, version, words=""):
    """Builds waypost_VERSION_amd64.deb and its .buildinfo."""
    tree = folder / f"tree-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/share/doc/waypost").mkdir(parents=True)
    (tree / "usr/share/doc/waypost/words").write_text(words + version)
    (tree / "DEBIAN/control").write_text(
        f"Package: waypost\nVersion: {version}\nArchitecture: amd64\nMaintainer: Waypost <waypost@localhost>\n"
        "Depends: libc6 (>= 2.38), libasound2t64 (>= 1.0.16), systemd | systemd-sysusers\n"
        "Static-Built-Using: swiftlang (= 6.0.3-2)\nDescription: test\n")
    run("dpkg-deb", "--root-owner-group", "-b", tree, folder)
    (folder / f"waypost_{version}_amd64.buildinfo").write_text(
        "Format: 1.0\nSource: waypost\nInstalled-Build-Depends:\n libc6 (= 2.41-12),\n libasound2t64:amd64 (= 1.2.14-1)\nEnvironment:\n A=b\n")


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Site:
    """Serves a folder on loopback."""

    def __init__(self, folder):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Apt:
    """apt with folders of its own, so that it needs no rights and knows no other repository."""

    def __init__(self, folder, sources):
        for name in ("state/lists/partial", "cache/archives/partial", "parts"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        shutil.copy(sources, folder / "parts/waypost.sources")
        self.folder, self.options = folder, [
            "-o", f"Dir::State={folder}/state", "-o", f"Dir::State::status={folder}/status", "-o", f"Dir::Cache={folder}/cache",
            "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={folder}/parts",
            "-o", "Dir::Etc::preferencesparts=/dev/null", "-o", "Dir::Etc::trustedparts=/dev/null",
            "-o", "APT::Architecture=amd64", "-o", "APT::Architectures=amd64", "-o", "APT::Sandbox::User=",
            "-o", "Acquire::http::Proxy=DIRECT", "-o", "Acquire::Languages=none", "-o", "APT::Update::Error-Mode=any"]

    def update(self, is_good=True):
        return run("apt-get", *self.options, "update", is_good=is_good)

    def download(self, version):
        run("apt-get", *self.options, "download", f"waypost={version}", cwd=self.folder)
        return self.folder / f"waypost_{version}_amd64.deb"


@unittest.skipUnless(all(map(shutil.which, TOOLS)), f"needs {', '.join(TOOLS)}")
class ReleaseTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.debs, cls.old = cls.folder / "debs", cls.folder / "old"
        for folder, version in ((cls.debs, NEW), (cls.old, OLD)):
            folder.mkdir()
            make_package(folder, version)
        cls.out = cls.folder / "out"
        cls.out.mkdir()
        cls.site = Site(cls.out / NEW)
        cls.addClassCleanup(cls.site.stop)
        cls.output = cls.trial(cls.out)
        cls.release = cls.out / NEW

    @classmethod
    def trial(cls, out, *options, debs=None, is_good=True):
        return run(TOP / "deploy/release", NEW, "--trial", "--debs", debs or cls.debs, "--arch", "amd64", "--no-image",
                   "--previous", cls.old, "--url", cls.site.url, "--out", out, *options, is_good=is_good)

    def apt(self, name):
        return Apt(self.folder / name, self.release / "apt/waypost.sources")

    def test_saysInNotesAndOutput_thatItIsATrial(self):
        for text in (self.output, (self.release / "RELEASE_NOTES.md").read_text()):
            self.assertIn("not a release", text.lower())
            for reason in (".ci/run was not run", "there is no card image", "packages for amd64 only", f'no section "## {NEW}"'):
                self.assertIn(reason, text)
            self.assertIn("Debian 13 and Raspberry Pi OS 13", text)

    def test_sums_coverEachFile_andAreSigned(self):
        sums = dict(reversed(line.split("  ")) for line in (self.release / "SHA256SUMS").read_text().splitlines())
        files = {str(path.relative_to(self.release)) for path in self.release.rglob("*") if path.is_file()}
        self.assertEqual(set(sums), files - {"SHA256SUMS", "SHA256SUMS.asc"})
        for name, expected in sums.items():
            self.assertEqual(hashlib.sha256((self.release / name).read_bytes()).hexdigest(), expected, name)
        keyring = self.folder / "keyring"
        run("gpg", "--dearmor", "--output", keyring, self.release / "waypost-key.asc")
        run("gpgv", "--keyring", keyring, self.release / "SHA256SUMS.asc", self.release / "SHA256SUMS")

    def test_aptTakesBothVersions_andTheSameBytes(self):
        apt = self.apt("good")
        apt.update()
        for folder, version in ((self.debs, NEW), (self.old, OLD)):
            name = f"waypost_{version}_amd64.deb"
            self.assertEqual(apt.download(version).read_bytes(), (folder / name).read_bytes())

    def test_aptRefusesAnotherKey(self):
        other = self.folder / "other"
        self.trial(other)
        apt = self.apt("refused")
        sources = apt.folder / "parts/waypost.sources"
        # The repository of the site, with the key of the other one.
        shutil.copy(other / NEW / "apt/waypost.sources", sources)
        words = apt.update(is_good=False)
        self.assertRegex(words, "NO_PUBKEY|not signed|Missing key|verif")

    def test_aptRefusesAChangedIndex(self):
        apt = self.apt("changed")
        packages = self.release / "apt/dists/trixie/main/binary-amd64/Packages.xz"
        kept = packages.read_bytes()
        self.addCleanup(packages.write_bytes, kept)
        packages.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        self.assertRegex(apt.update(is_good=False), "Hash Sum mismatch|unexpected size")

    def test_sbom_namesPackagesDependenciesAndWhatIsLinked(self):
        document = json.loads((self.release / f"waypost-{NEW}.spdx.json").read_text())
        versions = {package["name"]: package.get("versionInfo") for package in document["packages"]}
        self.assertEqual(versions, {f"waypost_{NEW}_amd64.deb": NEW, "libc6": "2.41-12", "libasound2t64": "1.2.14-1",
                                    "systemd": None, "swiftlang": "6.0.3-2", "swift-argument-parser": "1.8.2"})
        ids = {package["SPDXID"]: package["name"] for package in document["packages"]}
        kinds = {(each["relationshipType"], ids[each["relatedSpdxElement"]]) for each in document["relationships"]}
        self.assertEqual(kinds, {("DESCRIBES", f"waypost_{NEW}_amd64.deb"), ("DEPENDS_ON", "libc6"), ("DEPENDS_ON", "libasound2t64"),
                                 ("DEPENDS_ON", "systemd"), ("STATIC_LINK", "swiftlang"), ("STATIC_LINK", "swift-argument-parser")})

    def test_sbom_isTheSameAgain(self):
        again = self.folder / "again"
        self.trial(again)
        name = f"waypost-{NEW}.spdx.json"
        self.assertEqual((again / NEW / name).read_bytes(), (self.release / name).read_bytes())

    def test_manualIsThere(self):
        self.assertTrue((self.release / "manual/waypost.1.html").exists())

    def test_refusesAVersionAgain(self):
        self.assertIn("a version is released once", self.trial(self.out, is_good=False))

    def test_refusesOtherContentUnderAReleasedVersion(self):
        changed = self.folder / "changed-debs"
        changed.mkdir()
        make_package(changed, NEW, "other words ")
        words = self.trial(self.folder / "clash", "--previous", self.debs, debs=changed, is_good=False)
        self.assertIn("was released with other content", words)

    def test_refusesPackagesOfAnotherVersion(self):
        self.assertIn(f"no packages and .buildinfo of version {NEW}", self.trial(self.folder / "none", debs=self.old, is_good=False))


class Clone(unittest.TestCase):
    """A clone whose .ci/run fails, and a key; no trial."""

    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.clone = folder / "clone"
        files = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                                "deploy", "CHANGELOG.md", ".gitignore"], cwd=TOP, check=True, capture_output=True)
        self.clone.mkdir()
        for name in filter(lambda name: name and (TOP / name).exists(), files.stdout.decode().split("\0")):
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, self.clone / name, follow_symlinks=False)
        (self.clone / ".ci").mkdir()
        self.script(".ci/run", "echo the tests ran; exit 1")
        self.change("CHANGELOG.md", lambda text: text.replace("## Unreleased", f"## {NEW} - 2026-12-01"))
        self.change("deploy/debian/changelog", lambda text: text.replace("(0.1.0)", f"({NEW})"))
        self.home = self.enterContext(tempfile.TemporaryDirectory(prefix="gpg"))
        self.environment = dict(os.environ, GNUPGHOME=self.home)
        run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", "key of a test", "ed25519", "sign", "never", env=self.environment)
        self.addCleanup(run, "gpgconf", "--kill", "all", env=self.environment)
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments):
        run("git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments, cwd=self.clone)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "all")

    def script(self, name, body):
        (self.clone / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.clone / name).chmod(0o755)

    def change(self, name, edit):
        path = self.clone / name
        before = path.read_text()
        path.write_text(edit(before))
        self.assertNotEqual(path.read_text(), before, name)

    def release(self, *options, version=NEW, is_good=True):
        return run(self.clone / "deploy/release", version, *options, is_good=is_good, env=self.environment)

    def refused(self, *options, version=NEW):
        words = self.release(*options, version=version, is_good=False)
        self.assertFalse((self.clone / "release" / version).exists())
        return words


@unittest.skipUnless(all(map(shutil.which, TOOLS)), f"needs {', '.join(TOOLS)}")
class RefusalTests(Clone):
    def test_failedTests(self):
        words = self.refused()
        self.assertIn("the tests ran", words)
        self.assertIn(".ci/run failed; nothing was released", words)

    def test_changedTree(self):
        (self.clone / "deploy/new").touch()
        self.assertIn("the tree has changes that are not committed", self.refused())

    def test_versionWithoutNotes(self):
        self.assertIn('CHANGELOG.md has no section "## 9.9.1"', self.refused(version="9.9.1"))

    def test_versionWithEmptyNotes(self):
        self.change("CHANGELOG.md", lambda text: text + "\n## 9.9.2 - 2026-12-01\n\n")
        self.commit()
        self.assertIn('CHANGELOG.md has no section "## 9.9.2"', self.refused(version="9.9.2"))

    def test_otherVersionOfThePackages(self):
        self.change("deploy/debian/changelog", lambda text: text.replace(NEW, "9.9.3"))
        self.commit()
        self.assertIn(f"deploy/debian/changelog is at 9.9.3, not {NEW}", self.refused())

    def test_unknownKey(self):
        self.assertIn("gpg cannot sign with nobody", self.refused("--key", "nobody"))

    def test_treeThatTheTestsChanged(self):
        self.script(".ci/run", "touch deploy/new")
        # Stands for a build, which takes a quarter of an hour.
        self.script("deploy/package", 'mkdir -p "$4"; touch "$4/a.deb" "$4/a.buildinfo"')
        self.commit()
        self.assertIn("the tree changed meanwhile", self.refused("--no-image", "--arch", "amd64"))

    def test_packagesBuiltElsewhere(self):
        self.assertIn("a release builds its packages itself", self.refused("--debs", "."))

    def test_noVersion(self):
        self.assertIn("is not a version", self.refused(version="../x"))


@unittest.skipUnless(all(map(shutil.which, TOOLS)), f"needs {', '.join(TOOLS)}")
class TwoStepTests(Clone):
    """What needs no key in one place, signed in another."""

    def setUp(self):
        super().setUp()
        for name in ("Package.swift", "Package.resolved"):
            shutil.copy(TOP / name, self.clone / name)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.debs, self.old = self.folder / "debs", self.folder / "previous" / f"v{OLD}"
        for folder, version in ((self.debs, NEW), (self.old, OLD)):
            folder.mkdir(parents=True)
            make_package(folder, version)
            shutil.rmtree(folder / f"tree-{version}")
        # Stands for a build, which takes a quarter of an hour.
        self.script("deploy/package", f'mkdir -p "$4"; cp {self.debs}/* "$4"')
        self.commit()
        words = self.release("--unsigned", "--arch", "amd64", "--no-image", "--url", "http://127.0.0.1:1")
        self.assertNotIn("the tests ran", words)
        self.unsigned = self.folder / "artifact"
        shutil.move(self.clone / f"release/{NEW}.unsigned", self.unsigned)
        self.sums()

    def sums(self):
        """Writes and signs those of the earlier release."""
        name = f"waypost_{OLD}_amd64.deb"
        (self.old / "SHA256SUMS").write_text(f"{hashlib.sha256((self.old / name).read_bytes()).hexdigest()}  {name}\n")
        run("gpg", "--yes", "--armor", "--detach-sign", "--output", self.old / "SHA256SUMS.asc", self.old / "SHA256SUMS", env=self.environment)

    def sign(self, is_good=True):
        return (self.release if is_good else self.refused)("--sign", self.unsigned, "--previous", self.old.parent, "--url", "http://127.0.0.1:1")

    def test_makesARelease_withThePackagesOfTheEarlierOne(self):
        self.assertFalse(list(self.unsigned.rglob("*.asc")) + list(self.unsigned.rglob("InRelease")))
        self.sign()
        made = self.clone / "release" / NEW
        self.assertEqual({path.name for path in made.rglob("*.deb")}, {f"waypost_{OLD}_amd64.deb", f"waypost_{NEW}_amd64.deb"})
        notes = (made / "RELEASE_NOTES.md").read_text()
        self.assertNotIn("trial", notes)
        self.assertIn("there is no card image", notes)
        self.assertFalse((made / "commit").exists())
        run("gpg", "--verify", made / "SHA256SUMS.asc", made / "SHA256SUMS", env=self.environment)
        run("gpg", "--verify", made / "apt/dists/trixie/InRelease", env=self.environment)

    def test_renew_makesANewIndexOfTheSameFiles(self):
        self.sign()
        published, made = self.folder / "published", self.clone / "release" / NEW
        # As a release's page has them: the files beside the folders.
        published.mkdir()
        for path in filter(pathlib.Path.is_file, made.iterdir()):
            shutil.copy(path, published)
        first = (made / "apt/dists/trixie/Release").read_text()
        self.assertRegex(first, "Valid-Until: ")
        shutil.rmtree(made)
        renew = ("--renew", published, "--previous", self.old.parent, "--url", "http://127.0.0.1:1")
        self.release(*renew)
        again = (made / "apt/dists/trixie/Release").read_text()
        until = email.utils.parsedate_to_datetime(again.split("Valid-Until: ")[1].split("\n")[0])
        self.assertAlmostEqual((until - datetime.datetime.now(datetime.timezone.utc)).days, 89, delta=1)
        self.assertEqual({path.name for path in made.rglob("*.deb")}, {f"waypost_{OLD}_amd64.deb", f"waypost_{NEW}_amd64.deb"})
        for path in filter(pathlib.Path.is_file, published.iterdir()):
            if not path.name.startswith("SHA256SUMS"):
                self.assertEqual((made / path.name).read_bytes(), path.read_bytes(), path.name)
        run("gpg", "--verify", made / "apt/dists/trixie/InRelease", env=self.environment)
        run("gpg", "--verify", made / "SHA256SUMS.asc", made / "SHA256SUMS", env=self.environment)
        shutil.rmtree(made)
        with open(published / f"waypost_{NEW}_amd64.deb", "ab") as file:
            file.write(b"x")
        self.assertIn("is not the file in", self.refused(*renew))

    def test_changedFile(self):
        with open(self.unsigned / f"waypost_{NEW}_amd64.deb", "ab") as file:
            file.write(b"x")
        self.assertIn("has other files than its SHA256SUMS says", self.sign(is_good=False))

    def test_fileWithoutASum(self):
        (self.unsigned / "waypost-more.deb").touch()
        self.assertIn("has files that its SHA256SUMS does not name", self.sign(is_good=False))

    def test_link(self):
        (self.unsigned / "more").symlink_to("/etc/passwd")
        self.assertIn("links or other special files", self.sign(is_good=False))

    def test_otherCommit(self):
        self.change("CHANGELOG.md", lambda text: text + "\n")
        self.commit()
        self.assertIn("was made from another commit", self.sign(is_good=False))

    def test_earlierReleaseWithoutSignature(self):
        (self.old / "SHA256SUMS.asc").unlink()
        self.assertIn("has no signature of", self.sign(is_good=False))

    def test_earlierReleaseOfAnotherKey(self):
        run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", "another", "ed25519", "sign", "never", env=self.environment)
        run("gpg", "--yes", "--armor", "--local-user", "another", "--detach-sign", "--output", self.old / "SHA256SUMS.asc",
            self.old / "SHA256SUMS", env=self.environment)
        self.assertIn("has no signature of", self.sign(is_good=False))

    def test_changedPackageOfAnEarlierRelease(self):
        with open(self.old / f"waypost_{OLD}_amd64.deb", "ab") as file:
            file.write(b"x")
        self.assertIn("is not the package in", self.sign(is_good=False))


if __name__ == "__main__":
    unittest.main()
