"""The base of all peers: a lasting folder, processes, a start that waits, a kill."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from bench import ENDS_WITH_US, free_port

HERE = pathlib.Path(__file__).resolve().parent


class Missing(Exception):
    """A peer that cannot be run here, and why."""


def wait(what, condition, limit=30.0):
    """Waits for a condition and returns what it gave."""
    end = time.monotonic() + limit
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not in {limit:.0f} s")
        time.sleep(0.005)
    return found


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Peer:
    """One peer over one folder; `work` is for what need not last: sockets, configuration, logs."""

    name = title = protocol = sink_kind = ""
    # What its answer promises, for the notes below the table.
    promise = ""
    # Between two of Waypost's uploads, so that some are under way when it is killed; its speed is that of the default.
    interval = "300ms"

    def __init__(self, programs, state, work):
        self.programs, self.state, self.work = programs, pathlib.Path(state), pathlib.Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.port, self.sink_port = free_port(), free_port()
        self.processes, self.sink, self.feeder = [], None, None
        self.arrivals, self.acknowledged = self.work / "arrivals", self.work / "acknowledged"

    # MARK: Overridden by each peer

    def configure(self):
        """Writes its configuration."""

    def begin(self):
        """Starts its processes; `is_up` says when records are taken."""
        raise NotImplementedError

    def is_up(self):
        return listens(self.port)

    def address(self):
        return str(self.port)

    def prepare(self):
        """Once, before the first record."""

    def nudge(self):
        """The server is there again: what a person, a network or a service manager would say to it."""

    # MARK: Processes

    def launch(self, name, *command, **environment):
        with open(self.work / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [*ENDS_WITH_US, *map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **self.programs.environment, **environment})
        self.processes.append(process)
        return process

    def start(self, limit=30.0):
        self.configure()
        self.begin()

        def is_up():
            if any(process.poll() is not None for process in self.processes[:1]):
                raise ChildProcessError(f"{self.name} ended at its start: {self.last_words()}")
            return self.is_up()

        wait(f"{self.name} takes records", is_up, limit)

    def last_words(self):
        lines = [line for log in self.work.glob("*.log") for line in log.read_text(errors="replace").splitlines()[-3:]]
        return " / ".join(lines)[-400:]

    def pids(self):
        return [process.pid for process in self.processes if process.poll() is None]

    def end_processes(self, number, limit):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)
        for process in self.processes:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []

    def kill(self):
        self.end_processes(signal.SIGKILL, 5)

    def stop(self):
        self.end_processes(signal.SIGTERM, 20)

    # MARK: The programs before and behind it

    def feed(self, first, count, rate=0):
        """A program begins to hand over records."""
        self.feeder = self.script("feeding", self.protocol, self.address(), self.acknowledged, first, count, rate)
        return self.feeder

    def server(self, forget=0):
        """The server is there from now on."""
        self.sink = self.script("sinks", self.sink_kind, self.sink_port, self.arrivals,
                                *(["--forget", forget] if forget else []))

    def script(self, name, *arguments):
        with open(self.work / f"{name}.log", "ab") as log:
            return subprocess.Popen([*ENDS_WITH_US, sys.executable, "-B", HERE / f"{name}.py", *map(str, arguments)],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def away(self):
        """The server is away from now on."""
        for process in (self.sink, self.feeder):
            if process:
                process.kill()
                process.wait()
        self.sink = self.feeder = None

    def end(self):
        self.kill()
        self.away()
