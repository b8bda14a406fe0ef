"""Metrics lines of a run that never was: for tests and pictures of the dashboard.

Two streams with exponential delays that grow for a while, and a controller that follows them as the
real one does: slowly, and a little on the safe side. The same arguments make the same lines.

>>> run = list(join_lines(3))
>>> [line["event"] for line in run]
['started', 'batch', 'batch', 'batch']
>>> run[-1]["balanced"], run[-1]["metrics"]["target"]
(True, 0.95)
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Line = dict[str, Any]

STREAMS = ("quotes", "trades")
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
RATE = 9_000  # rows per second and stream
EDGES = [0, *(round(10 * 1.5**n) for n in range(18))]
SLACKS = [0, *(round(50 * 1.2**n) for n in range(30))]


def join_lines(
    count: int,
    seed: int = 1,
    targets: Mapping[int, float] | None = None,
    shed_from: int | None = None,
    key: str = "a",
) -> Iterator[Line]:
    """A join with a recall goal, a line per second.

    `targets` has new targets, by micro-batch; from `shed_from` on there is more
    work than CPU.
    """
    rng = random.Random(seed)
    join = _Join(rng)
    yield _started(key, "matches", {"kind": "Recall", "target": 0.95, "over": "1 minute"}, "join")
    for batch in range(count):
        new_target = (targets or {}).get(batch)
        is_short = shed_from is not None and batch >= shed_from
        yield _batch(key, "matches", batch, join.metrics(batch, count, new_target, is_short))


class _Join:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._target = 0.95
        self._slack = 0.0
        self._recall = 0.9
        self._totals = {
            name: dict.fromkeys(("arrivals", "in_order", "late_kept", "late_dropped", "shed"), 0)
            for name in STREAMS
        }
        self._produced = self._lost = self._missed = 0

    def metrics(self, batch: int, count: int, new_target: float | None, is_short: bool) -> Line:
        rng = self._rng
        self._target = new_target or self._target
        moment = batch / max(count, 60)
        mean = 700 + 260 * math.sin(9 * moment) + (900 if 0.42 < moment < 0.68 else 0)
        mean *= 1 + 0.06 * rng.gauss(0, 1)
        need = self._need(self._target + 0.2 * (1 - self._target), mean)
        self._slack += (need - self._slack) * (0.12 if need > self._slack else 0.05)
        now = self._expected(self._slack, mean) + 0.004 * rng.gauss(0, 1)
        self._recall += (min(1.0, now) - self._recall) * 0.12
        lead = {"quotes": round(420 + 160 * math.sin(17 * moment) + 30 * rng.random()), "trades": 0}
        throttle = 0.55 + 0.1 * math.sin(40 * moment) + 0.03 * rng.random() if is_short else 1.0
        streams = {name: self._arrive(name, batch, mean, lead) for name in STREAMS}
        results = round(RATE * 2.6 * (1 + 0.03 * rng.gauss(0, 1)))
        missed = round(results * (1 - throttle) * 0.2)
        self._produced += round(results * self._recall) - missed
        self._lost += round(results * (1 - self._recall))
        self._missed += missed
        fates = ("arrivals", "in_order", "late_kept", "late_dropped", "buffered", "shed")
        slack = round(self._slack / 10) * 10
        curve = [[k, self._expected(k, mean), k + lead["quotes"]] for k in SLACKS]
        true = self._produced + self._lost + self._missed
        return {
            **{fate: sum(stream[fate] for stream in streams.values()) for fate in fates},
            "behind": 0,
            "rejected": {"bad_time": 2 * (batch // 50), "null_key": 0},
            "shards": 2, "produced": self._produced, "lost": self._lost, "lost_unknown": 0,
            "lost_estimated": 0, "lost_estimated_error": 0.0, "lost_not_estimated": 0, "sampled": 0,
            "slack": slack, "max_delay": 16_400, "max_lateness": 9_100,
            "stored": round(RATE * 10 * (1 + 0.02 * rng.gauss(0, 1))), "copies": 0,
            "state_bytes": round(4.1e6 + 900 * self._slack), "restored": 0, "refused_commands": 0,
            "target": self._target, "missed": self._missed, "missed_error": self._missed * 0.02,
            "evicted": 0, "backlog": 120 if is_short else 0, "throttle": throttle,
            "recall": self._produced / true if true else None, "throttles": [throttle, 1.0],
            "streams": streams,
            "commands": [] if new_target is None else [{"recall": new_target}],
            "charts": {
                "now": BEGIN_MS + 1000 * batch,
                "recall": self._recall if batch > 5 else None,
                "leads": lead,
                "latency": slack + lead["quotes"],
                "delays": {name: self._histogram(mean, name) for name in STREAMS},
                "curve": curve,
                "chosen": [slack, self._expected(slack, mean), slack + lead["quotes"]],
                "harvest": self._harvest(throttle) if is_short else None,
                "aggregates": None,
            },
        }  # fmt: skip

    def _arrive(self, name: str, batch: int, mean: float, lead: Mapping[str, int]) -> Line:
        totals = self._totals[name]
        rows = round(RATE * (1 + 0.03 * self._rng.gauss(0, 1)))
        late = round(rows * 0.2 * math.exp(-(self._slack + lead[name]) / mean))
        totals["arrivals"] += rows
        totals["late_kept"] += late * 3 // 4
        totals["late_dropped"] += late - late * 3 // 4
        rejected = batch // 50
        buffered = min(rows, round(rows * self._slack / 1000))
        late_so_far = totals["late_kept"] + totals["late_dropped"]
        totals["in_order"] = totals["arrivals"] - late_so_far - buffered - rejected
        return {
            **totals,
            "buffered": buffered,
            "behind": 0,
            "rejected": {"bad_time": rejected, "null_key": 0},
            "local_time": BEGIN_MS + 1000 * batch + lead[name],
            "state": "active",
        }

    @staticmethod
    def _expected(slack: float, mean: float) -> float:
        in_time = 1 - 0.2 * math.exp(-slack / mean)
        return round(in_time**2, 6)

    @staticmethod
    def _need(recall: float, mean: float) -> float:
        late = (1 - math.sqrt(min(recall, 0.9999))) / 0.2
        return max(0.0, -mean * math.log(max(late, 1e-5)))

    def _histogram(self, mean: float, name: str) -> Line:
        scale = mean * (1.3 if name == "trades" else 0.9)
        ends = [*EDGES[1:], math.inf]
        shares = [
            math.exp(-low / scale) - math.exp(-high / scale)
            for low, high in zip(EDGES, ends, strict=True)
        ]
        counts = [round(1_800 * s * (1 + 0.08 * self._rng.gauss(0, 1))) for s in shares]
        return {"edges": EDGES, "counts": [7_200, *(max(0, n) for n in counts[1:])]}

    @staticmethod
    def _harvest(throttle: float) -> list[Line]:
        def basic(peak: float, width: float) -> list[float]:
            shares = [math.exp(-(((n - peak) / width) ** 2)) for n in range(10)]
            return [round(min(1.0, share * (0.4 + throttle)), 3) for share in shares]

        windows = (("quotes", "trades", basic(2, 2.2)), ("trades", "quotes", basic(6, 2.8)))
        return [
            {
                "direction": a,
                "windows": [{"stream": b, "fraction": sum(shares) / 10, "basic": shares}],
            }
            for a, b, shares in windows
        ]


def aggregate_lines(count: int, seed: int = 2, key: str = "b") -> Iterator[Line]:
    """Aggregates over joined windows of ten seconds, reported early and corrected later."""
    rng = random.Random(seed)
    goal = {"kind": "Deadline", "after": "10 seconds"}
    yield _started(key, "early answers", goal, "aggregate")
    for batch in range(count):
        rows = []
        if batch % 10 == 9:
            rows.append(_window(rng, batch - 9, is_exact=False))
            if batch >= 39:
                rows.append(_window(rng, batch - 39, is_exact=True))
        streams = {name: _even((batch + 1) * RATE // 10) for name in STREAMS}
        totals = _even(2 * (batch + 1) * RATE // 10)
        metrics = totals | {
            "produced": batch // 10, "lost": 0, "slack": 0, "stored": 9_000, "recall": None,
            "target": None, "streams": streams, "state_bytes": 300_000,
            "charts": {"now": BEGIN_MS + 1000 * batch, "aggregates": rows or None},
        }  # fmt: skip
        yield _batch(key, "early answers", batch, metrics)


def _window(rng: random.Random, start: int, is_exact: bool) -> Line:
    true = 48_000 + 9_000 * math.sin(start / 45) + 1_500 * math.sin(start / 7)
    guess = true * (1 + 0.012 * rng.gauss(0, 1))
    value = {"observed": true, "value": true, "low": None, "high": None}
    if not is_exact:
        low, high = guess * 0.972, guess * 1.028
        value = {"observed": true * 0.88, "value": guess, "low": low, "high": high}
    return {
        "start": BEGIN_MS + 1000 * start,
        "end": BEGIN_MS + 1000 * (start + 10),
        "group": {},
        "completeness": 1.0 if is_exact else 0.88,
        "exact": is_exact,
        "values": {"matches": value},
    }


def _even(arrivals: int) -> Line:
    """Counters of a stream of which all events are in order."""
    fates = dict.fromkeys(("late_kept", "late_dropped", "buffered", "shed"), 0)
    return {"arrivals": arrivals, "in_order": arrivals, **fates, "rejected": {}}


def _started(key: str, name: str, goal: Line, kind: str) -> Line:
    query = {"sql": None, "unit": "ms", "streams": list(STREAMS), "goal": goal, "kind": kind}
    return {
        "event": "started", "id": key, "run_id": f"{key}-1", "name": name,
        "timestamp": BEGIN.isoformat(), "query": query | {"control": True},
    }  # fmt: skip


def _batch(key: str, name: str, batch: int, metrics: Line) -> Line:
    return {
        "event": "batch", "id": key, "run_id": f"{key}-1", "name": name, "batch": batch,
        "timestamp": (BEGIN + timedelta(seconds=batch)).isoformat(timespec="milliseconds"),
        "rows": 2 * RATE, "duration_ms": 700, "balanced": True, "metrics": metrics,
    }  # fmt: skip


def ended(key: str = "a", name: str = "matches") -> Line:
    """The line at the end of a run."""
    return {"event": "terminated", "id": key, "run_id": f"{key}-1", "name": name, "exception": None}
