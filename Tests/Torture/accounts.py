"""The sum that must come out after every fault: each record is somewhere, or in the ledger of losses."""
import records


class Accounts:
    """The counts in a database of what became of each stream's records."""

    def __init__(self, path):
        self.problems = []
        self.highest, self.uploaded, self.evicted, self.waiting = (dict.fromkeys(records.TABLES, 0) for _ in range(4))
        connection = records.sqlite3.connect(path)
        try:
            self.ledger = {(stream, kind): count for stream, kind, count in
                           connection.execute("SELECT stream, kind, records FROM losses")}
            # The table of health is made with the first record.
            made = {name for name, in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            for stream, table in records.TABLES.items():
                if table in made:
                    self.read(connection, stream, table)
        finally:
            connection.close()

    def read(self, connection, stream, table):
        def one(sql, *values):
            return connection.execute(sql, values).fetchone()[0] or 0

        # This database alone: no database was quarantined where accounts are settled.
        live = "database=0 AND stream=?"
        uploaded = self.uploaded[stream] = one(f"SELECT uploaded FROM sequences WHERE {live}", stream)
        evicted = self.evicted[stream] = one(f"SELECT evicted FROM sequences WHERE {live}", stream)
        quarantined = one(f"SELECT sum(last-first+1) FROM batches WHERE {live} AND state=2", stream)
        highest = self.highest[stream] = one(f"SELECT next FROM sequences WHERE {live}", stream) - 1
        # No two batches share a number.
        settled = one(
            f"SELECT sum((SELECT count(*) FROM {table} t WHERE t.id BETWEEN b.first AND b.last)) FROM batches b "
            "WHERE b.database=0 AND b.stream=? AND b.state IN (1,2)", stream)
        waiting = self.waiting[stream] = one(f"SELECT count(*) FROM {table}") - settled
        name = records.NAMES[stream]
        if waiting + uploaded + quarantined + evicted != highest:
            self.problems.append(
                f"{name}: {waiting} waiting + {uploaded} uploaded + {quarantined} quarantined + {evicted} evicted "
                f"is not {highest}, the highest sequence")
        newest = one(f"SELECT max(id) FROM {table}")
        if newest > highest:
            self.problems.append(f"{name}: row {newest} is there, {highest} is the highest number given out")
        told = sum(self.ledger.get((stream, kind), 0) for kind in ("evicted", "discarded", "corrupt"))
        if told != evicted:
            self.problems.append(f"{name}: {evicted} evicted, {told} in the ledger of losses")

    def lost(self, stream):
        """Records that never got a number: refused, dropped, lost on their way from the device, or while nothing is recorded."""
        kinds = ("overrun", "dropped", "missed", "gap")
        return sum(count for (of, kind), count in self.ledger.items() if of == stream and kind in kinds)


def check_admitted(row, accounts, status, stream=3, source="beacons"):
    """Every record that the source handed over has a number or is in the ledger."""
    if not status:
        row.problem("no status to compare with")
        return
    report = status["sources"][source]
    handed = report["records"] + report["dropped"]
    known = accounts.highest[stream] + accounts.lost(stream)
    if handed > known:
        row.lost += handed - known
        row.problem(f"{source}: {handed} heard, {accounts.highest[stream]} numbered and {accounts.lost(stream)} in the "
                    f"ledger: {handed - known} lost silently")
    elif handed < known:
        row.doubled += known - handed
        row.problem(f"{source}: {handed} heard, but {known} numbered or in the ledger")


def check_status(row, accounts, status):
    """The losses that `status --json` tells are those of the ledger."""
    names = {name: number for number, name in records.NAMES.items()}
    told = {}
    for loss in (status or {}).get("losses", []):
        key = names[loss["stream"]], loss["kind"]
        told[key] = told.get(key, 0) + loss["records"]
    for key, count in accounts.ledger.items():
        if told.get(key, 0) != count:
            row.problem(f"{records.NAMES[key[0]]}: {count} {key[1]} in the ledger, {told.get(key, 0)} in status")


def settle(row, bench):
    """Reads the files of a stopped gateway; None if they cannot be read."""
    path = bench.state / "queue.sqlite"
    try:
        content = records.Content(path, "integrity_check")
        accounts = Accounts(path)
    except records.sqlite3.Error as error:
        row.problem(f"the database cannot be read afterwards: {error}")
        return None
    if content.health != "ok":
        row.problem(f"integrity_check: {content.health}")
    for stream in content.holes():
        row.problem(f"{stream}: rows and numbers do not agree")
    for problem in accounts.problems:
        row.problem(problem)
    return accounts
