"""The SQLite storage of ThingsBoard's IoT gateway, in a process that uses it as the gateway does (storage.py)."""
from peer import HERE, Peer


class ThingsBoard(Peer):
    name = "thingsboard"
    title = "ThingsBoard storage"
    protocol = "storage"
    sink_kind = "packs"
    promise = "put() returned true: the record is in a queue in memory, a thread writes it"

    def begin(self):
        (self.work / "storage.sock").unlink(missing_ok=True)
        self.launch("storage", self.programs.storage_python, "-B", HERE / "storage.py", self.address(),
                    f"{self.state}/data/", self.sink_port)

    def is_up(self):
        return (self.work / "storage.sock").exists()

    def address(self):
        return str(self.work / "storage.sock")
