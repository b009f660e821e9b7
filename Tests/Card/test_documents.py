#!/usr/bin/env python3
"""What the card's FAT partition has to read: every key, and the manual as one page of HTML."""
import html.parser
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Elements without an end tag.
VOID = {"meta", "br", "hr", "link", "img", "col"}


class Page(html.parser.HTMLParser):
    """Notes the text, the ids, the links, and elements that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.text, self.ids, self.links, self.open, self.faults = "", [], [], [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        self.text += data


@unittest.skipUnless(shutil.which("scdoc") and shutil.which("mandoc"), "needs scdoc and mandoc")
class DocumentsTests(unittest.TestCase):
    def test_documents_are_whole_and_the_import_reads_neither(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys")
            keys.write_bytes(b"# a\n[upload]\r\n")
            subprocess.run([ROOT / "deploy/parts/card-documents", keys, folder], check=True)
            self.assertEqual(pathlib.Path(folder, "waypost-all-keys.toml").read_bytes(), b"# a\r\n[upload]\r\n")
            page = Page()
            page.feed(pathlib.Path(folder, "waypost-manual.html").read_text())
            self.assertEqual((page.open, page.faults), ([], []))
            self.assertEqual(page.ids, ["waypost", "keys"])
            # Nothing leads to another place: the reader has no network.
            self.assertEqual(set(page.links), {"#waypost", "#keys"})
            for words in ("CARDS AND STICKS", "waypost-ok.txt", "upload.endpoint"):
                self.assertIn(words, " ".join(page.text.split()))


if __name__ == "__main__":
    unittest.main()
