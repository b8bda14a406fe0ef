"""How many results an event completes, without making them: products of counts along the join tree.

The streams around the starting event form a tree. A *leaf* contributes through the number of its
events with the right key and time; only streams with further streams behind them are walked, one
event at a time.

For an event in order, nothing in the store is later, so the leaves' window counts are multiplied.
For a late event e the others may be later than e. The results it would have completed are counted
by their owner, the member that is last in (ts, stream) order: results owned by what is bound
already, plus, for each later event x of a leaf, the product of the other leaves' counts in the
windows that end at x (DESIGN 2, "measured, not guessed").
"""

from __future__ import annotations

from slackwater.kernels.frame import (
    GRID_SHIFT,
    TIME,
    UNTIL,
    can_join,
    grid,
    horizon,
    joined_end,
    last_on_grid,
    until,
    window_low,
)
from slackwater.kernels.jit import part
from slackwater.kernels.lateness import note_results
from slackwater.kernels.records import EVENT, KEY, TS
from slackwater.kernels.windows import END, position, window_start


@part
def run_of(start, step, plan, at, arrivals):
    """The run that holds the candidates of `step`, given the events chosen so far."""
    parent = at[plan.parent[start, step]] - arrivals.base
    code = arrivals.event[parent, KEY + plan.column[start, step]]
    return code * plan.width + plan.place[start, step]


@part
def _latest_member(depth, frame, scratch):
    """No event later than this is in results with those chosen so far, or counts now."""
    return min(last_on_grid(scratch.reach[depth], frame.ctl), frame.ctl[UNTIL])


@part
def candidates(start, step, late, depth, frame, plan, store, scratch, arrivals):
    """Positions [begin, end) of the events of `step` that may join those chosen so far."""
    run = run_of(start, step, plan, scratch.at, arrivals)
    s = plan.stream[start, step]
    if not late:
        low_ts, low_event = window_low(s, frame, store, plan.width)
        return window_start(run, low_ts, low_event, store), joined_end(run, frame, store)
    low = grid(scratch.newest[depth], frame.ctl) - frame.length[s]
    low = max(low, horizon(s, frame, store, plan.width))
    high = _latest_member(depth, frame, scratch)
    return position(run, low, store), position(run, high + 1, store)


@part
def _leaves_in_order(start, frame, plan, store, scratch, arrivals):
    n = 1
    for step in range(plan.inner[start], plan.stream.shape[1]):
        begin, end = candidates(start, step, False, 0, frame, plan, store, scratch, arrivals)
        n *= end - begin
        if n == 0:
            break
    return n


@part
def _owned_by_bound(start, newest, frame, plan, store, scratch, arrivals):
    """Combinations of leaves with none later than `newest`, all in the windows that end there."""
    n = 1
    for step in range(plan.inner[start], plan.stream.shape[1]):
        s = plan.stream[start, step]
        run = run_of(start, step, plan, scratch.at, arrivals)
        low = max(grid(newest, frame.ctl) - frame.length[s], horizon(s, frame, store, plan.width))
        n *= max(0, position(run, newest + 1, store) - position(run, low, store))
        if n == 0:
            break
    return n


@part
def _owned_by_leaf(start, owner, depth, frame, plan, store, scratch, arrivals, lateness):
    """Combinations owned by a later event of the leaf `owner`: (all of them, those at the clock).

    The owner moves forward in time, so the counts of the other leaves follow with two positions
    each, kept in `cursor` and `stop` of the scratch space behind the inner steps.
    """
    run = run_of(start, owner, plan, scratch.at, arrivals)
    newest = scratch.newest[depth]
    last = _latest_member(depth, frame, scratch)
    total = 0
    at_clock = 0
    fresh = True
    later = max(newest + 1, horizon(plan.stream[start, owner], frame, store, plan.width))
    for i in range(position(run, later, store), store.runs[run, END]):
        t = store.entry[i, TS]
        if t > last:
            break
        if not can_join(t, plan.stream[start, owner], frame):
            continue
        n = 1
        for step in range(plan.inner[start], plan.stream.shape[1]):
            if step == owner:
                continue
            s = plan.stream[start, step]
            other = run_of(start, step, plan, scratch.at, arrivals)
            low = max(grid(t, frame.ctl) - frame.length[s], horizon(s, frame, store, plan.width))
            # equal times belong to the stream with the larger number
            high = t + 1 if s < plan.stream[start, owner] else t
            if fresh:
                scratch.cursor[step] = position(other, low, store)
                scratch.stop[step] = position(other, high, store)
            end = store.runs[other, END]
            while scratch.cursor[step] < end and store.entry[scratch.cursor[step], TS] < low:
                scratch.cursor[step] += 1
            while scratch.stop[step] < end and store.entry[scratch.stop[step], TS] < high:
                scratch.stop[step] += 1
            n *= max(0, scratch.stop[step] - scratch.cursor[step])
        fresh = False
        total += n
        if lateness is not None:
            note_results(t, n, lateness)
        if t == frame.ctl[TIME]:
            at_clock += n
    return total, at_clock


@part
def _leaves_late(start, depth, frame, plan, store, scratch, arrivals, lateness):
    """Combinations of leaves with the bound events: (all of them, those at the join's clock)."""
    newest = scratch.newest[depth]
    clock = frame.ctl[TIME]
    leaf = plan.inner[start]
    spans_grid = frame.length[plan.stream[start, leaf]] >= frame.ctl[GRID_SHIFT]
    if lateness is None and leaf + 1 == plan.stream.shape[1] and spans_grid:
        # a single leaf may lie anywhere between the two bounds: one count
        begin, end = candidates(start, leaf, True, depth, frame, plan, store, scratch, arrivals)
        total = max(0, end - begin)
        if newest == clock:
            return total, total
        run = run_of(start, leaf, plan, scratch.at, arrivals)
        return total, max(0, end - max(begin, position(run, clock, store)))
    total = _owned_by_bound(start, newest, frame, plan, store, scratch, arrivals)
    at_clock = total if newest == clock else 0
    if lateness is not None:
        note_results(newest, total, lateness)
    for owner in range(plan.inner[start], plan.stream.shape[1]):
        more, more_at_clock = _owned_by_leaf(
            start, owner, depth, frame, plan, store, scratch, arrivals, lateness
        )
        total += more
        at_clock += more_at_clock
    return total, at_clock


@part
def bind(start, depth, t, event, late, frame, plan, scratch):
    """Choose a candidate at `depth`; return whether all chosen events fit into common windows."""
    s = plan.stream[start, depth]
    scratch.at[s] = event
    scratch.newest[depth + 1] = max(scratch.newest[depth], t)
    scratch.reach[depth + 1] = min(scratch.reach[depth], until(t, s, frame))
    if not late:
        return True
    return grid(scratch.newest[depth + 1], frame.ctl) <= scratch.reach[depth + 1]


@part
def begin_walk(event, start, frame, scratch, arrivals):
    """Choose the starting event."""
    t = arrivals.event[event - arrivals.base, TS]
    scratch.at[start] = event
    scratch.newest[0] = t
    scratch.reach[0] = until(t, start, frame)


@part
def count(event, start, late, frame, plan, store, scratch, arrivals, lateness):
    """Results that `event` completes with what is stored: (all of them, those at the join's clock).

    For an event in order the two are the same. `lateness`, if not None, gets those of an event
    that is probed as a late one.
    """
    begin_walk(event, start, frame, scratch, arrivals)
    inner = plan.inner[start]
    if inner == 0:
        if late:
            return _leaves_late(start, 0, frame, plan, store, scratch, arrivals, lateness)
        n = _leaves_in_order(start, frame, plan, store, scratch, arrivals)
        return n, n
    total = 0
    at_clock = 0
    depth = 0
    opened = False
    while depth >= 0:
        if not opened:
            begin, end = candidates(
                start, depth, late, depth, frame, plan, store, scratch, arrivals
            )
            scratch.cursor[depth] = begin
            scratch.stop[depth] = end
        if scratch.cursor[depth] >= scratch.stop[depth]:
            depth -= 1
            opened = True
            continue
        i = scratch.cursor[depth]
        scratch.cursor[depth] += 1
        opened = True
        t = store.entry[i, TS]
        if not bind(start, depth, t, store.entry[i, EVENT], late, frame, plan, scratch):
            continue
        if depth + 1 < inner:
            depth += 1
            opened = False
        elif late:
            more, more_at_clock = _leaves_late(
                start, depth + 1, frame, plan, store, scratch, arrivals, lateness
            )
            total += more
            at_clock += more_at_clock
        else:
            total += _leaves_in_order(start, frame, plan, store, scratch, arrivals)
    if not late:
        at_clock = total
    return total, at_clock
