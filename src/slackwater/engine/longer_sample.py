"""A sample of the events that is kept longer than all of them, to estimate what is lost unseen.

Retention is bounded: an event may be later than what the join keeps, and then the join counts only
part of what is lost with it. What the rest is, is estimated here. The sample is a small join of its
own that keeps a share of the events (`stats.sampling` chooses them) many times as long. A late
event that the join could not count looks for results in it; those that the join has seen are left
out. So ``produced + lost + estimate`` is the number of true results, on average.

What happens at which arrival is written down step by step (`note_late`), with the times from which
on the join and the sample see events. The work is done for many arrivals at once (`take`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slackwater.engine.sampled_events import SampledEvents
from slackwater.events.limits import Limits
from slackwater.joins.conditions import Conditions
from slackwater.joins.sampled_join import Probes, SampledJoin
from slackwater.kernels import frame as fields
from slackwater.kernels.join import LOSS_UNKNOWN
from slackwater.kernels.records import (
    BEFORE,
    I32,
    I64,
    NEVER,
    NONE,
    SHED,
    Late,
    Released,
)
from slackwater.metrics.counters import Metrics
from slackwater.query.join import JoinQuery
from slackwater.stats.sampling import Arriving, ByCluster, ByEvent, Sampling

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine

_MOST = 2**18  # events in a sample
_LOOKS, _IS_KEPT = 1, 2


class _LateEvents(NamedTuple):
    """Late events of a step that the join could not count in full."""

    event: I64
    clock: I64  # the join's clock
    reach: tuple[I64, int]  # what is seen of the sample: `held`, and how long beyond the window
    seen: tuple[I64, int]  # the same of the join


class LongerSample:
    """The sample of one engine.

    Parameters
    ----------
    query, conditions
        Of the join.
    engine
        Whose events are sampled; its intake and its schemas are used.
    sampling
        How much is kept.
    limits
        Sizes of arrays.
    """

    def __init__(
        self,
        query: JoinQuery,
        conditions: Conditions,
        engine: JoinEngine,
        sampling: Sampling,
        limits: Limits,
    ) -> None:
        m = len(query.streams)
        lengths = [length for length in query.lengths if length is not None]
        self._sampling = sampling
        self._engine = engine
        self._lengths = np.array(lengths, np.int64)
        self._longest = max(lengths)
        pane = max(1, self._longest)
        self._unit: ByEvent | ByCluster
        if m == 2:  # noqa: PLR2004
            self._unit = ByEvent(sampling)
        else:
            codes = engine.intake.codes
            has_key = len(query.keys) == 1 and len(query.keys[0].columns[0]) > 0
            if has_key:
                codes.keep_hashes()
            hashes = codes.hashes if has_key else None
            self._unit = ByCluster(sampling, pane, lengths, hashes)
        self.join = SampledJoin(query, conditions, engine.intake.n_keys, pane, limits)
        self._events = SampledEvents(engine, self.join)
        self._held = np.full(m, BEFORE)
        self._reach = self._reach_of(self._longest, 0.0)
        self._late: list[_LateEvents] = []

    # ---- what it sees

    def set_reach(self, retention: int, rate: float) -> None:
        """Follow the join's retention; `rate` is events per unit of time."""
        reach = self._reach_of(retention, rate)
        if reach > self._reach:  # what was out of reach may be gone
            self._held = self._horizons()
        self._reach = reach

    def _reach_of(self, retention: int, rate: float) -> int:
        """How long the sample keeps events beyond their window."""
        kept = self._unit.copies * self._sampling.share
        times = self._sampling.times // self._unit.copies
        return min(times * max(1, self._longest + retention), int(_MOST / max(rate * kept, 1e-9)))

    def _horizons(self) -> I64:
        """From when on the sample sees events now, by stream."""
        now = self._engine.join.time
        if now == BEFORE:
            return self._held
        seen: I64 = self._seen_at(np.array([now]), self._held, self._reach)[0]
        return seen

    def _seen_at(self, clock: I64, held: I64, retention: int) -> I64:
        """From when on events are seen when the join's clock is there: [clock, stream]."""
        ends = self._grid(clock)[:, None] - self._lengths
        seen: I64 = np.maximum(held, ends - retention)
        return seen

    def _grid(self, ts: I64) -> I64:
        """`kernels.frame.grid` of many times."""
        ctl = self._engine.join.frame.ctl
        shift, slide = int(ctl[fields.GRID_SHIFT]), int(ctl[fields.SLIDE])
        return ts if shift == 0 else (ts + shift) // slide * slide

    def stored_events(self) -> int:
        """How many events the sample holds."""
        return int(np.count_nonzero(self._events.is_alive(self._horizons())))

    def with_estimate(self, metrics: Metrics) -> Metrics:
        """`metrics` with the size of the sample, and an error also where nothing was found."""
        error = metrics.lost_estimated_error
        if metrics.lost_estimated == 0 and metrics.lost_unknown > metrics.lost_not_estimated:
            error = self._sampling.error_of_none
        return replace(metrics, sampled=self.stored_events(), lost_estimated_error=error)

    # ---- work

    def note_late(self, out: Released, late: Late) -> None:
        """Write down the late events of a step that the join could not count in full."""
        which = np.flatnonzero(late.fate & LOSS_UNKNOWN)
        position, frame = late.position[which], self._engine.join.frame
        clock = out.ts[position] + late.by[which]
        retention = int(frame.ctl[fields.RETENTION])
        self._late.append(
            _LateEvents(
                out.event[position],
                clock,
                (self._held, self._reach),
                (frame.held.copy(), retention),
            )  # fmt: skip
        )

    def take(self, begin: int, end: int) -> None:
        """Take in these arrivals of the engine's log; `note_late` was called for all of them."""
        log = self._engine.log
        place: Any = slice(begin - log.base, end - log.base)
        if self._engine.has_ticks:
            place = place.start + np.flatnonzero(log.keys[place, 0] >= 0)
        events = Arriving(log.ts[place], log.stream[place], log.keys[place, 0])
        chosen = self._unit.choose(events)
        at, probes = self._probes(begin, place, events, chosen)
        kept = np.flatnonzero(chosen)
        kept = kept[events.ts[kept] >= self.join.stored_from[events.stream[kept]]]
        if len(at) == 0:
            number = self._events.append(place, kept, np.ones(len(kept), bool))
            self.join.store(number)
        else:
            flags = np.zeros(len(events.ts), np.uint8)
            flags[at], flags[kept] = _LOOKS, _IS_KEPT
            taken = np.flatnonzero(flags)
            is_kept = flags[taken] == _IS_KEPT
            number = self._events.append(place, taken, is_kept)
            probe = np.full(len(taken), NONE)
            probe[np.searchsorted(taken, at)] = np.arange(len(at))
            found = self.join.store_and_probe(
                int(number[0]), is_kept.astype(np.uint8), probe, probes
            )
            self.join.log.keys[number[~is_kept] - self.join.log.base, 0] = SHED
            self._count(*self._unit.add(found, Arriving(*(column[at] for column in events))))
        horizons = self._horizons()
        self.join.forget_before(horizons)
        self._unit.forget_before(int(horizons.min()))

    def _probes(self, begin: int, place: Any, events: Arriving, chosen: Any) -> tuple[I64, Probes]:
        """The places of the events that look for results in the sample, and what they see."""
        late, self._late = self._late, []
        if not late:
            none = np.empty((0, len(self._lengths)), np.int64)
            return none[:, 0], Probes(none[:, 0], none, none)
        number = np.concatenate([step.event for step in late])
        at = number - begin
        if not isinstance(place, slice):
            at = np.searchsorted(place, number - self._engine.log.base)
        clock = np.concatenate([step.clock for step in late])
        reach = np.concatenate([self._seen_at(step.clock, *step.reach) for step in late])
        seen = np.concatenate([self._seen_at(step.clock, *step.seen) for step in late])
        needed = self._grid(events.ts[at])[:, None] - self._lengths
        needed[np.arange(len(at)), events.stream[at]] = NEVER  # its own stream has no partner
        beyond = (needed < reach).any(axis=1)
        self._engine.counters.lost_not_estimated += int(np.count_nonzero(beyond))
        looks = self._unit.may_look(chosen[at])
        return at[looks], Probes(clock[looks], reach[looks], seen[looks])

    def _count(self, results: int, squares: int) -> None:
        total = self._engine.counters
        total.lost_estimated += self._sampling.weight(results)
        total.lost_estimated_variance += self._sampling.variance(squares)

    # ---- keys

    def reserve_codes(self, size: int) -> None:
        """Have windows for so many key codes."""
        self.join.reserve_codes(size)

    def rename_codes(self, renamed: I32) -> None:
        """Key codes have new numbers."""
        self.join.rename_codes(renamed)

    # ---- rows

    def copy_rows(self) -> None:
        """Copy the rows that are needed here, before the engine forgets them."""
        self._events.copy_rows()

    # ---- for a snapshot

    def state(self) -> dict[str, Any]:
        """All but the events, as plain data."""
        return {
            "sampling": self._sampling.as_dict(),
            "unit": self._unit.state(),
            "reach": self._reach,
            "horizons": self._horizons().tolist(),
        }

    def saved_events(self) -> bytes:
        """The events of the sample."""
        return self._events.saved(self._horizons())

    def resume(self, state: dict[str, Any] | None, events: bytes = b"") -> None:
        """Go on from `state` and what `saved_events` returned.

        A sample that was not there before, or another one, has seen no event so far.
        """
        engine = self._engine
        if state is None or state["sampling"] != self._sampling.as_dict():
            self._held[:] = engine.reorder.top + 1
            self.join.forget_before(self._held)
            return
        self._unit.resume(state["unit"])
        self._reach = state["reach"]
        self._held = np.array(state["horizons"], np.int64)
        self.join.forget_before(self._held)
        self.join.store(self._events.put_back(events))


def sample_for(
    query: JoinQuery,
    conditions: Conditions,
    engine: JoinEngine,
    sampling: Sampling,
    limits: Limits,
) -> LongerSample | None:
    """The sample of an engine, if what lies beyond retention is estimated.

    The clocked pipeline has the clocks for it. A retention that the user chose is left alone. While
    load is shed the join sees less than it keeps, so that nothing would be right on average.
    """
    chosen_here = query.retained is None and query.late != "drop"
    if not query.is_clocked or not chosen_here or query.shedding is not None:
        return None
    return LongerSample(query, conditions, engine, sampling, limits)
