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
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from slackwater.engine.rows import Rows
from slackwater.engine.snapshot_format import Chunk, chunk_bytes, chunk_from
from slackwater.events.limits import Limits
from slackwater.joins.conditions import Conditions
from slackwater.joins.sampled_join import Probes, SampledJoin, joined_probes, no_probes
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
from slackwater.stats.sampling import U64, ByCluster, ByEvent, Sampling

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine

_MOST = 2**18  # events in a sample


def has_sample(query: JoinQuery) -> bool:
    """Whether what lies beyond retention is estimated.

    The clocked pipeline has the clocks for it. A retention that the user chose is left alone. While
    load is shed the join sees less than it keeps, so that nothing would be right on average.
    """
    chosen_here = query.retained is None and query.late != "drop"
    return query.is_clocked and chosen_here and query.shedding is None


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
        self._unit = ByEvent(sampling) if m == 2 else ByCluster(sampling, pane, lengths)  # noqa: PLR2004
        codes = engine.intake.codes
        self._has_key = m > 2 and len(query.keys) == 1 and len(query.keys[0].columns[0]) > 0  # noqa: PLR2004
        if self._has_key:
            codes.keep_hashes()
        self.join = SampledJoin(query, conditions, engine.intake.n_keys, pane, limits)
        self._columns = [engine.intake.read_columns(s) for s in range(m)]
        self._rows = [
            Rows(pa.schema([schema.field(c) for c in columns]))
            for schema, columns in zip(engine.schemas, self._columns, strict=True)
        ]
        self._held = np.full(m, BEFORE)
        self._reach = self._reach_of(self._longest, 0.0)
        self._probes: list[Probes] = []

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
        seen: I64 = self._seen_at(np.array([now]))[0]
        return self._held if now == BEFORE else seen

    def _seen_at(self, clock: I64) -> I64:
        """From when on it sees events when the join's clock is there: [clock, stream]."""
        ends = self._grid(clock)[:, None] - self._lengths
        return np.maximum(self._held, ends - self._reach)

    def _grid(self, ts: I64) -> I64:
        """`kernels.frame.grid` of many times."""
        ctl = self._engine.join.frame.ctl
        shift, slide = int(ctl[fields.GRID_SHIFT]), int(ctl[fields.SLIDE])
        return ts if shift == 0 else (ts + shift) // slide * slide

    def stored_events(self) -> int:
        """How many events the sample holds."""
        return int(np.count_nonzero(self._is_alive(self._horizons())))

    def with_estimate(self, metrics: Metrics) -> Metrics:
        """`metrics` with the size of the sample, and an error also where nothing was found."""
        error = metrics.lost_estimated_error
        if metrics.lost_estimated == 0 and metrics.lost_unknown > metrics.lost_not_estimated:
            error = self._sampling.error_of_none
        return replace(metrics, sampled=self.stored_events(), lost_estimated_error=error)

    def _is_alive(self, horizons: I64) -> Any:
        log = self.join.log
        return (log.ts >= horizons[log.stream]) & (log.keys[:, 0] >= 0)

    # ---- work

    def note_late(self, out: Released, late: Late) -> int:
        """Write down the late events of a step that the join could not count in full.

        Returns how many of them are beyond the reach of the sample too.
        """
        which = np.flatnonzero(late.fate & LOSS_UNKNOWN)
        if len(which) == 0:
            return 0
        position = late.position[which]
        ts, stream = out.ts[position], out.stream[position]
        clock = ts + late.by[which]
        frame = self._engine.join.frame
        ends = self._grid(clock)[:, None] - self._lengths
        seen = np.maximum(frame.held, ends - frame.ctl[fields.RETENTION])
        reach = self._seen_at(clock)
        needed = self._grid(ts)[:, None] - self._lengths
        needed[np.arange(len(ts)), stream] = NEVER  # it is no partner of its own stream
        self._probes.append(Probes(out.event[position], clock, reach, seen))
        return int(np.count_nonzero((needed < reach).any(axis=1)))

    def take(self, begin: int, end: int) -> None:
        """Take in these arrivals of the engine's log; `note_late` was called for all of them."""
        log = self._engine.log
        places = np.arange(begin, end) - log.base
        places = places[log.keys[places, 0] >= 0]  # ticks are no events
        ts, stream, keys = log.ts[places], log.stream[places], self._keys(log.keys[places, 0])
        kept, looks = self._unit.choose(ts, stream, keys)
        kept &= ts >= self.join.stored_from[stream]
        probes = joined_probes([no_probes(len(self._rows)), *self._probes])
        self._probes = []
        at = np.searchsorted(places, probes.event - log.base)
        probes = Probes(*(column[looks[at]] for column in probes))
        at = at[looks[at]]
        is_taken = kept.copy()
        is_taken[at] = True
        taken = np.flatnonzero(is_taken)
        events = self._append(places[taken], kept[taken])
        if len(at) == 0:
            self.join.store(events)
        else:
            probe = np.full(len(taken), NONE)
            probe[np.searchsorted(taken, at)] = np.arange(len(at))
            found = self.join.store_and_probe(
                int(events[0]), kept[taken].astype(np.uint8), probe, probes
            )
            only_looked = events[~kept[taken]] - self.join.log.base
            self.join.log.keys[only_looked, 0] = SHED
            self._count(*self._unit.add(found, ts[at], keys[at]))
        horizons = self._horizons()
        self.join.forget_before(horizons)
        self._unit.forget_before(int(horizons.min()))

    def _keys(self, codes: I64) -> U64:
        """Hashes of the key that all streams share; all the same without one."""
        if not self._has_key:
            return np.zeros(len(codes), np.uint64)
        return self._engine.intake.codes.hashes(codes)

    def _count(self, results: int, squares: int) -> None:
        total = self._engine.counters
        total.lost_estimated += self._sampling.weight(results)
        total.lost_estimated_variance += self._sampling.variance(squares)

    def _append(self, places: I64, kept: Any) -> I64:
        """Copy events of the engine's log, with what a snapshot needs of the `kept` ones."""
        engine, join = self._engine, self.join
        if not join.log.has_room(len(places)):
            self._trim()
        known = engine.log.records()
        stream = engine.log.stream[places]
        first, end = join.append(
            {
                "ts": engine.log.ts[places],
                "stream": stream,
                "keys": list(engine.log.keys[places].T),
                "delay": np.zeros(len(places), np.int64),
                "ints": known.ints[:, places],
                "floats": known.floats[:, places],
                "vectors": known.vectors[places],
            }
        )
        for s, rows in enumerate(self._rows):
            own = places[kept & (stream == s)]
            if len(own):
                rows.append(engine.rows[s].take(engine.log.row[own], self._columns[s]))
        return np.arange(first, end)

    def _trim(self) -> None:
        """Forget what is out of reach, if it is much."""
        log = self.join.log
        alive = self._is_alive(self.join.stored_from)
        dead = int(np.argmax(alive)) if alive.any() else log.size
        if 2 * dead < log.size:
            return
        log.trim(log.base + dead)
        for s, rows in enumerate(self._rows):  # the last rows are those of the events in the log
            rows.forget(rows.end - int(np.count_nonzero(self._has_row(s))))

    def _has_row(self, stream: int) -> Any:
        """Which events of the log are of this stream, and not there to look only."""
        log = self.join.log
        return (log.stream == stream) & (log.keys[:, 0] >= 0)

    # ---- keys

    def reserve_codes(self, size: int) -> None:
        """Have windows for so many key codes."""
        self.join.reserve_codes(size)

    def rename_codes(self, renamed: I32) -> None:
        """Key codes have new numbers."""
        self.join.rename_codes(renamed)

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
        """The events of the sample, with the columns that keys and numbers come from."""
        log = self.join.log
        alive = self._is_alive(self._horizons())
        tables = []
        for s, rows in enumerate(self._rows):
            own = alive[self._has_row(s)]
            tables.append(rows.take(rows.end - len(own) + np.flatnonzero(own)))
        stream = log.stream[alive].astype(np.uint8)
        return chunk_bytes(
            Chunk(stream, np.zeros(len(stream), np.int64), log.delay[alive], tuple(tables))
        )

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
        chunk = chunk_from(events)
        raw = engine.intake.restored([table.combine_chunks() for table in chunk.tables])
        engine.reserve_codes(engine.intake.codes.size)
        places = np.argsort(np.argsort(chunk.stream, kind="stable"), kind="stable")
        first, end = self.join.append(
            {
                "ts": raw.ts[places],
                "stream": chunk.stream,
                "keys": [codes[places] for codes in raw.code],
                "delay": chunk.delay,
                "ints": raw.ints[:, places],
                "floats": raw.floats[:, places],
                "vectors": raw.vectors[places],
            }
        )
        for rows, table in zip(self._rows, chunk.tables, strict=True):
            rows.append(table)
        self.join.store(np.arange(first, end))
