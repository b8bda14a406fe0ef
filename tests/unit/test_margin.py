"""The margin of K: factors of K that are tried beside it, fed by hand."""

import json

import numpy as np

from slackwater.controllers.margin import Margin

EDGES = np.arange(1000.0)  # bucket b holds the lateness b
PERIOD = 20  # intervals, and as many blocks


def beyond(lateness, n):
    """Of an interval with n results that are so late."""
    return np.where(np.arange(lateness + 2) <= lateness, float(n), 0.0)


class Fed:
    """A margin over a K of 100, in periods that may lose 10 results."""

    def __init__(self):
        self.margin = Margin(PERIOD, 1.0 - 0.5 ** (1.0 / (20 * PERIOD)), PERIOD)
        self.known = 0.0

    def period(self, lateness=0):
        """One in which 20 results are so late, in its first interval."""
        for i in range(PERIOD):
            self.margin.turn_blocks(1)
            self.known += self.margin._fade * (1.0 - self.known)
            self.margin.judge(beyond(lateness, 20 * (i == 0)), EDGES, 1000.0, 10.0)
            self.margin.follow(100.0)
        return self.margin.factor(self.known)


def after(*lateness):
    fed = Fed()
    fed.period()
    for late in lateness:
        factor = fed.period(late)
    return factor


def test_slack_that_was_enough_has_no_margin():
    assert after(*[99] * 20) == 1.0


def test_one_bad_period_in_ten_is_borne_and_two_are_not():
    assert after(*[0] * 12, 190, *[0] * 6) == 1.0
    assert after(*[0] * 12, 190, 0, 190, 0, 190, *[0] * 3) == 2.0


def test_the_margin_is_the_smallest_factor_that_held():
    assert after(*[120] * 10) == 2.0 ** (3 / 8)  # of 1.19, 1.30, ... the first above 1.2
    assert after(*[390] * 10) == 4.0
    assert after(*[900] * 10) == 4.0  # there is no larger one


def test_there_is_none_before_five_periods_are_over():
    assert after(*[190] * 3) == 1.0
    assert after(*[190] * 5) == 2.0


def test_the_margin_goes_when_slack_is_enough_again():
    assert after(*[190] * 5) == 2.0
    assert after(*[190] * 5, *[0] * 60) == 1.0


def test_slack_in_force_rises_no_faster_than_the_clock():
    fed = Fed()
    fed.margin.follow(100.0)
    for _ in range(6 * PERIOD):  # the clock stands still: no slack is in force yet
        fed.margin.turn_blocks(1)
        fed.known += fed.margin._fade * (1.0 - fed.known)
        fed.margin.judge(beyond(50, 20), EDGES, 0.0, 10.0)
    assert fed.margin.factor(fed.known) == 4.0


def test_a_resumed_margin_goes_on_as_if_nothing_had_happened():
    fed, other = Fed(), Fed()
    for lateness in (0, 190, 50, 120, 300):
        fed.period(lateness)
    other.known = fed.known
    other.margin.resume(json.loads(json.dumps(fed.margin.state())))
    assert [fed.period(n) for n in (0, 500, 120)] == [other.period(n) for n in (0, 500, 120)]
