"""K-slack buffers and Synchronizer over a run of arrivals (ICDE16 III-A, Fig. 3 and Alg. 1).

Stream ``s`` of ``m`` owns three places: ring ``s`` is its K-slack buffer, ring ``m + s`` its part
of the Synchronizer's buffer, and a short sorted list holds events that were overdue on arrival and
leave with the next advance of local time. An event moves K-slack -> Synchronizer -> out.

The scalars live in `Buffers.ctl`, so that a run can stop at any arrival (no room, adaptation
boundary) and ordinary Python takes over; nothing of an arrival has happened when the run stops.
"""

from __future__ import annotations

from slackwater.kernels.buckets import (
    append_bucket,
    earliest,
    insert,
    link_after,
    remove_earliest,
    take_bucket,
)
from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import BEFORE, KEY, LINK, NEVER, NONE, STREAM, TICK, TS

# places in `Buffers.ctl`
SLACK = 0  # K
SYNC_TIME = 1  # T_sync of Alg. 1: everything up to here has left the Synchronizer
SHIFT = 2  # a bucket spans 2**SHIFT time units
HOLD_TIES = 3  # 1: equal times leave together, in the total order of tuple-count windows
OVERDUE_NOW = 4  # 1: an overdue event leaves at once (Thesis Fig. 3.2)
FOLLOW = 5  # 1: K follows the largest delay so far (Max-K-slack)
BOUNDARY = 6  # stop behind the arrival that takes the largest local time to here
TOP = 7  # largest local time of all streams
N_OUT = 8  # events in `Released`
N_CHANGES = 9  # rows in `changes`
NOW = 10  # the arrival in work
MAX_DELAY = 11
COMMON_CLOCK = 12  # 1: ticks carry the local times of the streams; none waits for events of its own
IDLE_AFTER = 13  # a stream is not waited for when the others moved on by this, it did not
PASS = 14  # 1: neither K-slack nor Synchronizer, events leave as they come (Thesis Baseline3)
COMMON = 15  # the common clock of the clocked stage
MOST_BEHIND = 16  # how far an arrival was behind the largest local time, at most
SLIDE = 17  # T_sync moves on by so much at a time (Thesis 4.1)
OPEN_END = 18  # 1: a window that slides does not contain its end
LIMIT = 19  # the join's clock of the clocked stage goes no further
CTL_LENGTH = 20

AT_NO_TIME = 2**61 + 1  # IDLE_AFTER: longer than any stream can be silent (times are below 2**60)
FINISHED = -(2**62)  # in `Buffers.moved`: the stream is silent for ever

# why a run stopped
DONE = 0
NO_ROOM = 1
AT_BOUNDARY = 2


@kernel
def recall_overdue(s, buffers, rings, arrivals):
    """After K grew: an overdue event of `s` that is no longer due goes back into K-slack."""
    event = buffers.overdue[s]
    buffers.overdue[s] = NONE
    buffers.overdue_last[s] = NONE
    while event != NONE:
        following = arrivals.event[event - arrivals.base, LINK]
        if arrivals.event[event - arrivals.base, TS] + buffers.ctl[SLACK] <= buffers.local[s]:
            set_overdue(event, s, buffers, arrivals)
        else:
            insert(event, s, buffers.ctl[SHIFT], rings, arrivals)
        event = following


@part
def set_overdue(event, s, buffers, arrivals):
    """Let `event` of `s` leave with the next advance of local time."""
    first, last = link_after(event, buffers.overdue[s], buffers.overdue_last[s], arrivals)
    buffers.overdue[s] = first
    buffers.overdue_last[s] = last


@part
def emit(event, buffers, arrivals, out):
    """Let `event` out of the stage."""
    n = buffers.ctl[N_OUT]
    out.event[n] = event
    out.during[n] = buffers.ctl[NOW]
    out.top[n] = buffers.ctl[TOP]
    out.ts[n] = arrivals.event[event - arrivals.base, TS]
    out.stream[n] = arrivals.event[event - arrivals.base, STREAM]
    out.key[n] = arrivals.event[event - arrivals.base, KEY]
    out.clock[n] = out.ts[n]
    buffers.ctl[N_OUT] = n + 1


@part
def _into_sync(event, s, buffers, rings, arrivals, out):
    """Alg. 1 lines 4, 5, 9, 10: sort `event` in, or let it out when it is too late for that."""
    t = arrivals.event[event - arrivals.base, TS]
    if t > buffers.ctl[SYNC_TIME]:
        insert(event, buffers.local.shape[0] + s, buffers.ctl[SHIFT], rings, arrivals)
        if buffers.ctl[COMMON_CLOCK] == 0:
            buffers.newest[s] = max(buffers.newest[s], t)
    else:
        emit(event, buffers, arrivals, out)


@part
def _let_out(ring, now, buffers, rings, arrivals, out):
    """Let out the events of `ring` with time `now`, its earliest."""
    if buffers.ctl[SHIFT] == 0:  # a bucket is one time
        event, last, _ = take_bucket(ring, rings, arrivals)
        while event != last:
            following = arrivals.event[event - arrivals.base, LINK]
            emit(event, buffers, arrivals, out)
            event = following
        emit(last, buffers, arrivals, out)
        return
    event = earliest(ring, rings)
    while event != NONE and arrivals.event[event - arrivals.base, TS] == now:
        remove_earliest(ring, rings, arrivals)
        emit(event, buffers, arrivals, out)
        event = earliest(ring, rings)


@part
def _out_of_sync(bound, buffers, rings, arrivals, out):
    """Let out every synchronised event with ``ts <= bound`` in (ts, stream, number) order."""
    m = buffers.local.shape[0]
    while True:
        now = NEVER
        for ring in range(m, 2 * m):
            event = earliest(ring, rings)
            if event != NONE:
                now = min(now, arrivals.event[event - arrivals.base, TS])
        if now > bound:
            break
        for ring in range(m, 2 * m):
            event = earliest(ring, rings)
            if event != NONE and arrivals.event[event - arrivals.base, TS] == now:
                _let_out(ring, now, buffers, rings, arrivals, out)
    buffers.ctl[SYNC_TIME] = max(buffers.ctl[SYNC_TIME], bound)


@part
def is_idle(s, buffers):
    """Whether the others have moved on for so long that `s` is not waited for."""
    return buffers.ctl[TOP] - buffers.moved[s] >= buffers.ctl[IDLE_AFTER]


@part
def _synchronize(buffers, rings, arrivals, out):
    """Alg. 1 lines 6 to 8: go on while the buffer has at least one event of each stream.

    The loop of Alg. 1 ends when the slowest stream is used up, that is at the smallest of the
    streams' largest buffered times. A whole release of K-slack enters before this runs, so equal
    times of one release leave side by side. With a common clock a stream need not have an event
    here: its K-slack has its local time. Windows that slide wait until they can move by a whole
    slide unit.
    """
    m = buffers.local.shape[0]
    bound = buffers.ctl[TOP]  # if no stream is waited for; else the time of one, not later
    for s in range(m):
        if is_idle(s, buffers):
            continue
        if rings.size[m + s] == 0 and buffers.ctl[COMMON_CLOCK] == 0:
            return
        bound = min(bound, buffers.newest[s])
    bound -= buffers.ctl[HOLD_TIES]
    slide = buffers.ctl[SLIDE]
    if slide > 1:
        bound = (bound + buffers.ctl[OPEN_END]) // slide * slide - buffers.ctl[OPEN_END]
    _out_of_sync(bound, buffers, rings, arrivals, out)


@part
def _bucket_into_sync(s, buffers, rings, arrivals, out):
    """`_into_sync` for all events of the earliest bucket of `s`, which have the same time."""
    t = rings.low[s]
    first, last, n = take_bucket(s, rings, arrivals)
    ring = buffers.local.shape[0] + s
    if t > buffers.ctl[SYNC_TIME] and append_bucket(first, last, n, t, ring, rings, arrivals):
        if buffers.ctl[COMMON_CLOCK] == 0:
            buffers.newest[s] = max(buffers.newest[s], t)
        return
    event = first
    while event != NONE:
        following = NONE
        if event != last:
            following = arrivals.event[event - arrivals.base, LINK]
        _into_sync(event, s, buffers, rings, arrivals, out)
        event = following


@part
def _release(s, bound, buffers, rings, arrivals, out):
    """Move what is due (``ts <= bound``) of `s` from K-slack to the Synchronizer, in ts order."""
    event = buffers.overdue[s]  # all of these are due, and earlier than everything in the ring
    buffers.overdue[s] = NONE
    buffers.overdue_last[s] = NONE
    while event != NONE:
        following = arrivals.event[event - arrivals.base, LINK]
        _into_sync(event, s, buffers, rings, arrivals, out)
        event = following
    event = earliest(s, rings)
    while event != NONE and arrivals.event[event - arrivals.base, TS] <= bound:
        if buffers.ctl[SHIFT] == 0:  # a bucket is one time: it is due as a whole
            _bucket_into_sync(s, buffers, rings, arrivals, out)
        else:
            remove_earliest(s, rings, arrivals)
            _into_sync(event, s, buffers, rings, arrivals, out)
        event = earliest(s, rings)


@part
def _fits_sync(s, low_ts, high_ts, buffers, rings):
    """Whether the Synchronizer's ring of `s` can take events from `low_ts` to `high_ts`."""
    shift = buffers.ctl[SHIFT]
    low = max(low_ts, buffers.ctl[SYNC_TIME] + 1) >> shift
    high = high_ts >> shift
    ring = buffers.local.shape[0] + s
    if rings.size[ring] > 0:
        low = min(low, rings.low[ring])
        high = max(high, rings.high[ring])
    return high - low < rings.head.shape[1]


@part
def _has_room(event, s, buffers, rings, arrivals):
    """Whether the advance caused by `event` can be carried out with the buckets there are."""
    t = arrivals.event[event - arrivals.base, TS]
    bound = t - buffers.ctl[SLACK]
    shift = buffers.ctl[SHIFT]
    low = NEVER
    high = BEFORE
    if rings.size[s] > 0:
        low = rings.low[s] << shift
        high = min(bound, ((rings.high[s] + 1) << shift) - 1)
    first = buffers.overdue[s]
    if first != NONE:
        low = min(low, arrivals.event[first - arrivals.base, TS])
        high = max(high, arrivals.event[buffers.overdue_last[s] - arrivals.base, TS])
    if buffers.ctl[SLACK] == 0:
        low = min(low, t)
        high = t
    return high < low or _fits_sync(s, low, high, buffers, rings)


@part
def _has_room_for_idle(s, buffers, rings, arrivals):
    """Whether the Synchronizer can take all that K-slack still holds of the idle stream `s`."""
    shift = buffers.ctl[SHIFT]
    low = NEVER
    high = BEFORE
    if rings.size[s] > 0:
        low = rings.low[s] << shift
        high = ((rings.high[s] + 1) << shift) - 1
    first = buffers.overdue[s]
    if first != NONE:
        low = min(low, arrivals.event[first - arrivals.base, TS])
        high = max(high, arrivals.event[buffers.overdue_last[s] - arrivals.base, TS])
    return high < low or _fits_sync(s, low, high, buffers, rings)


@part
def _release_idle(buffers, rings, arrivals, out):
    """K-slack does not hold back what idle streams have left there: no more is to be expected."""
    for s in range(buffers.local.shape[0]):
        if is_idle(s, buffers):
            _release(s, NEVER, buffers, rings, arrivals, out)


@part
def move_on(t, s, buffers):
    """Local time of `s` becomes `t`."""
    ctl = buffers.ctl
    buffers.local[s] = t
    if ctl[TOP] == BEFORE:
        for other in range(buffers.local.shape[0]):
            if buffers.moved[other] != FINISHED:
                buffers.moved[other] = t  # none has been silent yet
    ctl[TOP] = max(ctl[TOP], t)
    buffers.moved[s] = ctl[TOP]


@part
def _advance(event, s, buffers, rings, arrivals, out):
    """Local time of `s` moves on to the time of `event`: what is due leaves K-slack.

    It leaves before `event` enters: behind it the buffer never spans more than K.
    """
    t = arrivals.event[event - arrivals.base, TS]
    ctl = buffers.ctl
    move_on(t, s, buffers)
    _release(s, t - ctl[SLACK], buffers, rings, arrivals, out)
    is_tick = arrivals.event[event - arrivals.base, KEY] == TICK
    if ctl[SLACK] == 0 and not is_tick:
        _into_sync(event, s, buffers, rings, arrivals, out)
    elif not is_tick:
        insert(event, s, ctl[SHIFT], rings, arrivals)
    if ctl[COMMON_CLOCK] == 1:
        buffers.newest[s] = max(buffers.newest[s], t - ctl[SLACK])
    _release_idle(buffers, rings, arrivals, out)
    _synchronize(buffers, rings, arrivals, out)


@part
def _fits_slack(t, s, buffers, rings):
    """Whether K-slack of `s` can take `t`, which is not ahead of local time.

    What is within K fits. When K shrank, the buffer may still hold events that are not.
    """
    bucket = t >> buffers.ctl[SHIFT]
    return rings.size[s] == 0 or bucket - rings.low[s] < rings.head.shape[1]


@part
def _fall_behind(event, s, buffers, rings, arrivals, out):
    """An event at or behind local time: buffered, or overdue when K does not cover its delay."""
    t = arrivals.event[event - arrivals.base, TS]
    shift = buffers.ctl[SHIFT]
    if t + buffers.ctl[SLACK] > buffers.local[s]:
        insert(event, s, shift, rings, arrivals)
    elif buffers.ctl[OVERDUE_NOW] == 1:
        _into_sync(event, s, buffers, rings, arrivals, out)
        _synchronize(buffers, rings, arrivals, out)
    elif rings.size[s] > 0 and t >> shift >= rings.low[s]:
        # K shrank, and the buffer still holds events as old as this one: stay in ts order
        insert(event, s, shift, rings, arrivals)
    else:
        set_overdue(event, s, buffers, arrivals)


@part
def _pass(event, s, buffers, arrivals, out):
    """Let `event` out as it comes."""
    t = arrivals.event[event - arrivals.base, TS]
    ctl = buffers.ctl
    if t > buffers.local[s]:
        move_on(t, s, buffers)
        ctl[SYNC_TIME] = ctl[TOP]
    if arrivals.event[event - arrivals.base, KEY] != TICK:
        delay = buffers.local[s] - t
        arrivals.delay[event - arrivals.base] = delay
        ctl[MAX_DELAY] = max(ctl[MAX_DELAY], delay)
        emit(event, buffers, arrivals, out)


@kernel
def run(at, end, buffers, rings, arrivals, out, changes):
    """Take in the arrivals ``at <= number < end``; return (next arrival, why the run stopped).

    `changes` collects (largest local time, K) whenever K follows a larger delay.
    """
    ctl = buffers.ctl
    for event in range(at, end):
        t = arrivals.event[event - arrivals.base, TS]
        s = arrivals.event[event - arrivals.base, STREAM]
        ctl[NOW] = event
        if ctl[PASS] == 1:
            _pass(event, s, buffers, arrivals, out)
        elif t > buffers.local[s]:
            if not _has_room(event, s, buffers, rings, arrivals):
                return event, NO_ROOM
            for other in range(buffers.local.shape[0]):
                silent = max(ctl[TOP], t) - buffers.moved[other]
                if other != s and silent >= ctl[IDLE_AFTER]:
                    if not _has_room_for_idle(other, buffers, rings, arrivals):
                        return event, NO_ROOM
            arrivals.delay[event - arrivals.base] = 0
            _advance(event, s, buffers, rings, arrivals, out)
        elif arrivals.event[event - arrivals.base, KEY] != TICK:
            delay = buffers.local[s] - t
            if not _fits_slack(t, s, buffers, rings):
                return event, NO_ROOM
            if ctl[OVERDUE_NOW] == 1 and not _fits_sync(s, t, t, buffers, rings):
                return event, NO_ROOM
            if ctl[FOLLOW] == 1 and delay > ctl[SLACK]:
                if (delay >> ctl[SHIFT]) + 2 > rings.head.shape[1]:
                    return event, NO_ROOM
                ctl[SLACK] = delay
                changes[ctl[N_CHANGES], 0] = ctl[TOP]
                changes[ctl[N_CHANGES], 1] = delay
                ctl[N_CHANGES] += 1
                for other in range(buffers.local.shape[0]):
                    recall_overdue(other, buffers, rings, arrivals)
            arrivals.delay[event - arrivals.base] = delay
            ctl[MAX_DELAY] = max(ctl[MAX_DELAY], delay)
            _fall_behind(event, s, buffers, rings, arrivals, out)
        if ctl[TOP] >= ctl[BOUNDARY]:
            return event + 1, AT_BOUNDARY
    return end, DONE


@kernel
def flush(buffers, rings, arrivals, out):
    """End of input: K-slack empties into the Synchronizer, then everything leaves in order."""
    for s in range(buffers.local.shape[0]):
        _release(s, NEVER, buffers, rings, arrivals, out)
    _out_of_sync(buffers.ctl[TOP], buffers, rings, arrivals, out)
