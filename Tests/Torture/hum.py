"""Writes a hum into a pipe at the pace of a microphone, 20 ms at a time: hum.py PIPE."""
import array
import math
import os
import sys
import time

RATE, STEP = 16000, 320


def main():
    pipe = os.open(sys.argv[1], os.O_WRONLY)
    tone = array.array("h", [int(6000 * math.sin(2 * math.pi * 440 * n / RATE)) for n in range(RATE)]).tobytes()
    began, step = time.monotonic(), 0
    while True:
        at = step % (RATE // STEP) * STEP * 2
        os.write(pipe, tone[at:at + STEP * 2])
        step += 1
        time.sleep(max(0, began + step * STEP / RATE - time.monotonic()))


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        pass
