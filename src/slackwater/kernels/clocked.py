"""One reorder buffer on the common clock of all streams (DESIGN 5, "clocked").

The *common clock* C is the smallest local time of the streams that are waited for, or was: it does
not go back when an idle stream returns. The join's clock S is the largest C - K so far. An arrival
is judged first: it is late if it is behind S. Then S moves, and everything up to S leaves the
buffer, in (ts, number) order. With other shards that share K there is a limit: how far all of them
go in a micro-batch.

So whether a result is produced depends on C, K and the arrival of its last member only: not on
gaps, not on other keys, not on the number of shards. With a fixed K it is produced iff K is at
least its lateness, max(0, C - t), or one more if its last member is not its newest.
"""

from __future__ import annotations

from slackwater.kernels.buckets import earliest, insert, remove_earliest, take_bucket
from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import BEFORE, KEY, LINK, NEVER, NONE, STREAM, TICK, TS
from slackwater.kernels.reorder import (
    AT_BOUNDARY,
    BOUNDARY,
    COMMON,
    DONE,
    FOLLOW,
    LIMIT,
    MAX_DELAY,
    MOST_BEHIND,
    N_CHANGES,
    N_OUT,
    NO_ROOM,
    NOW,
    SHIFT,
    SLACK,
    SYNC_TIME,
    TOP,
    emit,
    is_idle,
    move_on,
)

RING = 0  # there is one for all streams


@part
def move_common_clock(buffers):
    """Move C on; if no stream is waited for, to the largest local time. Return it."""
    clock = NEVER
    for s in range(buffers.local.shape[0]):
        if not is_idle(s, buffers):
            clock = min(clock, buffers.local[s])
    ctl = buffers.ctl
    ctl[COMMON] = max(ctl[COMMON], ctl[TOP] if clock == NEVER else clock)
    return ctl[COMMON]


@part
def _fits(t, buffers, rings):
    """Whether the ring has a bucket for `t`."""
    bucket = t >> buffers.ctl[SHIFT]
    if rings.size[RING] == 0:
        return True
    low = min(bucket, rings.low[RING])
    return max(bucket, rings.high[RING]) - low < rings.head.shape[1]


@part
def _leave(event, buffers, arrivals, out):
    buffers.waiting[arrivals.event[event - arrivals.base, STREAM]] -= 1
    emit(event, buffers, arrivals, out)


@part
def _release(bound, buffers, rings, arrivals, out):
    """Let out every event with ``ts <= bound``."""
    event = earliest(RING, rings)
    while event != NONE and arrivals.event[event - arrivals.base, TS] <= bound:
        if buffers.ctl[SHIFT] == 0:  # a bucket is one time: it leaves as a whole
            event, last, _ = take_bucket(RING, rings, arrivals)
            while event != NONE:
                following = NONE
                if event != last:
                    following = arrivals.event[event - arrivals.base, LINK]
                _leave(event, buffers, arrivals, out)
                event = following
        else:
            remove_earliest(RING, rings, arrivals)
            _leave(event, buffers, arrivals, out)
        event = earliest(RING, rings)


@part
def follow(delay, buffers, changes):
    """Max-K-slack: K is no less than any delay so far."""
    ctl = buffers.ctl
    if ctl[FOLLOW] == 1 and delay > ctl[SLACK]:
        ctl[SLACK] = delay
        changes[ctl[N_CHANGES], 0] = ctl[TOP]
        changes[ctl[N_CHANGES], 1] = delay
        ctl[N_CHANGES] += 1


@kernel
def run(first, at, end, buffers, rings, arrivals, out, changes, behind, clocks):
    """Take in the arrivals ``at <= number < end``; return (next arrival, why the run stopped).

    `changes` collects (largest local time, K) whenever K follows a larger delay. `behind`, by
    number from `first` on, gets how far each event is behind the common clock (0: it is not), and
    `clocks` the join's clock before it, if there is room in them: not every join reads them.
    """
    ctl = buffers.ctl
    gives_clocks = clocks.shape[0] > 0
    moves = True  # whether C may: local times do not know what was declared finished
    clock = ctl[COMMON]
    for event in range(at, end):
        place = event - arrivals.base
        t = arrivals.event[place, TS]
        s = arrivals.event[place, STREAM]
        is_tick = arrivals.event[place, KEY] == TICK
        is_late = t < ctl[SYNC_TIME]
        if not is_tick and not is_late and not _fits(t, buffers, rings):
            return event, NO_ROOM
        ctl[NOW] = event
        delay = 0
        if t > buffers.local[s]:
            move_on(t, s, buffers)
            moves = True
        elif not is_tick:
            delay = buffers.local[s] - t
            ctl[MAX_DELAY] = max(ctl[MAX_DELAY], delay)
            follow(delay, buffers, changes)
        if moves:
            clock = move_common_clock(buffers)
            moves = False
        if gives_clocks:
            clocks[event - first] = ctl[SYNC_TIME]
        if not is_tick:
            arrivals.delay[place] = delay
            ctl[MOST_BEHIND] = max(ctl[MOST_BEHIND], ctl[TOP] - t)
            if gives_clocks:
                behind[event - first] = max(0, clock - t) if clock > BEFORE else 0
            if is_late:
                emit(event, buffers, arrivals, out)
                out.clock[ctl[N_OUT] - 1] = ctl[SYNC_TIME]
            else:
                insert(event, RING, ctl[SHIFT], rings, arrivals)
                buffers.waiting[s] += 1
        moved = min(clock - ctl[SLACK], ctl[LIMIT]) if clock > BEFORE else BEFORE
        if moved > ctl[SYNC_TIME]:
            ctl[SYNC_TIME] = moved
            _release(moved, buffers, rings, arrivals, out)
        elif t == ctl[SYNC_TIME]:
            _release(t, buffers, rings, arrivals, out)
        if ctl[TOP] >= ctl[BOUNDARY]:
            return event + 1, AT_BOUNDARY
    return end, DONE


@kernel
def move_up(time, buffers, rings, arrivals, out):
    """The join's clock moves up to `time`; what it passes leaves in order."""
    _release(time, buffers, rings, arrivals, out)
    buffers.ctl[SYNC_TIME] = max(buffers.ctl[SYNC_TIME], time)


@kernel
def flush(buffers, rings, arrivals, out):
    """End of input: everything leaves in order."""
    _release(NEVER, buffers, rings, arrivals, out)
    buffers.ctl[SYNC_TIME] = max(buffers.ctl[SYNC_TIME], buffers.ctl[TOP])
