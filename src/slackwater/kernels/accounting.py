"""What a step of a join adds to running totals: one pass each, not many over whole arrays."""

from __future__ import annotations

from slackwater.kernels.histogram import bucket_of
from slackwater.kernels.jit import kernel
from slackwater.kernels.join import LATE_KEPT, LOSS_UNKNOWN
from slackwater.kernels.partners import FORGET, forget_with
from slackwater.kernels.records import KEY, STREAM, TICK, TS

# rows of what `count_step` counts by stream
IN_ORDER = 0
KEPT = 1  # late events that are
DROPPED = 2
BY_STREAM = 3


@kernel
def count_step(stream, n, late, by_stream):
    """Count the events of a step by stream; return results, those lost, unknown losses, most late.

    `stream` has the streams of the events, `n` the results of those that made any.
    """
    m = by_stream.shape[1]
    others = stream.shape[0]
    for s in range(1, m):  # a pass for each but the first: none waits for the one before it
        own = 0
        for i in range(stream.shape[0]):
            own += stream[i] == s
        by_stream[IN_ORDER, s] += own
        others -= own
    by_stream[IN_ORDER, 0] += others
    produced = 0
    for i in range(n.shape[0]):
        produced += n[i]
    lost = 0
    unknown = 0
    most = 0
    for i in range(late.position.shape[0]):
        s = stream[late.position[i]]
        by_stream[IN_ORDER, s] -= 1
        by_stream[KEPT if late.fate[i] & LATE_KEPT else DROPPED, s] += 1
        lost += late.lost[i]
        unknown += 1 if late.fate[i] & LOSS_UNKNOWN else 0
        most = max(most, late.by[i])
    return produced, lost, unknown, most


@kernel
def count_arrivals(first, clocks, ordered, window, matching, arrivals, by_stream, forgotten):
    """The same for arrivals that do not wait; return those with unknown losses, and the most late.

    They begin with number `first`; `clocks` is the `ClockSeries` of the step. An arrival is late if
    it is forgotten at once, or, where rows are `ordered`, if it is behind the join's clock.
    `forgotten` gets how much is forgotten of the time in which its partners lie, `window`.
    """
    forget = matching.ctl[FORGET]
    unknown = 0
    most = 0
    for i in range(clocks.before.shape[0]):
        forget = forget_with(i, clocks.before, clocks.after, clocks.common, forget, matching.ctl)
        place = first + i - arrivals.base
        if arrivals.event[place, KEY] == TICK:
            continue
        t = arrivals.event[place, TS]
        s = arrivals.event[place, STREAM]
        fate = IN_ORDER
        if t + matching.reach[s] < forget:
            fate = DROPPED
        elif ordered and t < clocks.before[i]:
            fate = KEPT
        by_stream[fate, s] += 1
        if fate != IN_ORDER:
            most = max(most, clocks.before[i] - t)
        if t < forget:
            unknown += 1
            forgotten[s] += min(forget - t, window)
    return unknown, most


@kernel
def count_late(late, lost, unknown):
    """Add up what late events lost, and those of unknown loss, by bucket of their lateness."""
    for i in range(late.by.shape[0]):
        bucket = bucket_of(late.by[i])
        lost[bucket] += late.lost[i]
        unknown[bucket] += 1 if late.fate[i] & LOSS_UNKNOWN else 0


@kernel
def last_that_matters(loss, keep, lost, unknown, each, share, true):
    """Let `loss` fade and add what is new; return the last bucket whose tail is too much, or -1.

    The tail from a bucket on is too much if it is more than a `share` of all that there is: the
    `true` results and what was lost. New are the `lost` results, and `each` for an `unknown` loss.
    """
    total = 0.0
    for i in range(loss.shape[0] - 1, -1, -1):
        loss[i] = loss[i] * keep + (lost[i] + unknown[i] * each)
        total += loss[i]
    tail = 0.0
    for i in range(loss.shape[0] - 1, -1, -1):
        tail += loss[i]
        if tail > share * (true + total):
            return i
    return -1


@kernel
def add_by_bin(ts, n, every, start, first, bins):
    """Add `n` to the bins of their times from number `start` on; return the sum of all.

    A bin is `every` long; ``bins[0]`` has the number `first`.
    """
    total = 0
    for i in range(n.shape[0]):
        total += n[i]
        number = ts[i] // every
        if number >= start:
            bins[number - first] += n[i]
    return total
