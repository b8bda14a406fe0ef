"""Recordings for tests: files as the lab reads them from any folder."""

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater_lab.moving_streams import moving_streams


def write_recording(folder, minutes=2.0, names=("left", "right"), key="device"):
    """Two streams whose disorder moves, times in microseconds from some day on."""
    day = 1_700_000_000_000_000
    for name, table in zip(names, moving_streams(minutes, 1, "steady").values(), strict=True):
        times = {n: day + 1_000 * table[c].to_numpy() for n, c in TIMES.items()}
        pq.write_table(pa.table(times | {key: table["k"]}), folder / f"{name}.parquet")


TIMES = {"event_us": "ts", "arrival_us": "arrival"}
