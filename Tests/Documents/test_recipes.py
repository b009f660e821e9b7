"""The blocks of the documents, as they are written: configurations, commands, units, scripts.

Each command of ours must be one that the program has, with options that it has; a configuration must be valid. The examples of
data.md run in Tests/ReceiverLake.
"""
import ast
import functools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = TOP / ".build/debug"
PAGES = [TOP / "README.md", TOP / ".github/CONTRIBUTING.md", *sorted((TOP / "deploy/docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Blocks of these languages have commands.
SHELL = {"", "sh", "bash"}
OURS = ("waypost", "waypost-receiver")


def blocks(*languages):
    """The blocks of some languages: page and line, text."""
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            indent, language, body = found.groups()
            if language in languages:
                line = text.count("\n", 0, found.start()) + 1
                body = "\n".join(each.removeprefix(indent) for each in body.splitlines())
                yield f"{page.relative_to(TOP)}:{line}", body + "\n"


# What may stand before a command of ours, and how many words it has.
BEFORE = (("docker compose exec server", 4), ("ssh", 2), ("sudo -u", 3), ("sudo", 1), ("do", 1))


def without_prefix(words):
    for prefix, count in BEFORE:
        if words[:len(prefix.split())] == prefix.split():
            return without_prefix(words[count:])
    return without_prefix(words[1:]) if words and re.fullmatch(r"[A-Z_]+=.*", words[0]) else words


def commands(text):
    """The commands of a block that are ours, each a list of words; none of one that shows output."""
    if "SOURCE    STATE" in text:
        return
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        words.whitespace_split = True
        try:
            words = list(words)
        except ValueError:  # a quotation of several lines: `bash -n` has seen the whole
            words = line.split()
        parts = [[]]
        for word in words:
            if set(word) <= set("|&;()<>"):
                parts.append([])
            else:
                parts[-1].append(word)
        for command in map(without_prefix, parts):
            if command and (command[0] in OURS or command[0].startswith("deploy/")):
                yield command


@functools.cache
def help_of(*command):
    """A program's help, or that of a subcommand; the comment at the top of a script."""
    if command[0] in OURS:
        return subprocess.run([PROGRAMS / command[0], *command[1:], "--help"], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=True).stdout
    return "\n".join(line for line in (TOP / command[0]).read_text().splitlines() if line.startswith("#"))


def subcommands(text):
    part = text.partition("SUBCOMMANDS:")[2]
    return set(re.findall(r"^  (\S+)", part, re.MULTILINE)) - {"See"}, re.findall(r"^  (\S+) \(default\)", part, re.MULTILINE)


def unknown(command):
    """What a command has that its help does not name: a word for an error, or nothing."""
    if command[:2] == ["deploy/test", "--arm64"]:  # which hands over to it
        command = ["deploy/parts/arm64-tests", *command[2:]]
    path, rest = [command[0]], command[1:]
    while True:
        text = help_of(*path)
        names, default = subcommands(text)
        if rest and rest[0] in names:
            path, rest = path + [rest[0]], rest[1:]
        elif default:
            path += default
        else:
            break
    if names and (not rest or not rest[0].startswith("-")):
        return f"{' '.join(path)} has no subcommand {' '.join(rest[:1])}"
    for word in rest:
        option = word.partition("=")[0]
        if re.fullmatch(r"--[a-z][a-z0-9-]*", option) and not re.search(rf"{option}(?![a-z0-9-])", text):
            return f"{' '.join(path)} has no option {option}"
    return ""


@unittest.skipUnless((PROGRAMS / "waypost-receiver").exists(), "the programs are not built: swift build")
class RecipeTests(unittest.TestCase):
    def test_commands_areThoseOfTheProgram(self):
        count = 0
        for place, text in blocks(*SHELL):
            for command in commands(text):
                with self.subTest(place, command=command):
                    self.assertEqual(unknown(command), "")
                count += 1
        self.assertGreater(count, 90)

    @unittest.skipUnless(shutil.which("scdoc"), "scdoc is not installed")
    def test_manualPages_areWellFormed(self):
        for page in sorted((TOP / "deploy/man").glob("*.scd")):
            with self.subTest(page.name), page.open() as text:
                done = subprocess.run(["scdoc"], stdin=text, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_check_findsAWrongCommand(self):
        for line, error in (("sudo waypost status --jso", "no option --jso"), ("waypost stat", "no subcommand stat"),
                            ("echo a | waypost-receiver codes ad", "no subcommand ad"), ("deploy/demo --kept", "no option --kept")):
            (command,) = commands(line)
            self.assertIn(error, unknown(command))

    def test_configurations_areValid(self):
        count = 0
        for place, text in blocks("toml"):
            program = "waypost-receiver" if place.startswith("deploy/docs/server.md") else "waypost"
            with self.subTest(place), tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                done = subprocess.run([PROGRAMS / program, "config", "check", "--config", file.name], text=True, capture_output=True)
                # 1: it names a file or a device that this machine does not have.
                self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
            count += 1
        self.assertGreater(count, 15)


class SyntaxTests(unittest.TestCase):
    def test_shell(self):
        for place, text in blocks("sh", "bash"):
            with self.subTest(place):
                done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_python(self):
        for place, text in blocks("python"):
            with self.subTest(place):
                ast.parse(text)

    def test_json(self):
        for place, text in blocks("json"):
            with self.subTest(place):
                json.loads(text)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_units(self):
        """A part of a unit is not a unit."""
        for place, text in blocks("ini"):
            if "ExecStart=" not in text:
                continue
            # The program and the user are not there.
            text = re.sub(r"^ExecStart=.*?(?<!\\)$", "ExecStart=/bin/true", text, flags=re.MULTILINE | re.DOTALL)
            with self.subTest(place), tempfile.TemporaryDirectory() as folder:
                unit = pathlib.Path(folder, "recipe.service")
                unit.write_text(text)
                done = subprocess.run(["systemd-analyze", "verify", unit], text=True, capture_output=True)
                self.assertNotIn(f"{unit}:", done.stderr)

    def test_scripts_importNoModuleOfTheirOwnName(self):
        """Python puts a script's folder first on its path, so such a script imports itself."""
        scripts = sorted((TOP / "deploy").rglob("*.py"))
        self.assertGreater(len(scripts), 1)
        for script in scripts:
            beside = {other.stem for other in script.parent.glob("*.py")}
            for node in ast.walk(ast.parse(script.read_text())):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module]
                for name in names:
                    with self.subTest(script.name):
                        self.assertNotEqual(name.partition(".")[0], script.stem)
                        self.assertTrue(name.partition(".")[0] not in beside or script.parent.name != "detectors", name)

    def test_container_hasTheLibrariesOfThePage_andTheCommandsOfTheDocument(self):
        libraries = set(re.findall(r"libjs-\w+", (TOP / "deploy/debian/control").read_text()))
        self.assertTrue(libraries)
        self.assertLessEqual(libraries, set(re.findall(r"libjs-\w+", (TOP / "deploy/container/Dockerfile").read_text())))
        page = (TOP / "deploy/docs/server.md").read_text()
        told = re.findall(r"^#   (.+)$", (TOP / "deploy/container/compose.yaml").read_text(), re.MULTILINE)
        self.assertTrue(told)
        for command in told:
            self.assertIn(f"\n{command}\n", page)

    def test_detectors_areWhereTheirRecipeSays(self):
        """The package puts them there; the recipe copies and calls them by that name."""
        page = (TOP / "deploy/docs/detectors.md").read_text()
        installed = (TOP / "deploy/install").read_text()
        for script in (TOP / "deploy/detectors").glob("*.py"):
            with self.subTest(script.name):
                self.assertIn(f"deploy/detectors/{script.name} /usr/share/doc/waypost/detectors/{script.name} 644", installed)
                self.assertRegex(page, rf"sudo cp /usr/share/doc/waypost/detectors/{script.name} (/opt/\w+)/")
                self.assertRegex(page, rf"(/opt/\w+)/bin/python \1/{script.name}")


if __name__ == "__main__":
    unittest.main()
