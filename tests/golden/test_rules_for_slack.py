"""The rules of the default controller of `Recall`, against the words of `kernels.back_test`."""

import math

import numpy as np
import pytest

from slackwater.kernels import back_test as kernels
from slackwater.kernels.back_test import REACTIONS, Rules

EDGES = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0])
LEVELS = (1.5, 0.75, 0.25)  # falling
DECAYS = (0.5, 0.9)
BLOCKS = 3


def new_rules():
    slacks = len(DECAYS) * len(LEVELS)
    n = REACTIONS * slacks
    return Rules(
        decay=np.array(DECAYS), level=np.array(LEVELS), recent=np.zeros((len(DECAYS), len(EDGES))),
        totals=np.zeros(len(DECAYS)), plain=np.zeros(slacks), leap=np.ones(slacks),
        slack=np.zeros(n), in_force=np.zeros(n), lost=np.zeros((BLOCKS, n)), bad=np.zeros(n),
        cost=np.zeros(n),
    )  # fmt: skip


class Naive:
    """The same with lists: one rule after the other."""

    def __init__(self):
        self.recent = [[0.0] * len(EDGES) for _ in DECAYS]
        self.totals = [0.0] * len(DECAYS)
        self.plain = [0.0] * (len(DECAYS) * len(LEVELS))
        self.leap = [1.0] * len(self.plain)
        n = REACTIONS * len(self.plain)
        self.slack, self.in_force, self.bad, self.cost = ([0.0] * n for _ in range(4))
        self.lost = [[0.0] * n for _ in range(BLOCKS)]

    def learn(self, late, total, loss, settled):
        for j, decay in enumerate(DECAYS):
            self.totals[j] = decay * self.totals[j] + total
            faded = [decay * count for count in self.recent[j]]
            faded = [count if count >= 0.001 else 0.0 for count in faded]
            self.recent[j] = [a + b for a, b in zip(faded, late, strict=True)]
            for v, level in enumerate(LEVELS):
                q = j * len(LEVELS) + v
                allowed = loss * level * self.totals[j]
                beyond = [sum(self.recent[j][b + 1 :]) for b in range(len(EDGES))]
                slack = EDGES[min(b for b, lost in enumerate(beyond) if lost <= allowed)]
                growth = slack / max(self.plain[q], 1.0)
                self.leap[q] = min(growth, 2.0) if settled and growth > 1.2 else 1.0
                self.plain[q] = slack

    def reacting(self, r, spent, largest):
        plain, leap = self.plain[r // 2], self.leap[r // 2]
        used = 1.0 + max(0.0, min(spent, 1.0) - 0.4)
        return max(plain, min(plain * leap * used, largest))

    def bearable(self, left, coming):
        allowed = left / max(coming, 1e-9) * self.totals[0]
        for b, edge in enumerate(EDGES):
            if sum(self.recent[0][b + 1 :]) <= allowed:
                return edge
        return EDGES[-1]

    def judge(self, late, advance, allowed, coming, fade, largest):
        for r in range(len(self.slack)):
            followed = min(self.slack[r], self.in_force[r] + advance / 2)
            self.lost[0][r] += sum(
                n for n, edge in zip(late, EDGES, strict=True) if edge > followed
            )
            self.in_force[r] = min(self.slack[r], self.in_force[r] + advance)
            lost = sum(block[r] for block in self.lost)
            self.bad[r] += fade * ((lost > allowed) - self.bad[r])
            self.cost[r] += fade * (self.slack[r] - self.cost[r])
            self.slack[r] = self.plain[r // 2]
            if r % 2 == 0:
                self.slack[r] = max(
                    self.reacting(r, lost / max(allowed, 1e-9), largest),
                    self.bearable(max(0.0, allowed - lost), coming),
                )

    def follow(
        self, own, allowed, coming, weight, credit, failing, price, spread, reserve, largest
    ):
        score = [
            math.log(cost / weight + 1) + price * max(0.0, bad / (weight + credit) - failing)
            for cost, bad in zip(self.cost, self.bad, strict=True)
        ]
        shares, logs = 0.0, 0.0
        for r, own_score in enumerate(score):
            share = math.exp((min(score) - own_score) / spread)
            if share > 0.001:
                slack = self.plain[r // 2]
                if r % 2 == 0:
                    slack = self.reacting(r, own / max(allowed, 1e-9), largest)
                shares += share
                logs += share * math.log(slack * (1 + reserve) + 1)
        guard = self.bearable(max(0.0, allowed - own), coming)
        return score, math.exp(logs / shares) - 1, guard


@pytest.mark.parametrize("seed", range(6))
def test_rules_learn_are_judged_and_followed_as_the_words_say(seed):
    rng, rules, naive, used = np.random.default_rng(seed), new_rules(), Naive(), 1
    beyond, score = np.zeros((2, len(EDGES) + 1)), np.zeros(REACTIONS * 6)
    seen, weight = set(), 0.0
    for step in range(40):
        burst = int(step % 13 > 9)
        late = np.zeros(len(EDGES))
        late[1:8] = rng.integers(0, 3 + 5 * burst, 7) * (rng.random(7) < 0.6)
        late[8:] = burst * rng.integers(0, 4, 2)
        top = int(np.flatnonzero(late).max(initial=0))
        used = max(used, top + 1)
        total, loss = float(late.sum() + rng.integers(0, 60)), 0.1
        settled = step > 2
        kernels.learn(late[: top + 1], top, total, loss, settled, EDGES, used, rules)
        naive.learn(late.tolist(), total, loss, settled)
        assert rules.plain == pytest.approx(naive.plain)
        assert rules.leap == pytest.approx(naive.leap)
        assert rules.totals == pytest.approx(naive.totals)
        assert rules.recent == pytest.approx(np.array(naive.recent), abs=1e-12)
        if step % 5 == 4:  # another block
            rules.lost[1:] = rules.lost[:-1].copy()
            rules.lost[0] = 0.0
            naive.lost = [[0.0] * len(naive.slack), *naive.lost[:-1]]
        largest = float(EDGES[used - 1])
        allowed = float(rng.integers(0, 30))
        coming, advance = float(rng.integers(0, 50)), float(rng.choice([0, 2, 7, 30]))
        weight += 0.2 * (1 - weight)
        kernels.judge(
            late[: top + 1], top, advance, allowed, coming, 0.2, largest, beyond, used, EDGES, rules
        )
        naive.judge(late.tolist(), advance, allowed, coming, 0.2, largest)
        for name in ("slack", "in_force", "bad", "cost"):
            assert getattr(rules, name) == pytest.approx(getattr(naive, name)), name
        assert rules.lost == pytest.approx(np.array(naive.lost))
        seen |= set(rules.slack.tolist())
        own = float(rng.integers(0, 30))
        found = kernels.follow(
            own, allowed, coming, weight, 0.1, 0.1, 3.0, 0.3, 0.25, largest, beyond, used, EDGES,
            score, rules,
        )  # fmt: skip
        wanted = naive.follow(own, allowed, coming, weight, 0.1, 0.1, 3.0, 0.3, 0.25, largest)
        assert score == pytest.approx(wanted[0])
        assert found == pytest.approx(wanted[1:])
    assert len(seen) > 15


@pytest.mark.parametrize(
    ("spent", "slack"),
    # 8 grew by 1.5; from two fifths of the allowance on more is added, and no more than is needed
    [(0.0, 12.0), (0.4, 12.0), (0.65, 15.0), (1.0, 19.2), (3.0, 19.2)],
)
def test_a_rule_that_reacts_adds_to_its_slack(spent, slack):
    rules = new_rules()
    rules.plain[1], rules.leap[1] = 8.0, 1.5
    assert kernels._reacting(2, spent, 55.0, rules) == pytest.approx(slack)
    assert kernels._reacting(2, spent, 10.0, rules) == 10.0
    assert kernels._reacting(2, spent, 5.0, rules) == 8.0
