"""The documents say what was measured, and a figure that was changed by hand is noticed."""
import re
import unittest

from rendering import FILES, MARK, blocks, board, rendered


class Figures(unittest.TestCase):
    def test_documents_say_what_was_measured(self):
        known = blocks()
        for path in FILES:
            document = path.read_text()
            wanted, missing = rendered(document, known)
            self.assertEqual(missing, [], path)
            self.assertTrue(wanted == document, f"{path} has other figures than were measured: Tests/Bench/figures writes them")

    def test_every_block_stands_somewhere(self):
        used = {name for path in FILES for _, name, _ in MARK.findall(path.read_text())}
        self.assertEqual(used, set(blocks()))

    def test_changed_figure_is_noticed(self):
        known = blocks()
        for name, block in known.items():
            digit = re.search(r"\d", block)
            if not digit:
                continue  # A part of the report that has not run yet.
            other = block[:digit.start()] + str((int(digit[0]) + 1) % 10) + block[digit.end():]
            document = f"<!-- figures: {name} -->\n{other}<!-- /figures -->"
            self.assertNotEqual(rendered(document, known)[0], document)
            self.assertEqual(rendered("<!-- figures: none -->\n<!-- /figures -->", known)[1], ["none"])

    def test_figure_that_a_board_does_not_give_is_unknown(self):
        size = {"median": 5_242_880, "p95": 6_000_000, "max": 7_000_000}
        found = {"model": "Raspberry Pi 4 Model B", "architecture": "aarch64", "installed_as": "package", "seconds": 600.2,
                 "pss_bytes": size, "private_bytes": None, "cpu_percent": 1.5, "board_busy_percent": None,
                 "wakeups_per_s": None, "own_written_bytes": 6_000_000}
        self.assertEqual(board(found), ["Raspberry Pi 4 Model B, package, 10 min", "5,120", "unknown", "1.50", "unknown",
                                        "unknown", "864"])
        self.assertIn("no board: aarch64", board({**found, "model": None})[0])


if __name__ == "__main__":
    unittest.main()
