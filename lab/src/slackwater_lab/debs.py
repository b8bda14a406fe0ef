"""The original soccer data (DEBS 2013 Grand Challenge), for those who have the file.

It is one text file in the order in which the events were received, without a header:
``sid, ts, x, y, z, |v|, |a|, vx, vy, vz, ax, ay, az``, ts in picoseconds, positions in mm.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from slackwater.errors import DataError

# Sensors in the shoes, and in the gloves of the goalkeepers.
TEAMS = {
    "a": (13, 14, 97, 98, 47, 16, 49, 88, 19, 52, 53, 54, 23, 24, 57, 58, 59, 28),
    "b": (61, 62, 99, 100, 63, 64, 65, 66, 67, 68, 69, 38, 71, 40, 73, 74, 75, 44),
}

NAME = "debs2013"  # of the dataset
MOST_ROWS = 450_000  # of a team; ICDE16 VI has so many, the sensors send ten times as many

_COLUMNS = ["sid", "ts", "x", "y", "z", "v", "a", "vx", "vy", "vz", "ax", "ay", "az"]
_TYPES = {"sid": pa.int64(), "ts": pa.int64(), "x": pa.float64(), "y": pa.float64()}
_PS_PER_MS = 1_000_000_000
_MM_PER_M = 1000.0
_FAR = np.iinfo(np.int64).max


def thinned(game: dict[str, pa.Table], most: int = MOST_ROWS) -> dict[str, pa.Table]:
    """Every n-th row of each team, so that none has more than `most`."""
    kept = {}
    for team, table in game.items():
        step = max(1, -(-len(table) // most))
        kept[team] = table.take(np.arange(0, len(table), step))
    return kept


def read_debs(path: Path | str) -> dict[str, pa.Table]:
    """The game as two streams, teams a and b, of (ts, sid, x, y, arrival); as `workloads.soccer`.

    Times are in ms from the first event on, positions in m, and `arrival` is the line of the file:
    it only gives the order. Ball and referee are left out.
    """
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=_COLUMNS),
            convert_options=csv.ConvertOptions(column_types=_TYPES, include_columns=list(_TYPES)),
        )
    except (OSError, pa.ArrowInvalid) as error:
        msg = f"{path} must be a file of DEBS 2013 (sid, ts in ps, x, y in mm, ...): {error}"
        raise DataError(msg) from error
    ms = table["ts"].to_numpy() // _PS_PER_MS
    events = pa.table({
        "ts": ms - ms.min(initial=_FAR),
        "sid": table["sid"],
        "x": pc.divide(table["x"], _MM_PER_M),
        "y": pc.divide(table["y"], _MM_PER_M),
        "arrival": np.arange(len(table)),
    })  # fmt: skip
    return {
        team: events.filter(pc.is_in(events["sid"], pa.array(sensors)))
        for team, sensors in TEAMS.items()
    }
