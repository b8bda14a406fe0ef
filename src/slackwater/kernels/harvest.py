"""How much of each window to search: the cost and the output of a setting, and greedy search.

A *setting* has, for each direction (the stream of the searching event) and each step of its join
order, how many basic windows are harvested, the best ones first. A direction whose counts are zero
is off. Cost and output of a setting follow GrubJoin IV-C: each step is entered once for every
partial result of the steps before it.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part

# what greedy search maximises (GrubJoin V-A.2)
BEST_OUTPUT = 0
BEST_OUTPUT_PER_COST = 1
BEST_GAIN_PER_COST = 2  # additional output per additional cost

_BEYOND = 1e300  # the score of a gain without cost


@part
def _direction(i, counts, model):
    """Return cost and output per time of direction `i`."""
    partial = model.rate[i]
    output = model.rate[i]
    cost = 0.0
    for j in range(counts.shape[1]):
        c = counts[i, j]
        if c == 0:
            return 0.0, 0.0
        found = model.near[i, j] * model.passed[i, j, c]
        cost += partial * (model.entry[i, j] + model.each[i, j] * c + found)
        partial *= model.matches[i, j] * model.passed[i, j, c]
        output *= model.matches[i, j] * model.joined[i, j, c]
    return cost, output


@part
def _score(metric, cost, output, old_cost, old_output):
    if metric == BEST_OUTPUT:
        return output
    if metric == BEST_OUTPUT_PER_COST:
        return output / cost if cost > 0.0 else _BEYOND
    gain = output - old_output
    if gain <= 0.0:
        return 0.0
    more = cost - old_cost
    return gain / more if more > 0.0 else _BEYOND


@part
def _start(i, value, counts):
    for j in range(counts.shape[1]):
        counts[i, j] = value


@kernel
def evaluate(counts, model):
    """Return (cost, output) of a setting."""
    cost = 0.0
    output = 0.0
    for i in range(counts.shape[0]):
        c, o = _direction(i, counts, model)
        cost += c
        output += o
    return cost, output


@kernel
def evaluate_shares(counts, shares, model):
    """Return (cost, output) of a setting that is for a share of each direction's events."""
    cost = 0.0
    output = 0.0
    for i in range(counts.shape[0]):
        c, o = _direction(i, counts, model)
        cost += shares[i] * c
        output += shares[i] * o
    return cost, output


@kernel
def shredded_cost(fraction, model):
    """Return the cost of a join in which each step searches a fraction of its window."""
    total = 0.0
    for i in range(model.n.shape[0]):
        partial = model.rate[i]
        for j in range(model.n.shape[1]):
            whole = model.each[i, j] * model.n[i, j] + model.near[i, j]
            total += partial * (model.entry[i, j] + fraction * whole)
            partial *= fraction * model.matches[i, j]
    return total


@kernel
def best_rate(i, counts, model):
    """Set direction `i` to the most output per cost, without a budget; return (cost, output)."""
    _start(i, 1, counts)
    cost, output = _direction(i, counts, model)
    while True:
        best = output / cost if cost > 0.0 else _BEYOND
        best_j = -1
        for j in range(counts.shape[1]):
            if counts[i, j] < model.n[i, j]:
                counts[i, j] += 1
                new_cost, new_output = _direction(i, counts, model)
                counts[i, j] -= 1
                rate = new_output / new_cost if new_cost > 0.0 else _BEYOND
                if rate > best:
                    best = rate
                    best_j = j
        if best_j < 0:
            return cost, output
        counts[i, best_j] += 1
        cost, output = _direction(i, counts, model)


@kernel
def pick(metric, budget, off, counts, frozen, model):
    """Raise `counts` step by step while `budget` allows (GrubJoin Fig. 6); return settings tried.

    A direction that is off starts with one basic window of each step. A step that was too expensive
    once is frozen: costs only grow. Direction `off` is not changed; -1: all may change.
    """
    m, steps = counts.shape
    cost, output = evaluate(counts, model)
    frozen[:, :] = 0
    tried = 0
    while True:
        best = 0.0
        best_i = -1
        best_j = 0
        for i in range(m):
            if i == off:
                continue
            own_cost, own_output = _direction(i, counts, model)
            is_off = counts[i, 0] == 0
            for j in range(1 if is_off else steps):
                if frozen[i, j] == 1 or (not is_off and counts[i, j] == model.n[i, j]):
                    continue
                if is_off:
                    _start(i, 1, counts)
                else:
                    counts[i, j] += 1
                tried += 1
                new_cost, new_output = _direction(i, counts, model)
                if is_off:
                    _start(i, 0, counts)
                else:
                    counts[i, j] -= 1
                new_cost += cost - own_cost
                new_output += output - own_output
                if new_cost > budget:
                    frozen[i, j] = 1
                    continue
                score = _score(metric, new_cost, new_output, cost, output)
                if score > best:
                    best = score
                    best_i = i
                    best_j = j
        if best_i < 0:
            return tried
        if counts[best_i, 0] == 0:
            _start(best_i, 1, counts)
            frozen[best_i, :] = 0
        else:
            counts[best_i, best_j] += 1
        cost, output = evaluate(counts, model)


@kernel
def pick_reverse(metric, budget, held, counts, model):
    """Lower `counts` step by step until `budget` allows (greedy reverse, GrubJoin VI-A).

    A direction that would lose its last basic window of a step is turned off. The step `held`,
    counted over all directions, is not changed; -1: all may change. Returns settings tried.
    """
    m, steps = counts.shape
    tried = 0
    cost, output = evaluate(counts, model)
    while cost > budget:
        best = -1.0
        best_i = -1
        best_j = 0
        for i in range(m):
            if counts[i, 0] == 0:
                continue
            own_cost, own_output = _direction(i, counts, model)
            for j in range(steps):
                if i * steps + j == held or (counts[i, j] == 1 and i == held // steps):
                    continue
                tried += 1
                counts[i, j] -= 1  # without its last one the direction is off
                new_cost, new_output = _direction(i, counts, model)
                counts[i, j] += 1
                new_cost += cost - own_cost
                new_output += output - own_output
                if metric == BEST_GAIN_PER_COST:  # least loss for what is saved
                    lost = max(output - new_output, 0.0)
                    saved = cost - new_cost
                    score = saved / lost if lost > 0.0 else _BEYOND
                    if lost <= 0.0 and saved <= 0.0:
                        score = 0.0
                else:
                    score = _score(metric, new_cost, new_output, cost, output)
                if score > best:
                    best = score
                    best_i = i
                    best_j = j
        if best_i < 0:
            return tried
        if counts[best_i, best_j] == 1:
            _start(best_i, 0, counts)
        else:
            counts[best_i, best_j] -= 1
        cost, output = evaluate(counts, model)
    return tried


@part
def _copy(source, target):
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel
def polish(metric, budget, counts, trial, frozen, model):
    """Leave the local optimum that greedy search ends in, as long as that pays.

    Each step in turn gets one basic window more, the others make room for it and share what is
    left; each direction in turn is turned off for the others. Returns settings tried.
    """
    m, steps = counts.shape
    tried = 0
    _, output = evaluate(counts, model)
    improved = True
    while improved:
        improved = False
        for move in range(m * steps + m):
            _copy(counts, trial)
            i = move // steps if move < m * steps else move - m * steps
            if move >= m * steps:
                _start(i, 0, trial)
                tried += pick(metric, budget, i, trial, frozen, model)
            else:
                j = move % steps
                if trial[i, j] == model.n[i, j]:
                    continue
                if trial[i, 0] == 0:
                    _start(i, 1, trial)
                else:
                    trial[i, j] += 1
                tried += pick_reverse(metric, budget, move, trial, model)
            tried += pick(metric, budget, -1, trial, frozen, model)
            new_cost, new_output = evaluate(trial, model)
            if new_cost <= budget and new_output > output * (1.0 + 1e-9):
                _copy(trial, counts)
                output = new_output
                improved = True
    return tried
