"""What is on disk: how far a query is, and which files each micro-batch read."""

import json
from collections import defaultdict
from itertools import count
from pathlib import Path

PHASES = ("noted", "planned", "at work", "state", "sink", "committed")


def numbers(folder):
    """The micro-batches that a log has entries of."""
    return sorted(int(file.name) for file in folder.glob("[0-9]*") if file.name.isdigit())


def marker(folder, phase, batch):
    """The file whose appearance says that a micro-batch has come so far."""
    signs = {
        "noted": f"checkpoint/sources/0/{batch}",
        "planned": f"checkpoint/offsets/{batch}",
        "at work": f"checkpoint/offsets/{batch}",
        "state": f"checkpoint/state/0/0/{batch + 1}.changelog",
        "sink": f"out/_spark_metadata/{batch}",
        "committed": f"checkpoint/commits/{batch}",
    }
    return folder / signs[phase]


def first_without(folder, phase):
    """The first micro-batch that has not come so far."""
    return next(batch for batch in count() if not marker(folder, phase, batch).exists())


def phase_of(folder, batch):
    """How far a micro-batch really is."""
    reached = [phase for phase in PHASES if marker(folder, phase, batch).exists()]
    return reached[-1] if reached else "before"


def cuts(folder):
    """Which files of each stream each micro-batch read.

    Spark's file source notes what it has seen before the batch is planned. Who dies between finds
    the files of two micro-batches in one.
    """
    log, found, before = folder / "checkpoint/offsets", [], defaultdict(lambda: -1)
    noted = {
        source.name: [
            json.loads(line) for n in numbers(source) for line in _entries(source / str(n))
        ]
        for source in (folder / "checkpoint/sources").iterdir()
    }
    for number in numbers(log):
        offsets = dict(enumerate(map(json.loads, _entries(log / str(number))[1:])))
        read = set()
        for source, offset in offsets.items():
            until = before[source] if offset is None else offset["logOffset"]
            read |= {
                tuple(Path(entry["path"]).parts[-2:])
                for entry in noted[str(source)]
                if before[source] < entry["batchId"] <= until
            }
            before[source] = until
        found.append(read)
    return found


def _entries(file):
    """The lines of a log's file, without its version."""
    return [line if line != "-" else "null" for line in file.read_text().splitlines()[1:]]
