"""Window contents: sorted runs of events, one per (key, stream), side by side in shared arrays.

A run is a block of the arrays. New events are appended; a late one is shifted into place. Nothing
is deleted one by one: the window start only moves on, and what is behind retention goes when the
block is full (it is slid down, or copied into a block twice as long). So the cost of an event does
not depend on the length of the window, and the number of events in a window is a subtraction.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import EVENT, TS

# columns of `Store.runs`; together 16 bytes, so that four runs share a cache line
START = 0  # the block, and its first event
WINDOW = 1  # first event inside the window at the join's clock, as far as known
END = 2  # behind the last event
LIMIT = 3  # end of the block
RUN_LENGTH = 4

SMALLEST_BLOCK = 4
_NEAR = 4  # entries that are looked at one by one


@part
def _move(run, first, to, room, store):
    """Copy the events of `run` from position `first` on to the block of length `room` at `to`."""
    n = store.runs[run, END] - first
    for i in range(n):
        store.entry[to + i, TS] = store.entry[first + i, TS]
        store.entry[to + i, EVENT] = store.entry[first + i, EVENT]
    store.runs[run, WINDOW] = to + max(0, store.runs[run, WINDOW] - first)
    store.runs[run, START] = to
    store.runs[run, END] = to + n
    store.runs[run, LIMIT] = to + room


@part
def reserve(run, horizon, free, store):
    """Make room for one more event in `run`; return the new start of free space, or -1 if none.

    Only events before `horizon` are forgotten, so a failed attempt changes nothing that counts.
    """
    runs = store.runs
    if runs[run, END] < runs[run, LIMIT]:
        return free
    first = position(run, horizon, store)
    room = runs[run, LIMIT] - runs[run, START]
    left = runs[run, END] - first
    # a small block is one cache line: stay in it; a large one must not be moved for every event
    if 2 * left <= room > 0 or left < room == SMALLEST_BLOCK:
        _move(run, first, runs[run, START], room, store)
        return free
    room = max(SMALLEST_BLOCK, 2 * room)
    if free + room > store.entry.shape[0]:
        return -1
    _move(run, first, free, room, store)
    return free + room


@part
def put(run, t, event, store):
    """Insert at its place in (ts, number) order; `reserve` made room."""
    i = store.runs[run, END]
    first = store.runs[run, START]
    while i > first and (
        store.entry[i - 1, TS] > t
        or (store.entry[i - 1, TS] == t and store.entry[i - 1, EVENT] > event)
    ):
        store.entry[i, TS] = store.entry[i - 1, TS]
        store.entry[i, EVENT] = store.entry[i - 1, EVENT]
        i -= 1
    store.entry[i, TS] = t
    store.entry[i, EVENT] = event
    store.runs[run, END] += 1
    if i < store.runs[run, WINDOW]:
        store.runs[run, WINDOW] += 1


@part
def window_start(run, low_ts, low_event, store):
    """Position of the first event not before (`low_ts`, `low_event`), which only ever grows."""
    i = store.runs[run, WINDOW]
    end = store.runs[run, END]
    while i < end and (
        store.entry[i, TS] < low_ts
        or (store.entry[i, TS] == low_ts and store.entry[i, EVENT] < low_event)
    ):
        i += 1
    store.runs[run, WINDOW] = i
    return i


@part
def position(run, t, store):
    """Position of the first event of `run` with ``ts >= t``."""
    low = store.runs[run, START]
    n = store.runs[run, END] - low
    while n > 0:  # without branches, which no processor could foretell
        half = (n + 1) >> 1
        low += half if store.entry[low + half - 1, TS] < t else 0
        n -= half
    return low


@part
def _is_behind(t, event, place, store):
    """Whether the entry at `place` is later than (`t`, `event`)."""
    ts = store.entry[place, TS]
    return (ts > t) | ((ts == t) & (store.entry[place, EVENT] > event))


@part
def place_behind(run, t, event, store):
    """Position behind the last event of `run` that is not later than (`t`, `event`).

    The window does not begin later than that.
    """
    low = store.runs[run, WINDOW]
    end = store.runs[run, END]
    if low == end or not _is_behind(t, event, end - 1, store):  # nothing of it waits, most often
        return end
    for _ in range(_NEAR):  # most windows are short, and what they begin with has been read
        if _is_behind(t, event, low, store):
            return low
        low += 1
    n = end - low
    while n > 0:  # as in `position`
        half = (n + 1) >> 1
        low += 0 if _is_behind(t, event, low + half - 1, store) else half
        n -= half
    return low


@kernel
def kept(horizon, store):
    """How many entries are not before `horizon`."""
    n = 0
    for run in range(store.runs.shape[0]):
        n += store.runs[run, END] - position(run, horizon, store)
    return n


@kernel
def compact(horizon, store, target):
    """Copy what is not before `horizon` into `target`; return where its free space starts."""
    free = 0
    for run in range(store.runs.shape[0]):
        first = position(run, horizon, store)
        n = store.runs[run, END] - first
        room = 0
        if n > 0:
            room = SMALLEST_BLOCK
            while room < n + 1:
                room *= 2
        for i in range(n):
            target.entry[free + i, TS] = store.entry[first + i, TS]
            target.entry[free + i, EVENT] = store.entry[first + i, EVENT]
        target.runs[run, START] = free
        target.runs[run, WINDOW] = free + max(0, store.runs[run, WINDOW] - first)
        target.runs[run, END] = free + n
        target.runs[run, LIMIT] = free + room
        free += room
    return free
