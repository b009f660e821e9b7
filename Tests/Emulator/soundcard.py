"""The kernel's sound with its loopback card as microphone: capture, unplugging, a device in use."""
import array
import contextlib
import math
import pathlib
import signal
import subprocess
import time
import wave

from gateway import Gateway
from pace import is_prompt, wait_for

TABLE = '[audio]\ndevice = "{device}"\nchunk = "2s"\noverlap = "200ms"\n'
RATE, LEVEL = 16_000, -14.8
CARD = "hw:CARD=Loopback,DEV=1"


class Scenarios:
    def __init__(self, guest):
        self.guest = guest
        self.player = None
        self.tone = guest.folder / "tone.wav"
        guest.say("loading the kernel's sound")
        with wave.open(str(self.tone), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            peak = 32768 * math.sqrt(2) * 10 ** (LEVEL / 20)
            second = array.array("h", (round(peak * math.sin(2 * math.pi * 440 * n / RATE)) for n in range(RATE)))
            file.writeframes(second.tobytes() * 300)

    def all(self):
        for name in ("capture", "unplug", "renumbered", "in_use", "stalled"):
            yield name, getattr(self, name)

    def end(self):
        self.mute()

    def load(self):
        """The card is plugged in: its other end plays the tone once someone captures."""
        self.guest.run("modprobe", "snd-aloop", "pcm_substreams=1")
        if wait_for(lambda: "Loopback" in pathlib.Path("/proc/asound/cards").read_text(), 20) is None:
            raise RuntimeError("no loopback card")

    def unload(self):
        """The card is pulled out, whoever holds it."""
        self.mute()
        self.guest.run("rmmod", "-f", "snd_aloop")

    def play(self, row, gateway):
        """Plays the tone until it is in a chunk."""
        self.mute()
        # The end that opens first chooses the rate: the gateway, and the player converts.
        self.player = subprocess.Popen(["aplay", "-q", "-D", "plughw:CARD=Loopback,DEV=0", str(self.tone)],
                                       stderr=open("/bench/aplay.log", "ab"))
        heard = wait_for(lambda: f"{LEVEL:.0f} dBFS" in (gateway.report().get("detail") or ""), 30)
        if row.check(heard is not None, f"the tone is not heard: {gateway.report().get('detail')}"):
            known = gateway.count
            row.check(wait_for(lambda: gateway.count >= known + 2, 30) is not None, "no chunks of it")

    def mute(self):
        if self.player:
            self.player.kill()
            self.player.wait()
            self.player = None

    @contextlib.contextmanager
    def collecting(self, row, name, device=CARD):
        """A gateway that has begun to record the tone; afterwards its records are compared with the receiver's."""
        self.load()
        gateway = Gateway(self.guest, name, "audio", TABLE.format(device=device))
        try:
            began = time.monotonic()
            gateway.begin()
            if row.check(gateway.collects(60) is not None, f"nothing recorded in 60 s: {gateway.words()}"):
                row.see(f"first sound {time.monotonic() - began:.1f} s after start")
                self.play(row, gateway)
                yield gateway
                self.judge(row, gateway.finish(row))
        finally:
            gateway.end()
            self.unload()

    def judge(self, row, chunks):
        """The tone must be in the chunks, at its level."""
        loudest = max((chunk["average_db_level"] for chunk in chunks), default=-99)
        row.see(f"{loudest:.1f} dBFS of {LEVEL}")
        row.check(abs(loudest - LEVEL) < 0.5, "not the level that was played")

    def capture(self, row):
        """the tone from hw: of a real card: chunks at the receiver, the level that was played"""
        with self.collecting(row, "capture") as gateway:
            began = time.monotonic()
            known = gateway.count
            time.sleep(12)
            seconds = time.monotonic() - began
            row.see(gateway.report().get("detail") or "")
            row.see(f"{gateway.count - known} chunks of 2 s in {seconds:.1f} s")

    def unplug_and_back(self, row, gateway, back=None):
        def replug():
            time.sleep(4)
            (back or self.load)()
        gateway.recovers(row, self.unload, replug)
        self.play(row, gateway)
        row.see(f"{gateway.report().get('restarts')} restarts")

    def unplug(self, row):
        """the card is pulled out while it records (ENODEV) and 4 s later put in again"""
        with self.collecting(row, "unplug") as gateway:
            self.unplug_and_back(row, gateway)

    def renumbered(self, row):
        """the card comes back under another number; its name is the same"""
        def back():
            self.guest.run("modprobe", "snd-dummy")
            self.load()
            row.see(pathlib.Path("/proc/asound/cards").read_text().count("]:").__str__() + " cards")
        try:
            with self.collecting(row, "renumbered") as gateway:
                self.unplug_and_back(row, gateway, back)
        finally:
            self.guest.run("rmmod", "-f", "snd_dummy", check=False)

    def in_use(self, row):
        """another program holds the device (EBUSY) at the start and lets go"""
        self.load()
        gateway = Gateway(self.guest, "in-use", "audio", TABLE.format(device=CARD))
        holder = subprocess.Popen(["arecord", "-q", "-D", CARD, "-f", "S16_LE", "-r", "16000", "-c", "1", "/dev/null"])
        try:
            row.check(wait_for(lambda: "RUNNING" in self.pcm_state(), 30) is not None, "arecord does not hold it")
            gateway.begin()
            row.detected = wait_for(lambda: "in use" in gateway.words(), 20)
            row.see(gateway.words())
            row.check(row.detected is not None, "does not say that it is in use")
            holder.kill()
            holder.wait()
            row.recovered = gateway.collects(40)
            row.check(is_prompt(row.recovered), "not collecting in 5 s")
            gateway.finish(row)
        finally:
            holder.kill()
            gateway.end()
            self.unload()

    def pcm_state(self):
        return pathlib.Path("/proc/asound/Loopback/pcm1c/sub0/status").read_text()

    def stalled(self, row):
        """stopped (SIGSTOP) for 6 s, past the device's buffer: an overrun, its gap told, collecting again"""
        with self.collecting(row, "stalled") as gateway:
            gateway.daemon.send_signal(signal.SIGSTOP)
            time.sleep(6)
            gateway.daemon.send_signal(signal.SIGCONT)
            row.recovered = gateway.collects(30)
            row.check(is_prompt(row.recovered), "not collecting in 5 s")
            status = gateway.status() or {}
            losses = [loss for loss in status.get("losses", []) if loss.get("kind") == "gap"]
            row.see(f"losses: {losses}" if losses else "no loss entered")
            row.check(bool(losses), "the gap is not in the losses")
            self.play(row, gateway)
