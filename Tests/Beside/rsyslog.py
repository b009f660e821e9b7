"""rsyslog: RELP in, a queue on the disk, RELP out."""
from peer import Peer


class Rsyslog(Peer):
    name = "rsyslog"
    title = "rsyslog, synced"
    protocol = "relp"
    sink_kind = "relp"
    promise = "a RELP answer a record, which has then been written to the queue and synced"
    # "Queue: reliability": a queue of type Disk writes each message at once; syncQueueFiles "should be set for
    # ultra-reliable queues", and checkpointInterval is how many updates may be lost of its books (default: 0, none
    # before the end of a file). https://www.rsyslog.com/doc/rainerscript/queue_parameters.html
    durability = 'queue.syncQueueFiles="on" queue.checkpointInterval="1"'

    def configure(self):
        (self.state / "spool").mkdir(parents=True, exist_ok=True)
        # queue.size bounds a queue on the disk, too, and what does not fit is dropped after two seconds (timeoutEnqueue).
        # saveOnShutdown is for what is in memory. The action is tried for ever, each second. omrelp corks its socket for
        # a batch: a window (default 128) smaller than a batch (default 1024) costs it 200 ms each time.
        (self.work / "rsyslog.conf").write_text(f"""
global(workDirectory="{self.state}/spool" maxMessageSize="8k")
module(load="imrelp")
module(load="omrelp")
input(type="imrelp" port="{self.port}" address="127.0.0.1" ruleset="site")
ruleset(name="site" queue.type="Disk" queue.filename="site" queue.size="10000000" queue.maxFileSize="16m"
        queue.maxDiskSpace="20g" queue.saveOnShutdown="on"
        queue.dequeueBatchSize="512" {self.durability}) {{
    action(type="omrelp" target="127.0.0.1" port="{self.sink_port}" windowSize="1024"
           action.resumeRetryCount="-1" action.resumeInterval="1")
}}
""")

    def begin(self):
        modules = self.programs.find("usr/lib/*/rsyslog/imrelp.so").parent
        pid = self.work / "rsyslog.pid"
        pid.unlink(missing_ok=True)
        self.launch("rsyslogd", self.programs.find("usr/sbin/rsyslogd"), "-n", "-f", self.work / "rsyslog.conf",
                    "-i", pid, "-M", modules)


class RsyslogUnsynced(Rsyslog):
    name = "rsyslog-plain"
    title = "rsyslog, not synced"
    promise = "a RELP answer a record, which has then been written to the queue and not synced"
    # As a queue of type Disk is without these two.
    durability = ""
