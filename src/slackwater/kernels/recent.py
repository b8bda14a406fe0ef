"""A sample of delays, counted by octave; see `stats.recent`."""

from __future__ import annotations

from slackwater.kernels.jit import kernel
from slackwater.kernels.records import KEY, STREAM


@kernel
def sample(begin, end, one_in, cluster, event, delay, counts):
    """Count one in so many of the arrivals ``begin <= number < end``, each for as many.

    `event` and `delay` are theirs. `cluster` of them in a row are in the sample: they are side by
    side in memory. `counts` is [stream, octave]; ticks are not counted.
    """
    period = one_in * cluster
    last = counts.shape[1] - 1
    number = begin
    while number < end:
        within = number % period
        if within >= cluster:
            number += period - within
            continue
        place = number - begin
        number += 1
        if event[place, KEY] < 0:  # a tick, or left out
            continue
        octave = 0
        rest = delay[place]
        while rest > 0 and octave < last:
            rest >>= 1
            octave += 1
        counts[event[place, STREAM], octave] += one_in
