"""Rules of the tree that a compiler does not hold: folders without circles, links that lead somewhere, lengths, names."""
import collections
import importlib.machinery
import importlib.util
import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("circles", str(TOP / "Tests/Style/circles"))
circles = importlib.util.module_from_spec(importlib.util.spec_from_loader("circles", loader))
loader.exec_module(circles)

TYPE = re.compile(r"^(?:package |private |fileprivate |final |indirect )*(?:struct|class|enum|actor|protocol) (\w+)", re.M)
OPEN = r"^(?:package |final |indirect |@\w+(?:\([^)]*\))? )*"
OPEN_TYPE = re.compile(OPEN + r"(?:struct|class|enum|actor|protocol|typealias) (\w+)", re.M)
EXTENSION = re.compile(r"^(?:package |private |fileprivate )?extension ([\w.]+)", re.M)
ROOTS = ("README.md", "CHANGELOG.md", ".github", "Sources", "Tests", "deploy")


def markdown():
    for root in ROOTS:
        place = TOP / root
        yield from [place] if place.is_file() else sorted(place.rglob("*.md"))


class StyleTests(unittest.TestCase):
    def test_folders_of_the_server_have_no_circles(self):
        targets = [each for each in (TOP / "Sources/Server").iterdir() if each.is_dir()]
        for folder in [TOP / "Sources/Server", *targets]:
            self.assertEqual(circles.circles(folder), [], folder.name)

    def test_a_circle_is_found(self):
        self.assertIn(("Queue", "Records"), circles.needs(TOP / "Sources"))

    def test_links_lead_to_files(self):
        broken = []
        for page in markdown():
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
                if "://" not in link and not link.startswith("mailto:") and not (page.parent / link).exists():
                    broken.append(f"{page.relative_to(TOP)}: {link}")
        self.assertEqual(broken, [])

    def test_lines_of_documents_end_at_100_columns(self):
        long = []
        for page in markdown():
            is_block = False
            for number, line in enumerate(page.read_text().splitlines(), 1):
                is_block ^= line.lstrip().startswith("```")
                if len(line) > 100 and not is_block and "|" not in line and "](" not in line and "<" not in line:
                    long.append(f"{page.relative_to(TOP)}:{number}")
        self.assertEqual(long, [])

    def test_a_name_belongs_to_one_type(self):
        files = collections.defaultdict(set)
        for file in (TOP / "Sources").rglob("*.swift"):
            for name in TYPE.findall(file.read_text()):
                files[name].add(str(file.relative_to(TOP)))
        twice = {name: sorted(places) for name, places in files.items() if len(places) > 1}
        self.assertEqual(twice, {})

    def test_a_file_is_named_for_its_type(self):
        """Type.swift, or Type+Aspect.swift for an extension; a file of several types has a name for them all."""
        wrong = []
        for file in sorted((TOP / "Sources").rglob("*.swift")):
            text = file.read_text()
            types, extended = set(OPEN_TYPE.findall(text)), {name.replace(".", "") for name in EXTENSION.findall(text)}
            if types | extended and len(types) < 2 and file.stem != "main" and file.stem.split("+")[0] not in types | extended:
                wrong.append(f"{file.relative_to(TOP)} has {', '.join(sorted(types | extended))}")
        self.assertEqual(wrong, [])

    def test_names_of_tests_fit_a_line_of_the_report(self):
        long = []
        for file in (TOP / "Tests").rglob("*Tests.swift"):
            for name in re.findall(r"@Test[^{]*?func (\w+)", file.read_text()):
                if len(name) > 50:
                    long.append(f"{file.relative_to(TOP)}: {name}")
        self.assertEqual(long, [])


if __name__ == "__main__":
    unittest.main()
