"""What the join does with an event when it arrives: store it, and measure lateness.

Where lateness is measured, events are stored before they are released, so that one probe finds the
lateness of what an arrival completes. `kernels.join` calls this on its way through arrivals and
releases.
"""

from __future__ import annotations

from slackwater.kernels.count import count
from slackwater.kernels.fetch import AHEAD, fetch_arrivals
from slackwater.kernels.frame import (
    FETCHED,
    FIRST,
    FREE,
    GRID_SHIFT,
    HAS_WHERE,
    NEXT,
    TIME,
    UNTIL,
    can_join,
    horizon,
    smallest_horizon,
    timeline,
)
from slackwater.kernels.jit import part, rare
from slackwater.kernels.lateness import begin_probe, is_probed, note_results
from slackwater.kernels.records import KEY, NONE, STREAM, TICK, TS
from slackwater.kernels.shed import FULL
from slackwater.kernels.walk import walk
from slackwater.kernels.windows import END, LIMIT, position, put, reserve


@part
def reserve_one(run, frame, plan, store):
    """Room for an event in `run`; False if the store must grow first."""
    if store.runs[run, END] == store.runs[run, LIMIT]:
        low = smallest_horizon(frame, store, plan.width)
        free = reserve(run, low, frame.ctl[FREE], store)
        if free < 0:
            return False
        frame.ctl[FREE] = free
    return True


@part
def reserve_all(event, s, frame, plan, store, arrivals):
    """Room for `event` in each of its runs; False if the store must grow first."""
    for column in range(plan.n_keys[s] + 1):
        if column < plan.n_keys[s]:
            code = arrivals.event[event - arrivals.base, KEY + column]
            run = code * plan.width + plan.own_place[s, column]
        elif frame.tuples[s] != NONE:
            run = timeline(s, plan.width)
        else:
            break
        if not reserve_one(run, frame, plan, store):
            return False
    return True


@part
def store_event(event, s, frame, plan, store, arrivals):
    """Put `event` into each of its runs; `reserve_all` made room."""
    t = arrivals.event[event - arrivals.base, TS]
    for column in range(plan.n_keys[s]):
        code = arrivals.event[event - arrivals.base, KEY + column]
        put(code * plan.width + plan.own_place[s, column], t, event, store)
    if frame.tuples[s] != NONE:
        put(timeline(s, plan.width), t, event, store)


@part
def _probe_one_partner(event, s, frame, plan, store, arrivals, lateness):
    """Note the lateness of what an arrival completes; two streams with one key, no slide unit."""
    t = arrivals.event[event - arrivals.base, TS]
    run = arrivals.event[event - arrivals.base, KEY] * plan.width + 1 - s
    seen = horizon(1 - s, frame, store, plan.width)  # what is before it may be in memory still
    later = position(run, max(t + 1, seen), store)
    n = 0 if seen > t else later - position(run, max(t - frame.length[1 - s], seen), store)
    note_results(t, n, lateness)
    last = min(t + frame.length[s], frame.ctl[UNTIL])
    while later < store.runs[run, END] and store.entry[later, TS] <= last:
        note_results(store.entry[later, TS], 1, lateness)
        later += 1


@rare
def probe_in_general(event, s, scan, frame, plan, store, scratch, arrivals, results, lateness):
    """Note the lateness of what an arrival completes, in any kind of join."""
    if frame.ctl[HAS_WHERE] == 1:
        walk(
            event, s, True, FULL, False, scan, frame, plan, store, scratch, arrivals, results,
            None, None, lateness,
        )  # fmt: skip
    else:
        count(event, s, True, frame, plan, store, scratch, arrivals, lateness)


@part
def store_until(
    last, behind, clocks, scan, frame, plan, store, scratch, arrivals, results, lateness
):
    """Store the arrivals up to number `last`; False if the store must grow first.

    `behind` is how far each arrival of the step is behind the common clock, `clocks` has the join's
    clock before it.
    """
    ctl = frame.ctl
    first = ctl[FIRST]
    while ctl[NEXT] <= last:
        event = ctl[NEXT]
        if plan.shared == 1 and event >= ctl[FETCHED]:
            ctl[FETCHED] = min(event + AHEAD, first + behind.shape[0])
            scratch.state[1] = fetch_arrivals(
                event, ctl[FETCHED], behind[event - first :], plan, store, arrivals
            )
        place = event - arrivals.base
        if arrivals.event[place, KEY] != TICK:
            s = arrivals.event[place, STREAM]
            t = arrivals.event[place, TS]
            if t >= ctl[TIME] or t >= horizon(s, frame, store, plan.width):
                if plan.shared == 1:
                    run = arrivals.event[place, KEY] * plan.width + s
                    if not reserve_one(run, frame, plan, store):
                        return False
                    put(run, t, event, store)
                elif not reserve_all(event, s, frame, plan, store, arrivals):
                    return False
                else:
                    store_event(event, s, frame, plan, store, arrivals)
            if is_probed(behind[event - first], lateness) and can_join(t, s, frame):
                begin_probe(t, behind[event - first], clocks[event - first], lateness)
                ctl[UNTIL] = t + behind[event - first]
                if plan.shared == 1 and plan.width == 2 and ctl[GRID_SHIFT] == 0:
                    _probe_one_partner(event, s, frame, plan, store, arrivals, lateness)
                else:
                    probe_in_general(
                        event, s, scan, frame, plan, store, scratch, arrivals, results, lateness
                    )
        ctl[NEXT] = event + 1
    return True
