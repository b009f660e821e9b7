#!/usr/bin/env python3
"""Prints the bat calls that BatDetect2 hears in a segment of `waypost listen`, one JSON object each.

Needs the PyPI package batdetect2, whose name no script beside it may have; see deploy/docs/detectors.md. The environment has the segment
(WAYPOST_FILE); the first argument is the lowest probability that is printed, 0.3 without one.
"""
import contextlib
import json
import os
import sys


def main():
    threshold = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
    # The library prints its progress; standard output is for records only.
    with contextlib.redirect_stdout(sys.stderr):
        from batdetect2 import api

        config = api.get_config(detection_threshold=threshold)
        found = api.process_file(os.environ["WAYPOST_FILE"], config=config)
    length = float(os.environ["WAYPOST_DURATION"])
    for call in found["pred_dict"]["annotation"]:
        start = min(max(0.0, float(call["start_time"])), length)
        print(json.dumps({
            "species": call["class"],
            "confidence": round(float(call["class_prob"]), 3),
            "detection_confidence": round(float(call["det_prob"]), 3),
            "offset_s": start,
            "duration_s": round(float(call["end_time"]) - start, 4),
            "low_hz": round(float(call["low_freq"])),
            "high_hz": round(float(call["high_freq"])),
            "model": "BatDetect2_UK",
        }))


main()
