"""Windows of two streams as PECJ's program makes them, and how late their events are.

Keys and values come row by row, 1,001 rows a window and stream, in bursts of 50 every half
millisecond; the times in the authors' files are not used by them. Delays are uniform in (0, Δ].
Everything is in whole microseconds, in which uniform delays have an exact law. Windows lie side by
side, 10.5 ms long: the last row of a window is 10 ms after its first.

The real data is not ours to ship: `FOLDER` names a directory with the files of the authors'
artefact, and of any other dataset as key,value rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from slackwater.compensation.observation import cells_for
from slackwater.compensation.tally import Events, Tally
from slackwater.errors import DataError
from slackwater.kernels.records import F64, I64

FOLDER = "SLACKWATER_PECJ"  # environment variable: the folder of the real data
MS = 1000  # units
LENGTH = 10_500  # of a window
BURST = 500  # from one burst of events to the next
ROWS = 1001  # of a stream in a window, at 100 K events per second

_SHAPE = (2, cells_for(2), 2)  # streams, cells; values: results, and the sum of r.v
_VALUE_OF = np.array([0], np.int64)  # the stream that has the values
_NEVER = np.iinfo(np.int64).max
_FILES = {"Stock": ("stock_cj", "stock_sb"), "Rovio": ("rovio", "rovio")}
_NOT_AT_HAND = ("Logistics", "Retail")


@dataclass(frozen=True)
class Window:
    """All events of a window, those of the first stream before those of the second."""

    stream: I64
    time: I64  # from the start of the window
    key: I64
    value: F64  # r.v, 0 in the second stream

    def arrived(self, delay: I64, deadline: int) -> Tally:
        """What is there at the deadline, counted as the engine does it."""
        return counted(self.events(delay, deadline))

    def events(self, delay: I64, deadline: int) -> Events:
        """The events that are there at the deadline, in arrival order."""
        arrival = self.time + delay
        order = np.argsort(arrival, kind="stable")
        order = order[: np.searchsorted(arrival[order], deadline, side="right")]
        time, arrival = self.time[order], arrival[order]
        return Events(
            self.stream[order],
            time * _SHAPE[1] // LENGTH,
            self.key[order],
            np.zeros(len(order), np.int64),
            self.value[order][None],
            (arrival - time).astype(float),
            arrival.astype(float),
        )

    @cached_property
    def code(self) -> I64:
        """The keys as small numbers."""
        return np.unique(self.key, return_inverse=True)[1]

    @cached_property
    def whole(self) -> Tally:
        """The window when all has arrived."""
        return self.arrived(np.zeros(len(self.time), np.int64), _NEVER)

    @property
    def truth(self) -> F64:
        """The number of results, and the sum of r.v over them."""
        return np.asarray(self.whole.values[0])

    def delays(self, most: int, rng: np.random.Generator) -> I64:
        """How late each event is: uniform in (0, most]; in order if that is 0."""
        if most == 0:
            return np.zeros(len(self.time), np.int64)
        return rng.integers(1, most + 1, len(self.time))


def counted(events: Events) -> Tally:
    """Some events of a window, joined."""
    return Tally.of(events, _SHAPE, _VALUE_OF, None, [()])


@dataclass(frozen=True)
class Dataset:
    """Windows in order."""

    name: str
    windows: Sequence[Window]
    is_real: bool = False


def window_of(times: Sequence[I64], keys: Sequence[I64], values: F64) -> Window:
    """A window from the events of each stream."""
    rows = [len(own) for own in times]
    return Window(
        np.repeat(np.arange(2), rows),
        np.concatenate(times),
        np.concatenate(keys),
        np.concatenate([values, np.zeros(rows[1])]),
    )


def bursts(rows: int, size: int) -> I64:
    """The times of events that come in bursts."""
    return BURST * (np.arange(rows) // size)


# ---- made


@cache
def micro(keys: int, n: int, seed: int, rate: int = 100) -> Dataset:
    """Uniform keys, values from 1 to 99; the rate of each stream is in thousands per second."""
    rng = np.random.default_rng((seed, keys, rate))
    size = rate * BURST // MS
    time = bursts(20 * size + 1, size)
    windows = [_micro_window(rng, keys, (time, time)) for _ in range(n)]
    return Dataset(f"Micro, {keys:,} keys", windows)


@cache
def random_micro(keys: int, n: int, seed: int) -> Dataset:
    """The same with independent events: as many as a Poisson process has, whenever it has them."""
    rng = np.random.default_rng((seed, keys))
    windows = []
    for _ in range(n):
        times = [np.sort(rng.integers(0, LENGTH, rng.poisson(ROWS))) for _ in range(2)]
        windows.append(_micro_window(rng, keys, times))
    return Dataset(f"Micro, {keys:,} keys, random sizes", windows)


def _micro_window(rng: np.random.Generator, keys: int, times: Sequence[I64]) -> Window:
    values = rng.integers(1, 100, len(times[0])).astype(float)
    return window_of(times, [rng.integers(0, keys, len(own)) for own in times], values)


# ---- real


def real() -> tuple[list[Dataset], list[str]]:
    """The real datasets that are at hand, and words about those that are not."""
    found, missing = [], []
    for name in (*_FILES, *_NOT_AT_HAND):
        data = _read(name)
        if data is None:
            missing.append(name)
        else:
            found.append(data)
    if not missing:
        return found, []
    words = (
        f"Not available: {', '.join(missing)}. Real data is read from the directory ${FOLDER}; in "
        "addition to the authors' files it may have `NAME.csv` (joined with itself) or "
        "`NAME_r.csv` and `NAME_s.csv`, with or without `.gz`, with the columns key and value."
    )
    return found, [words]


class Published(NamedTuple):
    """One run of the authors, of one window."""

    error: float  # signed, as a share of the truth
    latency: float | None  # of 95 % of the events, in µs
    throughput: float | None = None  # events per second


def authors_results() -> dict[tuple[str, str, str], Published]:
    """By experiment, algorithm and point; nothing if they are not at hand."""
    path = _path("authors_results")
    if path is None:
        return {}
    return {
        (row["experiment"], row["algorithm"], str(row["point"])): Published(
            row["compensated_error"], row["latency95_us"], row["throughput_tps"]
        )
        for row in csv.read_csv(path).to_pylist()
    }


def _read(name: str) -> Dataset | None:
    own = (f"{name.lower()}_r", f"{name.lower()}_s")
    for files in (_FILES.get(name, own), (name.lower(), name.lower())):
        paths = [_path(file) for file in files]
        if all(path is not None for path in paths):
            tables = [_key_and_value(path) for path in paths if path is not None]
            return Dataset(name, _cut(tables), is_real=True)
    return None


def _path(name: str) -> Path | None:
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    tried = [Path(folder) / f"{name}.csv{end}" for end in ("", ".gz")]
    return next((path for path in tried if path.exists()), None)


def _key_and_value(path: Path) -> pa.Table:
    try:
        return csv.read_csv(path).select(["key", "value"])
    except (OSError, KeyError, pa.ArrowInvalid) as error:
        msg = f"{path} must be a CSV file with the columns key and value: {error}"
        raise DataError(msg) from error


def _cut(tables: Sequence[pa.Table]) -> list[Window]:
    """Windows by rows, as many as both streams fill."""
    keys = [table["key"].to_numpy() for table in tables]
    values = tables[0]["value"].to_numpy().astype(float)
    time = bursts(ROWS, 50)
    parts = [slice(i * ROWS, (i + 1) * ROWS) for i in range(min(len(own) for own in keys) // ROWS)]
    return [window_of((time, time), [own[part] for own in keys], values[part]) for part in parts]


# ---- in time


def tables(windows: Sequence[Window], delays: Sequence[I64]) -> dict[str, pa.Table]:
    """The windows side by side, for `replay`."""
    start = np.concatenate([np.full(len(w.time), i * LENGTH) for i, w in enumerate(windows)])
    stream = np.concatenate([w.stream for w in windows])
    time = start + np.concatenate([w.time for w in windows])
    columns = {
        "t": time,
        "k": np.concatenate([w.key for w in windows]),
        "v": np.concatenate([w.value for w in windows]),
        "a": time + np.concatenate(delays),
    }
    return {
        name: pa.table({column: values[stream == s] for column, values in columns.items()})
        for s, name in enumerate("rs")
    }
