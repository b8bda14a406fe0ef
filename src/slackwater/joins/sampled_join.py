"""A window join over a sample of the events, which only counts what late events lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.joins.conditions import Conditions
from slackwater.joins.kernel_types import FLAGS, LATENESS, MATRIX, NUMBER, VECTOR, join_types
from slackwater.joins.window_join import WindowJoin
from slackwater.kernels import frame as clock
from slackwater.kernels import join as storing
from slackwater.kernels import lateness as lateness_places
from slackwater.kernels import longer_sample as kernels
from slackwater.kernels.histogram import BUCKETS
from slackwater.kernels.records import (
    I64,
    U8,
    Lateness,
    Results,
)
from slackwater.query.join import JoinQuery

_AT_ONCE = 1024  # pairs, before they are counted
_EMIT = 2  # of `LATE`: the walk writes what is lost
_NO_LIMIT = 2**60  # of retention: `held` alone says what is seen


class Probes(NamedTuple):
    """Late events whose loss the join cannot count."""

    clock: I64  # the join's clock
    reach: I64  # [probe, stream]: from when on the sample sees events
    seen: I64  # [probe, stream]: from when on the join does


class SampledJoin:
    """Windows over the events of `log`, a sample of those of a join.

    Parameters
    ----------
    query, conditions
        Of the join.
    keys
        Key columns that an event has.
    pane
        Length of a pane of result time.
    limits
        Sizes of arrays.
    """

    def __init__(
        self,
        query: JoinQuery,
        conditions: Conditions,
        keys: int,
        pane: int,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.log = Log(keys, **conditions.columns.widths)
        small = replace(limits, results_at_once=1)  # it makes no results
        self._join = WindowJoin(query, conditions, self.log, limits=small)
        self._scan = conditions.scan
        ctl = self._join.frame.ctl
        ctl[clock.AT_ARRIVAL] = 1
        ctl[clock.LATE] = _EMIT
        ctl[clock.RETENTION] = _NO_LIMIT
        m = len(query.streams)
        self._results = Results(
            row=np.zeros((m, _AT_ONCE), np.int64),
            ts=np.zeros(_AT_ONCE, np.int64),
            position=np.zeros(_AT_ONCE, np.int64),
            last=np.zeros(_AT_ONCE, np.int64),
            late=np.zeros(_AT_ONCE, np.uint8),
        )
        self._lateness = Lateness(
            np.zeros(lateness_places.CTL_LENGTH, np.int64),
            np.zeros((1, BUCKETS), np.int64),
            np.zeros(kernels.PANES, np.int64),
        )
        self._lateness.ctl[[lateness_places.ONE_IN, lateness_places.EVERY]] = 1, pane

    @property
    def stored_from(self) -> I64:
        """The time from which on the sample has events, for each stream."""
        return self._join.frame.held

    def forget_before(self, horizons: I64) -> None:
        """Do not look at events before these times any more, one for each stream."""
        frame = self._join.frame
        frame.held[:] = horizons
        frame.ctl[clock.TIME] = horizons.max()  # any time: only BEFORE means something

    def reserve_codes(self, size: int) -> None:
        """Have windows for so many key codes."""
        self._join.reserve_codes(size)

    def rename_codes(self, renamed: Any) -> None:
        """Follow `KeyCodes.keep`."""
        self._join.rename_codes(renamed)

    def append(self, columns: Mapping[str, Any]) -> tuple[int, int]:
        """Add events to the log, not yet to the windows; return their numbers as (first, end)."""
        numbers = self.log.end + np.arange(len(columns["ts"]))
        return self.log.append(row=numbers, **columns)

    def store(self, events: I64) -> None:
        """Put events of the log into the windows."""
        join, at = self._join, 0
        while at < len(events):
            at = storing.put_back(
                at, events, join.frame, join.plan, join.store, join.scratch, self.log.records()
            )
            if at < len(events):
                join.grow()

    def store_and_probe(self, first: int, kept: U8, probe: I64, probes: Probes) -> I64:
        """Store the `kept` ones of the events from `first` on; let others look for results.

        `probe` has, for each event, the number of its probe, or NONE. Returns what each probe
        found: see `kernels.longer_sample`.
        """
        join, at = self._join, 0
        run = compiled_probe(self._scan is not None)
        found = np.zeros((len(probes.clock), kernels.PANES), np.int64)
        stored_from = self.stored_from.copy()
        while at < len(kept):
            at = run(
                at, first, kept, probe, probes.clock, probes.reach, probes.seen, stored_from,
                self._scan, join.frame, join.plan, join.store, join.scratch, self.log.records(),
                self._results, self._lateness, found,
            )  # fmt: skip
            if at < len(kept):
                join.grow()
        return found


@cache
def compiled_probe(has_condition: bool) -> Any:
    """The kernel, compiled once for all conditions (called through a pointer) and for none."""
    kernel: Any = kernels.run
    if not numba.config.DISABLE_JIT:
        kernel.disable_compile(False)
        kernel.compile((
            NUMBER,
            NUMBER,
            FLAGS,
            VECTOR,
            VECTOR,
            MATRIX,
            MATRIX,
            VECTOR,
            *join_types(has_condition),
            LATENESS,
            MATRIX,
        ))  # fmt: skip
        kernel.disable_compile()
    return kernel
