"""What the join does differently under load shedding (GrubJoin III to V).

An event that is let in looks for partners in one of four ways. FULL and LEARN go through whole
windows; HARVEST only through the chosen stretches of them; SHRED through shares of them that are
spread evenly over each window, so that what it finds is a fair sample of all results. LEARN and
SHRED keep statistics; they are for a random sample of events.

The paper shreds the first window and takes the whole of the others. As many comparisons show more
when they are spread over all steps: a single partial result is not followed so far.

The virtual server: with a budget every comparison takes its time, one event after the other. An
event that finds more than a buffer's worth of work waiting is not let in.
"""

from __future__ import annotations

from slackwater.kernels.frame import TIME
from slackwater.kernels.jit import part
from slackwater.kernels.records import TS

# how an event looks for partners; the lowest bit is set where something is learnt
FULL = 0
LEARN = 1
HARVEST = 2
SHRED = 3

# places in `Shed.ctl`
IDLE = 0  # 1: nothing is shed, learnt or charged
SHEDDING = 1  # 1: windows are harvested
COMPARED = 2  # comparisons so far
CHARGED = 3  # of them, known to the server
MODE = 4  # of the event in work
PER_STREAM = 5  # 1: learn lags against the first stream (GrubJoin V-B.2)
N_SAMPLED = 6  # rows in `Sampled`
TURN = 7  # events that came before the one in work; chance goes by it, so that it can be repeated
CTL_LENGTH = 8

# places in `Shed.number`
FIRST_FRACTION = 0  # share of a first window that is shredded
SAMPLE = 1  # share of events in the sample
BUFFER = 2  # most work that may wait, in time
COMPARISON = 3  # what one takes, in time; 0: load is measured from outside
FREE_AT = 4  # when the server will have done all it was given
WORK = 5  # time that it was given in this interval
WOULD_MAKE = 6  # estimate of what the join would have made while it was shedding
WOULD_MAKE_VARIANCE = 7
LOST_VARIANCE = 8  # of the estimate of what was lost with late events meanwhile
LATER_FRACTION = 9  # share of the other windows that is shredded
NUMBER_LENGTH = 10

FIRST = 0
LATER = 1

_SAMPLES = 1  # which chance it is
_DROPS = 2
ORDERS = 3
_SHARES = 4


@part
def chance(which, shed):
    """A number in [0, 1) that looks random and is always the same for the same turn."""
    return mixed(shed.ctl[TURN] * 8 + which)


@part
def mixed(number):
    """A number in [0, 1) that looks random."""
    x = number & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF
    return (x ^ (x >> 15)) / 4294967296.0


@part
def is_let_in(s, now, shed):
    """Whether the server takes an event of `s` that comes at time `now`; counts it if not."""
    if shed.keep[s] < 1.0 and chance(_DROPS, shed) >= shed.keep[s]:
        shed.thinned[s] += 1
        return False
    if shed.number[FREE_AT] - now > shed.number[BUFFER]:
        shed.dropped[s] += 1
        return False
    return True


@part
def is_sampled(shed):
    """Whether something is learnt from the event in work."""
    return chance(_SAMPLES, shed) < shed.number[SAMPLE]


@part
def mode_of(late, shed):
    """How an event looks for partners."""
    shedding = shed.ctl[SHEDDING] == 1
    if late:
        return FULL
    if is_sampled(shed):
        return SHRED if shedding else LEARN
    return HARVEST if shedding else FULL


@part
def looks_for_partners(s, late, mode, shed):
    """Whether this event is worth a look: its direction is not off, or it is in the sample."""
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
def stands_for(whole, mode, shed):
    """For how many events like itself one in the sample stands; `whole`: it saw whole windows."""
    share = shed.number[SAMPLE]
    if mode == SHRED and not whole:
        share *= shed.number[FIRST_FRACTION]
        for _ in range(shed.n.shape[0] - 2):
            share *= shed.number[LATER_FRACTION]
    return 1.0 / share


@part
def note_sampled(position_, found, whole, mode, shed, sampled):
    """An event in the sample found so many results while the join sheds load."""
    estimate = found * stands_for(whole, mode, shed)
    n = shed.ctl[N_SAMPLED]
    sampled.position[n] = position_
    sampled.n[n] = int(estimate + 0.5)
    shed.ctl[N_SAMPLED] = n + 1
    shed.number[WOULD_MAKE] += estimate
    shed.number[WOULD_MAKE_VARIANCE] += (1.0 - shed.number[SAMPLE]) * estimate * estimate


@part
def estimated_loss(lost, shed):
    """What is lost with late events like this one, of which only the sample is looked at."""
    if shed.ctl[SHEDDING] == 0 or not is_sampled(shed):
        return lost
    estimate = lost / shed.number[SAMPLE]
    shed.number[LOST_VARIANCE] += (1.0 - shed.number[SAMPLE]) * estimate * estimate
    return int(estimate + 0.5)


@part
def charge(now, shed):
    """The server was given the comparisons that were made since the last charge."""
    work = (shed.ctl[COMPARED] - shed.ctl[CHARGED]) * shed.number[COMPARISON]
    shed.ctl[CHARGED] = shed.ctl[COMPARED]
    shed.number[WORK] += work
    if work > 0.0:
        shed.number[FREE_AT] = max(shed.number[FREE_AT], float(now)) + work


@part
def age(t, s, frame, shed):
    """Which basic window of `s` an event with time `t` is in, counted from the join's clock."""
    return min((frame.ctl[TIME] - t) // shed.basic[s], shed.n[s] - 1)


@part
def note_passed(start, depth, t, frame, plan, shed):
    """An event with time `t` joined the ones before it."""
    s = plan.stream[start, depth]
    which = FIRST if depth == 0 else LATER
    shed.passed[which, start, s, age(t, s, frame, shed)] += 1.0


@part
def note_result(start, frame, scratch, arrivals, shed):
    """The chosen events are a result."""
    base = arrivals.base
    for s in range(scratch.at.shape[0]):
        if s != start:
            t = arrivals.event[scratch.at[s] - base, TS]
            shed.joined[start, s, age(t, s, frame, shed)] += 1.0
    if shed.ctl[PER_STREAM] == 1:
        zero = arrivals.event[scratch.at[0] - base, TS]
        for s in range(1, scratch.at.shape[0]):
            lag = arrivals.event[scratch.at[s] - base, TS] - zero
            width = max(1, shed.basic[s] // 4)
            place = (lag + frame.length[s]) // width
            shed.lags[s, min(max(place, 0), shed.lags.shape[1] - 1)] += 1.0
