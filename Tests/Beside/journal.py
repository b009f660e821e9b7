"""systemd-journald and systemd-journal-upload: a journal of its own (a namespace), where no systemd need be PID 1."""
import os
import pathlib

from peer import Missing, Peer

# In a mount namespace: nothing of the machine's own journal is touched.
SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs waypost-bench /etc/systemd
cp "$1" /etc/systemd/journald@bench.conf
mkdir -p /var/log/journal
mount --bind "$2" /var/log/journal
mkdir -p /run/systemd
mount -t tmpfs waypost-bench /run/systemd
exec "$3" bench
"""


class Journal(Peer):
    # Before systemd 256 Synchronize is answered before its sync is over (github.com/systemd/systemd/pull/32617).
    name = "journald"
    title = "journald + upload"
    protocol = "journal"
    sink_kind = "journal"
    promise = "the answer to Synchronize (journalctl --sync), asked after 512 records at most"

    def configure(self):
        if os.geteuid() != 0:
            raise Missing("needs root for a journal of its own")
        if not pathlib.Path("/etc/machine-id").exists():
            raise Missing("needs /etc/machine-id")
        # journald.conf(5): Storage=persistent; SyncIntervalSec= is when it syncs by itself (default five minutes), a
        # second as the others here; RateLimitBurst=0 turns the limit off, which drops records.
        (self.work / "journald.conf").write_text("""[Journal]
Storage=persistent
SyncIntervalSec=1s
RateLimitIntervalSec=0
RateLimitBurst=0
SystemMaxUse=8G
""")
        (self.state / "journal").mkdir(exist_ok=True)

    def begin(self):
        daemon = self.programs.find("lib/systemd/systemd-journald", "usr/lib/systemd/systemd-journald")
        self.launch("journald", "unshare", "--mount", "sh", "-c", SETUP, "journald", self.work / "journald.conf",
                    self.state / "journal", daemon)

    def address(self):
        return f"/proc/{self.processes[0].pid}/root/run/systemd/journal.bench"

    def is_up(self):
        if not pathlib.Path(self.address(), "io.systemd.journal").exists():
            return False
        self.nudge()
        return True

    def nudge(self):
        # It ends when the server is away, and its service starts it again.
        if len(self.processes) > 1:
            if self.processes[1].poll() is None:
                return
            self.processes.pop()
        folder = next((self.state / "journal").glob("*.bench"), None)
        if folder is None:
            return
        self.launch("upload", self.programs.find("lib/systemd/systemd-journal-upload", "usr/lib/systemd/systemd-journal-upload"),
                    f"--url=http://127.0.0.1:{self.sink_port}", f"--directory={folder}", f"--save-state={self.state}/upload")
