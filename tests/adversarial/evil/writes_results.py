"""Tries: to write a finished record, in which everything passes, to every open descriptor and into files with the names
of results (H2).

Refused by: an answer is 24 fixed bytes; nothing else of a worker is read (protocol_broken, output_not_written).
"""

import json
import os

GATES = ("scope", "build", "seen_correct", "seen_speed", "unseen_correct", "unseen_speed")
RECORD = {
    "evaluation": {"schema_version": 1, "gates": [{"verdict": "pass", "gate": gate, "note": ""} for gate in GATES]},
    "samples": {"schema_version": 1, "series": [{"speedup": 1000.0}]},
}


def rms_norm(x, weight, y, eps):
    text = json.dumps(RECORD).encode() + b"\n"
    for folder in ("/tmp", "/out", "/job", "/dev/shm", os.getcwd()):
        for name in ("evaluation.json", "samples.json", "result.json"):
            try:
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(text)
            except OSError:
                pass
    for descriptor in range(64):
        try:
            os.write(descriptor, text)
        except OSError:
            pass
