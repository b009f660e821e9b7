"""The scripts and the style sheet of the server's pages: their syntax, and that each is served."""
import pathlib
import re
import shutil
import subprocess
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
ASSETS = sorted((TOP / "Sources/Server/Pages/Assets").iterdir())
READER = (TOP / "Sources/Server/Pages/Page/PageAssets.swift").read_text()


class AssetTests(unittest.TestCase):
    def test_each_file_is_served(self):
        served = re.findall(r'"([a-z]+\.(?:js|css|svg))"', READER)
        self.assertEqual(sorted(served), [file.name for file in ASSETS])

    def test_the_package_installs_them_where_the_server_looks(self):
        source, folder = "Sources/Server/Pages/Assets", "share/waypost-receiver/assets"
        lines = (TOP / "deploy/debian/waypost-receiver.install").read_text().splitlines()
        self.assertIn(f"{source}/* usr/{folder}", lines)
        self.assertTrue(f"/{source}\"" in READER and f"/{folder}\"" in READER)

    @unittest.skipUnless(shutil.which("node"), "node is not installed: apt install nodejs")
    def test_scripts_are_javascript(self):
        for file in ASSETS:
            if file.suffix == ".js":
                done = subprocess.run(["node", "--check", file], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_braces_of_the_style_sheet_are_balanced(self):
        for file in ASSETS:
            if file.suffix == ".css":
                # Strings and comments may hold any.
                text = re.sub(r"/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", "", file.read_text(), flags=re.DOTALL)
                depth = 0
                for number, line in enumerate(text.splitlines(), 1):
                    for brace in re.findall("[{}]", line):
                        depth += 1 if brace == "{" else -1
                        self.assertIn(depth, (0, 1, 2), f"{file.name}:{number}")
                self.assertEqual(depth, 0, file.name)


if __name__ == "__main__":
    unittest.main()
