"""A small detector for tests: prints where the ramp of the test microphone jumps in a segment.

Run by `waypost listen --exec`. The jump from 32767 to -32768 is a marker at a known sample.
"""
import array
import json
import os
import sys
import wave

with wave.open(os.environ["WAYPOST_FILE"]) as file:
    rate = file.getframerate()
    samples = array.array("h", file.readframes(file.getnframes()))
if sys.byteorder == "big":
    samples.byteswap()
if (file.getnchannels(), file.getsampwidth()) != (1, 2):
    sys.exit("not 16 bits mono")
for number, sample in enumerate(samples):
    if sample == -32768:
        print(json.dumps({
            "offset_s": number / rate,
            "gateway": os.environ["WAYPOST_DEVICE"],
            "length": float(os.environ["WAYPOST_DURATION"]),
        }))
