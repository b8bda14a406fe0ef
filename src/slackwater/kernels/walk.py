"""The results that an event completes, one by one: a walk along the join tree with backtracking.

Used where results are materialised, and wherever a `where` condition must see the events. A full
result buffer interrupts the walk; all of its state is in `Scratch`, so it goes on where it was.
"""

from __future__ import annotations

from slackwater.kernels.basic_windows import enter, next_piece
from slackwater.kernels.count import begin_walk, bind, candidates
from slackwater.kernels.frame import (
    LATE,
    LOST_SO_FAR,
    MADE_SO_FAR,
    N_RESULTS,
    POSITION,
    TIME,
    WALKING,
    WINDOW_END,
)
from slackwater.kernels.jit import part
from slackwater.kernels.lateness import STEPS, note_results
from slackwater.kernels.records import EVENT, NONE, TS
from slackwater.kernels.shed import LEARN, note_passed, note_result

COMPLETE = 0
RESULTS_FULL = 1
BLOCK = 1024  # candidates per call of the compiled condition


@part
def _open(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index):
    """Begin with the candidates of `depth`."""
    scratch.n_hits[depth] = 0
    scratch.next_hit[depth] = 0
    if shed is not None:
        enter(start, depth, late, mode, scratch, plan, frame, store, arrivals, shed, index)
    else:
        begin, end = candidates(start, depth, late, depth, frame, plan, store, scratch, arrivals)
        scratch.cursor[depth] = begin
        scratch.stop[depth] = end


@part
def _has_more(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index):
    """Whether there are candidates left, here or in a further piece of the window."""
    if scratch.cursor[depth] < scratch.stop[depth]:
        return True
    if shed is None:
        return False
    return next_piece(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index)


@part
def next_of_all(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index):
    """Position of the next candidate of `depth`, or NONE."""
    if not _has_more(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index):
        return NONE
    scratch.cursor[depth] += 1
    return scratch.cursor[depth] - 1


@part
def _next(start, depth, late, mode, scan, frame, plan, store, scratch, arrivals, shed, index):
    """Position of the next candidate of `depth` that passes the condition, or NONE."""
    if scan is None:
        return next_of_all(
            start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index
        )
    if plan.site[start, depth] == NONE:
        return next_of_all(
            start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index
        )
    while scratch.next_hit[depth] == scratch.n_hits[depth]:
        if not _has_more(
            start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index
        ):
            return NONE
        begin = scratch.cursor[depth]
        end = min(begin + BLOCK, scratch.stop[depth])
        entry = store.entry
        if index is not None:
            if scratch.source[depth] == 1:
                entry = index.entry
        scratch.n_hits[depth] = scan(
            plan.site[start, depth], begin, end, entry, scratch.at, arrivals, scratch.hits[depth]
        )
        scratch.next_hit[depth] = 0
        scratch.cursor[depth] = end
    scratch.next_hit[depth] += 1
    return scratch.hits[depth, scratch.next_hit[depth] - 1]


@part
def walk(
    event, start, late, mode, emit, scan, frame, plan, store, scratch, arrivals, results, shed,
    index, lateness,
):  # fmt: skip
    """Go through the results of `event`, adding to its counts; return why the walk ended.

    `mode` selects them under load shedding.

    A late event's results are lost, except those at the join's own time under
    ``late_probe="window-end"``. With `emit`, what is made is written to `results`, and what is
    lost too if the query wants them (`LATE` = 2). `lateness`, if not None, gets the results
    instead: none is made or lost.
    """
    ctl = frame.ctl
    last = plan.stream.shape[1] - 1
    if ctl[WALKING] == 0:
        begin_walk(event, start, frame, scratch, arrivals)
        scratch.state[0] = 0
        _open(start, 0, late, mode, frame, plan, store, scratch, arrivals, shed, index)
        if lateness is not None:
            lateness.ctl[STEPS] += scratch.stop[0] - scratch.cursor[0]
    ctl[WALKING] = 0
    depth = scratch.state[0]
    while depth >= 0:
        if emit and ctl[N_RESULTS] == results.ts.shape[0]:
            scratch.state[0] = depth
            ctl[WALKING] = 1
            return RESULTS_FULL
        i = _next(
            start, depth, late, mode, scan, frame, plan, store, scratch, arrivals, shed, index
        )
        if i == NONE:
            depth -= 1
            continue
        entry = store.entry
        if index is not None:
            if scratch.source[depth] == 1:
                entry = index.entry
                if entry[i, TS] < scratch.low[depth] or entry[i, TS] > scratch.high[depth]:
                    continue
        t = entry[i, TS]
        event_ = entry[i, EVENT]
        if not bind(start, depth, t, event_, late, frame, plan, scratch):
            continue
        if shed is not None and mode & LEARN:
            note_passed(start, depth, t, frame, plan, shed)
        if depth < last:
            depth += 1
            _open(start, depth, late, mode, frame, plan, store, scratch, arrivals, shed, index)
            if lateness is not None:
                lateness.ctl[STEPS] += scratch.stop[depth] - scratch.cursor[depth]
            continue
        if shed is not None and mode & LEARN:
            note_result(start, frame, scratch, arrivals, shed)
        newest = scratch.newest[depth + 1]
        if lateness is not None:
            note_results(newest, 1, lateness)
            continue
        in_time = not late or (ctl[WINDOW_END] == 1 and newest == ctl[TIME])
        if in_time:
            ctl[MADE_SO_FAR] += 1
        else:
            ctl[LOST_SO_FAR] += 1
        if emit and (in_time or ctl[LATE] == 2):
            n = ctl[N_RESULTS]
            newest_arrival = NONE
            for s in range(scratch.at.shape[0]):
                results.row[s, n] = arrivals.row[scratch.at[s] - arrivals.base]
                newest_arrival = max(newest_arrival, scratch.at[s])
            results.last[n] = newest_arrival
            results.ts[n] = newest
            results.position[n] = ctl[POSITION]
            results.late[n] = 0 if in_time else 1
            ctl[N_RESULTS] = n + 1
    return COMPLETE
