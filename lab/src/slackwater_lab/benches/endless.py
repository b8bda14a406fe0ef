"""Two disordered streams of any length, part by part: the load of a soak."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from slackwater.events.batch import Batch
from slackwater.kernels.records import I64

RATE_PER_S = 20_000  # of each stream
KEYS = 50_000
SECONDS = 10  # in one part
PART = 2 * RATE_PER_S * SECONDS  # events
LARGEST_DELAY_MS = 10_000
TIDE_S = 600  # disorder rises and falls: the controller always has something to follow
_LATE_SHARE = 0.3
_MEAN_DELAY_MS = 200
_SWING = 0.8


def endless(seed: int, parts: int) -> Iterator[tuple[Batch, Batch]]:
    """Ten seconds in each part, as they arrive and as they happened, in ms.

    An event may arrive in a later part than it happens in; all arrive in the end.

    >>> arriving, happening = next(endless(seed=1, parts=3))
    >>> happening.tables[0].num_rows, happening.tables[0].column_names
    (200000, ['ts', 'k'])
    >>> ts = happening.tables[1]["ts"].to_numpy()
    >>> int(ts.min()), int(ts.max()), bool((np.diff(ts) >= 0).all())
    (0, 9999, True)
    >>> bool((np.diff(arriving.tables[0]["ts"].to_numpy()) >= 0).all())
    False
    """
    rng = np.random.default_rng(seed)
    stream = np.tile(np.array([0, 1], np.uint8), PART // 2)
    waiting: I64 = np.empty((4, 0), np.int64)  # arrival, stream, ts, key of events on their way
    for part in range(parts):
        begin, end = 1000 * SECONDS * part, 1000 * SECONDS * (part + 1)
        ts = begin + np.repeat(np.arange(PART // 2) * 1000 // RATE_PER_S, 2)
        key = rng.integers(0, KEYS, PART)
        tide = 1 + _SWING * np.sin(2 * np.pi * ts / (1000 * TIDE_S))
        delay = np.ceil(rng.exponential(_MEAN_DELAY_MS, PART) * tide)
        delay = np.where(rng.random(PART) < _LATE_SHARE, np.minimum(delay, LARGEST_DELAY_MS), 0)
        arrival = ts + delay.astype(np.int64)
        known = np.concatenate([waiting, np.stack([arrival, stream, ts, key])], axis=1)
        due = (known[0] < end) | (part == parts - 1)
        waiting = known[:, ~due]
        come = known[:, due]
        come = come[:, np.argsort(come[0], kind="stable")]
        yield _batch(come[1].astype(np.uint8), come[2], come[3]), _batch(stream, ts, key)


def _batch(stream: np.ndarray, ts: I64, key: I64) -> Batch:
    own = [np.flatnonzero(stream == s) for s in (0, 1)]
    return Batch(tuple(pa.table({"ts": ts[rows], "k": key[rows]}) for rows in own), stream)
