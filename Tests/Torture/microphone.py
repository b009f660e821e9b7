"""A microphone for ALSA that gives a ramp or a tone in real time and misbehaves on demand (Tests/FieldFaults/soundfaults.c)."""
import array
import struct
import time
import wave

RATE = 16000
FINE, ZEROS, STALLED, FAILING, UNPLUGGED, BUSY, DENIED, CONSTANT = range(8)
# Places in `struct control`.
MODE, OVERRUNS, SUSPENDS, PPM, EPOCH = range(5)


class Microphone:
    """The PCM `mic` of the ALSA configuration in `folder`."""

    def __init__(self, folder, library, tone=0):
        self.path = folder / "microphone"
        self.values = [0] * 8
        self.values[EPOCH] = time.monotonic_ns()
        self.path.write_bytes(bytes(64))
        self.write()
        (folder / "asound.conf").write_text(
            f'</usr/share/alsa/alsa.conf>\npcm_type.waypost_mic {{ lib "{library}" }}\n'
            f'pcm.mic {{ type waypost_mic control "{self.path}" rates "{RATE}" tone {tone} }}\n')

    def write(self):
        with open(self.path, "r+b", buffering=0) as file:
            file.write(struct.pack("<8q", *self.values))

    def set(self, place, value):
        self.values[place] = value
        self.write()

    def more(self, place):
        self.set(place, self.values[place] + 1)


def ramp(path):
    """The number that a file's first frame has in the ramp, its length in frames, and what is wrong with it.

    Zeros stand for silence, which is not wrong. A file of nothing else has no number (None).
    """
    with wave.open(str(path)) as file:
        samples = array.array("H", file.readframes(file.getnframes()))
    at = next((index for index, sample in enumerate(samples) if sample), None)
    if at is None:
        return None, len(samples), None
    first = (samples[at] - at) % 65536
    for index, sample in enumerate(samples):
        if sample and sample != (first + index) % 65536:
            return first, len(samples), f"frame {index} is {sample}, not {(first + index) % 65536}"
    return first, len(samples), None
