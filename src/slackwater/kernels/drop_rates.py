"""Which share of each stream to admit when the rest is dropped at random.

Every result needs one event of each stream, so their number falls with the product of the shares;
what the join costs is a sum of such products. In logarithms that is a convex problem: at its
optimum all streams of which some events are dropped have the same marginal cost.
"""

from __future__ import annotations

import math

from slackwater.kernels.jit import kernel, part

_ROUNDS = 200
_BISECTIONS = 50


@part
def drop_cost(keep, rate, order, candidates, matches, gradient):
    """Return the cost per time; write to `gradient` its derivative by the log of each share."""
    for i in range(keep.shape[0]):
        gradient[i] = 0.0
    cost = 0.0
    for i in range(keep.shape[0]):
        partial = rate[i] * keep[i]
        for j in range(order.shape[1]):
            more = partial * candidates[i, j] * keep[order[i, j]]
            cost += more
            gradient[i] += more
            for k in range(j + 1):
                gradient[order[i, k]] += more
            partial *= matches[i, j] * keep[order[i, j]]
    return cost


@part
def _scaled(log_keep, shift, keep):
    for i in range(keep.shape[0]):
        keep[i] = math.exp(min(0.0, log_keep[i] + shift))


@part
def _fit(budget, rate, order, candidates, matches, keep, log_keep, gradient):
    """Shift `log_keep` as a whole to the cost `budget`; `keep` and `gradient` are those there."""
    low = -50.0
    high = 50.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        _scaled(log_keep, middle, keep)
        if drop_cost(keep, rate, order, candidates, matches, gradient) > budget:
            high = middle
        else:
            low = middle
    _scaled(log_keep, low, keep)
    drop_cost(keep, rate, order, candidates, matches, gradient)
    for i in range(keep.shape[0]):
        log_keep[i] = min(0.0, log_keep[i] + low)


@kernel
def best_shares(budget, rate, order, candidates, matches, keep, log_keep, gradient):
    """Write to `keep` the shares with the largest product whose cost is at most `budget`."""
    m = keep.shape[0]
    for i in range(m):
        log_keep[i] = 0.0
        keep[i] = 1.0
    if drop_cost(keep, rate, order, candidates, matches, gradient) <= budget:
        return
    for _ in range(_ROUNDS):
        _fit(budget, rate, order, candidates, matches, keep, log_keep, gradient)
        mean = 0.0
        free = 0
        for i in range(m):
            if log_keep[i] < 0.0:
                mean += math.log(max(gradient[i], 1e-300))
                free += 1
        for i in range(m):
            # streams that are admitted wholly lose events again when they cost more than the others
            behind = mean / max(free, 1) - math.log(max(gradient[i], 1e-300))
            log_keep[i] = min(0.0, log_keep[i] + 0.3 * behind)
    _fit(budget, rate, order, candidates, matches, keep, log_keep, gradient)
