"""Reading ahead: memory that the next events will need, so that misses of the cache overlap.

One after the other they would add up. The sums that are returned mean nothing; a caller that writes
them down keeps the compiler from leaving the reads out.
"""

from __future__ import annotations

from slackwater.kernels.jit import part
from slackwater.kernels.records import KEY, STREAM, TS
from slackwater.kernels.windows import END, WINDOW

AHEAD = 32  # events whose memory is read together


@part
def _fetch_runs(begin, end, released, plan, store):
    """Where the runs of the next events' keys are."""
    read = 0
    for i in range(begin, end):
        read += store.runs[released.key[i] * plan.width, END]
    return read


@part
def fetch_ends(begin, end, released, plan, store):
    """The ends of all runs of the next events' keys."""
    read = _fetch_runs(begin, end, released, plan, store)
    for i in range(begin, end):
        first = released.key[i] * plan.width
        for run in range(first, first + plan.width):
            read += store.entry[max(0, store.runs[run, END] - 1), TS]
    return read


@part
def fetch_windows(begin, end, released, plan, store):
    """The beginnings of the windows that the next events look at."""
    read = _fetch_runs(begin, end, released, plan, store)
    for i in range(begin, end):
        first = released.key[i] * plan.width
        for run in range(first, first + plan.width):
            if run != first + released.stream[i]:
                nearest = min(store.runs[run, WINDOW], store.runs[run, END] - 1)
                read += store.entry[max(0, nearest), TS]
    return read


@part
def fetch_arrivals(begin, end, behind, plan, store, arrivals):
    """The ends of the runs that the next arrivals are put in, and look at if they are `behind`."""
    read = 0
    for event in range(begin, end):
        code = max(0, arrivals.event[event - arrivals.base, KEY])
        read += store.runs[code * plan.width, END]
    for event in range(begin, end):
        first = max(0, arrivals.event[event - arrivals.base, KEY]) * plan.width
        s = arrivals.event[event - arrivals.base, STREAM]
        other = plan.width - 1 - s if behind[event - begin] > 0 else s
        read += store.entry[max(0, store.runs[first + s, END] - 1), TS]
        read += store.entry[max(0, store.runs[first + other, END] - 1), TS]
    return read


@part
def fetch_stored(events, plan, store, arrivals):
    """The ends of the runs that these events are put in."""
    read = 0
    for event in events:
        read += store.runs[max(0, arrivals.event[event - arrivals.base, KEY]) * plan.width, END]
    for event in events:
        first = max(0, arrivals.event[event - arrivals.base, KEY]) * plan.width
        run = first + arrivals.event[event - arrivals.base, STREAM]
        read += store.entry[max(0, store.runs[run, END] - 1), TS]
    return read
