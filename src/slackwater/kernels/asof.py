"""As-of partners: which of the right events is nearest to a left one.

The runs of right events are sorted by (time, rank, number): the rank says which of two events of
one time counts, by their content, so that the order of arrival does not.
"""

from __future__ import annotations

from slackwater.kernels.jit import part
from slackwater.kernels.records import EVENT, NEVER, NONE, TS
from slackwater.kernels.windows import END, START, position

RANK = 3  # the last column of `Arrivals.marks`

BACKWARD = 1  # the partner is not later
FORWARD = 2
NEAREST = 3


@part
def _is_before(event, other, arrivals):
    """The order of two events of one time."""
    rank = arrivals.marks[event - arrivals.base, RANK]
    than = arrivals.marks[other - arrivals.base, RANK]
    return rank < than or (rank == than and event < other)


@part
def put_ranked(run, t, event, store, arrivals):
    """Insert at its place in (time, rank, number) order; there is room."""
    i = store.runs[run, END]
    first = store.runs[run, START]
    while i > first and (
        store.entry[i - 1, TS] > t
        or (store.entry[i - 1, TS] == t and _is_before(event, store.entry[i - 1, EVENT], arrivals))
    ):
        store.entry[i, TS] = store.entry[i - 1, TS]
        store.entry[i, EVENT] = store.entry[i - 1, EVENT]
        i -= 1
    store.entry[i, TS] = t
    store.entry[i, EVENT] = event
    store.runs[run, END] += 1


@part
def next_time(run, t, event, store, arrivals):
    """The time of the event behind `event`, which has time `t`, in its run; or NEVER."""
    end = store.runs[run, END]
    i = position(run, t, store)
    while i < end and store.entry[i, TS] == t:
        if _is_before(event, store.entry[i, EVENT], arrivals):
            return t
        i += 1
    return NEVER if i == end else store.entry[i, TS]


@part
def better(t, event, partner, arrivals):
    """Whether `event` is nearer to time `t` than `partner`, if there is one."""
    if partner == NONE:
        return True
    new = arrivals.event[event - arrivals.base, TS]
    old = arrivals.event[partner - arrivals.base, TS]
    if abs(new - t) != abs(old - t):
        return abs(new - t) < abs(old - t)
    if new != old:
        return new < old
    return _is_before(partner, event, arrivals)


@part
def _passes(i, site, scan, matching, store, arrivals):
    if scan is None:
        return True
    return scan(site, i, i + 1, store.entry, matching.at, arrivals, matching.hits) == 1


@part
def _last_before(t, run, low, site, scan, matching, store, arrivals):
    """The last event up to time `t`."""
    i = position(run, t + 1, store) - 1
    while i >= store.runs[run, START] and store.entry[i, TS] >= low:
        if _passes(i, site, scan, matching, store, arrivals):
            return store.entry[i, EVENT]
        i -= 1
    return NONE


@part
def _first_behind(t, run, high, site, scan, matching, store, arrivals):
    """The first event from time `t` on; of those of one time the last."""
    i = position(run, t, store)
    found = NONE
    time = NEVER
    while i < store.runs[run, END] and store.entry[i, TS] <= min(high, time):
        if _passes(i, site, scan, matching, store, arrivals):
            found = store.entry[i, EVENT]
            time = store.entry[i, TS]
        i += 1
    return found


@part
def look_up(left, run, kept_from, direction, site, scan, matching, store, arrivals):
    """The as-of partner of `left` among the events of `run` that are not before `kept_from`."""
    t = arrivals.event[left - arrivals.base, TS]
    found = NONE
    if direction != FORWARD:
        low = max(t - matching.length[1], kept_from)
        found = _last_before(t, run, low, site, scan, matching, store, arrivals)
    if direction != BACKWARD:
        from_ = max(t, kept_from)
        high = t + matching.length[0]
        other = _first_behind(from_, run, high, site, scan, matching, store, arrivals)
        if other != NONE and better(t, other, found, arrivals):
            found = other
    return found
