"""The check of commit messages that CONTRIBUTING.md tells how to install."""
import pathlib
import subprocess
import tempfile
import unittest

HOOKS = pathlib.Path(__file__).resolve().parents[2] / ".github/hooks"


class CommitMessageTests(unittest.TestCase):
    def commit(self, message, files=1):
        """Whether git takes a commit of so many files, and what the check says."""
        with tempfile.TemporaryDirectory() as folder:
            def git(*words):
                return subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
                                      capture_output=True, text=True)

            git("init", "-q")
            git("config", "core.hooksPath", str(HOOKS))
            for number in range(files):
                pathlib.Path(folder, str(number)).touch()
            git("add", ".")
            done = git("commit", "-q", "-m", message)
            return done.returncode == 0, done.stderr

    def test_good_messages(self):
        for message, files in (("Queue: fewer pages per commit", 3), ("Queue: fewer pages\n\nA commit wrote each twice.", 4),
                               ("Merge branch 'main'", 9)):
            self.assertEqual(self.commit(message, files), (True, ""))

    def test_bad_messages(self):
        for message, files, why in (("fixed it", 1, "Area: what changed"), ("Queue: " + "x" * 66, 1, "72 characters"),
                                    ("Queue: a\nb", 1, "second line"), ("Queue: moved", 4, "4 files change")):
            is_taken, said = self.commit(message, files)
            self.assertFalse(is_taken, message)
            self.assertIn(why, said)


if __name__ == "__main__":
    unittest.main()
