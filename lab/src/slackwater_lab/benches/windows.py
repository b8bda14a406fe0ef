"""How fast windows over one stream are; part of `slackwater bench core`."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
import pyarrow as pa

from slackwater.disorder.heartbeat import HeartbeatStage
from slackwater.engine.replay import recorded
from slackwater.engine.window import WindowEngine
from slackwater.jobs.measurement import Measurement
from slackwater.query.functions import max as largest
from slackwater.query.stream import Stream
from slackwater.query.window import window
from slackwater.query.window_goals import DropRatio
from slackwater.query.windows import Sliding, Tuples

_PER_MS = 10  # events


def sliding(n: int, runs: int, seed: int) -> float:
    """Events a second: the largest value of the last 30 s at each event, with a drop ratio of 1 %.

    Ten thousand events a second; the heartbeat is reconsidered each second, as in the paper.
    """
    rng = np.random.default_rng(seed)
    ts = np.arange(n) // _PER_MS
    late = np.where(rng.random(n) < 0.1, rng.exponential(50, n), 0.0)
    order = np.argsort(ts + late, kind="stable")
    table = pa.table({"ts": ts[order], "value": rng.normal(size=n)[order]})
    query = window(
        Stream("events", ts="ts"),
        window=Sliding("30 s"),
        select={"most": largest("value")},
        goal=DropRatio(0.01, every=Tuples(1000 * _PER_MS)),
    )
    batch, _ = recorded(query, {"events": table}, None)
    best = float("inf")
    for _ in range(runs):
        engine = WindowEngine(query, {"events": table.schema})
        start = perf_counter()
        engine.feed(batch)
        best = min(best, perf_counter() - start)
    return n / best


def buffer_sizes(sizes: list[int], runs: int, seed: int) -> Iterator[Measurement]:
    """Seconds per event of the slack buffer alone, by how many events it holds."""
    rng = np.random.default_rng(seed)
    taken = {size: float("inf") for size in sizes}
    for _ in range(runs):
        for size in sizes:
            taken[size] = min(taken[size], _seconds_per_event(size, rng))
    for size, seconds in taken.items():
        yield Measurement(
            f"slack buffer of {size:,}: time of an event", round(1e9 * seconds, 1), "ns"
        )


def _seconds_per_event(size: int, rng: np.random.Generator) -> float:
    """Time to put an event into a buffer of `size` events and to let another one out."""
    n = max(1_000_000, size // 4)  # beyond those that fill the buffer
    ts = np.arange(size + n) // _PER_MS
    ts = np.maximum(ts - (rng.random(len(ts)) < 0.1) * rng.integers(0, 50, len(ts)), 0)
    stage = HeartbeatStage(distance=size // _PER_MS)
    stage.log.append(ts, np.zeros(len(ts), np.int64), [np.zeros(len(ts), np.int32)])
    stage.start(size)
    stage.run(0, size)
    stage.start(n)
    start = perf_counter()
    stage.run(size, size + n)
    return (perf_counter() - start) / n
