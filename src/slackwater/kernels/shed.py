"""What the join does differently under load shedding (GrubJoin III to V).

An event that is admitted searches for partners in one of four ways. FULL and LEARN search whole
windows; HARVEST only the chosen segments of them; SHRED shares of them that are spread evenly over
each window, so that what it finds is a fair sample of all results. LEARN and SHRED keep statistics;
they are for a random sample of events.

The paper shreds the first window and searches the whole of the others. The same number of
comparisons gives better estimates when it is spread over all steps, because fewer of them follow
the same partial result.

The virtual server: with a budget every comparison takes its time, one event after the other. Events
that arrive while more work waits than the buffer allows are dropped.
"""

from __future__ import annotations

from slackwater.kernels.frame import TIME
from slackwater.kernels.jit import part
from slackwater.kernels.records import TS

# how an event searches for partners; the lowest bit is set where statistics are kept
FULL = 0
LEARN = 1
HARVEST = 2
SHRED = 3

# fields of `Shed.ctl`
IDLE = 0  # 1: nothing is shed, learnt or charged
SHEDDING = 1  # 1: windows are harvested
COMPARED = 2  # comparisons so far
CHARGED = 3  # of them, charged to the server
MODE = 4  # of the current event
PER_STREAM = 5  # 1: learn lags against the first stream (GrubJoin V-B.2)
N_SAMPLED = 6  # rows in `Sampled`
TURN = 7  # events before the current one; random choices depend on it, so that they repeat
N_STARTED = 8  # events that the virtual server has got
CTL_LENGTH = 9

# fields of `Shed.number`
FIRST_FRACTION = 0  # share of a first window that SHRED searches
SAMPLE = 1  # fraction of events in the sample
BUFFER = 2  # most work that may wait, in time
COMPARISON = 3  # what one takes, in time; 0: the load is measured outside
FREE_AT = 4  # when the server will have done all its work
WORK = 5  # work that it received in this interval, in time
WOULD_MAKE = 6  # estimate of what the join would have made while it was shedding
WOULD_MAKE_VARIANCE = 7
LOST_VARIANCE = 8  # of the estimate of what was lost with late events meanwhile
LATER_FRACTION = 9  # share of the other windows that SHRED searches
NUMBER_LENGTH = 10

FIRST = 0
LATER = 1

_SAMPLES = 1  # what a random choice is for
_DROPS = 2
ORDERS = 3
_SHARES = 4


@part
def chance(which, shed):
    """Return a pseudorandom number in [0, 1), always the same for the same turn."""
    return mixed(shed.ctl[TURN] * 8 + which)


@part
def mixed(number):
    """Return a pseudorandom number in [0, 1)."""
    x = number & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF
    return (x ^ (x >> 15)) / 4294967296.0


@part
def is_admitted(s, now, shed):
    """Return whether an event of `s` that arrives at time `now` is admitted; count it if not."""
    if shed.keep[s] < 1.0 and chance(_DROPS, shed) >= shed.keep[s]:
        shed.thinned[s] += 1
        return False
    if shed.number[FREE_AT] - now > shed.number[BUFFER]:
        shed.dropped[s] += 1
        return False
    return True


@part
def is_sampled(shed):
    """Return whether the current event is in the sample."""
    return chance(_SAMPLES, shed) < shed.number[SAMPLE]


@part
def mode_of(late, shed):
    """Return how an event searches for partners."""
    shedding = shed.ctl[SHEDDING] == 1
    if late:
        return FULL
    if is_sampled(shed):
        return SHRED if shedding else LEARN
    return HARVEST if shedding else FULL


@part
def searches(s, late, mode, shed):
    """Return whether this event searches at all: its direction is on, or it is in the sample."""
    if shed.ctl[SHEDDING] == 0:
        return True
    if late:
        return is_sampled(shed)
    if mode != HARVEST:
        return True
    if shed.n_segments[s, 0] == 0:
        return False
    return shed.share[s] >= 1.0 or chance(_SHARES, shed) < shed.share[s]


@part
def represents(whole, mode, shed):
    """Return how many events a sampled one represents; `whole`: it searched whole windows."""
    share = shed.number[SAMPLE]
    if mode == SHRED and not whole:
        share *= shed.number[FIRST_FRACTION]
        for _ in range(shed.n.shape[0] - 2):
            share *= shed.number[LATER_FRACTION]
    return 1.0 / share


@part
def note_sampled(position_, found, whole, mode, shed, sampled):
    """Record that a sampled event found so many results while the join sheds load."""
    estimate = found * represents(whole, mode, shed)
    n = shed.ctl[N_SAMPLED]
    sampled.position[n] = position_
    sampled.n[n] = int(estimate + 0.5)
    shed.ctl[N_SAMPLED] = n + 1
    shed.number[WOULD_MAKE] += estimate
    shed.number[WOULD_MAKE_VARIANCE] += (1.0 - shed.number[SAMPLE]) * estimate * estimate


@part
def estimated_loss(lost, shed):
    """Estimate what is lost with late events like this one; only sampled ones are searched for."""
    if shed.ctl[SHEDDING] == 0 or not is_sampled(shed):
        return lost
    estimate = lost / shed.number[SAMPLE]
    shed.number[LOST_VARIANCE] += (1.0 - shed.number[SAMPLE]) * estimate * estimate
    return int(estimate + 0.5)


@part
def charge(now, shed):
    """Charge the server with the comparisons since the last charge, those of one event."""
    work = (shed.ctl[COMPARED] - shed.ctl[CHARGED]) * shed.number[COMPARISON]
    shed.ctl[CHARGED] = shed.ctl[COMPARED]
    shed.number[WORK] += work
    if shed.starts.shape[0] > 0:
        begins = max(shed.number[FREE_AT], float(now))
        shed.starts[shed.ctl[N_STARTED] % shed.starts.shape[0]] = begins
        shed.ctl[N_STARTED] += 1
    if work > 0.0:
        shed.number[FREE_AT] = max(shed.number[FREE_AT], float(now)) + work


@part
def age(t, s, frame, shed):
    """Return which basic window of `s` an event with time `t` is in, by the join's clock."""
    return min((frame.ctl[TIME] - t) // shed.basic[s], shed.n[s] - 1)


@part
def note_passed(start, depth, t, frame, plan, shed):
    """Record that an event with time `t` joined the ones before it."""
    s = plan.stream[start, depth]
    which = FIRST if depth == 0 else LATER
    shed.passed[which, start, s, age(t, s, frame, shed)] += 1.0


@part
def lag_width(basic):
    """Return the width of the buckets of lags, given the length of a basic window."""
    return max(1, basic // 4)


@part
def note_result(start, frame, scratch, arrivals, shed):
    """Record that the chosen events are a result."""
    base = arrivals.base
    for s in range(scratch.at.shape[0]):
        if s != start:
            t = arrivals.event[scratch.at[s] - base, TS]
            shed.joined[start, s, age(t, s, frame, shed)] += 1.0
    if shed.ctl[PER_STREAM] == 1:
        zero = arrivals.event[scratch.at[0] - base, TS]
        for s in range(1, scratch.at.shape[0]):
            lag = arrivals.event[scratch.at[s] - base, TS] - zero
            shed.lags[s, (lag + frame.length[s]) // lag_width(shed.basic[s])] += 1.0
