"""The oracle of aggregates over joined windows, naive so that it is plainly right."""

from itertools import product
from math import inf
from typing import NamedTuple


class Event(NamedTuple):
    """Events are listed in arrival order."""

    stream: int
    ts: int
    arrival: int
    key: int
    value: int


class Asked(NamedTuple):
    """What is asked: windows, deadline (from the start), K-slack in front, how long to wait."""

    m: int
    length: int
    step: int
    deadline: int
    held_back: int | None = None
    retained: int | None = None
    by_key: bool = False
    emits: bool = False


def aggregates(events, m, by_key):
    """Group, number of results and sum of the first stream's values."""
    results = [
        r
        for r in product(*([e for e in events if e.stream == s] for s in range(m)))
        if len({e.key for e in r}) == 1
    ]
    groups = [(key,) for key in sorted({e.key for e in events if e.stream == 0})]
    for group in groups if by_key else [()]:
        own = [r for r in results if not by_key or r[0].key == group[0]]
        yield group, len(own), sum(r[0].value for r in own)


def told(events, asked):
    """The rows (start, group, count, sum, exact) in order, and how many events came too late."""
    m, length, step, deadline = asked[:4]
    seen, open_, early, closed, dropped = [], set(), set(), -inf, 0
    rows = []

    def inside(start, among):
        return [e for e in among if start <= e.ts < start + length]

    def close(until):
        for start in sorted(s for s in open_ if s + length <= until):
            open_.discard(start)
            if start not in early or asked.emits:
                of = aggregates(inside(start, seen), m, asked.by_key)
                rows.extend((start, *row, True) for row in of)

    def awaited():  # and never less than until the deadline
        if asked.retained is not None:
            return max(asked.retained, deadline - length)
        return max(0, deadline - length, *(e.arrival - e.ts for e in every))

    every = []  # with those that came too late
    now = None
    for event in events:
        first = -(-(event.arrival - deadline) // step) * step + deadline  # at or after its arrival
        instant = first if now is None else now
        while now is not None and instant < event.arrival:
            closed = max(closed, instant - awaited())
            close(closed)
            start = instant - deadline
            if start in open_ and start not in early:
                out = inside(start, seen)
                if asked.held_back is not None:
                    local = {
                        e.stream: max(o.ts for o in every if o.stream == e.stream) for e in out
                    }
                    out = [e for e in out if e.ts <= local[e.stream] - asked.held_back]
                early.add(start)
                of = aggregates(out, m, asked.by_key)
                rows.extend((start, *row, False) for row in of)
            instant += step
        now = first
        every.append(event)
        last = event.ts // step * step
        if last + length <= closed:
            dropped += 1
            continue
        seen.append(event)
        while last + length > event.ts:
            if last + length > closed:
                open_.add(last)
            last -= step
    close(inf)
    return rows, dropped
