"""A microphone that fails in every way under the running gateway; every sample is accounted for at the receiver."""
import collections
import datetime
import pathlib
import time

import records
from accounts import settle
from bench import Bench, wait
from microphone import FAILING, FINE, MODE, OVERRUNS, PPM, RATE, STALLED, SUSPENDS, UNPLUGGED, ZEROS, ramp
from report import Row
from server import Receiver

# Each fault: the place in the control file, its value (None: once more), and words of the gap that it leaves.
FAULTS = {
    "overrun (EPIPE)": (OVERRUNS, None, "overrun"),
    "suspend (ESTRPIPE)": (SUSPENDS, None, "suspended"),
    "read errors (EIO)": (MODE, FAILING, "Input/output error"),
    "unplugged (ENODEV)": (MODE, UNPLUGGED, "is gone"),
    "no frames": (MODE, STALLED, "no sound"),
    "only zeros": (MODE, ZEROS, "no signal"),
    "clock 25 % slow": (PPM, -250_000, "of the frames"),
}
# A gap is as long as it says, within what the dating of frames may be off.
TOLERANCE = 0.05 * RATE
DETECTION = 5.0
RECOVERY = 5.0
# A device that was off its clock is not called well again before it has kept time for twice as long as it had run, from
# half a minute to two (Probation).
PROBATION = 120.0


class Sounds:
    def __init__(self, settings):
        self.settings = settings
        self.row = Row("sound")
        self.bench = Bench(settings)
        self.receiver = Receiver(settings, self.bench.folder)
        self.microphone = self.bench.microphone(tone=0)
        self.bench.configure(
            self.bench.upload("%s:%d" % self.receiver.address, interval="1s")
            + '[audio]\ndevice = "mic"\ncodec = "wav"\nchunk = "4s"\noverlap = "1s"\n')
        self.detected = collections.defaultdict(list)
        self.recovered = collections.defaultdict(list)
        self.lost = collections.Counter()
        self.was_slow = False

    def source(self):
        status = self.bench.status()
        return status["sources"]["audio"] if status else {}

    def hears(self, since):
        """A segment came after `since` (wall clock), and the source is well."""
        source = self.source()
        last = source.get("last_record_at")
        return source.get("state") == "loaded" and last and when(last) > since

    def fault(self, name):
        place, value, _ = FAULTS[name]
        self.settings.progress.show(self.row, name)
        wait("sound before the fault", lambda: self.hears(time.time() - 1.5), 20)
        time.sleep(self.settings.random.uniform(0.5, 2.5))
        restarts = self.source()["restarts"]
        began = time.monotonic()
        if value is None:
            self.microphone.more(place)
        else:
            self.microphone.set(place, value)
        self.row.tried += 1
        try:
            wait("detection", lambda: self.source().get("restarts", 0) > restarts, 20)
            self.detected[name].append(time.monotonic() - began)
        except TimeoutError:
            self.row.problem(f"{name}: not noticed in 20 s")
        if value is not None:
            time.sleep(self.settings.random.uniform(0, 2))
        # Frames of the time since are there again when a segment of them is.
        over, since = time.monotonic(), time.time()
        self.microphone.set(place, self.microphone.values[place] if value is None else FINE)
        try:
            wait("recovery", lambda: self.hears(since), 20 + probation(name))
            self.recovered[name].append(time.monotonic() - over)
        except TimeoutError:
            self.row.problem(f"{name}: no sound {20 + probation(name):.0f} s after it was over: {self.source()}")

    def wakeups(self, seconds):
        """Wake-ups a second of the sound source's thread while nothing happens."""
        task = next(path for path in pathlib.Path(f"/proc/{self.bench.daemon.pid}/task").iterdir()
                    if (path / "comm").read_text().strip() == "audio")

        def switches():
            lines = (task / "status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))

        before = switches()
        time.sleep(seconds)
        return (switches() - before) / seconds

    def run(self):
        end = time.monotonic() + self.settings.seconds
        try:
            self.bench.start()
            wait("the first sound", lambda: self.hears(0), 20)
            self.row.note(f"{self.wakeups(10):.1f} wake-ups a second of its thread while all is well")
            while True:
                names = list(FAULTS)
                self.settings.random.shuffle(names)
                if self.detected["only zeros"]:
                    # A device that stays silent is left alone for an hour.
                    names.remove("only zeros")
                for name in names:
                    if time.monotonic() < end or self.row.tried < len(FAULTS):
                        self.fault(name)
                if time.monotonic() >= end:
                    break
            # The last run's sound must be in a chunk.
            time.sleep(2)
            self.finish()
        finally:
            self.receiver.end()
            self.bench.end(keep=not self.row.is_good)
            if not self.row.is_good:
                self.row.note(f"kept in {self.bench.folder}")
        return [self.row]

    def finish(self):
        if self.bench.stop() != 0:
            self.row.problem("SIGTERM did not end it with 0")
        # Another start, which records nothing, sends what the stop left.
        self.bench.configure(self.bench.upload("%s:%d" % self.receiver.address))
        self.bench.start()
        code, output = self.bench.command("sync", "--wait", "60")
        if code:
            self.row.problem(f"the last sync left records: {output.strip()}")
        self.bench.stop()
        accounts = settle(self.row, self.bench)
        arrived = records.received(self.receiver.data)
        chunks = sorted(arrived[2], key=lambda chunk: chunk["timestamp_start"])
        gaps = sorted((event for event in arrived[4] if event["kind"] == "gap"), key=lambda event: event["timestamp"])
        self.row.committed = len(chunks)
        self.row.doubled = records.twice(chunks)[0]
        if accounts and len(chunks) != accounts.highest[2]:
            self.row.problem(f"{accounts.highest[2]} chunks, {len(chunks)} at the receiver")
        if accounts and not accounts.ledger.get((2, "gap")):
            self.row.problem("no gap stands in the ledger of losses")
        self.follow(chunks, gaps)
        self.tell()

    def follow(self, chunks, gaps):
        """Goes along the ramp from chunk to chunk: what is missing must be what the gap between them says."""
        gaps = collections.deque(gaps)
        expected = None
        for chunk in chunks:
            first, length, problem = ramp(chunk["_folder"] / chunk["audio_file"])
            if problem:
                self.row.problem(f"{chunk['audio_file']}: {problem}")
            overlap = round(chunk["overlap_duration"] * RATE)
            if overlap == 0 and expected is not None:
                if not gaps:
                    self.row.problem(f"{chunk['audio_file']} follows a gap that no event tells of")
                    return
                expected = self.cross(gaps.popleft(), expected, first)
            elif expected is not None and first is not None and (first + overlap - expected) % 65536:
                self.row.lost += 1
                self.row.problem(f"{chunk['audio_file']} begins at {first}, {expected} - {overlap} was due")
            start = first if first is not None else None if expected is None else expected - overlap
            expected = None if start is None else (start + length) % 65536
        if gaps:
            self.row.problem(f"{len(gaps)} gaps are told that are not there")

    def cross(self, gap, expected, first):
        """Over a gap; where the ramp stands after it."""
        name = next((name for name, (_, _, words) in FAULTS.items() if words in gap["detail"]["reason"]), "other")
        told = gap["detail"]["lost_frames"]
        self.lost[name] += told
        if first is None:
            return expected + told
        off = (first - expected - told + 32768) % 65536 - 32768
        # A slow clock loses no frame; the world has gone on faster than it, for a while of the next run, too.
        was_slow, self.was_slow = self.was_slow, name.startswith("clock")
        if abs(off) > (RATE if was_slow or self.was_slow else TOLERANCE):
            self.row.lost += abs(off)
            self.row.problem(f"{name}: {off} samples more are missing than the {told} that are told: {gap['detail']}")
        return first

    def tell(self):
        for name in FAULTS:
            seen, back = max(self.detected[name], default=0), max(self.recovered[name], default=0)
            self.row.note(f"{name}: {len(self.detected[name])} times, noticed after at most {seen:.1f} s, sound again "
                          f"at most {back:.1f} s after it was over, {self.lost[name]} samples lost and told")
            if seen > DETECTION or back > RECOVERY + probation(name) + 1:
                self.row.problem(f"{name}: noticed after {seen:.1f} s, sound again after {back:.1f} s")


def probation(name):
    return PROBATION if name.startswith("clock") else 0


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def run(settings):
    return Sounds(settings).run()
