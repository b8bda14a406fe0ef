"""Recordings for tests: files as the lab reads them from any folder."""

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater_lab.datasets import DATASETS
from slackwater_lab.moving_streams import moving_streams


def write_recording(folder, minutes=2.0, names=("left", "right"), key="device"):
    """Two streams whose disorder moves, times in microseconds from some day on."""
    day = 1_700_000_000_000_000
    for name, table in zip(names, moving_streams(minutes, 1, "steady").values(), strict=True):
        times = {n: day + 1_000 * table[c].to_numpy() for n, c in TIMES.items()}
        pq.write_table(pa.table(times | {key: table["k"]}), folder / f"{name}.parquet")


TIMES = {"event_us": "ts", "arrival_us": "arrival"}


def write_debs(path, minutes=0.5):
    """A game in the format of DEBS 2013; return its file."""
    game, rows = DATASETS["dx2"].make(minutes, 1), []
    for team, sensors in (("a", (13, 14, 97)), ("b", (61, 62, 99))):
        columns = (game[team][name].to_pylist() for name in ("arrival", "sid", "ts", "x", "y"))
        rows += [
            (arrival, f"{sensors[sid % 3]},{10**9 * ts},{1000 * x:.0f},{1000 * y:.0f}" + ",0" * 9)
            for arrival, sid, ts, x, y in zip(*columns, strict=True)
        ]
    path.write_text("\n".join(line for _, line in sorted(rows)) + "\n")
    return path
