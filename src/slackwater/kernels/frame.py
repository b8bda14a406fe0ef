"""Time in the join: its clock, the grid of the slide unit, window bounds and retention.

One rule decides whether events form a result (DESIGN 1): with t the largest time among the members,
``grid(t) <= ts + length`` for every member. Open and half-open windows were turned into this closed
form when the query was compiled. `grid` is the identity without a slide unit; with one it is the
end of the first window that holds t.
"""

from __future__ import annotations

from slackwater.kernels.jit import part
from slackwater.kernels.records import BEFORE, EVENT, NEVER, NONE, TS
from slackwater.kernels.windows import END, START, place_behind

# places in `Frame.ctl`
TIME = 0  # the join's clock: largest time it was given
SLIDE = 1
GRID_SHIFT = 2  # how far behind a time the end of the first window that holds it can be
RETENTION = 3  # how far behind the clock a late event may be for its loss to be counted exactly
COUNT_ONLY = 4
LATE = 5  # 0: drop, 1: count what they would have made, 2: emit it too
WINDOW_END = 6  # 1: late events still make results at the clock's own time (Thesis situation 2)
HAS_WHERE = 7
HAS_TUPLE_WINDOWS = 8
FREE = 9  # start of free space in the store
N_RESULTS = 10  # rows in `Results`
N_MADE = 11  # rows in `Made`
N_LATE = 12  # rows in `Late`
WALKING = 13  # 1: the walk of the current event was interrupted because `Results` was full
CURRENT = 14  # the event in work
POSITION = 15  # its place among the events in work
MADE_SO_FAR = 16  # by the event in work
LOST_SO_FAR = 17
AT_ARRIVAL = 18  # 1: events are stored when they arrive, before they are released
NEXT = 19  # the next arrival to store
UNTIL = 20  # no member later than this counts when a late event is probed
FIRST = 21  # the first arrival of the step
FETCHED = 22  # arrivals before this one have been fetched into the cache
CTL_LENGTH = 23


@part
def grid(t, ctl):
    """End of the first window that holds time `t`."""
    if ctl[GRID_SHIFT] == 0:
        return t
    return (t + ctl[GRID_SHIFT]) // ctl[SLIDE] * ctl[SLIDE]


@part
def last_on_grid(bound, ctl):
    """The largest time whose `grid` is at most `bound`."""
    if ctl[GRID_SHIFT] == 0:
        return bound
    return bound // ctl[SLIDE] * ctl[SLIDE] + ctl[SLIDE] - 1 - ctl[GRID_SHIFT]


@part
def until(t, s, frame):
    """The last grid time at which an event of `s` with time `t` is still in its window."""
    if frame.length[s] == NONE:
        return NEVER
    return t + frame.length[s]


@part
def can_join(t, s, frame):
    """Whether an event of `s` is in its own window at the end of the window that holds it.

    With a slide unit longer than the window, it may fall into the gap between two windows.
    """
    return grid(t, frame.ctl) <= until(t, s, frame)


@part
def horizon(s, frame, store, width):
    """Nothing of `s` before this time is looked at any more."""
    if frame.length[s] == NONE:
        low_ts, _ = tuple_window(s, frame, store, width)
        return low_ts
    kept = grid(frame.ctl[TIME], frame.ctl) - frame.length[s] - frame.ctl[RETENTION]
    return max(frame.held[s], kept)


@part
def joined_end(run, frame, store):
    """Behind the last event of `run` that was joined before the event in work, which is in order.

    Events that are stored at arrival may wait in the reorder buffer still: they are later in
    (ts, number) order, in which events leave it.
    """
    if frame.ctl[AT_ARRIVAL] == 0:
        return store.runs[run, END]
    return place_behind(run, frame.ctl[TIME], frame.ctl[CURRENT], store)


@part
def smallest_horizon(frame, store, width):
    """Nothing of any stream before this time is looked at any more."""
    if frame.ctl[TIME] == BEFORE:
        return BEFORE
    low = NEVER
    for s in range(frame.length.shape[0]):
        low = min(low, horizon(s, frame, store, width))
    return low


@part
def timeline(s, width):
    """The run that holds all events of a stream with a tuple-count window."""
    return s * width


@part
def tuple_window(s, frame, store, width):
    """(ts, number) of the oldest event inside the tuple-count window of `s`."""
    run = timeline(s, width)
    i = store.runs[run, END] - frame.tuples[s]
    if i < store.runs[run, START]:
        return BEFORE, NONE
    return store.entry[i, TS], store.entry[i, EVENT]


@part
def window_low(s, frame, store, width):
    """(ts, number) from which on events of `s` are in the window at the join's clock."""
    if frame.length[s] == NONE:
        return tuple_window(s, frame, store, width)
    return window_low_ts(s, frame), NONE


@part
def window_low_ts(s, frame):
    """The time from which on events of `s`, which has a time window, are in it at the clock.

    What was forgotten before its time is not in it.
    """
    return max(grid(frame.ctl[TIME], frame.ctl) - frame.length[s], frame.held[s])
