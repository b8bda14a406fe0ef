"""All that the engine learns, for the goal to choose K by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slackwater.kernels.records import I64, Arrivals, Made
from slackwater.query.goals import Signal
from slackwater.query.join import JoinQuery
from slackwater.stats.delays import Delays
from slackwater.stats.lateness import ResultLateness
from slackwater.stats.productivity import Productivity
from slackwater.stats.results import Results


class Statistics:
    """Delays of what arrives, and results of what is joined.

    Parameters
    ----------
    every
        Length of an adaptation interval.
    granularity
        Of delays; None: they are not learnt.
    keep
        For how long results are remembered.
    profile
        Whether to learn how productivity depends on delay (ICDE16 IV-B).
    steady
        Whether bursts that come and go are no change; see `Delays`.
    lateness
        Whether to measure the lateness of results; only behind the clocked stage.
    adwin
        In which numbers ADWIN looks for changes; see `Delays`.
    """

    def __init__(
        self,
        query: JoinQuery,
        every: int,
        granularity: int | None,
        keep: int,
        profile: bool = False,
        steady: bool = False,
        lateness: bool = False,
        adwin: Signal = "log",
    ) -> None:
        self.every = every
        self.kind = [every, granularity, profile, steady, lateness]
        self._delays = None
        if granularity is not None:
            self._delays = Delays(len(query.streams), granularity, every, steady, adwin)
        self.results = Results(every, keep // every + 2)
        self.productivity = None
        if profile:
            self.productivity = Productivity(query, every, self.delays.granularity)
        self.lateness = ResultLateness(every) if lateness else None
        self.produced = 0  # results, since the beginning
        self.lost = 0
        self.events = 0  # that went through the join, since the beginning
        self.late = 0  # of them

    @property
    def has_delays(self) -> bool:
        """Whether delays are learnt."""
        return self._delays is not None

    @property
    def adds_up(self) -> bool:
        """Whether those of several shards can be added up: the lateness of results can."""
        return self.lateness is not None and not self.has_delays

    @property
    def delays(self) -> Delays:
        """The delays of the recent past, if they are learnt."""
        assert self._delays is not None
        return self._delays

    def arrive(self, begin: int, end: int, max_delay: int, arrivals: Arrivals) -> None:
        """These arrivals have their delays now."""
        if self._delays is not None:
            self._delays.arrive(begin, end, max_delay, arrivals)

    def close(self, end: int) -> None:
        """The interval is over: it is `end`."""
        if self._delays is not None:
            self._delays.close(end)

    def join(
        self,
        stream: I64,
        ts: I64,
        delays: Callable[[], I64],
        made: Made,
        late: tuple[I64, I64],
    ) -> None:
        """Take in what went through the join.

        `late` has the positions of the events that were late, and how many results they lost.
        """
        self.produced += self.results.produce(made.ts, made.n)
        if len(late[0]):
            self.lost += self.results.lose(ts[late[0]], late[1])
        self.events += len(ts)
        self.late += len(late[0])
        if self.productivity is None:
            return
        results, is_late = np.zeros(len(ts), np.int64), np.zeros(len(ts), np.int64)
        results[made.position] = made.n
        is_late[late[0]] = 1
        self.productivity.join(stream, ts, delays(), results, is_late)

    def fits(self, state: dict[str, Any] | None) -> bool:
        """Whether these are statistics of the same kind."""
        return state is not None and state["kind"] == self.kind

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        profile, lateness = self.productivity, self.lateness
        return {
            "kind": self.kind,
            "delays": None if self._delays is None else self._delays.state(),
            "results": self.results.state(),
            "totals": [self.produced, self.lost, self.events, self.late],
            "productivity": None if profile is None else profile.state(),
            "lateness": None if lateness is None else lateness.state(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        if self._delays is not None:
            self._delays.resume(state["delays"])
        self.results.resume(state["results"])
        self.produced, self.lost, self.events, self.late = state["totals"]
        if self.productivity is not None:
            self.productivity.resume(state["productivity"])
        if self.lateness is not None:
            self.lateness.resume(state["lateness"])
