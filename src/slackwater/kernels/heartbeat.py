"""The slack buffer of one stream and its heartbeat over a run of arrivals (Kim, sections 3 and 4).

The heartbeat h never falls: ``h = base - distance``. An event with ``ts < h`` is dropped, one with
``ts <= h`` leaves the buffer, in (ts, number) order. The *base* is the largest time so far, or the
recent mean of all times. The *distance* is set from outside, or follows what was observed.

A time that is too far ahead of the largest one would move that, and all that follows would be
dropped. It is not believed, and rejected, until others agree with it (`_is_too_far`).

What leaves is written to `Released`. Between the events stand *marks*, entries without an event
that carry the heartbeat: before an event that is dropped, and where a window ends.
"""

from __future__ import annotations

from math import floor

from slackwater.kernels.buckets import earliest, insert, remove_earliest, take_bucket
from slackwater.kernels.histogram import bucket_of
from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import BEFORE, KEY, LINK, NEVER, NONE, TICK, TS

# places in `ctl`
DISTANCE = 0
HEARTBEAT = 1
TOP = 2  # largest time so far
SHIFT = 3  # a bucket spans 2**SHIFT time units
FROM_MEAN = 4  # 1: the base is the recent mean, not the largest time
FOLLOW = 5  # what the distance follows, if anything
SLIDE = 6  # windows end at multiples of this; 0: no marks are wanted
OPEN_END = 7  # 1: such a window does not contain its end
COUNT = 8  # events so far
BOUNDARY = 9  # stop behind so many of them
DROPPED = 10  # events
N_OUT = 11  # entries of `Released`
NOW = 12  # the arrival in work
MAX_DELAY = 13
N_CHANGES = 14  # rows of `changes`
ORIGIN = 15  # the mean is kept relative to the first time
SPAN_END = 16  # FOLLOW_TWO: end of the span over which delays are compared, in events
LARGEST = 17  # largest distance from the base so far; FOLLOW_TWO: largest delay (m1)
SECOND = 18  # FOLLOW_TWO: largest other delay within it (m2)
BUFFERED = 19  # sum over arrivals of the events that wait: an average, in the end
OFFSET = 20  # FOLLOW_LARGEST: added to the largest distance
HOLD = 21  # nothing leaves before so many events have come: nothing is known yet
LIMIT = 22  # from so many dropped events on, FOLLOW_TWICE
MAX_JUMP = 23  # how far ahead of the largest time one may be; or one of the two below
FAR = 24  # a time that was too far ahead
VOTES = 25  # by how many more times say that time is there than that it is not
N_REJECTED = 26  # entries of `rejected`
BELIEVED = 27  # an arrival that was not too far ahead, when a run stopped for room
CTL_LENGTH = 28

# other values of MAX_JUMP
ANY_JUMP = -1
USUAL_JUMP = -2  # as far as is usual for these times

# values of FOLLOW
FOLLOW_NOTHING = 0
FOLLOW_LARGEST = 1  # the largest distance from the base, and an offset: max-delay, or Kim's
FOLLOW_TWO = 2  # (m1 + m2) / 2 of Srivastava and Widom
FOLLOW_TWICE = 3  # twice the largest distance from the base

_KNOWN = 100  # events after which it is known what is usual
_USUAL = 100.0  # times the lead of the largest time over the recent mean
_VOTES = 5  # times far ahead make a jump

DONE = 0
NO_ROOM = 1
AT_BOUNDARY = 2


@part
def _emit(event, ts, key, ctl, out):
    n = ctl[N_OUT]
    out.event[n] = event
    out.during[n] = ctl[NOW]
    out.top[n] = ctl[TOP]
    out.ts[n] = ts
    out.stream[n] = 0
    out.key[n] = key
    ctl[N_OUT] = n + 1


@part
def _let_out(event, ctl, arrivals, out):
    place = event - arrivals.base
    _emit(event, arrivals.event[place, TS], arrivals.event[place, KEY], ctl, out)


@part
def _release(bound, ctl, rings, arrivals, out):
    """Let out what has ``ts <= bound``."""
    event = earliest(0, rings)
    while event != NONE and arrivals.event[event - arrivals.base, TS] <= bound:
        if ctl[SHIFT] == 0:  # a bucket is one time
            event, last, _ = take_bucket(0, rings, arrivals)
            while event != last:
                following = arrivals.event[event - arrivals.base, LINK]
                _let_out(event, ctl, arrivals, out)
                event = following
            _let_out(last, ctl, arrivals, out)
        else:
            remove_earliest(0, rings, arrivals)
            _let_out(event, ctl, arrivals, out)
        event = earliest(0, rings)


@part
def _base(ctl, mean):
    """What the heartbeat is measured from."""
    if ctl[FROM_MEAN] == 1:
        return ctl[ORIGIN] + floor(mean[0])
    return ctl[TOP]


@part
def _fits(t, bound, ctl, rings):
    """Whether the buffer can take `t` when all up to `bound` has left it."""
    if rings.size[0] == 0:
        return True
    shift = ctl[SHIFT]
    high = max(rings.high[0], t >> shift)
    low = rings.low[0]
    if t > bound:
        low = max(low, min(bound + 1, t) >> shift)
    return high - min(low, t >> shift) < rings.head.shape[1]


@part
def _largest_two(delay, ctl):
    """m1 and m2 with `delay`: the largest one ever, and the largest other one of this span."""
    largest = ctl[LARGEST]
    second = ctl[SECOND]
    if delay > largest:
        return delay, max(second, largest)
    return largest, max(second, delay)


@part
def _follow(away, delay, ctl):
    """The distance after an event that is `away` from the base."""
    if ctl[FOLLOW] == FOLLOW_LARGEST:
        return max(ctl[LARGEST], away) + ctl[OFFSET]
    if ctl[FOLLOW] == FOLLOW_TWICE:
        return max(ctl[DISTANCE], 2 * away)
    if ctl[FOLLOW] == FOLLOW_TWO and (ctl[COUNT] + 1 >= ctl[SPAN_END]):
        largest, second = _largest_two(delay, ctl)
        return (largest + second + 1) // 2
    return ctl[DISTANCE]


@part
def _new_mean(t, recent, ctl, mean):
    """The mean of the last `recent` times or so, with `t`."""
    return mean[0] + (t - ctl[ORIGIN] - mean[0]) / min(ctl[COUNT] + 1, recent)


@part
def _is_too_far(t, ctl, mean):
    """Whether `t` is so far ahead that it is not believed; to be asked once for each arrival.

    If time has really jumped, the next ones are there too: times that agree with the one that was
    not believed vote for it, others against it, and the last vote that is needed is believed.
    """
    limit = ctl[MAX_JUMP]
    if limit == ANY_JUMP or ctl[TOP] == BEFORE:
        return False
    if limit == USUAL_JUMP:
        if ctl[COUNT] < _KNOWN:
            return False
        covered = ctl[TOP] - ctl[ORIGIN]
        limit = max(covered, int(_USUAL * (covered - mean[0])))
    if t - ctl[TOP] <= limit:
        ctl[VOTES] = max(0, ctl[VOTES] - 1)
        return False
    if ctl[VOTES] > 0 and abs(t - ctl[FAR]) > limit:
        ctl[VOTES] -= 1
        return True
    ctl[FAR] = t
    ctl[VOTES] += 1
    if ctl[VOTES] < _VOTES:
        return True
    ctl[VOTES] = 0
    return False


@kernel
def run(at, end, recent, span, ctl, mean, histogram, rings, arrivals, out, changes, rejected):
    """Take in the arrivals ``at <= number < end``; return (next arrival, why it stopped).

    `recent` is how many events the mean covers, `span` the events over which FOLLOW_TWO compares;
    `histogram` gets how far events are behind the base, `changes` (largest time, distance)
    whenever the distance follows, `rejected` the arrivals that are too far ahead. Nothing of an
    arrival has happened when a run stops for room.
    """
    for event in range(at, end):
        place = event - arrivals.base
        t = arrivals.event[place, TS]
        ctl[NOW] = event
        is_tick = arrivals.event[place, KEY] == TICK
        if ctl[BELIEVED] == event:
            ctl[BELIEVED] = NONE
        elif _is_too_far(t, ctl, mean):
            if not is_tick:
                rejected[ctl[N_REJECTED]] = event
                ctl[N_REJECTED] += 1
            continue
        if is_tick:  # this time was reached in another shard
            ctl[TOP] = max(ctl[TOP], t)
            if ctl[FROM_MEAN] == 1 or ctl[COUNT] == 0:
                continue
            _beat(ctl[TOP] - ctl[DISTANCE], ctl, rings, arrivals, out)
            continue
        if ctl[COUNT] == 0:
            ctl[ORIGIN] = t
            ctl[SPAN_END] = span
            if ctl[TOP] == BEFORE:
                ctl[TOP] = t
        top = max(ctl[TOP], t)
        delay = top - t
        base = _base(ctl, mean)
        behind = base - t
        away = abs(behind) if ctl[FROM_MEAN] == 1 else delay
        new_mean = _new_mean(t, recent, ctl, mean)
        distance = _follow(away, delay, ctl)
        new_base = ctl[ORIGIN] + floor(new_mean) if ctl[FROM_MEAN] == 1 else top
        beat = max(ctl[HEARTBEAT], new_base - distance)
        if ctl[COUNT] < ctl[HOLD]:
            beat = ctl[HEARTBEAT]
        is_dropped = t < ctl[HEARTBEAT]
        if not is_dropped and not _fits(t, beat, ctl, rings):
            ctl[BELIEVED] = event
            return event, NO_ROOM
        arrivals.delay[place] = delay
        ctl[MAX_DELAY] = max(ctl[MAX_DELAY], delay)
        ctl[TOP] = top
        mean[0] = new_mean
        histogram[bucket_of(behind)] += 1
        if ctl[FOLLOW] == FOLLOW_TWO:
            _compare(delay, span, ctl)
        else:
            ctl[LARGEST] = max(ctl[LARGEST], away)
        if distance != ctl[DISTANCE]:
            ctl[DISTANCE] = distance
            changes[ctl[N_CHANGES], 0] = top
            changes[ctl[N_CHANGES], 1] = distance
            ctl[N_CHANGES] += 1
        ctl[COUNT] += 1
        if is_dropped:
            ctl[DROPPED] += 1
            if ctl[DROPPED] >= ctl[LIMIT] and ctl[FOLLOW] == FOLLOW_NOTHING:
                ctl[FOLLOW] = FOLLOW_TWICE
            _emit(NONE, ctl[HEARTBEAT], NONE, ctl, out)
            _let_out(event, ctl, arrivals, out)
            _beat(beat, ctl, rings, arrivals, out)
        elif t == ctl[HEARTBEAT] == beat:
            _let_out(event, ctl, arrivals, out)
        elif t <= beat:
            insert(event, 0, ctl[SHIFT], rings, arrivals)
            _beat(beat, ctl, rings, arrivals, out)
        else:
            _beat(beat, ctl, rings, arrivals, out)
            insert(event, 0, ctl[SHIFT], rings, arrivals)
        ctl[BUFFERED] += rings.size[0]
        if ctl[COUNT] >= ctl[BOUNDARY]:
            return event + 1, AT_BOUNDARY
    return end, DONE


@part
def _compare(delay, span, ctl):
    """Take in a delay; when a span is over, its second delay is forgotten."""
    largest, second = _largest_two(delay, ctl)
    is_over = ctl[COUNT] + 1 >= ctl[SPAN_END]
    ctl[LARGEST] = largest
    ctl[SECOND] = 0 if is_over else second
    if is_over:
        ctl[SPAN_END] += span


@part
def _beat(beat, ctl, rings, arrivals, out):
    """The heartbeat moves on: what is due leaves, and windows that end are marked."""
    before = ctl[HEARTBEAT]
    if beat <= before:
        return
    _release(beat, ctl, rings, arrivals, out)
    ctl[HEARTBEAT] = beat
    slide = ctl[SLIDE]
    if slide > 0:
        shut = 1 - ctl[OPEN_END]
        if (beat - shut) // slide > (before - shut) // slide:
            _emit(NONE, beat, NONE, ctl, out)


@kernel
def flush(ctl, rings, arrivals, out):
    """End of input: everything leaves."""
    _release(NEVER, ctl, rings, arrivals, out)
    ctl[HEARTBEAT] = max(ctl[HEARTBEAT], ctl[TOP])
