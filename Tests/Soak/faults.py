"""The events of a month beside collecting: drawn once from a seed, at times of the fast clock."""
import heapq
import itertools
import signal
import threading

DAY, HOUR, MINUTE = 86400, 3600, 60
# How often a day each kind is drawn, at least once in each soak.
DRAWN = {"silent": 0.6, "unplug": 3, "step": 0.3, "reload": 1, "command": 12}
# Faults that restart a series of memory: spread over the time, so that the lives between them are long.
SPREAD = {"kill": 6, "gone": 8}
COMMANDS = (["status"], ["status", "--json"], ["quarantine", "list"], ["survey", "list"], ["doctor"],
            ["sync", "--wait", "5"])


class Faults:
    """The agenda of a soak: when what begins and ends."""

    def __init__(self, site, days, chance):
        self.site, self.clock, self.random = site, site.clock, chance
        self.agenda, self.order = [], itertools.count()
        self.counts = {}
        self.problems = []
        self.surveys = 0
        for kind, often in DRAWN.items():
            for _ in range(max(1, round(often * days))):
                self.at(chance.uniform(0.06, 0.93) * days * DAY, getattr(self, kind))
        for kind, apart in SPREAD.items():
            number = max(1, round(days / apart))
            for place in range(number):
                self.at((place + chance.uniform(0.4, 0.6)) / number * days * DAY, getattr(self, kind))

    def at(self, moment, act):
        heapq.heappush(self.agenda, (moment, next(self.order), act))

    @property
    def next(self):
        return self.agenda[0][0] if self.agenda else float("inf")

    def act(self):
        """Does what is due."""
        while self.next <= self.clock.seconds():
            heapq.heappop(self.agenda)[2]()

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1

    def back(self, after, act):
        self.at(self.clock.seconds() + after, act)

    # Each kind.

    def silent(self):
        self.count("server silent for hours")
        self.site.hold_receiver(True)
        self.back(self.random.uniform(1, 6) * HOUR, lambda: self.site.hold_receiver(False))

    def gone(self):
        self.count("server ended, started hours later")
        self.site.end_receiver()
        self.back(self.random.uniform(1, 6) * HOUR, self.site.begin_receiver)

    def kill(self):
        self.count("gateway kill -9")
        self.site.restart()

    def unplug(self):
        parts = ["controller", "gpsd"] + (["microphone"] if self.site.microphone else [])
        part = self.random.choice(parts)
        self.count(f"{part} out and back")
        after = self.random.uniform(2, 60) * MINUTE
        if part == "microphone":
            self.site.set_sound(False)
            self.back(after, lambda: self.site.set_sound(True))
        else:
            source = getattr(self.site, part)
            source.is_out = True
            self.back(after, lambda: setattr(source, "is_out", False))

    def step(self):
        self.count("clock stepped and back")
        self.clock.step(self.random.choice([-1, 1]) * self.random.choice([90, HOUR, 2 * DAY, 400 * DAY]))
        self.back(self.random.uniform(0.2, 3) * HOUR, lambda: self.clock.step(0))

    def reload(self):
        self.count("configuration changed and read again")
        key, value = self.random.choice([("max_rate", 900.0), ("max_rate", 1000.0), ("min_distance", 0.001),
                                         ("min_distance", 0.0), ("compression", "gzip"), ("compression", "zstd")])
        self.site.reload(**{key: value})

    def command(self):
        arguments = self.random.choice(COMMANDS + (["survey", "start"],) * 2)
        if arguments[-1] == "start":
            self.surveys += 1
            name = f"walk {self.surveys}"
            self.run(["survey", "start", name])
            self.back(self.random.uniform(0.2, 2) * HOUR, lambda: self.run(["survey", "stop"]))
        else:
            self.run(arguments)

    def run(self, arguments):
        """A command of a person's, aside: it has real time, while the gateway's goes by faster."""
        self.count(f"waypost {' '.join(arguments[:2] if arguments[0] != 'sync' else arguments[:1])}")

        def run():
            try:
                code, words = self.site.gateway.command(*arguments)
            except Exception as error:
                self.problems.append(f"waypost {' '.join(arguments)}: {error!r}")
                return
            # A command may fail while something is wrong at the site, but not crash.
            if code < 0 or code == signal.SIGABRT + 128:
                self.problems.append(f"waypost {' '.join(arguments)} fell: {code} {words[-300:]}")

        threading.Thread(target=run, daemon=True).start()
