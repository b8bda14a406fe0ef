"""The join of one shard: windows, clock and counters behind `process`.

`process` takes what leaves the Synchronizer, in order, and reports what became of each event.
Results come in bounded pieces, so that a hot key cannot build one huge table.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from slackwater.events import cache_lines
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.joins.conditions import Conditions, raise_for_row
from slackwater.joins.kernel_types import LATENESS, NUMBER, VECTOR, join_types
from slackwater.joins.sorted_windows import SortedWindows
from slackwater.joins.visit_order import build_plan
from slackwater.kernels import frame as clock
from slackwater.kernels import join as kernels
from slackwater.kernels import shed as shed_places
from slackwater.kernels import walk
from slackwater.kernels import windows as window_kernels
from slackwater.kernels.records import (
    BEFORE,
    I64,
    NONE,
    Arrivals,
    Frame,
    Late,
    Lateness,
    Made,
    Released,
    Results,
    Sampled,
    Scratch,
    Shed,
    Store,
)
from slackwater.query.join import JoinQuery
from slackwater.query.windows import Tuples

_NOTHING = np.empty(0, np.int64)
_NONE_LATE = Late(*(_NOTHING for _ in Late._fields))
_NONE_SAMPLED = Sampled(*(_NOTHING for _ in Sampled._fields))


class JoinState(NamedTuple):
    """The join's clock, how long it keeps events, and how far back it looks in each stream."""

    time: int
    retention: int
    horizons: list[int]


class WindowJoin:
    """Windows of all streams of `query` over the events of `log`."""

    def __init__(
        self,
        query: JoinQuery,
        conditions: Conditions,
        log: Log,
        shed: Shed | None = None,
        index: SortedWindows | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        m = len(query.streams)
        self._limits = limits
        self._log = log
        self._query = query
        self._conditions = conditions
        self.plan = build_plan(query, conditions.site_of)
        self.frame = _new_frame(query)
        self.store = Store(
            runs=cache_lines.zeros((64, window_kernels.RUN_LENGTH), np.int32),
            entry=cache_lines.zeros((limits.smallest_store, 2), np.int64),
        )
        self.scratch = Scratch(
            state=np.zeros(2, np.int64),
            cursor=np.zeros(m, np.int64),
            stop=np.zeros(m, np.int64),
            newest=np.zeros(m + 1, np.int64),
            reach=np.zeros(m + 1, np.int64),
            at=np.zeros(m, np.int64),
            hits=np.zeros((m, walk.BLOCK + 1), np.int64),
            n_hits=np.zeros(m, np.int64),
            next_hit=np.zeros(m, np.int64),
            piece=np.zeros(m, np.int64),
            phase=np.zeros(m, np.int64),
            block=np.zeros(m, np.int64),
            source=np.zeros(m, np.int64),
            low=np.zeros(m, np.int64),
            high=np.zeros(m, np.int64),
        )
        room = 0 if query.select == "count" else limits.results_at_once
        self._results = Results(
            row=np.zeros((m, room), np.int64),
            ts=np.zeros(room, np.int64),
            position=np.zeros(room, np.int64),
            last=np.zeros(room, np.int64),
            late=np.zeros(room, np.uint8),
        )
        self.lateness: Lateness | None = None
        self._made, self._late, self._sampled = _records(0)
        self._shed = shed
        self._index = index
        self._least_retention = 0
        if shed is not None and index is not None:
            # The oldest basic window is looked into as a whole, so it must be there as a whole:
            # what of it is forgotten already depends on when the engine was restored.
            self._least_retention = int(shed.basic.max())
            self.set_retention(int(self.frame.ctl[clock.RETENTION]))
        self._kernel: Any = None  # compiled for what there is when it runs first

    @property
    def time(self) -> int:
        """The join's clock."""
        return int(self.frame.ctl[clock.TIME])

    @property
    def stores_at_arrival(self) -> bool:
        """Whether events are stored before they are released; if not, when they are."""
        return bool(self.frame.ctl[clock.AT_ARRIVAL])

    def measure_lateness(self, record: Lateness, waiting: I64) -> None:
        """Count the lateness of results into `record`; events that are `waiting` take part."""
        self.lateness, self._kernel = record, None
        if not self.stores_at_arrival:
            self.frame.ctl[clock.AT_ARRIVAL] = 1
            self._put_back(waiting)

    def set_retention(self, length: int) -> None:
        """Keep events so long beyond their window from here on.

        What was before the horizon until now stays invisible: it may be gone from memory.
        """
        ctl, length = self.frame.ctl, max(length, self._least_retention)
        if length > ctl[clock.RETENTION] and self.time != BEFORE:
            for s, window in enumerate(self.frame.length):
                if window != NONE:
                    self.frame.held[s] = self.stream_horizon(s)
        ctl[clock.RETENTION] = length

    def set_orders(self, orders: Sequence[Sequence[int]]) -> None:
        """Look for partners in these orders from here on; between two runs."""
        self.plan = build_plan(self._query, self._conditions.site_of, orders)
        if self._index is not None:
            self._index.set_orders(orders)

    def reserve_codes(self, size: int) -> None:
        """Have runs for all key codes below `size`."""
        rows = size * self.plan.width
        if rows > len(self.store.runs):
            runs = cache_lines.zeros((2 * rows, window_kernels.RUN_LENGTH), np.int32)
            runs[: len(self.store.runs)] = self.store.runs
            self.store = self.store._replace(runs=runs)

    def process(
        self,
        released: Released,
        first: int = 0,
        behind: I64 = _NOTHING,
        clocks: I64 = _NOTHING,
    ) -> Generator[Results, None, tuple[Made, Late, Sampled]]:
        """Join events in this order: yields results, each piece valid until the next one.

        Behind the clocked stage, `first` is the first arrival of the step; `behind` is how far each
        of its arrivals is behind the common clock, `clocks` the join's clock before it: where
        lateness is measured, they are stored on the way.

        Returns which events made results, which were late, and which stand for others.
        """
        ctl = self.frame.ctl
        ctl[clock.FIRST] = ctl[clock.NEXT] = ctl[clock.FETCHED] = first
        if len(released.event) > len(self._made.n):
            self._made, self._late, self._sampled = _records(len(released.event))
        made, late, sampled = self._made, self._late, self._sampled
        ctl[clock.N_MADE] = ctl[clock.N_LATE] = 0
        if self._shed is not None:
            self._shed.ctl[shed_places.N_SAMPLED] = 0
        if self._index is not None:
            self._index.reserve(len(self._log.ts))
        records = self._log.records()
        at, reason = 0, kernels.RESULTS_FULL
        while reason != kernels.DONE:
            at, reason = self._run(at, released, behind, clocks, records)
            if reason == kernels.NO_ROOM:
                self.grow()
            elif ctl[clock.N_RESULTS] > 0:
                yield _first(ctl[clock.N_RESULTS], self._results)
                ctl[clock.N_RESULTS] = 0
        n_made, n_late = ctl[clock.N_MADE], ctl[clock.N_LATE]
        n_sampled = 0 if self._shed is None else self._shed.ctl[shed_places.N_SAMPLED]
        return (
            Made(*(a[:n_made].copy() for a in made)),
            Late(*(a[:n_late].copy() for a in late)) if n_late else _NONE_LATE,
            Sampled(*(a[:n_sampled].copy() for a in sampled)) if n_sampled else _NONE_SAMPLED,
        )

    def _run(
        self, at: int, released: Released, behind: I64, clocks: I64, records: Arrivals
    ) -> tuple[int, int]:
        index = None if self._index is None else self._index.arrays
        if self._kernel is None:
            self._kernel = _compiled_run(
                self._conditions.scan is not None,
                numba.typeof(self._shed),
                numba.typeof(index),
                types.none if self.lateness is None else LATENESS,
            )
        try:
            at, reason = self._kernel(
                at, released, behind, clocks, self._conditions.scan, self.frame, self.plan,
                self.store, self.scratch, records, self._results, self._made, self._late,
                self._shed, index, self._sampled, self.lateness,
            )  # fmt: skip
            return at, reason
        except Exception as error:
            raise_for_row(self._query, self._log, int(self.frame.ctl[clock.CURRENT]), error)

    # ---- what is kept

    def state(self) -> JoinState:
        """All it would need to go on elsewhere, given the kept events."""
        streams = range(len(self._query.streams))
        return JoinState(
            self.time,
            int(self.frame.ctl[clock.RETENTION]),
            [self.stream_horizon(s) for s in streams],
        )

    def resume(self, state: JoinState, kept: I64) -> None:
        """Go on from `state` with the events `kept`, which are in the log."""
        self.frame.ctl[clock.TIME] = state.time
        self.frame.held[:] = state.horizons  # what was not kept then cannot be looked at now
        if self._query.retained is None:
            self.frame.ctl[clock.RETENTION] = state.retention
        self._put_back(kept)

    def _put_back(self, events: I64) -> None:
        """Store events of the log."""
        at = 0
        while at < len(events):
            at = kernels.put_back(
                at, events, self.frame, self.plan, self.store, self.scratch, self._log.records()
            )
            if at < len(events):
                self.grow()

    @property
    def horizon(self) -> int:
        """Nothing before this time is looked at any more."""
        if self.time == BEFORE:
            return BEFORE
        return min(self.stream_horizon(s) for s in range(len(self._query.streams)))

    def stream_horizon(self, stream: int) -> int:
        """Nothing of `stream` before this time is looked at any more."""
        if self.time == BEFORE:
            return BEFORE
        return int(clock.horizon(stream, self.frame, self.store, self.plan.width))

    def first_to_keep(self, ts: int, basic: int) -> int:
        """The first time not before `ts` from which on events can be kept.

        A sorted basic window is looked into as a whole: it stays or goes as a whole.
        """
        return ts if self._index is None else -(-ts // basic) * basic

    def forget_before(self, stream: int, ts: int) -> None:
        """Do not look at events of `stream` before `ts` any more."""
        self.frame.held[stream] = max(int(self.frame.held[stream]), ts)

    def rename_codes(self, renamed: NDArray[np.int32]) -> None:
        """Follow `KeyCodes.keep`: the runs of each code move to its new place."""
        width = self.plan.width
        runs = cache_lines.zeros(self.store.runs.shape, np.int32)
        kept = np.flatnonzero(renamed != NONE)
        for place in range(width):
            runs[renamed[kept] * width + place] = self.store.runs[kept * width + place]
        self.store = self.store._replace(runs=runs)

    def grow(self) -> None:
        """More space for runs: forget what can be forgotten, then have twice what is needed.

        Compact runs take at most four times their entries (a single one gets a block of four), and
        the longest may want to double at once: eight times is enough for both. The next event is
        counted too, with an entry in each of its runs: empty runs keep no block.
        """
        horizon = self.horizon
        kept = window_kernels.kept(horizon, self.store) + int(self.plan.n_keys.max()) + 1
        room = max(self._limits.smallest_store, 8 * kept)
        target = Store(
            runs=cache_lines.zeros(self.store.runs.shape, np.int32),
            entry=cache_lines.zeros((room, 2), np.int64),
        )
        self.frame.ctl[clock.FREE] = window_kernels.compact(horizon, self.store, target)
        self.store = target


def _first(n: int, results: Results) -> Results:
    return results.take(slice(n))


def _records(n: int) -> tuple[Made, Late, Sampled]:
    """Room for what becomes of `n` events."""
    return (
        Made(*(np.empty(n, np.int64) for _ in Made._fields)),
        Late(*(np.empty(n, np.int64) for _ in Late._fields)),
        Sampled(*(np.empty(n, np.int64) for _ in Sampled._fields)),
    )


@cache
def _compiled_run(has_condition: bool, shed: Any, index: Any, lateness: Any) -> Any:
    """The join kernel, compiled once for all conditions (called through a pointer) and for none.

    And once with and once without load shedding, sorted windows and the lateness of results, which
    cost nothing then; the others are their types.
    """
    kernel: Any = kernels.run
    if not numba.config.DISABLE_JIT:
        kernel.disable_compile(False)
        kernel.compile((
            NUMBER,
            types.NamedUniTuple(VECTOR, 7, Released),
            VECTOR,
            VECTOR,
            *join_types(has_condition),
            types.NamedUniTuple(VECTOR, 3, Made),
            types.NamedUniTuple(VECTOR, 4, Late),
            shed,
            index,
            types.NamedUniTuple(VECTOR, 2, Sampled),
            lateness,
        ))  # fmt: skip
        kernel.disable_compile()  # or it would be compiled anew for each condition
    return kernel


def _new_frame(query: JoinQuery) -> Frame:
    m = len(query.streams)
    ctl = np.zeros(clock.CTL_LENGTH, np.int64)
    ctl[clock.TIME] = BEFORE
    ctl[clock.SLIDE] = query.slide_units
    half_open = query.bounds == "[)"
    ctl[clock.GRID_SHIFT] = query.slide_units if half_open else query.slide_units - 1
    longest = max((n for n in query.lengths if n is not None), default=0)
    ctl[clock.RETENTION] = longest if query.retained is None else query.retained
    ctl[clock.COUNT_ONLY] = query.select == "count"
    ctl[clock.LATE] = ("drop", "count", "emit").index(query.late)
    ctl[clock.WINDOW_END] = query.late_probe == "window-end"
    ctl[clock.HAS_WHERE] = query.has_condition
    ctl[clock.HAS_TUPLE_WINDOWS] = query.has_tuple_windows
    counts = [s.window.count if isinstance(s.window, Tuples) else NONE for s in query.streams]
    lengths = [NONE if length is None else length for length in query.lengths]
    return Frame(ctl, np.array(lengths), np.array(counts), np.full(m, BEFORE))
