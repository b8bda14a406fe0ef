"""What many rules for K would have lost, and the slacks that they choose next.

See `controllers.lateness`. Histograms have the buckets of `kernels.histogram`. Of M memories and L
levels there are M·L *slacks*, each the base of two rules: rule ``2 q`` reacts, rule ``2 q + 1``
holds. A rule that reacts adds slack while lateness grows fast, or while its running period has used
up much of what it may lose, but no more than the largest lateness in memory needs; one that holds
takes the slack as it is.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import F64

REACTIONS = 2  # rules of a slack

_GONE = 1e-3  # results: what has decayed to less is forgotten, so that histograms stay sparse
_LEAP = 1.2  # slack that grew by more than this in an interval is taken to grow so again,
_MOST_LEAP = 2.0  # but by no more than this
CALM = 0.4  # share of a period's allowance that may be used up before slack is added
_SMALL = 1e-9


class Rules(NamedTuple):
    """What is known of the rules."""

    decay: F64  # [memory]: what an interval leaves of what was before
    level: F64  # [level], falling: multiples of the allowed loss
    recent: F64  # [memory, bucket]: decayed histograms of lateness
    totals: F64  # [memory]: of their results, with those that were not late
    plain: F64  # [slack]: the slacks
    leap: F64  # [slack]: factors of growth
    slack: F64  # [rule]: with all that is added
    in_force: F64  # [rule]: the slack that the join's clock has followed
    lost: F64  # [block, rule]: in the last period, youngest block first
    bad: F64  # [rule]: share of bad periods, so far as it is known
    cost: F64  # [rule]: average slack, so far as it is known


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


@part
def _bearable(left, coming, total, beyond, used, edges):
    """The smallest slack with which `coming` results as late as the last ones lose at most `left`.

    ``beyond[b]`` is how many of the last results are in bucket b or later.
    """
    allowed = left / max(coming, _SMALL) * total
    low = 0
    high = used
    while low < high:
        middle = (low + high) >> 1
        if beyond[middle + 1] <= allowed:
            high = middle
        else:
            low = middle + 1
    return edges[min(low, used - 1)]


@part
def _added(spent):
    """The factor for a period that has used up so much of its allowance."""
    return 1.0 + max(0.0, min(spent, 1.0) - CALM)


@part
def _reacting(r, spent, largest, rules):
    """The slack of rule `r`, which reacts, when so much of the allowance is used up."""
    q = r // REACTIONS
    more = rules.plain[q] * rules.leap[q] * _added(spent)
    return max(rules.plain[q], min(more, largest))


@kernel
def learn(late, top, total, loss, settled, edges, used, rules):
    """Add the results of an interval to all memories, and choose the slacks again.

    `late` are the late ones by bucket, none behind `top`; `loss` is the share that may be lost.
    Slacks can leap only when they have `settled`.
    """
    n = rules.level.shape[0]
    for j in range(rules.recent.shape[0]):
        rules.totals[j] = rules.decay[j] * rules.totals[j] + total
        for b in range(used):
            left = rules.decay[j] * rules.recent[j, b]
            rules.recent[j, b] = left if left >= _GONE else 0.0
        for b in range(top + 1):
            rules.recent[j, b] += late[b]
        beyond = 0.0
        b = used - 1
        for v in range(n - 1, -1, -1):
            allowed = loss * rules.level[v] * rules.totals[j]
            while b > 0 and beyond + rules.recent[j, b] <= allowed:
                beyond += rules.recent[j, b]
                b -= 1
            q = j * n + v
            growth = edges[b] / max(rules.plain[q], 1.0) if settled else 1.0
            rules.plain[q] = edges[b]
            rules.leap[q] = min(growth, _MOST_LEAP) if growth > _LEAP else 1.0


@kernel
def judge(late, top, advance, allowed, coming, fade, largest, beyond, used, edges, rules):
    """Count what every rule would have lost in the last interval; let it set its slack again.

    The common clock has advanced by `advance`: slack in force rises no faster, for what the join
    has passed stays passed. The running period may lose `allowed` results, and `coming` of them
    come while nothing can be done about it. `largest` is the largest lateness in memory. `beyond`
    is filled: how many results of the interval, and of the shortest memory, are in each bucket or
    later.
    """
    of_interval = beyond[0]
    of_interval[top + 1] = 0.0
    for b in range(top, -1, -1):
        of_interval[b] = of_interval[b + 1] + late[b]
    of_memory = beyond[1]
    of_memory[used] = 0.0
    for b in range(used - 1, -1, -1):
        of_memory[b] = of_memory[b + 1] + rules.recent[0, b]
    for r in range(rules.slack.shape[0]):
        b = _first_beyond(min(rules.slack[r], rules.in_force[r] + advance / 2), edges)
        if b <= top:
            rules.lost[0, r] += of_interval[b]
        rules.in_force[r] = min(rules.slack[r], rules.in_force[r] + advance)
        lost = 0.0
        for block in range(rules.lost.shape[0]):
            lost += rules.lost[block, r]
        rules.bad[r] += fade * ((1.0 if lost > allowed else 0.0) - rules.bad[r])
        rules.cost[r] += fade * (rules.slack[r] - rules.cost[r])
        slack = rules.plain[r // REACTIONS]
        if r % REACTIONS == 0:
            slack = max(
                _reacting(r, lost / max(allowed, _SMALL), largest, rules),
                _bearable(
                    max(0.0, allowed - lost), coming, rules.totals[0], of_memory, used, edges
                ),
            )  # fmt: skip
        rules.slack[r] = slack


@kernel
def follow(
    own, allowed, coming, weight, credit, failing, price, spread, reserve, largest, beyond, used,
    edges, score, rules,
):  # fmt: skip
    """Return the mean slack of the best rules, with a reserve, and the guard.

    A rule's score is the logarithm of its average slack, and `price` times the share of bad periods
    beyond `failing`; `score` is filled. What K itself lost in the running period, `own`, decides
    what is added. Rules count by how close they are to the best one: worse by `spread`, 1/e. The
    guard is large enough for `coming` results as late as the last ones: the past may know nothing
    like them.
    """
    best = 1e300
    for r in range(score.shape[0]):
        excess = max(0.0, rules.bad[r] / (weight + credit) - failing)
        score[r] = log(rules.cost[r] / weight + 1.0) + price * excess
        best = min(best, score[r])
    spent = own / max(allowed, _SMALL)
    weights = 0.0
    logs = 0.0
    for r in range(score.shape[0]):
        share = exp((best - score[r]) / spread)
        if share > _GONE:
            slack = rules.plain[r // REACTIONS]
            if r % REACTIONS == 0:
                slack = _reacting(r, spent, largest, rules)
            weights += share
            logs += share * log(slack * (1.0 + reserve) + 1.0)
    guard = _bearable(max(0.0, allowed - own), coming, rules.totals[0], beyond[1], used, edges)
    return exp(logs / weights) - 1.0, guard
