"""The oracle: what a query means and what the pipeline does, naive so that it is plainly right."""

from itertools import product
from math import inf
from typing import NamedTuple


class Tuples(int):
    """A window of the last n tuples; a plain int is a window of n time units."""


class Event(NamedTuple):
    """Events sort in the total order (ts, stream, arrival number)."""

    ts: int
    stream: int
    arrival: int
    values: tuple = ()


def seen(events, window, t, bounds="[]", slide=1):
    """The events (ascending) that a window holds at time t, when it ends at the next slide."""
    if isinstance(window, Tuples):
        return events[-window:]
    start = (t // slide * slide + slide if bounds == "[)" else -(-t // slide) * slide) - window
    return [e for e in events if e.ts > start or (e.ts == start and bounds != "(]")]


def truth(events, windows, on, *rule):
    """The combinations of one event per stream that the windows hold when the last one happens."""
    streams = [sorted(e for e in events if e.stream == j) for j in range(len(windows))]
    for r in filter(lambda r: on(*r), product(*streams)):
        past = [[e for e in s if e <= max(r)] for s in streams]
        if all(r[j] in seen(past[j], w, max(r).ts, *rule) for j, w in enumerate(windows)):
            yield r


def reorder(events, ks, follow=False, overdue="advance", hold_ties=False):
    """K-slack, then Alg. 1: yields per arrival what leaves and both buffers, at last the flush."""
    slacks, syncs, local, sync_time = [[] for _ in ks], [[] for _ in ks], [-inf for _ in ks], -inf
    for e in events:
        i, advance = e.stream, e.ts > local[e.stream]
        local[i] = max(local[i], e.ts)
        ks = [max(k, local[i] - e.ts) for k in ks] if follow else ks
        slacks[i] = sorted([*slacks[i], e])
        may_leave = slacks[i] if advance else [e] if overdue == "now" else []
        due = [x for x in may_leave if x.ts + ks[i] <= local[i]]
        slacks[i] = [x for x in slacks[i] if x not in due]
        left = [x for x in due if x.ts <= sync_time]
        syncs[i] = [*syncs[i], *(x for x in due if x.ts > sync_time)]
        if all(syncs):
            sync_time = min(max(x.ts for x in s) for s in syncs) - hold_ties
            left += sorted(x for s in syncs for x in s if x.ts <= sync_time)
            syncs = [[x for x in s if x.ts > sync_time] for s in syncs]
        yield left, [*slacks], [*syncs]
    late = [x for s in slacks for x in s if x.ts <= sync_time]
    yield late + sorted({*sum(slacks + syncs, [])} - {*late}), [], []


def join(events, windows, on, *rule, late_probe="none"):
    """Alg. 2: the results in order, and of each late event whether its window still takes it."""
    held, now, results, late = [[] for _ in windows], -inf, [], []
    for e in events:
        now = max(now, e.ts)
        held[e.stream] = sorted([*held[e.stream], e])
        held = [seen(h, w, now, *rule) for h, w in zip(held, windows, strict=True)]
        if e.ts == now or late_probe == "window-end":
            results += [r for r in product(*held) if e in r and max(r).ts == now and on(*r)]
        late += [(e, e in held[e.stream])] if e.ts < now else []
    return results, late


def pipeline(events, windows, on, *rule, late_probe="none", **disorder):
    """Both together: what a shard produces, and its late events."""
    steps = reorder(events, hold_ties=Tuples in map(type, windows), **disorder)
    return join((e for left, *_ in steps for e in left), windows, on, *rule, late_probe=late_probe)
