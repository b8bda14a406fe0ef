"""Two streams whose disorder moves: the families of `lab run moving`.

Events of both streams come at random, 100 per second, with 50 keys, some more
frequent than others. Their delays are exponential
around a *mean delay*, and a family is a law by which it moves, or by which devices or keys differ.
As in `slackwater.testing.workloads`: times in ms, rows in arrival order, by the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from slackwater.testing.workloads import Floats, Ints, arriving, at_least, generator

_RATE_PER_S = 100
_KEYS = 50
_SHARE = 1 / np.arange(5, 5 + _KEYS)
_SHARE /= _SHARE.sum()  # of each key; the first is ten times as frequent as the last
_SECOND, _MINUTE = 1_000, 60_000
_OUTAGE = (2 * _SECOND, 20 * _SECOND)
_LAW = 9  # the random numbers that both streams share

Law = Callable[[Generator, Floats], Floats]  # the mean delay at each of these times


def moving_streams(minutes: float, seed: int, family: str) -> dict[str, pa.Table]:
    """Streams a and b of (ts, k, arrival).

    >>> streams = moving_streams(1, 1, "steady")
    >>> list(streams), streams["a"].column_names
    (['a', 'b'], ['ts', 'k', 'arrival'])
    >>> delay = streams["a"]["arrival"].to_numpy() - streams["a"]["ts"].to_numpy()
    >>> bool(90 < delay.mean() < 110)
    True
    """
    at_least(0.01, minutes=minutes)
    law = FAMILIES[family]
    tables = {}
    for s, name in enumerate("ab"):
        rng = generator(seed, s)
        rows = round(60 * minutes * _RATE_PER_S)
        ts = np.sort(rng.integers(0, round(minutes * _MINUTE), rows))
        key = rng.choice(_KEYS, rows, p=_SHARE)
        delay = law(generator(seed, _LAW), rng, ts, key)
        tables[name] = arriving(ts + delay.astype(np.int64), ts=ts, k=key)
    return tables


# ---- laws: each gets the random numbers of both streams, its own, and the events; gives delays


def _moving_mean(mean: Law) -> Callable[[Generator, Generator, Ints, Ints], Floats]:
    """Exponential delays around a mean that both streams share."""

    def delays(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
        return np.asarray(own.exponential(mean(common, ts.astype(np.float64))))

    return delays


def _tide(period: float) -> Law:
    """From 40 to 360 ms and back."""

    def mean(_: Generator, t: Floats) -> Floats:
        return np.asarray(200 - 160 * np.cos(2 * np.pi * t / period))

    return mean


def _held(common: Generator, t: Floats, lengths: Floats, levels: Floats) -> Floats:  # noqa: ARG001
    """Level i for length i, one after the other."""
    return np.asarray(levels[np.searchsorted(np.cumsum(lengths), t, side="right") % len(levels)])


def _n(t: Floats, shortest: float) -> int:
    """More than enough pieces of a run."""
    return int(t[-1] / shortest) + 2


def _walk(common: Generator, t: Floats) -> Floats:
    """The logarithm of the mean is a random walk that forgets with a time constant of a minute."""
    steps = common.normal(size=_n(t, _SECOND))
    keep = np.exp(-_SECOND / _MINUTE)
    log_mean = np.empty(len(steps))
    now = 0.0
    for i, step in enumerate(steps):
        now = keep * now + np.sqrt(1 - keep * keep) * step
        log_mean[i] = now
    return np.asarray(200 * np.exp(np.interp(t, _SECOND * np.arange(len(steps)), log_mean)))


def _regimes(common: Generator, t: Floats) -> Floats:
    """50, 200 or 1,000 ms, each for a random time of a minute and a half on average."""
    n = _n(t, 5 * _SECOND)
    lengths = 20 * _SECOND + common.exponential(70 * _SECOND, n)
    return _held(common, t, lengths, common.choice([50.0, 200.0, 1000.0], n))


def _steps(common: Generator, t: Floats) -> Floats:
    """Another level between 40 and 800 ms every 3 to 6 minutes."""
    n = _n(t, 3 * _MINUTE)
    lengths = common.uniform(3 * _MINUTE, 6 * _MINUTE, n)
    return _held(common, t, lengths, np.exp(common.uniform(np.log(40), np.log(800), n)))


def _ramps(common: Generator, t: Floats) -> Floats:
    """From 50 ms up to 500 in three to five minutes, then at once back to 50."""
    n = _n(t, 3 * _MINUTE)
    ends = np.cumsum(common.uniform(3 * _MINUTE, 5 * _MINUTE, n))
    begins = np.concatenate([[0.0], ends[:-1]])
    at = np.searchsorted(ends, t, side="right")
    return np.asarray(50 + 450 * (t - begins[at]) / (ends[at] - begins[at]))


def _off_line(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:
    """Each key is a device, off line a tenth of the time, for 2 to 20 s; all comes at the end."""
    delay = own.exponential(50.0, len(ts))
    n = int(ts[-1] / (10 * _SECOND)) + 2
    for device in range(_KEYS):
        ends = np.cumsum(common.exponential(99 * _SECOND, n) + common.uniform(*_OUTAGE, n))
        begins = ends - common.uniform(*_OUTAGE, n)
        at = np.searchsorted(ends, ts, side="right")
        away = (key == device) & (ts >= begins[at])
        delay = np.where(away, np.maximum(delay, ends[at] - ts), delay)
    return np.asarray(delay)


def _keyed(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:
    """One key in ten is 1 s late on average, others 50 ms; every 2 minutes it is others."""
    phases = ts // (2 * _MINUTE)
    slow = common.random((int(phases.max()) + 1, _KEYS)) < 0.1
    return np.asarray(own.exponential(np.where(slow[phases, key], 1000.0, 50.0)))


def _heavy(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """A Pareto tail with exponent 1.5, up to a minute."""
    return np.asarray(np.minimum(30.0 * own.pareto(1.5, len(ts)), 60 * _SECOND))


def _stalls(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """Delays of 50 ms; about every 2 minutes this stream stops for 0.5 to 8 s, then all comes."""
    delay = own.exponential(50.0, len(ts))
    n = int(ts[-1] / (10 * _SECOND)) + 2
    begins = np.cumsum(own.exponential(2 * _MINUTE, n))
    ends = begins + own.uniform(0.5 * _SECOND, 8 * _SECOND, n)
    last = np.searchsorted(begins, ts, side="right") - 1
    held = np.where(last >= 0, ends[last] - ts, 0.0)
    return np.asarray(np.maximum(delay, held))


def _queue(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """Each stream waits in a queue with one server, whose load is .5 to .97, by the minute."""
    load = common.uniform(0.5, 0.97, int(ts[-1] / _MINUTE) + 2)[ts // _MINUTE]
    service = own.exponential(load * _SECOND / _RATE_PER_S)
    passed = np.cumsum(service)
    # the last event leaves at the largest of "ts of an earlier one + all work since"
    leaves = passed + np.maximum.accumulate(ts - np.concatenate([[0.0], passed[:-1]]))
    return np.asarray(leaves - ts)


def _batches(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:
    """Each key sends what it has every 0.2 to 3 s; every 4 minutes in another rhythm."""
    n = int(ts[-1] / (4 * _MINUTE)) + 1
    rhythm = np.exp(common.uniform(np.log(200.0), np.log(3000.0), (n, _KEYS)))
    every = rhythm[ts // (4 * _MINUTE), key]
    start = common.random(_KEYS)[key] * every
    return np.asarray(every - (ts - start) % every + own.exponential(20.0, len(ts)))


def _apart(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """Each stream has a random walk of its own."""
    return np.asarray(own.exponential(_walk(own, ts.astype(np.float64))))


def _mixed(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """Up to 20 % are on a path of 2 s instead of 50 ms, another share every 2 to 5 minutes."""
    n = _n(ts.astype(np.float64), 2 * _MINUTE)
    lengths = common.uniform(2 * _MINUTE, 5 * _MINUTE, n)
    share = _held(common, ts.astype(np.float64), lengths, 0.2 * common.random(n) ** 2)
    slow = own.random(len(ts)) < share
    return np.asarray(own.exponential(np.where(slow, 2000.0, 50.0)))


def _retries(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """What fails is sent again after 1, 3, 7, ... s; 0 to 10 % fail, by the minute."""
    fails = 0.1 * common.random(int(ts[-1] / _MINUTE) + 2) ** 2
    tries = own.geometric(1.0 - fails[ts // _MINUTE]) - 1
    return np.asarray(own.exponential(50.0, len(ts)) + _SECOND * (2.0 ** np.minimum(tries, 6) - 1))


def _pauses(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:  # noqa: ARG001
    """Both streams stop together every 20 s or so, for 0.5 s at the median, as log-normal times."""
    n = int(ts[-1] / _SECOND) + 2
    begins = np.cumsum(common.exponential(20 * _SECOND, n))
    ends = begins + 0.5 * _SECOND * np.exp(common.normal(size=n))
    last = np.searchsorted(begins, ts, side="right") - 1
    held = np.where(last >= 0, ends[last] - ts, 0.0)
    return np.asarray(np.maximum(own.exponential(50.0, len(ts)), held))


def _failover(common: Generator, own: Generator, ts: Ints, key: Ints) -> Floats:
    """Of 8 partitions of the keys one is 3 s behind for a minute or two, then none."""
    n = _n(ts.astype(np.float64), _MINUTE)
    lengths = common.uniform(_MINUTE, 2 * _MINUTE, n)
    slow = np.where(np.arange(n) % 2 == 0, -1, common.integers(0, 8, n))
    now = _held(common, ts.astype(np.float64), lengths, slow)
    return np.asarray(own.exponential(np.where(key % 8 == now, 3000.0, 50.0)))


FAMILIES = {
    "steady": _moving_mean(lambda _, t: np.full(len(t), 100.0)),
    "tide-5": _moving_mean(_tide(5 * _MINUTE)),
    "tide-2": _moving_mean(_tide(2 * _MINUTE)),
    "walk": _moving_mean(_walk),
    "regimes": _moving_mean(_regimes),
    "steps": _moving_mean(_steps),
    "ramps": _moving_mean(_ramps),
    "off-line": _off_line,
    "keyed": _keyed,
    "heavy": _heavy,
    "stalls": _stalls,
    "queue": _queue,
    "batches": _batches,
    "apart": _apart,
    "mixed": _mixed,
    "retries": _retries,
    "pauses": _pauses,
    "failover": _failover,
}
