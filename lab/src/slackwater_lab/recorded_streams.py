"""Recorded streams with real disorder, read in place from a folder; nothing of it is kept here.

Each file has `event_us`, `arrival_us` (microseconds) and keys, rows in arrival order. A
`Recording` says which files are joined, on what, and over which period recall is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.query.join import JoinQuery, join
from slackwater.query.stream import Stream

FOLDER = "SLACKWATER_RECORDINGS"  # the variable with the folder

_COVENANT = "wef_covenant_sysmon"
_BINANCE = "binance_20240808"


@dataclass(frozen=True)
class Recording:
    """Files that are joined: by stream, the name of its file and which `event_id` it takes."""

    name: str
    files: dict[str, tuple[str, tuple[int, ...]]]
    key: str
    window: str
    over: str  # P
    resolution_ms: int = 1  # of its times

    @property
    def query(self) -> JoinQuery:
        """The join, counted."""
        streams = (Stream(name, ts="ts", window=self.window) for name in self.files)
        return join(*streams, on="key", select="count")

    def is_in(self, folder: Path) -> bool:
        """Whether all of its files are there."""
        return all((folder / f"{file}.parquet").exists() for file, _ in self.files.values())

    def tables(self, folder: Path) -> dict[str, pa.Table]:
        """The streams of (ts, key, arrival), times in ms from the first event on."""
        read = {
            name: _rows(folder / f"{file}.parquet", self.key, wanted)
            for name, (file, wanted) in self.files.items()
        }
        first = min(int(table["ts"].to_numpy().min()) for table in read.values())
        return {
            name: table.set_column(0, "ts", pa.array(table["ts"].to_numpy() - first))
            for name, table in read.items()
        }


def _rows(path: Path, key: str, wanted: tuple[int, ...]) -> pa.Table:
    table = pq.read_table(path)
    if wanted:
        table = table.filter(pc.is_in(table["event_id"], pa.array(wanted)))
    return pa.table({
        "ts": table["event_us"].to_numpy() // 1000,
        "key": table[key],
        "arrival": table["arrival_us"].to_numpy(),
    })  # fmt: skip


RECORDINGS = {
    recording.name: recording
    for recording in (
        Recording(
            "mbta",
            {"positions": ("mbta_vehicle_positions", ()), "updates": ("mbta_trip_updates", ())},
            "trip", "10 s", "5 minutes", resolution_ms=1000,
        ),
        Recording(
            "covenant",
            {"registry": (_COVENANT, (12, 13)), "images": (_COVENANT, (7,))},
            "process_guid", "2 s", "30 s",
        ),
        Recording(
            "binance",
            {"trades": (f"{_BINANCE}_usdm_trades", ()), "book": (f"{_BINANCE}_usdm_book", ())},
            "symbol", "20 ms", "10 s",
        ),
        Recording(
            "binance-3",
            {
                "trades": (f"{_BINANCE}_usdm_trades", ()),
                "spot": (f"{_BINANCE}_spot_trades", ()),
                "coin": (f"{_BINANCE}_cm_trades", ()),
            },
            "symbol", "100 ms", "10 s",
        ),
        Recording(
            "nezha",
            {"spans": ("nezha_2023-01-29_spans", ()), "logs": ("nezha_2023-01-29_logs", ())},
            "span", "20 s", "1 minute",
        ),
    )
}  # fmt: skip
