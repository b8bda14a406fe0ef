"""The clocks around each arrival, where nothing waits to be put in order.

The common clock C and the join's clock S are those of `kernels.clocked`; its buffer is missing.
"""

from __future__ import annotations

from slackwater.kernels.clocked import follow, move_common_clock
from slackwater.kernels.jit import kernel
from slackwater.kernels.records import BEFORE, KEY, STREAM, TICK, TS
from slackwater.kernels.reorder import (
    AT_BOUNDARY,
    BOUNDARY,
    DONE,
    LIMIT,
    MAX_DELAY,
    MOST_BEHIND,
    SLACK,
    SYNC_TIME,
    TOP,
    move_on,
)


@kernel
def run(at, end, buffers, arrivals, changes, before, after, common):
    """Take in the arrivals ``at <= number < end``; return (next arrival, why the run stopped).

    `changes` as in `clocked.run`; the others get S before and behind each arrival, and C with it.
    """
    ctl = buffers.ctl
    for event in range(at, end):
        place = event - arrivals.base
        t = arrivals.event[place, TS]
        s = arrivals.event[place, STREAM]
        is_tick = arrivals.event[place, KEY] == TICK
        delay = 0
        if t > buffers.local[s]:
            move_on(t, s, buffers)
        elif not is_tick:
            delay = buffers.local[s] - t
            ctl[MAX_DELAY] = max(ctl[MAX_DELAY], delay)
            follow(delay, buffers, changes)
        clock = move_common_clock(buffers)
        if not is_tick:
            arrivals.delay[place] = delay
            ctl[MOST_BEHIND] = max(ctl[MOST_BEHIND], ctl[TOP] - t)
        before[event - at] = ctl[SYNC_TIME]
        if clock > BEFORE:
            ctl[SYNC_TIME] = max(ctl[SYNC_TIME], min(clock - ctl[SLACK], ctl[LIMIT]))
        after[event - at] = ctl[SYNC_TIME]
        common[event - at] = clock
        if ctl[TOP] >= ctl[BOUNDARY]:
            return event + 1, AT_BOUNDARY
    return end, DONE
