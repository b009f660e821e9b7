"""Reads the metadata of audio files as scientists' programs do: PyPI's guano, soundfile and mutagen.

    science.py FILE…

Prints one line of JSON: for each file its `fields`, `frames` and `rate` (libsndfile; none for AAC), and for a WAV what `guano`
made of it: `place`, `time` (with its offset), `length`, `accuracy`, and `own` (the fields of the namespace Waypost).
"""
import json
import logging
import sys

import guano
import mutagen
import soundfile

# guano warns of each field that it does not know.
logging.disable(logging.WARNING)


def read(path):
    facts = {}
    if not path.endswith(".aac"):
        info = soundfile.info(path)
        facts["frames"], facts["rate"] = info.frames, info.samplerate
    if path.endswith(".wav"):
        file = guano.GuanoFile(path)
        facts["fields"] = dict(line.split(": ", 1) for line in file.to_string().splitlines() if ": " in line)
        facts["place"] = list(file["Loc Position"]) if "Loc Position" in file else None
        facts["time"] = file["Timestamp"].isoformat()
        facts["length"], facts["accuracy"] = file["Length"], file.get("Loc Accuracy")
        facts["own"] = {key[8:]: value for key, value in facts["fields"].items() if key.startswith("Waypost|")}
    else:
        tags = mutagen.File(path).tags or {}
        facts["fields"] = {key: values[0] for key, values in dict(tags).items()} if tags else {}
    return facts


print(json.dumps({path: read(path) for path in sys.argv[1:]}))
