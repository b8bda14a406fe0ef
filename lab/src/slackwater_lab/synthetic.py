"""The synthetic data of ICDE16, VI, and variants whose disorder changes.

As in `slackwater.testing.workloads`: times in ms, rows in arrival order, by the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from slackwater.testing.workloads import Ints, WorkloadError, arriving, at_least, generator

_TICK_MS = 10  # between two events of a stream
_DELAY_STEP_MS = 10  # the resolution of delays (the paper gives none)
_LARGEST_DELAY_MS = 20_000
_START_MS = 20_000  # the common start: no event time is negative
_VALUES = 100  # attributes are in [1, 100]
_LARGEST_SKEW = 5.0
_GOOD = (2.0, 3.0, 3.0)  # delay skews of D×3
_WORSE = (1.5, 2.0, 2.0)  # where disorder is bad
_BAD_PHASES = 5  # of a run with bursts; each is the last quarter of its fifth
_LARGEST_LAG_MS = 10_000
_HOT_VALUES = 3  # values of a1 whose events are badly delayed
_PER_MINUTE = 60_000 // _TICK_MS


def zipf_streams(
    minutes: float,
    seed: int,
    skews: Sequence[float] = _GOOD,
    delay_step_ms: int = _DELAY_STEP_MS,
) -> dict[str, pa.Table]:
    """D×3 of ICDE16: streams s1, s2, ... of (ts, a1, arrival), 100 events/s each.

    `skews` has the Zipf skew of each stream's delays: the larger, the fewer and shorter delays.
    Delays are multiples of `delay_step_ms`; the larger it is, the longer they are.
    The skew of a1 starts at 1 and changes at random, so that the selectivity of
    ``s1.a1 = s2.a1 and s2.a1 = s3.a1`` drifts.

    >>> streams = zipf_streams(1, seed=1)
    >>> list(streams), streams["s1"].num_rows, streams["s1"].column_names
    (['s1', 's2', 's3'], 6000, ['ts', 'a1', 'arrival'])
    >>> delays = {n: (t["arrival"].to_numpy() - t["ts"].to_numpy()) for n, t in streams.items()}
    >>> {name: round(float((delay == 0).mean()), 1) for name, delay in delays.items()}
    {'s1': 0.6, 's2': 0.8, 's3': 0.8}
    >>> bool(delays["s1"].max() <= 20_000), bool((delays["s1"] % 10 == 0).all())
    (True, True)
    """
    attributes = [("a1",)] * len(skews)
    return _zipf_tables(minutes, seed, skews, attributes, delay_step_ms)


def star_streams(
    minutes: float,
    seed: int,
    skews: Sequence[float] = (3.0, 3.0, 3.0, 4.0),
    delay_step_ms: int = _DELAY_STEP_MS,
) -> dict[str, pa.Table]:
    """D×4 of ICDE16, a star: s1 has a1, a2, a3; s2, s3, s4 have one of them each.

    Made like `zipf_streams`; the paper prints the last delay skew, 4, as a second z_1.

    >>> streams = star_streams(1, seed=1)
    >>> [table.column_names[1:-1] for table in streams.values()]
    [['a1', 'a2', 'a3'], ['a1'], ['a2'], ['a3']]
    """
    if len(skews) != 4:
        msg = f"skews must have one delay skew for each of the 4 streams, got {len(skews)}"
        raise WorkloadError(msg)
    attributes = [("a1", "a2", "a3"), ("a1",), ("a2",), ("a3",)]
    return _zipf_tables(minutes, seed, skews, attributes, delay_step_ms)


Drift = Literal["step", "ramp", "burst", "lag", "keyed"]


def drifting_streams(minutes: float, seed: int, drift: Drift) -> dict[str, pa.Table]:
    """D×3, but its disorder does not stay the same.

    Parameters
    ----------
    drift
        ``"step"``: much worse from half time on. ``"ramp"``: worse and worse. ``"burst"``: bad
        phases, a quarter of the time. ``"lag"``: from half time on s3 slows down, until it is 10 s
        behind. ``"keyed"``: bad for the events of the most frequent values, and for them only.

    >>> tables = drifting_streams(2, 1, "step")
    >>> delay = tables["s1"]["arrival"].to_numpy() - tables["s1"]["ts"].to_numpy()
    >>> bool(np.mean(delay[6000:] > 100) > 3 * np.mean(delay[:6000] > 100))
    True
    """
    if drift not in get_args(Drift):
        msg = f"drift must be one of {', '.join(get_args(Drift))}, got {drift!r}"
        raise WorkloadError(msg)
    good, bad = (
        _zipf_tables(minutes, seed, skews, [("a1",)] * 3) for skews in (_GOOD, _WORSE)
    )  # the same values, for the same seed
    tables = {}
    for i, name in enumerate(good):
        table = good[name]
        arrival, values = table["arrival"].to_numpy(), table["a1"].to_numpy()
        is_bad = _is_bad(generator(seed, i, 1), drift, values)
        ts = np.where(is_bad, bad[name]["ts"].to_numpy(), table["ts"].to_numpy())
        if drift == "lag" and name == "s3":
            progress = np.arange(len(ts)) / len(ts)
            arrival = arrival + (_LARGEST_LAG_MS * (2 * progress - 1).clip(0)).astype(np.int64)
        tables[name] = arriving(arrival, ts=ts, a1=values)
    return tables


def _is_bad(rng: Generator, drift: Drift, values: Ints) -> NDArray[np.bool_]:
    """Which events have the worse delays."""
    progress = np.arange(len(values)) / len(values)
    if drift == "step":
        return progress >= 0.5
    if drift == "ramp":
        return rng.random(len(values)) < progress
    if drift == "burst":
        return (progress * _BAD_PHASES) % 1 >= 0.75
    if drift == "keyed":
        return values <= _HOT_VALUES
    return np.zeros(len(values), bool)


def _zipf_tables(
    minutes: float,
    seed: int,
    skews: Sequence[float],
    attributes: Sequence[tuple[str, ...]],
    delay_step_ms: int = _DELAY_STEP_MS,
) -> dict[str, pa.Table]:
    at_least(1 / _PER_MINUTE, minutes=minutes)
    at_least(1, delay_step_ms=delay_step_ms)
    rows = round(minutes * _PER_MINUTE)
    for skew in skews:
        at_least(0, skew=skew)
    arrival = _START_MS + _TICK_MS * np.arange(1, rows + 1)
    tables = {}
    for i, (skew, names) in enumerate(zip(skews, attributes, strict=True)):
        rng = generator(seed, i)
        ranks = _LARGEST_DELAY_MS // delay_step_ms + 1
        delay = delay_step_ms * _zipf(rng, rows, ranks, skew)
        values = {name: _drifting_values(rng, rows) for name in names}
        tables[f"s{i + 1}"] = arriving(arrival, ts=arrival - delay, **values)
    return tables


def _drifting_values(rng: Generator, rows: int) -> Ints:
    """Zipf values whose skew is 1 at first and another one after every 1 to 10 minutes."""
    parts: list[Ints] = []
    left, skew = rows, 1.0
    while left > 0:
        n = min(left, int(rng.integers(1, 11)) * _PER_MINUTE)
        parts.append(1 + _zipf(rng, n, _VALUES, skew))
        left -= n
        skew = rng.uniform(0.0, _LARGEST_SKEW)
    return np.concatenate(parts)


def _zipf(rng: Generator, rows: int, ranks: int, skew: float) -> Ints:
    """Ranks from 0; the r-th of them with a probability in proportion to ``(r + 1) ** -skew``."""
    share = np.cumsum(np.arange(1, ranks + 1) ** -float(skew))
    share /= share[-1]
    return np.searchsorted(share, rng.random(rows), side="right")
