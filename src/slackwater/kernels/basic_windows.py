"""The windows piece by piece, in the order in which load shedding searches them.

A step of a walk is entered, and then gives one piece after the other: a segment that is harvested,
a few events of a window that is shredded, all of a window, or what is near enough in a sorted basic
window of any of them.
"""

from __future__ import annotations

import math

from slackwater.kernels.count import candidates, run_of
from slackwater.kernels.frame import TIME, joined_end, window_low_ts
from slackwater.kernels.jit import part
from slackwater.kernels.records import KEY, NONE, TS
from slackwater.kernels.shed import (
    COMPARED,
    FIRST,
    FIRST_FRACTION,
    HARVEST,
    LATER,
    LATER_FRACTION,
    LEARN,
    ORDERS,
    SHRED,
    age,
    chance,
    mixed,
)
from slackwater.kernels.sorted_windows import PARENT, near
from slackwater.kernels.windows import position, window_start

PIECE = 8  # events side by side in a piece of a shredded window
_TRIED = 0.25  # fraction of the sample that tries another first step, and of its window then

# columns of `Shed.direct`
KEY_COLUMN = 0  # of the starting stream; NONE: it cannot be searched first
PLACE = 1
SITE = 2


@part
def _between(start, step, k, frame, plan, shed):
    """Return the first and last time of the k-th harvested segment."""
    now = frame.ctl[TIME]
    low = now - shed.segment[start, step, 2 * k + 1]
    low = max(low, window_low_ts(plan.stream[start, step], frame))
    return low, now - shed.segment[start, step, 2 * k]


@part
def segment(start, step, k, run, frame, plan, store, shed):
    """Return the positions of the events in the k-th harvested segment."""
    low, high = _between(start, step, k, frame, plan, shed)
    end = position(run, high + 1, store)
    return position(run, low, store), min(end, joined_end(run, frame, store))


@part
def _shredded(piece, phase, fraction, begin, end):
    """Return the next piece of a shredded window and its number; an empty one at the end."""
    spacing = PIECE / fraction
    while True:
        first = int(math.floor((piece - 1 + mixed(phase)) * spacing))
        piece += 1
        if begin + first >= end:
            return end, end, piece
        low = max(begin, begin + first)
        high = min(end, begin + first + PIECE)
        if low < high:
            return low, high, piece


@part
def _fraction(depth, mode, shed):
    """Return the share of a window that is searched; 1 unless it is shredded."""
    if mode != SHRED:
        return 1.0
    return shed.number[FIRST_FRACTION if depth == 0 else LATER_FRACTION]


@part
def _is_sorted(start, depth, late, index):
    """Return whether a step has sorted basic windows."""
    if index is None:
        return False
    return not late and index.band[start, depth, PARENT] != NONE


@part
def enter(start, depth, late, mode, scratch, plan, frame, store, arrivals, shed, index):
    """Begin a step."""
    scratch.piece[depth] = 0
    scratch.phase[depth] = shed.ctl[COMPARED] + 7 * depth  # another one each time
    scratch.cursor[depth] = 0
    scratch.stop[depth] = 0
    scratch.source[depth] = 0
    shed.ctl[COMPARED] += shed.lookup[start, depth]
    if mode & LEARN:
        s = plan.stream[start, depth]
        which = FIRST if depth == 0 else LATER
        shed.entered[which, start, s] += 1.0
        if not _is_sorted(start, depth, late, index):
            begin, end = candidates(
                start, depth, False, depth, frame, plan, store, scratch, arrivals
            )
            shed.offered[which, start, s] += end - begin


@part
def next_piece(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index):
    """Move to the next candidates of a step; return whether there are any."""
    run = run_of(start, depth, plan, scratch.at, arrivals)
    begin = 0
    end = 0
    if _is_sorted(start, depth, late, index):
        begin, end = _next_block(
            start, depth, mode, run, frame, plan, store, scratch, arrivals, shed, index
        )
    elif mode == HARVEST:
        while begin >= end and scratch.piece[depth] < shed.n_segments[start, depth]:
            k = scratch.piece[depth]
            begin, end = segment(start, depth, k, run, frame, plan, store, shed)
            scratch.piece[depth] += 1
    elif mode == SHRED:
        low = window_low_ts(plan.stream[start, depth], frame)
        begin, end, scratch.piece[depth] = _shredded(
            scratch.piece[depth], scratch.phase[depth], _fraction(depth, mode, shed),
            window_start(run, low, NONE, store), joined_end(run, frame, store),
        )  # fmt: skip
    elif scratch.piece[depth] == 0:
        begin, end = candidates(start, depth, late, depth, frame, plan, store, scratch, arrivals)
        scratch.piece[depth] = 1
    if begin >= end:
        return False
    shed.ctl[COMPARED] += end - begin
    if mode & LEARN:
        which = FIRST if depth == 0 else LATER
        shed.compared[which, start, plan.stream[start, depth]] += end - begin
    scratch.cursor[depth] = begin
    scratch.stop[depth] = end
    return True


@part
def _next_block(start, depth, mode, run, frame, plan, store, scratch, arrivals, shed, index):
    """Return what is near enough in the next basic window to search; empty at the end.

    Of a window that is shredded, some basic windows are searched, all with the same chance.
    """
    if index is None:
        return 0, 0
    s = plan.stream[start, depth]
    fraction = _fraction(depth, mode, shed)
    while True:
        if scratch.piece[depth] > 0 and scratch.block[depth] * shed.basic[s] <= scratch.high[depth]:
            g = scratch.block[depth]
            scratch.block[depth] += 1
            if fraction < 1.0 and mixed(scratch.phase[depth] * 31 + g) >= fraction:
                continue
            begin, end, by_value = near(
                start, depth, s, g, run, frame, store, scratch, arrivals, shed, index
            )
            scratch.source[depth] = by_value
            if not by_value:  # in order of time: take those between the two times
                begin = max(begin, position(run, scratch.low[depth], store))
                end = min(end, position(run, scratch.high[depth] + 1, store))
                end = min(end, joined_end(run, frame, store))
            if begin < end:
                if mode & LEARN:
                    which = FIRST if depth == 0 else LATER
                    shed.offered[which, start, s] += (end - begin) / fraction
                return begin, end
            continue
        if mode == HARVEST:
            if scratch.piece[depth] == shed.n_segments[start, depth]:
                return 0, 0
            low, high = _between(start, depth, scratch.piece[depth], frame, plan, shed)
        elif scratch.piece[depth] == 0:
            low, high = window_low_ts(s, frame), frame.ctl[TIME]
        else:
            return 0, 0
        scratch.piece[depth] += 1
        scratch.low[depth] = low
        scratch.high[depth] = high
        scratch.block[depth] = low // shed.basic[s]


@part
def try_another(start, scan, frame, plan, store, scratch, arrivals, shed, index):
    """Learn how many partners another stream would have if it were searched first."""
    event = scratch.at[start]
    of_all = chance(ORDERS, shed) / _TRIED
    if of_all >= 1.0:
        return
    s = int(of_all * shed.n.shape[0])
    if s == start or s == plan.stream[start, 0] or shed.direct[start, s, KEY_COLUMN] == NONE:
        return
    code = arrivals.event[event - arrivals.base, KEY + shed.direct[start, s, KEY_COLUMN]]
    run = code * plan.width + shed.direct[start, s, PLACE]
    window = window_start(run, window_low_ts(s, frame), NONE, store)
    stop = joined_end(run, frame, store)
    fraction = min(_TRIED, shed.number[FIRST_FRACTION])
    phase = shed.ctl[COMPARED]
    by_value = False
    if index is not None:
        by_value = index.linked[start, s] == 1
    shed.entered[FIRST, start, s] += 1.0
    if not by_value:
        shed.offered[FIRST, start, s] += stop - window
    begin, end, piece = _shredded(0, phase, fraction, window, stop)
    while begin < end:
        shed.ctl[COMPARED] += end - begin
        hits = scratch.hits[0]
        n = end - begin
        if scan is not None and shed.direct[start, s, SITE] != NONE:
            n = scan(
                shed.direct[start, s, SITE], begin, end, store.entry, scratch.at, arrivals, hits
            )
        else:
            for i in range(n):
                hits[i] = begin + i
        if by_value:  # those that an index would have found
            shed.compared[FIRST, start, s] += n
            shed.offered[FIRST, start, s] += n / fraction
        else:
            shed.compared[FIRST, start, s] += end - begin
        for i in range(n):
            t = store.entry[hits[i], TS]
            shed.passed[FIRST, start, s, age(t, s, frame, shed)] += 1.0
        begin, end, piece = _shredded(piece, phase, fraction, window, stop)
