"""The oracle: what a query means and what the pipeline does, naive so that it is plainly right."""

from itertools import product
from math import inf, sqrt
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


def reorder(
    events,
    ks,
    follow=False,
    overdue="advance",
    hold_ties=False,
    common_clock=False,
    idle_after=None,
    slide=1,
    open_end=False,
):
    """K-slack, then Alg. 1: yields per arrival what leaves and both buffers, at last the flush.

    An event without values is a tick: it tells the time of its stream, no more. With a common clock
    the Synchronizer goes by what K-slack has let pass, not by what is in its buffer. It moves on to
    times at which a window that slides can end, or just before them if that leaves out its end.
    """
    slacks, syncs, local, sync_time = [[] for _ in ks], [[] for _ in ks], [-inf for _ in ks], -inf
    passed, moved = [-inf for _ in ks], [e.ts for e in events[:1] for _ in ks]
    for e in events:
        i, advance, is_tick = e.stream, e.ts > local[e.stream], e.values is None
        local[i] = max(local[i], e.ts)
        moved[i] = max(local) if advance else moved[i]
        idle = [max(local) - t >= (idle_after or inf) for t in moved]
        ks = [max(k, local[i] - e.ts) for k in ks] if follow and not is_tick else ks
        slacks[i] = slacks[i] if is_tick else sorted([*slacks[i], e])
        may_leave = slacks[i] if advance else [e] if overdue == "now" and not is_tick else []
        due = [x for x in may_leave if x.ts + ks[i] <= local[i]]
        due += [x for s, xs in enumerate(slacks) for x in xs if advance and idle[s]]
        slacks = [[x for x in xs if x not in due] for xs in slacks]
        passed[i] = max(passed[i], local[i] - ks[i]) if advance else passed[i]
        left = [x for x in due if x.ts <= sync_time]
        syncs = [
            xs + [x for x in due if x.stream == s and x.ts > sync_time]
            for s, xs in enumerate(syncs)
        ]
        awaited = [s for s in range(len(ks)) if not idle[s]]
        if common_clock or all(syncs[s] for s in awaited):
            bounds = (
                passed if common_clock else [max((x.ts for x in s), default=inf) for s in syncs]
            )
            bound = min(bounds[s] for s in awaited) - hold_ties
            if bound > -inf:
                bound = (bound + open_end) // slide * slide - open_end
            sync_time = max(sync_time, bound)
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


def clock_series(events, ks, m, follow=False, idle_after=None):
    """Per arrival at m streams: the join's clock S before and after it, and the common clock C.

    `ks` is K at each arrival. C is the smallest local time of the streams that are not idle, and
    does not go back; S is the largest C - K so far. A tick has no values: it tells the time of its
    stream, no more.
    """
    streams = range(m)
    local, s, c, most = dict.fromkeys(streams, -inf), -inf, -inf, 0
    moved = dict.fromkeys(streams, events[0].ts if events else 0)
    for e, k in zip(events, ks, strict=True):
        before = s
        if e.ts > local[e.stream]:
            local[e.stream] = e.ts
            moved[e.stream] = max(local.values())
        most = max(most, local[e.stream] - e.ts) if follow and e.values is not None else most
        top = max(local.values())
        awaited = [i for i in local if top - moved[i] < (idle_after or inf)]
        c = max(c, min((local[i] for i in awaited), default=top))
        s = max(s, c - max(k, most))
        yield before, s, c


def clocks(events, ks, m, follow=False, idle_after=None):
    """Per arrival: (the join's clock S before it, the common clock C with it)."""
    for before, _, c in clock_series(events, ks, m, follow, idle_after):
        yield before, c


def lateness(result, common):
    """How far the common clock has passed a result when its last member arrives."""
    last, t = max(result, key=lambda e: e.arrival), max(result).ts
    return max(0, common[last] - t + (last.ts < t))


def clocked(events, windows, on, *rule, ks, follow=False, idle_after=None):
    """What the clocked pipeline produces, and its late events as (event, kept, behind by).

    A result is produced iff its time is past the join's clock before its last member arrives, or
    equal to it and that member's own.
    """
    known = list(clocks(events, ks, len(windows), follow, idle_after))
    s = {e: before for e, (before, _) in zip(events, known, strict=True)}
    results = []
    for r in truth(events, windows, on, *rule):
        last, t = max(r, key=lambda e: e.arrival), max(r).ts
        if t > s[last] or t == s[last] == last.ts:
            results.append(r)
    late = [
        (e, bool(seen([e], windows[e.stream], s[e], *rule)), s[e] - e.ts)
        for e in events
        if e.ts < s[e]
    ]
    return results, late


def dot(u, v):
    """The sum of the products of the components."""
    return sum(x * y for x, y in zip(u, v, strict=True))


def l2(u, v):
    """The Euclidean distance."""
    return sqrt(sum((x - y) ** 2 for x, y in zip(u, v, strict=True)))


def cosine(u, v):
    """The cosine of the angle; 0 if there is none, because a vector is zero."""
    norms = sqrt(dot(u, u)) * sqrt(dot(v, v))
    return dot(u, v) / norms if norms else 0.0
