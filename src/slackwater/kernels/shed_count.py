"""Counting results under load shedding: products along the join tree, of what is harvested.

To count part of a window costs as much as to count all of it, apart from finding the segments; so
sampled events count whole windows.
"""

from __future__ import annotations

from slackwater.kernels.basic_windows import enter, segment
from slackwater.kernels.count import begin_walk, bind, candidates, run_of
from slackwater.kernels.frame import TIME
from slackwater.kernels.jit import part
from slackwater.kernels.records import EVENT, NONE, TS
from slackwater.kernels.shed import (
    COMPARED,
    FIRST,
    HARVEST,
    LATER,
    LEARN,
    SHRED,
    age,
    note_passed,
)
from slackwater.kernels.walk import next_of_all
from slackwater.kernels.windows import position


@part
def _harvested_leaf(start, step, frame, plan, store, scratch, arrivals, shed):
    run = run_of(start, step, plan, scratch.at, arrivals)
    n = 0
    for k in range(shed.n_segments[start, step]):
        begin, end = segment(start, step, k, run, frame, plan, store, shed)
        n += max(0, end - begin)
        shed.ctl[COMPARED] += 1
    return n


@part
def leaves(start, mode, frame, plan, store, scratch, arrivals, shed):
    """Return how many combinations of leaves there are with the chosen events."""
    n = 1
    for step in range(plan.inner[start], plan.stream.shape[1]):
        shed.ctl[COMPARED] += shed.lookup[start, step]
        if mode == HARVEST:
            n *= _harvested_leaf(start, step, frame, plan, store, scratch, arrivals, shed)
        else:
            begin, end = candidates(start, step, False, 0, frame, plan, store, scratch, arrivals)
            shed.ctl[COMPARED] += 1
            n *= end - begin
    if mode & LEARN:
        _note_leaves(start, float(n), frame, plan, store, scratch, arrivals, shed)
    return n


@part
def _note_leaves(start, combinations, frame, plan, store, scratch, arrivals, shed):
    """Learn from counted leaves: each of their events is in its share of the combinations."""
    for step in range(plan.stream.shape[1]):
        s = plan.stream[start, step]
        which = FIRST if step == 0 else LATER
        if step < plan.inner[start]:
            t = arrivals.event[scratch.at[s] - arrivals.base, TS]
            shed.joined[start, s, age(t, s, frame, shed)] += combinations
            continue
        run = run_of(start, step, plan, scratch.at, arrivals)
        begin, end = candidates(start, step, False, 0, frame, plan, store, scratch, arrivals)
        total = float(end - begin)
        shed.entered[which, start, s] += 1.0
        shed.offered[which, start, s] += total
        shed.compared[which, start, s] += total
        for k in range(shed.n[s] if total > 0.0 else 0):
            low = begin
            if k < shed.n[s] - 1:
                low = max(
                    begin, position(run, frame.ctl[TIME] - (k + 1) * shed.basic[s] + 1, store)
                )
            shed.passed[which, start, s, k] += end - low
            shed.joined[start, s, k] += combinations * (end - low) / total
            end = low


@part
def count_in_order(event, start, mode, frame, plan, store, scratch, arrivals, shed):
    """Return the results that `event`, which is in order, completes in what it searches."""
    begin_walk(event, start, frame, scratch, arrivals)
    inner = plan.inner[start]
    if inner == 0:
        return leaves(start, mode, frame, plan, store, scratch, arrivals, shed)
    if mode == SHRED:
        mode = LEARN
    total = 0
    depth = 0
    enter(start, 0, False, mode, scratch, plan, frame, store, arrivals, shed, None)
    while depth >= 0:
        i = next_of_all(
            start, depth, False, mode, frame, plan, store, scratch, arrivals, shed, None
        )
        if i == NONE:
            depth -= 1
            continue
        t = store.entry[i, TS]
        bind(start, depth, t, store.entry[i, EVENT], False, frame, plan, scratch)
        if mode == LEARN:
            note_passed(start, depth, t, frame, plan, shed)
        if depth + 1 < inner:
            depth += 1
            enter(start, depth, False, mode, scratch, plan, frame, store, arrivals, shed, None)
        else:
            total += leaves(start, mode, frame, plan, store, scratch, arrivals, shed)
    return total
