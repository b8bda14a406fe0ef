"""A thousand million events through one engine: `slackwater bench soak`.

Memory must stay flat, every result must be produced or counted as lost, and the promise must be
kept as well at the end as at the beginning. The truth comes from a second engine that gets the same
events in the order in which they happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

from slackwater.engine.join import JoinEngine
from slackwater.engine.output import Output
from slackwater.engine.report import average_slack, columns, recall_series
from slackwater.jobs.measurement import Measurement
from slackwater.kernels.records import I64
from slackwater.query.goals import NoSlack, Recall
from slackwater.query.join import JoinQuery, Stream
from slackwater.query.joining import join
from slackwater_lab.benches.endless import LARGEST_DELAY_MS, PART, SECONDS, TIDE_S, endless
from slackwater_lab.benches.resident_memory import resident

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVENTS = 1_000_000_000
QUICK_EVENTS = 3_200_000
GAMMA = 0.95
_SECOND = 1000
_PERIOD = 60 * _SECOND
_WARM_UP_S = 1_000  # of event time
_PIECES = 5


def query() -> JoinQuery:
    """95 % of the results of a two-way join over any minute; retention covers every delay."""
    streams = (Stream(name, ts="ts", window=2 * _SECOND) for name in "ab")
    goal = Recall(GAMMA, over="1 minute")
    return join(*streams, on="k", goal=goal, retention=2 * LARGEST_DELAY_MS)


@dataclass
class Soak:
    """What was seen; one entry per ten seconds of event time, or per second."""

    events: list[int] = field(default_factory=list)  # since the start
    memory: list[int] = field(default_factory=list)  # bytes of the process
    produced: list[int] = field(default_factory=list)  # results by second of event time
    true: list[int] = field(default_factory=list)
    slacks: list[tuple[int, int]] = field(default_factory=list)  # (event time, K)
    lost: int = 0
    lost_unknown: int = 0
    is_balanced: bool = True
    seconds: float = 0.0  # of CPU that the engine took
    top: int = 0

    def recalls(self) -> tuple[I64, I64]:
        """Times, and γ(P) at each second behind the first P."""
        n = len(self.produced)  # seconds that are complete in both
        times = np.arange(n) * _SECOND
        made, true = np.array(self.produced), np.array(self.true[:n])
        series = recall_series(times, made, times, true, _PERIOD, n * _SECOND, _PERIOD, _SECOND)
        return series["ts"].to_numpy(), series["recall"].to_numpy()

    def phis(self, gamma: float = GAMMA) -> list[float]:
        """Φ(gamma) of five pieces with equally many tides, without the warm-up."""
        later = self.recalls()[1][_WARM_UP_S:]
        size = max(1, len(later) // _PIECES // TIDE_S * TIDE_S)
        pieces = [later[end - size : end] for end in range(len(later), size - 1, -size)]
        return [float(np.mean(piece >= gamma)) for piece in reversed(pieces[:_PIECES])]

    def memories(self) -> list[float]:
        """The mean memory of five pieces, in MB, without the warm-up."""
        later = np.array(self.memory[_WARM_UP_S // SECONDS :] or self.memory)
        return [
            float(piece.mean()) / 1e6 for piece in np.array_split(later, min(_PIECES, len(later)))
        ]


def soak(seed: int, events: int) -> Soak:
    """Run it."""
    asked = query()
    exact = replace(asked, goal=NoSlack(), late="drop", select="count")
    seen = Soak()
    engine = truth = None
    for arriving, happening in endless(seed, -(-events // PART)):
        if engine is None or truth is None:
            schemas = dict(zip("ab", (table.schema for table in arriving.tables), strict=True))
            engine, truth = JoinEngine(asked, schemas), JoinEngine(exact, schemas)
        start = process_time()
        output = engine.feed(arriving)
        seen.seconds += process_time() - start
        _count(seen.produced, output)
        _count(seen.true, truth.feed(happening))
        seen.slacks += output.slacks
        seen.events.append(len(arriving.stream) + (seen.events[-1] if seen.events else 0))
        seen.memory.append(resident())
    assert engine is not None and truth is not None
    end = engine.flush()
    _count(seen.produced, end)
    _count(seen.true, truth.flush())
    metrics = engine.metrics()
    seen.lost, seen.lost_unknown = metrics.lost, metrics.lost_unknown
    seen.is_balanced = metrics.is_balanced
    seen.top = output.top
    return seen


def _count(seconds: list[int], output: Output) -> None:
    """Add the results to the seconds they belong to."""
    ts, n, _ = columns(output.made)
    if len(ts) == 0:
        return
    first = int(ts.min()) // _SECOND
    counts = np.bincount(ts // _SECOND - first, weights=n).astype(np.int64).tolist()
    seconds.extend([0] * (first + len(counts) - len(seconds)))
    for second, count in enumerate(counts, start=first):
        seconds[second] += count


def lines(seen: Soak, quick: bool) -> Iterator[Measurement]:
    """The figures, with what was promised."""

    def promised(limit: float) -> float | None:
        return None if quick else limit

    produced, true = sum(seen.produced), sum(seen.true)
    memory = seen.memories()
    yield Measurement("events", seen.events[-1], "events")
    yield Measurement("event time", round(seen.top / 3_600_000, 2), "hours")
    yield Measurement("speed", round(seen.events[-1] / seen.seconds), "events per CPU second")
    yield Measurement("memory, first fifth", round(memory[0]), "MB")
    yield Measurement("memory, last fifth", round(memory[-1]), "MB")
    growth = round(memory[-1] / memory[0] - 1, 4)
    yield Measurement("growth of memory", growth, "share", ceiling=promised(0.02))
    yield Measurement("true results", true, "results")
    yield Measurement("produced", produced, "results")
    yield Measurement("counted as lost", seen.lost, "results")
    unaccounted = abs(true - produced - seen.lost) + seen.lost_unknown + (not seen.is_balanced)
    yield Measurement("not accounted for", unaccounted, "results", ceiling=0)
    yield Measurement("recall", round(produced / true, 4), "share", floor=promised(GAMMA))
    yield Measurement("average K", round(average_slack(seen.slacks, _PERIOD, seen.top)), "ms")
    phis, nearly = seen.phis(), seen.phis(0.99 * GAMMA)
    if phis:  # at least a few tides
        yield Measurement("Φ(0.95), first fifth", round(phis[0], 4), "share")
        yield Measurement("Φ(0.95), last fifth", round(phis[-1], 4), "share")
        drift = round(max(phis) - min(phis), 4)
        yield Measurement(
            "Φ(0.95), largest difference of fifths", drift, "share", ceiling=promised(0.05)
        )
        yield Measurement("Φ(0.99 · 0.95), worst fifth", round(min(nearly), 4), "share")


def figure(seen: Soak) -> Figure:
    """Memory and recall from the first event to the last."""
    from slackwater_lab.plots import Panel, panels  # noqa: PLC0415

    hours = np.array(seen.events) / seen.events[-1] * seen.top / 3_600_000
    memory = np.array(seen.memory) / 1e6
    at, recall = seen.recalls()
    changes, values = np.array(seen.slacks).T
    return panels(
        f"{seen.events[-1] / 1e6:,.0f} million events through one engine",
        "event time, hours",
        [
            [
                Panel(
                    "memory of the process",
                    "MB",
                    {"memory": (hours.tolist(), memory.tolist())},
                    y_range=(0, None),
                )
            ],
            [
                Panel(
                    "recall over the last minute",
                    "γ(1 minute)",
                    {"recall": ((at / 3_600_000).tolist(), recall.tolist())},
                    level=(GAMMA, "what was asked for"),
                )
            ],
            [
                Panel(
                    "slack",
                    "K, ms",
                    {"K": ((changes / 3_600_000).tolist(), values.tolist())},
                    y_range=(0, None),
                )
            ],
        ],
    )
