"""How many events of a period a distance would drop, by bucket of distance: learnt and searched."""

from __future__ import annotations

from math import sqrt

from slackwater.kernels.jit import kernel


@kernel
def learn(top, weight, behind, mean, square):
    """Take in how far the events of a period were behind the base; return the largest bucket used.

    `mean` and `square` become those of the number of events beyond each bucket, with this weight
    for the period; `top` is the largest bucket used before. `behind` is emptied.
    """
    last = behind.shape[0] - 1
    while last > top and behind[last] == 0:
        last -= 1
    beyond = 0
    for bucket in range(last, -1, -1):
        mean[bucket] += weight * (beyond - mean[bucket])
        square[bucket] += weight * (float(beyond) * beyond - square[bucket])
        beyond += behind[bucket]
        behind[bucket] = 0
    return last


@kernel
def smallest_within(budget, deviations, top, mean, square):
    """The first bucket beyond which, even in a bad period, there are no more than `budget` events.

    What varies less than chance would have it is taken to vary by chance.
    """
    for bucket in range(top):
        average = mean[bucket]
        varies = sqrt(max(square[bucket] - average * average, average))
        if average + deviations * varies <= budget:
            return bucket
    return top
