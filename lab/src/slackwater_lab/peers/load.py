"""Streams to join, in the form that each engine reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from slackwater_lab.peers.job import Job

_PLAIN = pcsv.WriteOptions(include_header=False)


@dataclass(frozen=True)
class Load:
    """Streams, and the join over them."""

    name: str
    data: Path  # a folder of Parquet files per stream
    streams: tuple[str, ...]
    window_ms: int
    slack_ms: int  # the delay of the watermark
    count: bool = False

    def job(
        self,
        peer: str,
        lengths: tuple[int, ...],
        parallelism: int = 2,
        rows_per_commit: int = 10_000,
    ) -> Job:
        """Runs over so many rows of each stream, one after the other."""
        kind: Literal["parquet", "csv"] = "parquet" if peer in ("duckdb", "polars") else "csv"
        parts = parallelism if peer == "flink" else 1
        folders = tuple(str(self.first(rows, kind, parts)) for rows in lengths)
        return Job(
            peer, folders, self.streams, self.window_ms, self.slack_ms, self.count, parallelism,
            rows_per_commit,
        )  # fmt: skip

    def first(self, rows: int, kind: Literal["parquet", "csv"], parts: int = 1) -> Path:
        """The first rows of each stream, dealt out to files that are read side by side.

        As CSV without the arrival, which only Slackwater looks at, and with the time as a number.
        """
        folder = self.data.with_name(f"{self.data.name}-{rows}-{kind}-{parts}")
        for stream in self.streams if not folder.exists() else ():
            (folder / stream).mkdir(parents=True)
            table = self._table(stream).slice(0, rows)
            for part in range(parts):
                dealt = table.take(pa.array(np.arange(part, table.num_rows, parts)))
                path = folder / stream / f"{part}.{kind}"
                if kind == "parquet":
                    pq.write_table(dealt, path)
                else:
                    own = pa.table({"ts": _ms(dealt["ts"]), "k": dealt["k"], "v": dealt["v"]})
                    pcsv.write_csv(own, path, _PLAIN)
        return folder

    def delays(self) -> npt.NDArray[np.int64]:
        """How late each row is, in ms."""
        tables = [self._table(stream) for stream in self.streams]
        return np.concatenate(
            [_ms(t["arrival"]).to_numpy() - _ms(t["ts"]).to_numpy() for t in tables]
        )

    def _table(self, stream: str) -> pa.Table:
        return pa.concat_tables([pq.read_table(f) for f in sorted((self.data / stream).iterdir())])


def _ms(times: Any) -> Any:
    return times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
