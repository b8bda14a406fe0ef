"""The search for harvest fractions, step by step, against the paper's words in slow Python.

All numbers of the models are small multiples of powers of two, so sums are exact and ties are ties:
where two steps are equally good the first one is taken, and a setting may cost just the budget.
"""

import itertools
import math

import numpy as np
import pytest

from slackwater.kernels import harvest as kernels
from slackwater.kernels.records import HarvestModel
from slackwater.shedding import harvest_search as setting

METRICS = {
    "output": kernels.BEST_OUTPUT,
    "output per cost": kernels.BEST_OUTPUT_PER_COST,
    "gain per cost": kernels.BEST_GAIN_PER_COST,
}


def some_model(rng, m, most):
    """A model of m streams with up to so many basic windows in a step."""
    shape = m, m - 1
    n = rng.integers(1, most + 1, shape)

    def shares():
        found = np.ones((*shape, most + 1))
        for i, j in itertools.product(range(m), range(m - 1)):
            inner = np.sort(rng.integers(0, 9, n[i, j] - 1))[::-1]
            steps = np.concatenate([[0], np.cumsum(inner)])
            found[i, j, : n[i, j]] = steps / 2 ** math.ceil(math.log2(max(steps[-1], 1) + 1))
        return found

    return HarvestModel(
        rate=rng.integers(0, 4, m).astype(float),
        n=n,
        entry=rng.integers(0, 2, shape).astype(float),
        each=rng.integers(0, 4, shape).astype(float),
        near=rng.integers(0, 3, shape) * 2.0,
        matches=rng.integers(0, 5, shape) / 2,
        passed=shares(),
        joined=shares(),
    )


def direction(i, counts, known):
    """Cost and output per time, one partial result after the other (IV-C)."""
    if 0 in counts[i]:
        return 0.0, 0.0
    partial, made, cost = known.rate[i], known.rate[i], 0.0
    for j, c in enumerate(counts[i]):
        found = known.passed[i, j, c]
        cost += partial * (known.entry[i, j] + c * known.each[i, j] + known.near[i, j] * found)
        partial *= known.matches[i, j] * found
        made *= known.matches[i, j] * known.joined[i, j, c]
    return cost, made


def whole(counts, known):
    parts = [direction(i, counts, known) for i in range(len(counts))]
    return sum(cost for cost, _ in parts), sum(made for _, made in parts)


def worth(metric, before, after):
    """What greedy search maximises (V-A.2)."""
    if metric == "output":
        return after[1]
    if metric == "output per cost":
        return after[1] / after[0] if after[0] else math.inf
    if after[1] <= before[1]:
        return 0.0
    return (after[1] - before[1]) / (after[0] - before[0]) if after[0] > before[0] else math.inf


def with_more(counts, i, j):
    if not counts[i][j]:
        return [[1] * len(row) if i == k else row for k, row in enumerate(counts)]
    return changed(counts, i, j, 1)


def changed(counts, i, j, by):
    return [
        [c + by * ((i, j) == (k, at)) for at, c in enumerate(row)] for k, row in enumerate(counts)
    ]


def off(counts, i):
    return [[0] * len(row) if i == k else row for k, row in enumerate(counts)]


def greedy(metric, budget, counts, known, leave=None):
    """Fig. 6: one step after the other; what was too expensive once is not tried again."""
    tried, frozen = 0, set()
    while True:
        before, best = whole(counts, known), (0.0, None)
        for i, row in enumerate(counts):
            for j, c in enumerate(row if row[0] else row[:1]):
                if i == leave or (i, j) in frozen or (row[0] and c == known.n[i, j]):
                    continue
                tried += 1
                after = whole(with_more(counts, i, j), known)
                if after[0] > budget:
                    frozen.add((i, j))
                elif worth(metric, before, after) > best[0]:
                    best = worth(metric, before, after), (i, j)
        if best[1] is None:
            return counts, tried
        i, j = best[1]
        if not counts[i][0]:
            frozen -= {(i, at) for at in range(len(counts[i]))}
        counts = with_more(counts, i, j)


def reverse(metric, budget, counts, known, held=None):
    """VI-A: leave out what loses least; the last basic window of a step takes the direction."""
    tried = 0
    while whole(counts, known)[0] > budget:
        before, best = whole(counts, known), (-1.0, None)
        for i, row in enumerate(counts):
            for j, c in enumerate(row if row[0] else []):
                if (i, j) == held or (c == 1 and held is not None and i == held[0]):
                    continue
                tried += 1
                after = whole(changed(counts, i, j, -1), known)
                score = worth(metric, before, after)
                if metric == "gain per cost":
                    lost, saved = before[1] - after[1], before[0] - after[0]
                    score = saved / lost if lost > 0 else math.inf if saved > 0 else 0.0
                if score > best[0]:
                    best = score, (i, j)
        if best[1] is None:
            return counts, tried
        i, j = best[1]
        counts = off(counts, i) if counts[i][j] == 1 else changed(counts, i, j, -1)
    return counts, tried


def polished(metric, budget, counts, known):
    """Each step gets one more and the others make room; then each direction is left out once."""
    m, steps = len(counts), len(counts[0])
    moves = [*itertools.product(range(m), range(steps)), *((i, None) for i in range(m))]
    tried, improved = 0, True
    while improved:
        improved = False
        for i, j in moves:
            if j is None:
                trial, more = greedy(metric, budget, off(counts, i), known, leave=i)
            elif counts[i][j] == known.n[i, j]:
                continue
            else:
                trial, more = reverse(metric, budget, with_more(counts, i, j), known, held=(i, j))
            trial, rest = greedy(metric, budget, trial, known)
            tried += more + rest
            cost, made = whole(trial, known)
            if cost <= budget and made > whole(counts, known)[1]:
                counts, improved = trial, True
    return counts, tried


def cases(seeds=24):
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        m = 2 + seed % 3 % 2
        known = some_model(rng, m, 4 if m == 2 else 3)
        every = whole(known.n.tolist(), known)[0]
        chosen = rng.integers(1, known.n + 1).tolist()
        chosen = off(chosen, 0) if seed % 2 else chosen
        best, _ = polished("output", every * 0.6, chosen, known)  # which then fits exactly
        budgets = whole(chosen, known)[0], whole(best, known)[0], every * 0.4, every
        yield from ((known, budget) for budget in budgets)


@pytest.mark.parametrize("metric", METRICS)
def test_greedy_and_reverse_take_the_papers_steps(metric):
    for known, budget in cases():
        everything, nothing = known.n.tolist(), np.zeros_like(known.n).tolist()
        found, tried = setting.searched(known, budget, "greedy", metric)
        wanted = greedy(metric, budget, nothing, known)
        assert (found.tolist(), tried) == wanted
        found, tried = setting.searched(known, budget, "reverse", metric)
        refilled = reverse(metric, budget, everything, known)
        assert (found.tolist(), tried) == refilled
        # ours: the reverse spends what it left over; the better one is polished
        more = greedy(metric, budget, refilled[0], known)
        options = [wanted, (more[0], refilled[1] + more[1])]
        best = max((counts for counts, _ in options), key=lambda counts: whole(counts, known)[1])
        best, rest = polished(metric, budget, best, known)
        found, tried = setting.searched(known, budget, "better", metric)
        assert found.tolist() == best
        assert tried == rest + sum(n for _, n in options)


def test_cost_and_output_are_sums_over_the_directions():
    for known, _ in cases():
        rng = np.random.default_rng(int(known.n.sum()))
        for _ in range(6):
            counts, shares = rng.integers(1, known.n + 1), rng.integers(0, 3, len(known.n)) / 2
            counts[rng.integers(0, len(counts))] *= rng.integers(0, 2)
            assert kernels.evaluate(counts, known) == whole(counts.tolist(), known)
            own = [direction(i, counts.tolist(), known) for i in range(len(counts))]
            assert setting.cost(counts, known, shares) == sum(
                share * cost for share, (cost, _) in zip(shares, own, strict=True)
            )
            assert setting.output(counts, known, shares) == sum(
                share * made for share, (_, made) in zip(shares, own, strict=True)
            )


def test_exhaustive_search_takes_the_cheapest_of_the_best():
    for known, budget in cases(6):
        choices = [
            [(0,) * known.n.shape[1], *itertools.product(*(range(1, n + 1) for n in row))]
            for row in known.n.tolist()
        ]
        affordable = [
            (-made, cost)
            for cost, made in (whole(counts, known) for counts in itertools.product(*choices))
            if cost <= budget
        ]
        found = setting.searched(known, budget, "exhaustive")
        cost, made = whole(found[0].tolist(), known)
        assert (-made, cost) == min(affordable)
        assert found[1] == math.prod(1 + math.prod(row) for row in known.n.tolist())


def test_the_best_rate_of_a_direction_grows_one_basic_window_at_a_time():
    for known, _ in cases():
        for i in range(len(known.n)):
            counts = [[0] * known.n.shape[1] for _ in known.n]
            counts[i] = [1] * known.n.shape[1]
            while True:
                best, at = worth("output per cost", None, direction(i, counts, known)), None
                for j in range(known.n.shape[1]):
                    if counts[i][j] < known.n[i, j]:
                        tried = direction(i, changed(counts, i, j, 1), known)
                        rate = worth("output per cost", None, tried)
                        if rate > best:
                            best, at = rate, j
                if at is None:
                    break
                counts = changed(counts, i, at, 1)
            found = np.zeros_like(known.n)
            assert kernels.best_rate(i, found, known) == direction(i, counts, known)
            assert found[i].tolist() == counts[i]


def test_what_shredding_costs():
    """Each step searches the fraction of its window and passes on the fraction of what it finds."""
    for known, _ in cases(4):
        for fraction in (1.0, 0.5, 0.125):
            cost = 0.0
            for i, row in enumerate(known.n):
                partial = known.rate[i]
                for j, n in enumerate(row):
                    of_all = known.each[i, j] * n + known.near[i, j]
                    cost += partial * (known.entry[i, j] + fraction * of_all)
                    partial *= fraction * known.matches[i, j]
            assert kernels.shredded_cost(fraction, known) == cost
    # a * 100 + a * 20 * a * 50: of the whole cost of 1100 per event half is allowed
    known = setting.model([1.0, 0.0], [[100.0], [0.0]], [[1.0], [1.0]], [[np.ones(2)]] * 2)
    assert setting.shred_fraction(known, 50.0) == pytest.approx(0.5, rel=1e-6)
    assert setting.shred_fraction(known, 100.0) == pytest.approx(1.0, rel=1e-6)
    assert setting.shred_fraction(known, 1e-9) == pytest.approx(1e-6)
    steps = setting.model(
        [1.0, 0.0, 0.0], np.full((3, 2), 100.0), np.full((3, 2), 2.0), [[np.ones(2)] * 2] * 3
    )
    a = setting.shred_fraction(steps, 75.0)
    assert 100 * a + 2 * a * 100 * a == pytest.approx(75.0)


def test_a_model_has_the_shares_of_the_best_basic_windows():
    known = setting.model(
        rate=[1.0, 2.0],
        candidates=[[30.0], [8.0]],
        matches=[[3.0], [4.0]],
        scores=[[[1.0, 6.0, 1.0]], [[0.0, 0.0]]],
        pass_scores=[[[5.0, 1.0, 4.0]], [[3.0, 1.0]]],
    )
    assert known.n.tolist() == [[3], [2]]
    assert known.each.tolist() == [[10.0], [4.0]]
    assert (known.entry.tolist(), known.near.tolist()) == ([[0.0], [0.0]], [[0.0], [0.0]])
    # the second one first, then the first and the third; nothing is known: all are equal
    assert known.joined.tolist() == [[[0.0, 0.75, 0.875, 1.0]], [[0.0, 0.5, 1.0, 1.0]]]
    assert known.passed.tolist() == [[[0.0, 0.1, 0.6, 1.0]], [[0.0, 0.75, 1.0, 1.0]]]
    alike = setting.model([1.0, 2.0], [[30.0], [8.0]], [[3.0], [4.0]], [[[1, 6, 1]], [[0, 0]]])
    assert alike.passed.tolist() == alike.joined.tolist() == known.joined.tolist()
    given = setting.model(
        [1.0, 2.0], [[30.0], [8.0]], [[3.0], [4.0]], [[[1, 6, 1]], [[0, 0]]],
        entry=[[1.0], [2.0]], each=[[3.0], [4.0]], near=[[5.0], [6.0]],
    )  # fmt: skip
    assert (given.entry.tolist(), given.each.tolist(), given.near.tolist()) == (
        [[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]],
    )  # fmt: skip
    assert setting.ranking([1.0, 4.0, 1.0, 4.0]).tolist() == [1, 3, 0, 2]
    assert setting.full(given).tolist() == [[3], [2]]


# ---- shares of events, by hand: an event of S1 costs 4 and makes 8 results, one of S2 2 and 2

SHARED = setting.model(
    rate=[1.0, 1.0], candidates=[[4.0], [2.0]], matches=[[8.0], [2.0]], scores=[[[1.0]], [[1.0]]]
)


@pytest.mark.parametrize(
    ("budget", "counts", "shares"),
    [
        (0.0, [0, 0], [1.0, 1.0]),  # nothing
        (1.0, [1, 0], [0.25, 1.0]),  # results per cost: S1 first
        (3.0, [1, 0], [0.75, 1.0]),  # 6 results are more than S2's 2 and a quarter of S1's
        (5.0, [1, 1], [1.0, 0.5]),
        (6.0, [1, 1], [1.0, 1.0]),
    ],
)
def test_what_is_left_goes_to_a_share_of_the_events(budget, counts, shares):
    chosen = setting.choose(SHARED, budget, "greedy", "gain per cost")
    found, of = setting.with_shares(chosen, SHARED, budget)
    assert (found.ravel().tolist(), of.tolist()) == (counts, shares)


def test_the_setting_stays_where_shares_alone_are_no_better():
    known = setting.model(
        rate=[1.0, 1.0], candidates=[[4.0], [2.0]], matches=[[4.0], [2.0]],
        scores=[[[1.0]], [[1.0]]],
    )  # fmt: skip
    found, of = setting.with_shares(np.array([[0], [1]]), known, 3.0)
    assert (found.ravel().tolist(), of.tolist()) == ([1, 1], [0.25, 1.0])
    # a direction that costs nothing to try has no best rate, and is left alone
    known = known._replace(rate=np.array([0.0, 1.0]))
    found, of = setting.with_shares(np.array([[0], [0]]), known, 1.0)
    assert (found.ravel().tolist(), of.tolist()) == ([0, 1], [1.0, 0.5])
