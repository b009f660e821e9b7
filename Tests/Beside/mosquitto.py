"""mosquitto: QoS 1 in, its persistence, QoS 1 to a subscriber whose session lasts."""
import signal
import time

from peer import Peer, wait


class Mosquitto(Peer):
    name = "mosquitto"
    title = "mosquitto"
    protocol = "mqtt"
    sink_kind = "mqtt"
    promise = "PUBACK (QoS 1), which says that the broker has it in memory"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # The subscriber is a client of the broker.
        self.sink_port = self.port

    def configure(self):
        # mosquitto.conf(5): "persistence: If true, connection, subscription and message data will be written to the
        # disk"; "autosave_interval: The number of seconds that mosquitto will wait between each time it saves the
        # in-memory database to disk" (default 1800). One second is the least; nothing makes PUBACK wait for the disk.
        # Queues without a limit, or it drops what the subscriber is late for (max_queued_messages, default 1000).
        (self.work / "mosquitto.conf").write_text(f"""
listener {self.port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {self.state}/
autosave_interval 1
max_queued_messages 0
max_inflight_messages 1000
set_tcp_nodelay true
""")

    def begin(self):
        self.launch("mosquitto", self.programs.find("usr/sbin/mosquitto"), "-c", self.work / "mosquitto.conf")

    def prepare(self):
        """The subscription is made and saved: without it there is nobody to keep records for."""
        self.start()
        self.server()
        time.sleep(0.5)
        self.away()
        for process in self.processes:
            process.send_signal(signal.SIGUSR1)
        wait("mosquitto's database", lambda: (self.state / "mosquitto.db").exists())
        self.stop()
