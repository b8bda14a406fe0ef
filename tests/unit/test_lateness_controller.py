"""The controller of `Recall`, fed with the lateness of results by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

import slackwater as sw
from slackwater.controllers.controller import Interval
from slackwater.controllers.lateness import LatenessController
from slackwater.controllers.margin import Margin
from slackwater.kernels.histogram import BUCKETS, buckets_of
from slackwater.stats.lateness import LatenessOf

EVERY, PERIOD = 100, 40  # ms; intervals
GOAL = sw.Recall(0.9, over=f"{EVERY * PERIOD} ms", every=f"{EVERY} ms", granularity="1 ms")
QUERY = sw.join(*(sw.Stream(name, ts="ts", window="1 s") for name in "ab"), on="k", goal=GOAL)
CALM = list(range(1, 31))  # of 130 results in an interval, so late


class Fed:
    """A controller, and the clock of the intervals that it was given."""

    def __init__(self, **goal):
        self.controller = LatenessController(QUERY, replace(GOAL, **goal))
        self.now = self.slack = 0

    def step(self, late, lost=None):
        """An interval in which 100 results are on time, and others as late as `late` says."""
        self.now += EVERY
        counts = np.bincount(buckets_of(np.array(late, np.int64)), minlength=BUCKETS)
        if lost is None:
            lost = sum(lateness > self.slack for lateness in late)
        known = LatenessOf(counts, lost, 100, np.array([0]), 1)
        interval = Interval(
            self.now, self.slack, self.now - self.slack, (), None, self.now,
            most_behind=max(late, default=0), lateness=known,
        )  # fmt: skip
        self.slack = self.controller.next_slack(interval)
        return self.slack


def after(periods, late=CALM):
    fed = Fed()
    for _ in range(periods * PERIOD):
        fed.step(late)
    return fed


def test_a_reaction_adds_no_more_slack_than_the_largest_lateness_needs():
    fed = after(8, late=[100] * 30)
    assert fed.controller.largest == 101  # the edge of its bucket
    for _ in range(3):  # the allowance is used up, though nothing is later than before
        fed.step([100] * 30, lost=1000)
        assert fed.slack == 101
        assert any("used up" in word for word in fed.controller.reasons())


def test_results_later_than_anything_in_memory_raise_the_slack_at_once():
    fed = after(8)
    assert fed.slack <= 30
    assert fed.controller.reasons()[-1] == "the mean of this rule and those that are nearly as good"
    slacks = [fed.step([500] * 60) for _ in range(5)]
    assert slacks[-1] >= 500
    assert fed.controller.reasons()[-1].startswith("more like the last results would use up")


def test_one_burst_does_not_carry_the_slack_away():
    fed = after(8)
    slacks = [fed.step([60_000] * 60) for _ in range(20)]
    assert slacks[0] < 500  # the rules leap; from then on it grows by half in an interval
    assert all(b <= 1.55 * a for a, b in zip(slacks[:10], slacks[1:11], strict=True))
    assert slacks[-1] >= 60_000  # what lasts is followed


def test_slack_is_a_multiple_of_the_granularity_and_0_only_where_nothing_is_late():
    fed = Fed(granularity="25 ms")
    slacks = [fed.step(CALM) for _ in range(4 * PERIOD)]
    assert set(slacks[2 * PERIOD :]) <= {25, 50}
    on_time = Fed(granularity="25 ms")
    assert {on_time.step([]) for _ in range(4 * PERIOD)} == {0}


def bursts(sizes):
    """In each third period all results of an interval are so late; K when they come."""
    fed, slacks = after(2), []
    for size in sizes:
        slacks.append(fed.slack)
        fed.step([size] * 700)
        for _ in range(2 * PERIOD):
            fed.step(CALM)
    return fed, slacks


def test_where_bursts_outgrow_the_rules_a_margin_holds_more_of_them(monkeypatch):
    sizes = (30 * np.exp(np.random.default_rng(1).exponential(0.8, 24))).astype(int).tolist()
    fed, slacks = bursts(sizes)
    assert any("it was not enough" in word for word in fed.controller.reasons())
    monkeypatch.setattr(Margin, "factor", lambda *_: 1.0)
    _, without = bursts(sizes)
    bad, worse = (
        sum(slack < size for slack, size in zip(k, sizes, strict=True)) for k in (slacks, without)
    )
    assert bad < worse


def test_what_is_lost_in_a_tenth_of_a_period_may_not_use_up_the_allowance():
    # 4 of 100 results are late by 500 ms: in a tenth of a period far fewer than may be lost
    fed = after(8, late=[500] * 4)
    assert fed.slack < 500
    assert "more like" not in fed.controller.reasons()[-1]


def test_the_reserve_of_the_start_is_gone_after_some_periods():
    early, late = after(1), after(8)
    said = [any("in reserve" in w for w in fed.controller.reasons()) for fed in (early, late)]
    assert said == [True, False]
    means = [np.mean([fed.step(CALM) for _ in range(PERIOD)]) for fed in (early, late)]
    assert means[0] > 1.05 * means[1]


@pytest.mark.parametrize("periods", [0, 1, 6])
def test_a_resumed_controller_goes_on_as_if_nothing_had_happened(periods):
    fed = after(periods)
    for _ in range(2):
        fed.step([300] * 50)
    other = Fed()
    other.now, other.slack = fed.now, fed.slack
    other.controller.resume(json.loads(json.dumps(fed.controller.state())))
    assert other.controller.reasons() == fed.controller.reasons()
    for late in (CALM, [300] * 50, CALM, [40] * 30, CALM):
        assert other.step(late) == fed.step(late)
    assert other.controller.reasons() == fed.controller.reasons()
