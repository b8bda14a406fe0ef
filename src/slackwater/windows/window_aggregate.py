"""The windows of one shard: released events in, aggregates out."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.errors import DataError
from slackwater.events.log import Log
from slackwater.kernels import aggregate as kernels
from slackwater.kernels import stacks
from slackwater.kernels.records import (
    BEFORE,
    I64,
    NONE,
    Aggregated,
    Groups,
    Late,
    Released,
)
from slackwater.query.window import WindowQuery
from slackwater.query.windows import Tuples
from slackwater.windows.slots import SlotPlan

_RESULTS_AT_ONCE = 2**16
_FEWEST_GROUPS = 64
_LEAST_ROOM = 1024


class AggregateState(NamedTuple):
    """The clock, the next end of a window, and how many events each group has had."""

    clock: int
    next_end: int
    counts: list[list[int]]  # (which of the kept events is one of the group, how many)


class WindowAggregate:
    """Windows of `query` over the events of `log`."""

    def __init__(self, query: WindowQuery, plan: SlotPlan, log: Log) -> None:
        self._log = log
        self._plan = plan
        self._slots, self._rows = plan.slots()
        length, step = query.length, query.step
        ctl = np.zeros(kernels.CTL_LENGTH, np.int64)
        ctl[kernels.CLOCK] = ctl[kernels.NEXT_END] = BEFORE
        ctl[kernels.RANGE] = NONE if isinstance(length, Tuples) else length
        ctl[kernels.TUPLES] = length.count if isinstance(length, Tuples) else 0
        ctl[kernels.SLIDE] = step if isinstance(step, int) else 0
        ctl[kernels.EVERY] = step.count if isinstance(step, Tuples) else 1
        ctl[kernels.OPEN_END] = query.bounds == "[)"
        ctl[kernels.HAS_SUMS] = (self._slots.op == stacks.SUM_INT).any()
        self._ctl = ctl
        self._groups = self._new_groups(np.zeros(_FEWEST_GROUPS, np.int64))
        self._found = self._new_found(0)
        self._late = Late(*(np.empty(0, np.int64) for _ in Late._fields))

    @property
    def time(self) -> int:
        """The clock: what is before it is late."""
        return int(self._ctl[kernels.CLOCK])

    # ---- work

    def process(self, released: Released) -> Generator[Aggregated, None, Late]:
        """Process released events; yield aggregates.

        Returns which events were late.
        """
        if len(released.event) > len(self._late.position):
            self._late = Late(*(np.empty(2 * len(released.event), np.int64) for _ in Late._fields))
        ctl, late = self._ctl, self._late
        ctl[[kernels.N_FOUND, kernels.N_LATE]] = 0
        records = self._log.records()
        at, reason = 0, kernels.FULL
        while reason != kernels.DONE:
            self._have_room(len(released.event))
            at, reason = kernels.run(
                at, released, ctl, self._slots, self._groups, records, self._found, late
            )
            if reason == kernels.NO_ROOM:
                self._repack(len(self._groups.place))
            yield from self._give_out()
        return Late(*(column[: ctl[kernels.N_LATE]].copy() for column in late))

    def close(self) -> Iterator[Aggregated]:
        """End the windows that have events: the input has ended."""
        ctl = self._ctl
        ctl[kernels.N_FOUND] = 0
        if ctl[kernels.SLIDE] == 0:
            return
        is_done = False
        while not is_done:
            self._have_room(0)
            is_done = kernels.close_all(
                ctl, self._slots, self._groups, self._log.records(), self._found, 0
            )
            yield from self._give_out()
        ctl[kernels.CLOCK] = max(ctl[kernels.CLOCK], ctl[kernels.NEXT_END] - ctl[kernels.SLIDE])

    def _give_out(self) -> Iterator[Aggregated]:
        if self._ctl[stacks.OVERFLOW]:
            msg = "a sum of whole numbers is beyond 64 bits; cast the column to a double"
            raise DataError(msg)
        n = self._ctl[kernels.N_FOUND]
        if n:
            found, self._found = self._found, self._new_found(0)
            self._ctl[kernels.N_FOUND] = 0
            yield found.take(slice(n))

    def _have_room(self, n: int) -> None:
        """Make room for results: at least one for each group."""
        needed = max(min(n, _RESULTS_AT_ONCE), int(self._ctl[kernels.N_ACTIVE]), 1)
        if needed > len(self._found.ts):
            self._found = self._new_found(needed)

    def _new_found(self, n: int) -> Aggregated:
        slots = len(self._slots.op)
        ts, first, last, size, position = (np.empty(n, np.int64) for _ in range(5))
        ints, floats = np.empty((slots, n), np.int64), np.empty((slots, n))
        return Aggregated(ts, first, last, size, position, ints, floats)

    # ---- groups

    def reserve_codes(self, size: int) -> None:
        """Have rings for all group codes below `size`."""
        if size > len(self._groups.place):
            self._repack(2 * size)

    def _repack(self, n_groups: int) -> None:
        """Put each group into a ring that it fits in, with as much free space again."""
        old = self._groups
        n = len(old.place)
        sizes = np.zeros(n_groups, np.int64)
        sizes[:n] = old.ring[:, stacks.TAIL] - old.ring[:, stacks.HEAD]
        new = self._new_groups(sizes)
        new.active[:n], new.place[:n] = old.active[:n], old.place[:n]
        new.ints[:, :n], new.floats[:, :n] = old.ints[:, :n], old.floats[:, :n]
        kernels.repack(n, old, new)
        self._groups = new

    def _new_groups(self, sizes: I64) -> Groups:
        """Rings for groups of these sizes."""
        n = len(sizes)
        rooms = np.where(sizes > 0, np.maximum(kernels.SMALLEST_RING, _power_of_two(sizes)), 0)
        ring = np.zeros((n, stacks.RING_LENGTH), np.int64)
        ring[:, stacks.ROOM] = rooms
        ring[1:, stacks.OFFSET] = np.cumsum(rooms)[:-1]
        used, largest = int(rooms.sum()), int(rooms.max(initial=0))
        self._ctl[kernels.FREE] = used
        room = max(_LEAST_ROOM, 2 * used + 2 * largest)
        ints, floats = self._rows["ints"], self._rows["floats"]
        return Groups(
            ring,
            active=np.full(n, NONE),
            place=np.full(n, NONE),
            entry=np.empty((room, 2), np.int64),
            ints=np.zeros((ints, n), np.int64),
            floats=np.zeros((floats, n)),
            int_suffix=np.empty((ints, room), np.int64),
            float_suffix=np.empty((floats, room)),
        )

    def rename_codes(self, renamed: NDArray[np.int32]) -> None:
        """Follow `KeyCodes.keep`: each group moves to its new code."""
        old = self._groups
        kept = np.flatnonzero(renamed[: len(old.place)] != NONE)
        to = renamed[kept]
        free = self._ctl[kernels.FREE]
        new = self._new_groups(np.zeros(len(old.place), np.int64))
        self._ctl[kernels.FREE] = free
        new.ring[to] = old.ring[kept]
        new.place[to] = old.place[kept]
        new.ints[:, to], new.floats[:, to] = old.ints[:, kept], old.floats[:, kept]
        active = old.active[: self._ctl[kernels.N_ACTIVE]]
        new.active[: len(active)] = renamed[active]
        self._groups = new._replace(
            entry=old.entry, int_suffix=old.int_suffix, float_suffix=old.float_suffix
        )

    # ---- snapshot

    def forget(self, heartbeat: int) -> None:
        """Forget events that no later window contains, in groups without new events."""
        length = self._ctl[kernels.RANGE]
        if length != NONE and self._ctl[kernels.SLIDE] == 0 and heartbeat > BEFORE:
            records = self._log.records()
            kernels.forget(heartbeat - length, self._ctl, self._slots, self._groups, records)

    def kept(self) -> tuple[I64, NDArray[np.bool_]]:
        """Return the events in windows, group by group in order; and which are in front stacks."""
        ring = self._groups.ring
        n = int((ring[:, stacks.TAIL] - ring[:, stacks.HEAD]).sum())
        events, is_front = np.empty(n, np.int64), np.empty(n, bool)
        n = kernels.contents(self._ctl, self._groups, events, is_front)
        return events[:n], is_front[:n]

    def state(self) -> AggregateState:
        """Return what is needed to continue, beside the kept events."""
        ctl = self._ctl
        counts: list[list[int]] = []
        if ctl[kernels.EVERY] > 1:
            events, _ = self.kept()
            group = self._log.keys[events - self._log.base, 0]
            codes, firsts = np.unique(group, return_index=True)
            order = np.argsort(np.argsort(events))
            counts = [
                [int(order[i]), int(self._groups.ring[code, stacks.SEEN])]
                for code, i in zip(codes, firsts, strict=True)
            ]
        return AggregateState(int(ctl[kernels.CLOCK]), int(ctl[kernels.NEXT_END]), counts)

    def resume(self, state: AggregateState, events: I64, is_front: NDArray[np.bool_]) -> None:
        """Continue from `state` with the kept events, in arrival order."""
        ctl, log = self._ctl, self._log
        ctl[kernels.CLOCK], ctl[kernels.NEXT_END] = state.clock, state.next_end
        group = log.keys[events - log.base, 0]
        order = np.lexsort((events, log.ts[events - log.base], group))
        self._groups = self._new_groups(np.bincount(group, minlength=len(self._groups.place)))
        kernels.put_back(
            events[order], is_front[order], self._slots, self._groups, log.records(), ctl,
            group[order],
        )  # fmt: skip
        for at, count in state.counts:
            self._groups.ring[group[at], stacks.SEEN] = count


def _power_of_two(n: I64) -> Any:
    """Return the next power of two, elementwise."""
    return 1 << np.ceil(np.log2(np.maximum(n, 1))).astype(np.int64)
