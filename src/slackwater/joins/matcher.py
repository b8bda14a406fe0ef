"""The partners of events of two streams, found when they arrive; behind `process`.

It takes arrivals with the clocks around them, and gives rows: pairs of eager emission, rows without
partner, as-of rows, and their corrections. Rows come in bounded pieces.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from slackwater.events import cache_lines
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.joins.conditions import Conditions, raise_for_row, scan_signature
from slackwater.joins.undecided import Undecided
from slackwater.kernels import asof
from slackwater.kernels import matching as kernels
from slackwater.kernels import partners as places
from slackwater.kernels import windows as window_kernels
from slackwater.kernels.histogram import BUCKETS
from slackwater.kernels.records import (
    BEFORE,
    I64,
    NEVER,
    NONE,
    TICK,
    ClockSeries,
    MatchedRows,
    Matching,
    Store,
)
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS

_DIRECTIONS = {"backward": asof.BACKWARD, "forward": asof.FORWARD, "nearest": asof.NEAREST}
_COUNTERS = {
    "alone": places.IN_TIME,
    "alone_late": places.LATE,
    "withdrawn": places.WITHDRAWN,
    "unknown": places.UNKNOWN,
    "late_pairs": places.LATE_PAIRS,
    "pairs": places.N_PAIRS,
    "taken_in": places.N_ARRIVALS,
}
_FEWEST_ROWS = 1024


class MatcherState(NamedTuple):
    """What cannot be worked out from the events that are kept, and their marks."""

    forget: int
    keep: int
    counters: dict[str, int]


class Matcher:
    """Partners of the events of `log`; of two streams with time windows.

    Parameters
    ----------
    query
        The join. In ordered emission of pairs the window join makes them, and this one only finds
        out which events have none.
    """

    def __init__(
        self,
        query: JoinQuery,
        conditions: Conditions,
        log: Log,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._query = query
        self._log = log
        self._limits = limits
        self._scan = conditions.scan
        self.record = _new_record(query, conditions)
        self.store = Store(
            runs=cache_lines.zeros((64, window_kernels.RUN_LENGTH), np.int32),
            entry=cache_lines.zeros((limits.smallest_store, 2), np.int64),
        )
        self.undecided = Undecided()
        self._rows = _room(max(1, limits.results_at_once))
        self._kernels = _compiled(conditions.scan is not None)

    # ---- work

    def process(
        self, first: int, end: int, clocks: ClockSeries
    ) -> Generator[MatchedRows, None, None]:
        """Take in these arrivals: yields rows, each piece valid until the next one."""
        ctl = self.record.ctl
        due, due_at = self._due(first, end, clocks.after)
        ctl[[places.NEXT, places.TAKEN, places.DUE]] = first, first - 1, 0
        records = self._log.records()
        while True:
            ended = self._run(end, first, clocks, due, due_at, records)
            yield from self._take_rows()
            if ended == kernels.DONE:
                return
            self._make_room(ended)

    def move_up(self, time: int) -> Generator[MatchedRows, None, None]:
        """The join's clock moves up to `time` behind the last arrival: rows that are due then."""
        yield from self._decide(self.undecided.take_before(time))

    def flush(self) -> Generator[MatchedRows, None, None]:
        """End of input: all rows that are due some day."""
        yield from self._decide(self.undecided.take_before(NEVER))

    def _decide(self, due: I64) -> Generator[MatchedRows, None, None]:
        if len(due) == 0:
            return
        at = 0
        self.record.ctl[places.TAKEN] = self._log.end - 1
        decide, records = self._kernels[1], self._log.records()
        while at < len(due):
            at = decide(at, due, self._scan, self.record, self.store, records, self._rows)
            yield from self._take_rows()

    def _due(self, first: int, end: int, after: I64) -> tuple[I64, I64]:
        if self.record.ctl[places.DECIDES] == 0:
            return _room(0).left, _room(0).left
        own = slice(first - self._log.base, end - self._log.base)
        streams, record = self._log.stream[own], self.record
        waits = _waits_for_decision(self._query)[streams] & (self._log.keys[own, 0] != TICK)
        at = np.flatnonzero(waits)
        due = self._log.ts[own][at] + record.length[streams[at]]
        self.undecided.add(first + at, due)
        return self.undecided.take(first, after)

    def _run(
        self, end: int, first: int, clocks: ClockSeries, due: I64, due_at: I64, records: Any
    ) -> int:
        try:
            return int(
                self._kernels[0](
                    end,
                    first,
                    *clocks,
                    due,
                    due_at,
                    self._scan,
                    self.record,
                    self.store,
                    records,
                    self._rows,
                )  # fmt: skip
            )
        except Exception as error:
            raise_for_row(self._query, self._log, int(self.record.ctl[places.NEXT]), error)

    def _take_rows(self) -> Generator[MatchedRows, None, None]:
        ctl = self.record.ctl
        if ctl[places.N_ROWS] > 0:
            yield MatchedRows(*(column[: ctl[places.N_ROWS]] for column in self._rows))
            ctl[places.N_ROWS] = 0

    def _make_room(self, ended: int) -> None:
        """Room for what a run ended for want of."""
        needed = int(self.record.ctl[places.NEEDED])
        if ended == kernels.NO_ROOM:
            self._grow()
        elif ended == kernels.TOO_FEW:
            self._rows = _room(max(2 * needed, len(self._rows.ts)))
        if ended != kernels.NO_ROOM and needed > len(self.record.hits):
            self.record = self.record._replace(hits=np.zeros(2 * needed, np.int64))

    # ---- what is kept

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the start, by name."""
        return {name: int(self.record.ctl[place]) for name, place in _COUNTERS.items()}

    def set_keep(self, length: int) -> None:
        """Keep events so long behind the clock from here on; what is forgotten stays so."""
        self.record.ctl[places.KEEP] = length

    def kept_from(self, stream: int) -> int:
        """Nothing of `stream` before this time finds partners any more."""
        forget = int(self.record.ctl[places.FORGET])
        return BEFORE if forget < BEFORE // 2 else forget - int(self.record.reach[stream])

    def is_kept(self) -> NDArray[np.bool_]:
        """For each event of the log, whether it may still matter."""
        horizons = np.array([self.kept_from(s) for s in range(2)])
        log = self._log
        return (log.ts >= horizons[log.stream]) & (log.keys[:, 0] >= 0)

    def reserve_codes(self, size: int) -> None:
        """Have runs for all key codes below `size`."""
        rows = size * int(self.record.ctl[places.WIDTH])
        if rows > len(self.store.runs):
            runs = cache_lines.zeros((2 * rows, window_kernels.RUN_LENGTH), np.int32)
            runs[: len(self.store.runs)] = self.store.runs
            self.store = self.store._replace(runs=runs)

    def rename_codes(self, renamed: NDArray[np.int32]) -> None:
        """Follow `KeyCodes.keep`: the runs of each code move to its new place."""
        runs = cache_lines.zeros(self.store.runs.shape, np.int32)
        kept = np.flatnonzero(renamed != NONE)
        width = int(self.record.ctl[places.WIDTH])
        for place in range(width):
            runs[renamed[kept] * width + place] = self.store.runs[kept * width + place]
        self.store = self.store._replace(runs=runs)

    def _grow(self) -> None:
        """More space for runs: forget what can be forgotten, then have twice what is needed."""
        horizon = min(self.kept_from(s) for s in range(2))
        room = max(self._limits.smallest_store, 8 * window_kernels.kept(horizon, self.store))
        target = Store(
            runs=cache_lines.zeros(self.store.runs.shape, np.int32),
            entry=cache_lines.zeros((room, 2), np.int64),
        )
        self.record.ctl[places.FREE] = window_kernels.compact(horizon, self.store, target)
        self.store = target

    def state(self) -> MatcherState:
        """All it would need to go on elsewhere, given the kept events and their marks."""
        ctl = self.record.ctl
        return MatcherState(int(ctl[places.FORGET]), int(ctl[places.KEEP]), self.counters)

    def resume(self, state: MatcherState, kept: I64, undecided: I64) -> None:
        """Go on from `state` with these events of the log, whose marks are there."""
        ctl = self.record.ctl
        ctl[places.FORGET] = state.forget
        if self._query.retained is None:
            ctl[places.KEEP] = state.keep
        for name, count in state.counters.items():
            ctl[_COUNTERS[name]] = count
        log = self._log
        streams = log.stream[undecided - log.base]
        due = log.ts[undecided - log.base] + self.record.length[streams]
        self.undecided.add(undecided, due)
        given = kept[(log.marks[kept - log.base, places.STATE] & places.GIVEN) > 0] - log.base
        given_to = log.ts[given] + self.record.length[log.stream[given]]
        ctl[places.GIVEN_TO] = given_to.max(initial=BEFORE)
        at, records = 0, log.records()
        while at < len(kept):
            at = int(kernels.put_back(at, kept, self.record, self.store, records))
            if at < len(kept):
                self._grow()


def _waits_for_decision(query: JoinQuery) -> NDArray[np.bool_]:
    """The streams whose events have rows that are due at a time."""
    return np.array([True, False] if query.how == "semi" else query.preserved)


def keep_for(query: JoinQuery, slack: int) -> int:
    """How long events are kept behind the clock, unless a goal says it, while K is `slack`.

    Where rows are decided, corrections that come as late again as K are found. A pair of eager
    emission needs no more than K: then that is what K is.
    """
    if query.retained is not None:
        return query.retained
    longest = max(length or 0 for length in query.lengths)
    if query.emit == "ordered":
        return max(longest, 2 * slack)
    return slack + max(longest, 2 * slack) if any(query.preserved) else 0


def _new_record(query: JoinQuery, conditions: Conditions) -> Matching:
    how, is_eager = query.how, query.emit == "eager"
    is_asof, is_semi = how == "asof", how == "semi"
    lengths = [length or 0 for length in query.lengths]
    waits = [True, False] if is_semi else [not is_asof and p for p in query.preserved]
    has_pairs = is_eager and how in WITH_PAIRS
    ctl = np.zeros(places.CTL_LENGTH, np.int64)
    ctl[places.FORGET] = ctl[places.GIVEN_TO] = BEFORE
    ctl[places.KEEP] = keep_for(query, query.slack)
    ctl[places.EAGER] = is_eager
    ctl[places.HAS_PAIRS] = has_pairs
    ctl[places.SEMI] = is_semi
    ctl[places.ASOF] = _DIRECTIONS[query.direction] if is_asof else 0
    ctl[places.WIDTH] = 2 + 2 * any(waits)
    ctl[places.DECIDES] = any(query.preserved) or (is_semi and not is_eager)
    ctl[places.SITE] = conditions.site_of(frozenset([0]), 1)
    ctl[places.SITE + 1] = conditions.site_of(frozenset([1]), 0)
    kept = [has_pairs or is_asof or waits[1 - s] for s in range(2)]
    reach = [lengths[0], sum(lengths) if is_asof else lengths[1]]
    return Matching(
        ctl,
        np.array(lengths),
        np.array(reach),
        np.array(kept, np.int64),
        np.array(waits, np.int64),
        np.zeros(2, np.int64),
        np.zeros(_FEWEST_ROWS, np.int64),
        *(np.zeros(BUCKETS, np.int64) for _ in range(3)),
    )


def _room(n: int) -> MatchedRows:
    return MatchedRows(*(np.empty(n, np.int64) for _ in MatchedRows._fields))


@cache
def _compiled(has_condition: bool) -> tuple[Any, Any]:
    """The kernels, compiled once for all conditions and for none."""
    if not numba.config.DISABLE_JIT:
        vector = types.Array(types.int64, 1, "C")
        scan = types.FunctionType(scan_signature()) if has_condition else types.none
        entries = types.Array(types.int64, 2, "C")
        rest = (
            scan,
            types.NamedUniTuple(vector, 10, Matching),
            types.NamedTuple([types.Array(types.int32, 2, "C"), entries], Store),
            numba.typeof(Log().records()),
            types.NamedUniTuple(vector, 6, MatchedRows),
        )
        n = types.int64
        for kernel, signature in (
            (kernels.run, (n, n, *[vector] * 5, *rest)),
            (kernels.flush, (n, vector, *rest)),
        ):
            dispatcher: Any = kernel
            dispatcher.disable_compile(False)
            dispatcher.compile(signature)
            dispatcher.disable_compile()  # or it would be compiled anew for each condition
    return kernels.run, kernels.flush
