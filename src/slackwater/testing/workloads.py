"""Generated streams for tests and benchmarks: the same seed gives the same rows.

Every table has an event time `ts` and an `arrival` time, both in ms, and its rows in arrival order,
so that ``query.replay(tables, arrival="arrival")`` takes it as it is. `zipf_streams` and
`star_streams` follow the description of the synthetic data of ICDE16, VI; `soccer` imitates its
soccer game, which is not public in that form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from slackwater.errors import SlackwaterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class WorkloadError(SlackwaterError, ValueError):
    """A workload with these options cannot be generated."""


# ---- an equi-join at a constant rate


def uniform_keys(
    rows: int,
    seed: int,
    rate_per_s: int = 10_000,
    keys: int = 20_000,
    late_share: float = 0.3,
    mean_delay_ms: float = 200,
) -> pa.Table:
    """One stream of evenly spaced events with uniform keys: (ts, k, v, arrival).

    Parameters
    ----------
    rows
        How many events there are; they cover ``rows / rate_per_s`` seconds of event time.
    keys
        `k` is uniform in [0, keys): more keys, fewer partners.
    late_share
        Share of the events that are delayed; more make more disorder.
    mean_delay_ms
        Their mean delay; delays are exponential. The others arrive at once.

    >>> table = uniform_keys(1000, seed=1, keys=10)
    >>> table.column_names
    ['ts', 'k', 'v', 'arrival']
    >>> ts, k, v, arrival = (column.to_numpy() for column in table.columns)
    >>> int(ts.min()), int(ts.max()), sorted(set(k.tolist()))
    (0, 99, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> bool((np.diff(arrival) >= 0).all()), round(float((arrival > ts).mean()), 1)
    (True, 0.3)
    """
    _at_least(1, rows=rows, rate_per_s=rate_per_s, keys=keys)
    _at_least(0, mean_delay_ms=mean_delay_ms)
    if not 0 <= late_share <= 1:
        msg = f"late_share must be between 0 and 1, got {late_share!r}"
        raise WorkloadError(msg)
    rng = _generator(seed)
    ts = np.arange(rows) * 1000 // rate_per_s
    delayed = rng.random(rows) < late_share
    delay = np.where(delayed, np.ceil(rng.exponential(mean_delay_ms, rows)), 0).astype(np.int64)
    return _arriving(ts + delay, ts=ts, k=rng.integers(0, keys, rows), v=rng.random(rows))


# ---- the synthetic data of ICDE16

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
        is_bad = _is_bad(_generator(seed, i, 1), drift, values)
        ts = np.where(is_bad, bad[name]["ts"].to_numpy(), table["ts"].to_numpy())
        if drift == "lag" and name == "s3":
            progress = np.arange(len(ts)) / len(ts)
            arrival = arrival + (_LARGEST_LAG_MS * (2 * progress - 1).clip(0)).astype(np.int64)
        tables[name] = _arriving(arrival, ts=ts, a1=values)
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
    _at_least(1 / _PER_MINUTE, minutes=minutes)
    _at_least(1, delay_step_ms=delay_step_ms)
    rows = round(minutes * _PER_MINUTE)
    for skew in skews:
        _at_least(0, skew=skew)
    arrival = _START_MS + _TICK_MS * np.arange(1, rows + 1)
    tables = {}
    for i, (skew, names) in enumerate(zip(skews, attributes, strict=True)):
        rng = _generator(seed, i)
        ranks = _LARGEST_DELAY_MS // delay_step_ms + 1
        delay = delay_step_ms * _zipf(rng, rows, ranks, skew)
        values = {name: _drifting_values(rng, rows) for name in names}
        tables[f"s{i + 1}"] = _arriving(arrival, ts=arrival - delay, **values)
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


# ---- a soccer game

_FIELD_M = (105.0, 68.0)
_PLAYERS = 11
_FORMATION = np.array([  # 4-4-2, playing to the right, as shares of the field
    (0.06, 0.50), (0.22, 0.15), (0.20, 0.38), (0.20, 0.62), (0.22, 0.85), (0.45, 0.15),
    (0.42, 0.38), (0.42, 0.62), (0.45, 0.85), (0.65, 0.40), (0.65, 0.60),
])  # fmt: skip
_WAVES = 4  # sines in a movement
_JITTER_SHARE = 0.37  # events that are held up a little where nothing is wrong
_JITTER_MS = 12.0  # for so long on average
_LAG_MS = 50.0  # at most so much one team lags behind the other, now the one, now the other
_LAG_PERIOD_S = (5.0, 30.0)
_QUIET_MS = 4_000  # mean time between two bursts of a team
_BURST_MS = (200, 1_500)  # for so long some of its players are badly received
_BURST_DELAY_MS = 250  # mean delay of their events
_STRAY_SHARE = 0.004  # events that take a detour
_STRAY_MS = (300.0, (22_000.0, 25_900.0))  # for so long, mostly at the short end; most by team
_STRAY_EXPONENT = 0.3


def soccer(seconds: float, seed: int, rate_per_s: float = 325) -> dict[str, pa.Table]:
    """A soccer-like game: teams a and b, each a stream of (ts, sid, x, y, arrival).

    Imitates D×2 of ICDE16: the positions (in m) of 11 players a team, about 325 events/s a team.
    The disorder is that of Thesis Fig. 6.1 and 6.2: about 70 % of a team's events are in order,
    most others are at most 40 ms late; in bursts some players are badly received, and rare strays
    come up to 26 s late. The teams lag behind each other by up to 50 ms, in turns.

    Parameters
    ----------
    rate_per_s
        Events of a team in a second: a window of 5 s holds five times as many.

    >>> game = soccer(20, seed=1)
    >>> list(game), game["a"].num_rows, game["a"].column_names
    (['a', 'b'], 6500, ['ts', 'sid', 'x', 'y', 'arrival'])
    >>> sorted(set(game["b"]["sid"].to_pylist()))
    [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
    >>> delay = game["a"]["arrival"].to_numpy() - game["a"]["ts"].to_numpy()
    >>> bool(np.median(delay) < 20), bool(1_000 < delay.max() < 26_000)
    (True, True)
    """
    _at_least(0.1, seconds=seconds)
    _at_least(1, rate_per_s=rate_per_s)
    ball = _Movement(_generator(seed, 2), 1, np.array([18.0, 10.0]), (20.0, 60.0))
    lag = _Movement(_generator(seed, 3), 1, np.array([0.7 * _LAG_MS, 0.0]), _LAG_PERIOD_S)
    return {
        name: _team(_generator(seed, team), team, ball, lag, seconds, rate_per_s)
        for team, name in enumerate("ab")
    }


class _Movement:
    """Smooth ways around a centre: sums of slow sines, so that a position exists for any time."""

    def __init__(
        self, rng: Generator, n: int, reach: Floats, period_s: tuple[float, float]
    ) -> None:
        shape = (n, 2, _WAVES)
        self._per_ms = 2 * np.pi / (1000 * rng.uniform(*period_s, shape))
        self._phase = rng.uniform(0, 2 * np.pi, shape)
        self._reach = reach / np.sqrt(_WAVES)

    def at(self, index: Ints, ts: Ints) -> Floats:
        """Return the positions of `index` at `ts`: (n, 2), in m from the centre."""
        angles = ts[:, None, None] * self._per_ms[index] + self._phase[index]
        return np.asarray(self._reach * np.sin(angles).sum(axis=2))


def _team(
    rng: Generator, team: int, ball: _Movement, lag: _Movement, seconds: float, rate_per_s: float
) -> pa.Table:
    rows = max(1, round(seconds * rate_per_s))
    ts = ((np.arange(rows) + rng.random(rows)) * 1000 / rate_per_s).astype(np.int64)
    player = np.arange(rows) % _PLAYERS
    homes = _FORMATION if team == 0 else 1 - _FORMATION
    runs = _Movement(rng, _PLAYERS, np.array([7.0, 6.0]), (6.0, 30.0))
    first = np.zeros(rows, np.int64)
    spot = homes[player] * _FIELD_M + ball.at(first, ts) + runs.at(player, ts)
    spot = np.clip(spot, 0, _FIELD_M).round(2)
    ahead = lag.at(first, ts)[:, 0] * (1 - 2 * team)  # of the other team
    behind = np.clip(-ahead, 0, _LAG_MS)
    arrival = ts + (behind + _soccer_delays(rng, ts, player, team)).astype(np.int64)
    sid = 1 + _PLAYERS * team + player
    return _arriving(arrival, ts=ts, sid=sid, x=spot[:, 0], y=spot[:, 1])


def _soccer_delays(rng: Generator, ts: Ints, player: Ints, team: int) -> Floats:
    rows = len(ts)
    delay = np.where(rng.random(rows) < _JITTER_SHARE, rng.exponential(_JITTER_MS, rows), 0)
    in_burst = _in_burst(rng, ts, player)
    delay += np.where(in_burst, rng.exponential(_BURST_DELAY_MS, rows), 0)
    low, high = (ms**-_STRAY_EXPONENT for ms in (_STRAY_MS[0], _STRAY_MS[1][team]))
    strays = rng.uniform(high, low, rows) ** (-1 / _STRAY_EXPONENT)  # a Pareto cut at both ends
    return delay + np.where(rng.random(rows) < _STRAY_SHARE, strays, 0)


def _in_burst(rng: Generator, ts: Ints, player: Ints) -> NDArray[np.bool_]:
    """Which events fall into a burst of their player's; about a third of a team has it at once."""
    most = 10 + 2 * int(ts[-1]) // _QUIET_MS  # bursts beyond the end do no harm
    begin = np.cumsum(rng.exponential(_QUIET_MS, most))
    end = begin + rng.uniform(*_BURST_MS, most)
    badly_received = rng.random((most, _PLAYERS)) < 1 / 3
    latest = np.searchsorted(begin, ts, side="right") - 1
    return (latest >= 0) & (ts < end[latest]) & badly_received[latest, player]


# ---- common


def _arriving(arrival: Ints, **columns: NDArray[Any]) -> pa.Table:
    """A table in arrival order; events that arrive together keep the order they happened in."""
    order = np.argsort(arrival, kind="stable")
    return pa.table(
        {name: values[order] for name, values in (columns | {"arrival": arrival}).items()}
    )


def _generator(seed: int, *stream: int) -> Generator:
    _at_least(0, seed=seed)
    return np.random.default_rng([seed, *stream])


def _at_least(least: float, **given: float) -> None:
    for name, value in given.items():
        if not least <= value < np.inf:
            msg = f"{name} must be a number not below {least:g}, got {value!r}"
            raise WorkloadError(msg)
