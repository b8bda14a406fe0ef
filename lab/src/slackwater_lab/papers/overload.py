"""The workload of GrubJoin VI-B, and joins that cannot keep up with it.

Values grow linearly with time and wrap around; streams follow each other with a lag, and are more
or less noisy. A result has one event of each stream, all values within 1 of each other (an ε-join).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels.records import F64, I64
from slackwater.query.goals import NoSlack
from slackwater.query.join import JoinQuery, join
from slackwater.query.shedding import SheddingOption
from slackwater.query.stream import Stream

_DOMAIN = 1000.0  # D
_PERIOD = 50.0  # η: seconds until values wrap around
SECOND = 1000  # in units
WARM_UP = 20  # seconds that are not counted
LAGS = (0.0, 5.0, 15.0, 10.0, 18.0)  # τ: of the first three as printed, the others are ours
NOISE = (2.0, 2.0, 50.0, 2.0, 50.0)  # κ: the same


@dataclass(frozen=True)
class Workload:
    """Streams of GrubJoin VI-B; rates in events per second, one for each equal part of the run."""

    m: int = 3
    rates: tuple[float, ...] = (100.0,)
    lagged: bool = True  # the paper's nonaligned streams
    noise: tuple[float, ...] = NOISE
    lags: tuple[float, ...] = LAGS
    seconds: int = 60

    def brief(self) -> Workload:
        """Return a short version, for tests."""
        return replace(self, seconds=min(self.seconds, WARM_UP + 4))

    def tables(self, seed: int) -> dict[str, pa.Table]:
        """The streams, in order."""
        rng = np.random.default_rng(seed)
        return {f"s{i + 1}": self._stream(i, rng) for i in range(self.m)}

    def _stream(self, i: int, rng: np.random.Generator) -> pa.Table:
        part = self.seconds * SECOND // len(self.rates)
        ts = np.sort(
            np.concatenate([
                n * part + rng.integers(0, part, rng.poisson(rate * part / SECOND))
                for n, rate in enumerate(self.rates)
            ])
        )  # fmt: skip
        lag = self.lags[i] if self.lagged else 0.0
        grows = _DOMAIN / _PERIOD * (ts / SECOND + lag)
        noisy = grows + self.noise[i] * rng.standard_normal(len(ts))
        return pa.table({"ts": ts, "x": noisy % _DOMAIN})


def query_of(m: int, shed: SheddingOption, window: str = "20 seconds") -> JoinQuery:
    """The ε-join of `m` streams."""
    names = [f"s{i + 1}" for i in range(m)]
    near = " and ".join(f"abs({a}.x - {b}.x) <= 1" for a, b in combinations(names, 2))
    streams = (Stream(name, "ts", window) for name in names)
    return join(*streams, where=near, goal=NoSlack(), select="count", shed=shed)


@dataclass(frozen=True)
class Trace:
    """A run, second by second."""

    time: F64  # seconds
    throttle: F64  # z
    backlog: F64  # work that waits, in seconds
    made: I64
    dropped: I64
    comparisons: I64
    arrivals: I64

    def _rate(self, counts: I64, begin: float, end: float) -> float:
        own = (self.time > begin) & (self.time <= end)
        return float(counts[own].sum()) / float(end - begin)

    def output(self, begin: float = WARM_UP) -> float:
        """Results per second after the warm-up."""
        return self._rate(self.made, begin, float(self.time[-1]))

    def cost(self, begin: float = WARM_UP) -> float:
        """Comparisons per second after the warm-up."""
        return self._rate(self.comparisons, begin, float(self.time[-1]))

    def drop_rate(self, begin: float, end: float) -> float:
        """Events dropped per second and stream."""
        return self._rate(self.dropped, begin, end)


def run(query: JoinQuery, tables: dict[str, pa.Table]) -> Trace:
    """Run the join."""
    batch, _ = recorded(query, tables, None)
    engine = JoinEngine(query, {name: table.schema for name, table in tables.items()})
    arrival = batch.arrival
    assert arrival is not None
    seconds = int(arrival[-1]) // SECOND + 1
    ends = np.searchsorted(arrival, SECOND * np.arange(1, seconds + 1))
    rows, made_ts, made_n = [], [], []
    for second, part in enumerate(batch.cut(ends.tolist()), start=1):
        output = engine.feed(part)
        made_ts += [made.ts for made in output.made]
        made_n += [made.n for made in output.made]
        rows.append((second, *_state(engine)))
    output = engine.flush()
    made_ts += [made.ts for made in output.made]
    made_n += [made.n for made in output.made]
    time, throttle, backlog, dropped, comparisons, arrivals = np.array(rows, float).T
    n = np.bincount(np.concatenate(made_ts) // SECOND, np.concatenate(made_n), seconds)
    return Trace(
        time, throttle, backlog, n[:seconds].astype(np.int64), _by_second(dropped),
        _by_second(comparisons), _by_second(arrivals),
    )  # fmt: skip


def _state(engine: JoinEngine) -> Sequence[float]:
    metrics = engine.metrics()
    shedding = metrics.shedding
    if shedding is None:
        return 1.0, 0.0, 0.0, 0.0, metrics.arrivals
    return (
        shedding.throttle, shedding.backlog / SECOND, metrics.shed, shedding.comparisons,
        metrics.arrivals,
    )  # fmt: skip


def _by_second(total: F64) -> I64:
    return np.diff(total, prepend=0.0).astype(np.int64)
