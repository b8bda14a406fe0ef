"""Disorder of streams, measured in one pass over their arrivals."""

from __future__ import annotations

from math import log, sqrt

from slackwater.kernels.delay_scale import bucket_of
from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import BEFORE, KEY, STREAM, TICK, TS

# columns of `tally`, one row per stream
SIGNAL = 0  # sum of what ADWIN watches
SQUARES = 1  # sum of its squares
LED = 2  # events that came when every stream had begun
LEAD = 3  # sum of their leads over the slowest stream (K_sync)
TALLY_LENGTH = 4


@part
def _least(values):
    least = values[0]
    for i in range(1, values.shape[0]):
        least = min(least, values[i])
    return least


@kernel
def observe(at, end, granularity, arrivals, local, signal, histogram, tally):
    """Add the arrivals ``at <= number < end`` to `histogram` (by delay) and to `tally`.

    `local` has the local times before them, and then those behind them; `signal` what ADWIN sees
    for each number of steps of `granularity`: the last one for all beyond, so that a single delay
    is never more than that.
    """
    slowest = _least(local)
    for number in range(at, end):
        place = number - arrivals.base
        s = arrivals.event[place, STREAM]
        before = local[s]
        if arrivals.event[place, TS] > before:
            local[s] = arrivals.event[place, TS]
            if before == slowest:
                slowest = _least(local)
        if arrivals.event[place, KEY] == TICK:
            continue
        if slowest > BEFORE:
            tally[s, LED] += 1
            tally[s, LEAD] += local[s] - slowest
        delay = arrivals.delay[place]
        if delay == 0:  # most are; the signal of no delay is 0
            histogram[s, 0] += 1
            continue
        steps = (delay - 1) // granularity + 1
        histogram[s, bucket_of(steps)] += 1
        value = signal[min(steps, signal.shape[0] - 1)]
        tally[s, SIGNAL] += value
        tally[s, SQUARES] += value * value


FEWEST = 5.0  # numbers on each side of a cut
GRACE = 10.0  # numbers before the first cut


@kernel
def has_cut(parts, delta):
    """ADWIN's test: whether the older of these parts differ in mean from the newer ones.

    `parts` has (count, mean, sum of squared deviations) of each, oldest first; `delta` is the
    probability of a false yes.
    """
    count = 0.0
    mean = 0.0
    spread = 0.0
    for i in range(parts.shape[0]):
        away = parts[i, 1] - mean
        both = count + parts[i, 0]
        mean += away * parts[i, 0] / both
        spread += parts[i, 2] + away * away * count * parts[i, 0] / both
        count = both
    if count <= GRACE:
        return False
    variance = spread / count
    confidence = log(2.0 * log(count) / delta)
    old = 0.0
    old_sum = 0.0
    for i in range(parts.shape[0] - 1):
        old += parts[i, 0]
        old_sum += parts[i, 0] * parts[i, 1]
        new = count - old
        if old < FEWEST or new < FEWEST:
            continue
        apart = abs(old_sum / old - (count * mean - old_sum) / new)
        share = 1.0 / (old - FEWEST + 1.0) + 1.0 / (new - FEWEST + 1.0)
        if apart > sqrt(2.0 * share * variance * confidence) + 2.0 / 3.0 * share * confidence:
            return True
    return False


@kernel
def is_beyond(means, n, sign, slight):
    """Whether the mean of the last `n` is above the range of all such means before them.

    By half of that range, and not just by a `slight` difference; below it if `sign` is -1.
    """
    high = -1e300
    low = 1e300
    last = 0.0
    for end in range(n, means.shape[0] + 1):
        mean = 0.0
        for i in range(end - n, end):
            mean += sign * means[i] / n
        if end == means.shape[0]:
            last = mean
        elif end <= means.shape[0] - n:
            high = max(high, mean)
            low = min(low, mean)
    return last > high + max((high - low) / 2, slight)
