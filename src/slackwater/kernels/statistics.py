"""What one pass over arrivals tells about the disorder of their streams."""

from __future__ import annotations

from math import log, sqrt

from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import BEFORE, KEY, NONE, STREAM, TS

# columns of `tally`, one row per stream
COUNT = 0  # events
MEAN = 1  # of the signal that ADWIN watches
SPREAD = 2  # sum of its squared deviations from the mean
LED = 3  # events that came when every stream had begun
LEAD = 4  # sum of their leads over the slowest stream (K_sync)
TALLY_LENGTH = 5


@part
def delay_bucket(delay, granularity, buckets):
    """0 for no delay, else d with ``(d - 1) * granularity < delay <= d * granularity``."""
    return min((delay + granularity - 1) // granularity, buckets - 1)


@kernel
def observe(at, end, granularity, finest, arrivals, local, signal, histogram, tally):
    """Add the arrivals ``at <= number < end`` to `histogram` (by delay) and to `tally`.

    `local` has the local times before them, and then those behind them; `signal` what ADWIN sees
    for each bucket of the `finest` granularity.
    """
    m = local.shape[0]
    for number in range(at, end):
        place = number - arrivals.base
        s = arrivals.event[place, STREAM]
        local[s] = max(local[s], arrivals.event[place, TS])
        if arrivals.event[place, KEY] == NONE:
            continue
        slowest = local[s]
        for other in range(m):
            slowest = min(slowest, local[other])
        bucket = delay_bucket(arrivals.delay[place], granularity, histogram.shape[1])
        histogram[s, bucket] += 1
        tally[s, COUNT] += 1
        if slowest > BEFORE:
            tally[s, LED] += 1
            tally[s, LEAD] += local[s] - slowest
        seen = signal[delay_bucket(arrivals.delay[place], finest, signal.shape[0])]
        away = seen - tally[s, MEAN]
        tally[s, MEAN] += away / tally[s, COUNT]
        tally[s, SPREAD] += away * (seen - tally[s, MEAN])


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
