"""Results of any number of streams at once, found one by one or counted when events arrive.

It takes arrivals with the clocks around them. Results come in bounded pieces.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.joins.conditions import Conditions, raise_for_row
from slackwater.joins.kernel_types import NUMBER, VECTOR, join_types
from slackwater.joins.matcher import MatcherState, keep_for
from slackwater.joins.window_join import WindowJoin
from slackwater.kernels import at_once as kernels
from slackwater.kernels import frame as clock
from slackwater.kernels import partners as places
from slackwater.kernels.histogram import BUCKETS, buckets_of
from slackwater.kernels.join import put_back
from slackwater.kernels.records import (
    BEFORE,
    I32,
    I64,
    NEVER,
    TICK,
    ClockSeries,
    Made,
    Matching,
    Results,
)
from slackwater.query.join import JoinQuery

_EMIT = 2  # of `LATE`: the walk writes what a late event finds
_COUNTERS = {
    "pairs": places.N_PAIRS,
    "unknown": places.UNKNOWN,
    "taken_in": places.N_ARRIVALS,
}


class JoinAtOnce:
    """An inner join of the events of `log`, with time windows.

    Parameters
    ----------
    query, conditions
        The join.
    log
        Its events.
    limits
        Sizes of arrays.

    Attributes
    ----------
    record
        How long events are kept, what is known of that, and totals.
    counts
        Whether results are only counted, not found one by one.
    measures
        Whether it is of interest how long members had to be kept.
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
        self._scan = conditions.scan
        self._join = WindowJoin(query, conditions, log, limits=limits)
        ctl = self._join.frame.ctl
        ctl[clock.RETENTION] = 0
        ctl[clock.LATE] = _EMIT
        ctl[clock.UNTIL] = NEVER
        self.counts = query.select == "count" and self._join.plan.shared == 1
        room = max(1, limits.results_at_once)
        self._results = _room_for_results(len(query.streams), 0 if self.counts else room)
        self._made = _room(room if self.counts else 0)
        self._numbers = np.zeros(1, np.int64)  # of all events of the log
        self.record = _new_record(query)
        self.measures = True
        self._kernels = _compiled(conditions.scan is not None)

    # ---- work

    def results(self, first: int, end: int, series: ClockSeries) -> Generator[Results, None, None]:
        """Take in these arrivals: yields results, each piece valid until the next one.

        Their members are numbers of events.
        """
        join, ctl, forgets = self._join, self._join.frame.ctl, self.forgets(series)
        ctl[[clock.FIRST, clock.NEXT, clock.N_RESULTS]] = first, first, 0
        records, ended = self._log.records(), kernels.NO_ROOM
        if self._numbers[0] != records.base or len(self._numbers) != len(records.row):
            self._numbers = records.base + np.arange(len(records.row))
        records = records._replace(row=self._numbers)
        while ended != kernels.DONE:
            try:
                ended = int(
                    self._kernels[0](
                        end,
                        forgets,
                        self._scan,
                        join.frame,
                        join.plan,
                        join.store,
                        join.scratch,
                        records,
                        self._results,
                    )  # fmt: skip
                )
            except Exception as error:
                raise_for_row(self._query, self._log, int(ctl[clock.NEXT]), error)
            if ctl[clock.N_RESULTS] > 0:
                found = self._results.take(slice(ctl[clock.N_RESULTS]))
                self._note(found, first, series.common)
                yield found._replace(late=np.zeros(len(found.ts), np.uint8))
                ctl[clock.N_RESULTS] = 0
            if ended == kernels.NO_ROOM:
                join.grow()
        self._take_note(first, end, series, forgets)

    def numbers(self, first: int, end: int, series: ClockSeries) -> Generator[Made, None, None]:
        """The same where results are only counted: yields how many of which times there are."""
        join, ctl, forgets = self._join, self._join.frame.ctl, self.forgets(series)
        ctl[[clock.FIRST, clock.NEXT, clock.N_MADE]] = first, first, 0
        records, ended = self._log.records(), kernels.NO_ROOM
        while ended != kernels.DONE:
            ended = int(
                self._kernels[1](
                    end,
                    forgets,
                    series.common,
                    join.frame,
                    join.plan,
                    join.store,
                    join.scratch,
                    records,
                    self._made,
                    self.record,
                )  # fmt: skip
            )
            if ctl[clock.N_MADE] > 0:
                made = Made(*(column[: ctl[clock.N_MADE]] for column in self._made))
                self.record.ctl[places.N_PAIRS] += int(made.n.sum())
                yield made
                ctl[clock.N_MADE] = 0
            if ended == kernels.NO_ROOM:
                join.grow()
            elif ended == kernels.RESULTS_FULL:
                needed = int(self.record.ctl[places.NEEDED])
                if needed > len(self._made.n):
                    self._made = _room(2 * needed)
        self._take_note(first, end, series, forgets)

    def _note(self, found: Results, first: int, common: I64) -> None:
        """How long the other members had to be kept, if that is beyond their windows."""
        self.record.ctl[places.N_PAIRS] += len(found.ts)
        if not self.measures:
            return
        behind = np.flatnonzero(common[found.position - first] > found.ts)
        if len(behind):
            wait = self.needed(found.take(behind), common[found.position[behind] - first])
            self.record.keeps[:] += np.bincount(buckets_of(wait[wait > 0]), minlength=BUCKETS)

    def needed(self, found: Results, common: I64) -> I64:
        """How long the other members of results had to be kept; `common` is the common clock."""
        base, wait = self._log.base, np.full(len(found.ts), BEFORE)
        for s, length in enumerate(self.record.length):
            kept = common - self._log.ts[found.row[s] - base] - length
            wait = np.where(found.row[s] == found.last, wait, np.maximum(wait, kept))
        return wait

    def _take_note(self, first: int, end: int, series: ClockSeries, forgets: I64) -> None:
        """Count the arrivals of a step, and those whose partners may be forgotten."""
        ctl, own = self.record.ctl, slice(first - self._log.base, end - self._log.base)
        is_event = self._log.keys[own, 0] != TICK
        ts = self._log.ts[own][is_event]
        unseen = ts < forgets[is_event]
        late = (series.common[is_event] - ts)[unseen]
        self.record.unseen[:] += np.bincount(buckets_of(late), minlength=BUCKETS)
        ctl[places.UNKNOWN] += len(late)
        ctl[places.N_ARRIVALS] += len(ts)
        ctl[places.FORGET] = forgets[-1]

    # ---- what is kept

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the start, by name."""
        return {name: int(self.record.ctl[place]) for name, place in _COUNTERS.items()}

    def forgets(self, series: ClockSeries) -> I64:
        """F with each arrival of the step that comes next."""
        ctl = self.record.ctl
        behind = np.minimum(series.after, series.common - ctl[places.KEEP])
        return np.maximum.accumulate(np.maximum(behind, ctl[places.FORGET]))

    def set_keep(self, length: int) -> None:
        """Keep events so long behind the clock from here on; what is forgotten stays so."""
        self.record.ctl[places.KEEP] = length

    def kept_from(self, stream: int) -> int:
        """Nothing of `stream` before this time finds partners any more."""
        forget = int(self.record.ctl[places.FORGET])
        return BEFORE if forget < BEFORE // 2 else forget - int(self.record.reach[stream])

    def is_kept(self) -> NDArray[np.bool_]:
        """For each event of the log, whether it may still matter."""
        log = self._log
        horizons = np.array([self.kept_from(s) for s in range(len(self.record.reach))])
        return (log.ts >= horizons[log.stream]) & (log.keys[:, 0] >= 0)

    def reserve_codes(self, size: int) -> None:
        """Have runs for all key codes below `size`."""
        self._join.reserve_codes(size)

    def rename_codes(self, renamed: I32) -> None:
        """Follow `KeyCodes.keep`: the runs of each code move to its new place."""
        self._join.rename_codes(renamed)

    def state(self) -> MatcherState:
        """All it would need to go on elsewhere, given the kept events."""
        ctl = self.record.ctl
        return MatcherState(int(ctl[places.FORGET]), int(ctl[places.KEEP]), self.counters)

    def resume(self, state: MatcherState, kept: I64) -> None:
        """Go on from `state` with these events of the log."""
        ctl, join = self.record.ctl, self._join
        ctl[places.FORGET] = join.frame.ctl[clock.TIME] = state.forget
        if self._query.retained is None:
            ctl[places.KEEP] = state.keep
        for name, count in state.counters.items():
            ctl[_COUNTERS[name]] = count
        at = 0
        while at < len(kept):
            at = put_back(
                at, kept, join.frame, join.plan, join.store, join.scratch, self._log.records()
            )
            if at < len(kept):
                join.grow()


def _new_record(query: JoinQuery) -> Matching:
    lengths = np.array([length or 0 for length in query.lengths])
    ctl = np.zeros(places.CTL_LENGTH, np.int64)
    ctl[places.EAGER] = 1
    ctl[places.FORGET] = BEFORE
    ctl[places.KEEP] = keep_for(query, query.slack)
    none = np.zeros(len(lengths), np.int64)
    histograms = (np.zeros(BUCKETS, np.int64) for _ in range(3))
    return Matching(ctl, lengths, lengths, none + 1, none, none.copy(), none[:0], *histograms)


def _room_for_results(m: int, n: int) -> Results:
    ts, position, last = np.zeros((3, n), np.int64)
    return Results(np.zeros((m, n), np.int64), ts, position, last, np.zeros(n, np.uint8))


def _room(n: int) -> Made:
    return Made(*(np.empty(n, np.int64) for _ in Made._fields))


@cache
def _compiled(has_condition: bool) -> tuple[Any, Any]:
    """The kernels, compiled once for all conditions (called through a pointer) and for none."""
    if not numba.config.DISABLE_JIT:
        of_join = join_types(has_condition)
        kernel: Any = kernels.run
        kernel.disable_compile(False)
        kernel.compile((NUMBER, VECTOR, *of_join))
        kernel.disable_compile()  # or it would be compiled anew for each condition
        if not has_condition:
            counting: Any = kernels.count
            counting.disable_compile(False)
            counting.compile((
                NUMBER,
                VECTOR,
                VECTOR,
                *of_join[1:-1],
                types.NamedUniTuple(VECTOR, 3, Made),
                types.NamedUniTuple(VECTOR, 10, Matching),
            ))  # fmt: skip
            counting.disable_compile()
    return kernels.run, kernels.count
