"""What many rules for K would have lost, and the slacks that they choose next.

See `controllers.lateness`. Histograms have the buckets of `kernels.histogram`.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part

_GONE = 1e-3  # results: what has decayed to less is forgotten, so that histograms stay sparse


@part
def _first_beyond(slack, edges):
    """The first bucket that has results with more lateness than `slack`."""
    low = 0
    high = edges.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= slack:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def judge(beyond, top, advance, edges, slack, in_force, lost):
    """Add what every rule would have lost in the last interval to `lost`.

    ``beyond[b]`` is how many results of the interval are in bucket b or later; there are none
    behind `top`. The common clock has advanced by `advance`: slack in force rises no faster, for
    what the join has passed stays passed.
    """
    for rule in range(slack.shape[0]):
        b = _first_beyond(min(slack[rule], in_force[rule] + advance / 2), edges)
        if b <= top:
            lost[rule] += beyond[b]
        in_force[rule] = min(slack[rule], in_force[rule] + advance)


@kernel
def learn(late, top, total, decay, recent, totals, used):
    """Add the results of an interval to the decaying histograms `recent`, one per memory."""
    for j in range(recent.shape[0]):
        totals[j] = decay[j] * totals[j] + total
        for b in range(used):
            recent[j, b] *= decay[j]
            if recent[j, b] < _GONE:
                recent[j, b] = 0.0
        for b in range(top + 1):
            recent[j, b] += late[b]


@kernel
def choose(recent, used, loss, levels, totals, edges, slack):
    """Fill in the slack of each rule: the smallest edge with no more than its level beyond it.

    `levels`, which fall, are multiples of `loss`, the share that may be lost. Rule
    ``j * levels + v`` has memory j and level v.
    """
    n = levels.shape[0]
    for j in range(recent.shape[0]):
        beyond = 0.0
        b = max(used - 1, 0)
        for v in range(n - 1, -1, -1):
            allowed = loss * levels[v] * totals[j]
            while b > 0 and beyond + recent[j, b] <= allowed:
                beyond += recent[j, b]
                b -= 1
            slack[j * n + v] = edges[b]
