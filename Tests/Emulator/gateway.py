"""The real gateway and receiver in the guest, and what can be seen of one source."""
import shutil
import time

import records
from bench import Bench
from pace import is_prompt, wait_for
from server import Receiver

STREAMS = {"beacons": 3, "audio": 2}
# Debian's own user without rights.
NOBODY = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
CAPABILITIES = ["--inh-caps", "+net_raw,+net_admin", "--ambient-caps", "+net_raw,+net_admin"]


class Gateway(Bench):
    """One gateway with one source and a receiver of its own."""

    def __init__(self, guest, name, source, table, rights=()):
        folder = guest.folder / name
        folder.mkdir(mode=0o755)
        super().__init__(guest, folder=folder)
        self.guest, self.source, self.rights = guest, source, list(rights)
        self.receiver = Receiver(guest, folder)
        address = "%s:%d" % self.receiver.address
        self.configure(f"{table}\n{self.upload(address, interval='2s')}")
        if rights:
            guest.run("chown", "-R", "nobody:nogroup", str(folder))

    def begin(self, limit=60):
        """Starts it and waits until it answers."""
        super().start(limit=limit)

    def report(self):
        """Returns the state of the source; empty while nothing answers."""
        return ((self.status() or {}).get("sources") or {}).get(self.source) or {}

    @property
    def count(self):
        return self.report().get("records", 0)

    @property
    def is_well(self):
        return self.report().get("state") == "loaded"

    def collects(self, limit=30):
        """Seconds until something is heard again; None when nothing is."""
        # Of sound, every segment counts here; a record is only there when its chunk has ended.
        known = self.report().get("last_record_at")
        return wait_for(lambda: self.report().get("last_record_at") not in (known, None), limit)

    def notices(self, limit=30):
        """Seconds until it says that the source is not well."""
        return wait_for(lambda: self.report().get("state") not in ("loaded", None), limit)

    def words(self):
        """State and reason, for the table."""
        report = self.report()
        return " ".join(filter(None, [report.get("state"), report.get("code"), report.get("reason")]))

    def recovers(self, row, fault, back, limit=40, notice_limit=20, within=5.0):
        """Makes the fault, ends it, and enters the times; `back` is when the device is there again."""
        fault()
        row.detected = self.notices(notice_limit)
        row.see(f"says “{self.words()}”" if row.detected is not None else "said nothing of it")
        back()
        row.recovered = self.collects(limit)
        if row.check(row.recovered is not None, f"not collecting {limit} s after it was back: {self.words()}"):
            row.check(is_prompt(row.recovered, within), f"more than {within:.0f} s")

    def finish(self, row, at_least=1):
        """Stops it and compares what it counted with what the receiver has."""
        began = time.monotonic()
        code = self.stop(limit=30)
        row.check(code == 0, f"SIGTERM ended it with {code} after {time.monotonic() - began:.0f} s")
        arrived = self.drain(row)
        same_id, _ = records.twice(arrived)
        row.check(same_id == 0, f"{same_id} records twice")
        content = records.Content(records.copy(self.state, self.folder / "copy"))
        stream = STREAMS[self.source]
        missing = set(content.ids(stream).values()) - {record["id"] for record in arrived}
        row.check(not missing, f"{len(missing)} committed records did not arrive")
        row.check(len(arrived) >= at_least, f"only {len(arrived)} records")
        row.records = f"{len(arrived)} arrived, {len(missing)} lost"
        return arrived

    def drain(self, row):
        """Sends what is left, with the sources off; gives what the receiver has of this stream."""
        self.configure(self.upload("%s:%d" % self.receiver.address, interval="2s"))
        if self.rights:
            self.guest.run("chown", "-R", "nobody:nogroup", str(self.folder))
        self.begin()
        code, text = self.command("sync", "--wait", "60")
        row.check(code == 0, f"sync: {text.strip()}")
        self.stop(limit=30)
        return records.received(self.receiver.data)[STREAMS[self.source]]

    def end(self, keep=False):
        self.receiver.end()
        self.kill()
        # The logs outlive the guest.
        to = f"/bench/{self.folder.name}"
        for name in ("gateway.log", "receiver.log"):
            shutil.copyfile(self.folder / name, f"{to}-{name}")
        super().end(keep)
