"""Generated streams for tests and benchmarks: the same seed gives the same rows.

Every table has an event time `ts` and an `arrival` time, both in ms, and its rows in arrival order,
so that ``query.replay(tables, arrival="arrival")`` takes it as it is. `soccer` imitates the soccer
game of ICDE16, VI, which is not public in that form.
"""

from __future__ import annotations

from typing import Any

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
    at_least(1, rows=rows, rate_per_s=rate_per_s, keys=keys)
    at_least(0, mean_delay_ms=mean_delay_ms)
    if not 0 <= late_share <= 1:
        msg = f"late_share must be between 0 and 1, got {late_share!r}"
        raise WorkloadError(msg)
    rng = generator(seed)
    ts = np.arange(rows) * 1000 // rate_per_s
    delayed = rng.random(rows) < late_share
    delay = np.where(delayed, np.ceil(rng.exponential(mean_delay_ms, rows)), 0).astype(np.int64)
    return arriving(ts + delay, ts=ts, k=rng.integers(0, keys, rows), v=rng.random(rows))


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


def soccer(
    seconds: float, seed: int, rate_per_s: float = 325, bursts: bool = True
) -> dict[str, pa.Table]:
    """A soccer-like game: teams a and b, each a stream of (ts, sid, x, y, arrival).

    Imitates D×2 of ICDE16: the positions (in m) of 11 players a team, about 325 events/s a team.
    The disorder is that of Thesis Fig. 6.1 and 6.2: about 70 % of a team's events are in order,
    most others are at most 40 ms late; in bursts some players are badly received, and rare strays
    come up to 26 s late. The teams lag behind each other by up to 50 ms, in turns.

    Parameters
    ----------
    rate_per_s
        Events of a team in a second: a window of 5 s holds five times as many.
    bursts
        Whether there are bursts, in which some players are badly received.

    >>> game = soccer(20, seed=1)
    >>> list(game), game["a"].num_rows, game["a"].column_names
    (['a', 'b'], 6500, ['ts', 'sid', 'x', 'y', 'arrival'])
    >>> sorted(set(game["b"]["sid"].to_pylist()))
    [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
    >>> delay = game["a"]["arrival"].to_numpy() - game["a"]["ts"].to_numpy()
    >>> bool(np.median(delay) < 20), bool(1_000 < delay.max() < 26_000)
    (True, True)
    """
    at_least(0.1, seconds=seconds)
    at_least(1, rate_per_s=rate_per_s)
    ball = _Movement(generator(seed, 2), 1, np.array([18.0, 10.0]), (20.0, 60.0))
    lag = _Movement(generator(seed, 3), 1, np.array([0.7 * _LAG_MS, 0.0]), _LAG_PERIOD_S)
    return {
        name: _team(generator(seed, team), team, ball, lag, seconds, rate_per_s, bursts)
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
    rng: Generator,
    team: int,
    ball: _Movement,
    lag: _Movement,
    seconds: float,
    rate_per_s: float,
    bursts: bool,
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
    delay = _soccer_delays(rng, ts, player, team, bursts)
    arrival = ts + (behind + delay).astype(np.int64)
    sid = 1 + _PLAYERS * team + player
    return arriving(arrival, ts=ts, sid=sid, x=spot[:, 0], y=spot[:, 1])


def _soccer_delays(rng: Generator, ts: Ints, player: Ints, team: int, bursts: bool) -> Floats:
    rows = len(ts)
    delay = np.where(rng.random(rows) < _JITTER_SHARE, rng.exponential(_JITTER_MS, rows), 0)
    in_burst = _in_burst(rng, ts, player) & bursts
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


def arriving(arrival: Ints, **columns: NDArray[Any]) -> pa.Table:
    """A table in arrival order; events that arrive together keep the order they happened in."""
    order = np.argsort(arrival, kind="stable")
    return pa.table(
        {name: values[order] for name, values in (columns | {"arrival": arrival}).items()}
    )


def generator(seed: int, *stream: int) -> Generator:
    """A source of random numbers that depends on the seed and, if given, on the stream."""
    at_least(0, seed=seed)
    return np.random.default_rng([seed, *stream])


def at_least(least: float, **given: float) -> None:
    """Raise for an option that is no number or below `least`."""
    for name, value in given.items():
        if not least <= value < np.inf:
            msg = f"{name} must be a number not below {least:g}, got {value!r}"
            raise WorkloadError(msg)
