"""The controller of Recall by delays step by step, on numbers that can be worked out by hand.

An interval is 10 units long, and 100 results are true in each unless a test says otherwise. "P"
counts intervals.
"""

from math import sqrt
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.controllers.controller import Interval
from slackwater.controllers.factory import controller_for
from slackwater.controllers.measured import Measured
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels.records import BEFORE

L = 10
ONE, TWO = (NormalDist().cdf(n) for n in (1, 2))  # confidence in so many deviations
DELAYS = [70, 10, 10, 5, 4, 1]  # events by delay; K = 0, 1, ... loses .3 .2 .1 .05 .01 0


def query(target=0.9, p=4, window=0, confidence=0.5):
    goal = sw.Recall(
        target, over=L * p, every=L, granularity=1, confidence=confidence, model="measured"
    )
    return sw.join(*(sw.Stream(name, "ts", window) for name in "ab"), on="k", goal=goal)


def asked(**options):
    """(controller, what it wants to know)."""
    controller = controller_for(query(**options))
    return controller, controller.statistics(query(**options))


def happen(results, lost, predicted, true=100):
    """In interval 0, 1, ... so many results were lost, of which the model predicted a share."""
    for n, (gone, of, share) in enumerate(np.broadcast(lost, true, predicted)):
        at = np.array([L * n])
        results.produce(at, np.array([int(of - gone)]))
        results.lose(at, np.array([int(gone)]))
        results.predict(L * n, L * n, share)


def measured(lost, predicted, true=100, unchanged=None, **options):
    """What the controller makes of these intervals when all of them are settled."""
    controller, known = asked(**options)
    happen(known.results, lost, predicted, true)
    end = L * len(lost)
    if unchanged is not None:
        known.delays.changed = end - L * unchanged
    controller.resume({"begun": 0, "since": end, "predicted": 0.0})
    return controller._measured(known.results, Interval(end, 0, end, (end, end), known))


# ---- what it chooses


def choose(controller, known, clock, late=DELAYS):
    """K when `late` are the delays of one stream; the other is in order."""
    known.delays.histogram[0, : len(late)] = late
    known.delays.top = len(late) - 1
    end = max(clock, 0)
    return controller.next_slack(Interval(end, 0, clock, (end, end), known))


@pytest.mark.parametrize(("target", "slack"), [(0.6, 0), (0.75, 1), (0.85, 2), (0.98, 4), (1, 5)])
def test_at_first_the_model_is_taken_at_its_word(target, slack):
    controller, known = asked(target=target)
    assert controller.scale == 1.0  # pictures show it before any K is chosen
    assert choose(controller, known, clock=BEFORE) == slack
    state = controller.state()
    assert state.pop("predicted") == pytest.approx([0.3, 0.2, 0.1, 0.05, 0.01, 0.0][slack])
    assert state == {"begun": BEFORE, "since": BEFORE, "scale": 1.0}


def test_twice_the_predicted_loss_halves_what_the_model_may_predict():
    # .15 may be lost. Of 3 intervals 30 results should be lost and 210 were; 10 intervals of what
    # may be, 150, stand for the model: (210 + 150) / (30 + 150) = 2. The K of .1 no longer does
    controller, known = asked(target=0.85, p=1)
    happen(known.results, lost=[70] * 3, predicted=0.1)
    controller.resume({"begun": 0, "since": 30, "predicted": 0.1})
    assert choose(controller, known, clock=30) == 3
    assert controller.scale == pytest.approx(2.0)


def test_what_is_predicted_holds_from_one_boundary_to_the_next():
    # K = 2 is chosen at 0, when the join's clock is unknown, at 20 and at 50, and loses .1
    controller, known = asked(target=0.85)
    began = []
    for clock in (BEFORE, 20, 50):
        choose(controller, known, clock)
        began.append((controller.state()["begun"], controller.state()["since"]))
    assert began == [(BEFORE, BEFORE), (20, 20), (20, 50)]
    share = known.results.between(0, 60)[2]  # from interval 2, in which it began
    assert share == pytest.approx([0.1] * 4)


def test_what_was_lost_before_the_first_k_tells_nothing():
    # all of it, in intervals 0 to 3; then nothing in 4 and 5
    for begun, scale in ((31, 1.0), (30, 2.0)):  # 3 counts if K was there all the time
        controller, known = asked()
        happen(known.results, lost=[100] * 4 + [0] * 2, predicted=0.0)
        controller.resume({"begun": begun, "since": 60, "predicted": 0.0})
        choose(controller, known, clock=60)
        assert controller.scale == pytest.approx(scale)  # (100 + 100) / 100


def test_without_a_result_nothing_is_known():
    assert measured([0] * 5, 0.1, true=0) == Measured(1.0, 0.0, pytest.approx(0.1))


def test_a_step_of_disorder_is_noticed_within_two_intervals():
    # two events an interval; 30 intervals in order, then one of the two is late by 6
    ts = np.arange(0, 600, 5)
    arrival = np.where((ts >= 300) & (ts % L == 0), ts + 6, ts)
    order = np.argsort(arrival, kind="stable")
    table = pa.table({"ts": ts[order], "k": np.zeros_like(ts), "arr": arrival[order]})
    batch, _ = recorded(query(), {"a": table, "b": table}, "arr")
    engine = JoinEngine(query(), {"a": table.schema, "b": table.schema})
    engine.feed(batch)
    assert 300 < engine.statistics.delays.changed <= 300 + 2 * L


# ---- which intervals it judges


@pytest.mark.parametrize(
    ("window", "slack", "clock", "share"),
    [
        (0, 0, 100, 0.09),  # interval 9 ends at 100
        (0, 0, 99, 0.08),  # the join is still in it
        (0, 0, 35, 0.02),
        (0, 30, 100, 0.06),  # events of 70 may still come, and are not late
        (20, 0, 100, 0.07),  # late events of 80 may still take results of 100 with them
        (20, 30, 100, 0.04),
        (sw.Tuples(3), 0, 100, 0.08),  # nobody knows how far it reaches: a period
    ],
)
def test_intervals_are_judged_when_no_more_can_be_lost(window, slack, clock, share):
    controller, known = asked(window=window, p=1)
    happen(known.results, lost=range(10), predicted=0.0)  # the last one judged tells its number
    controller.resume({"begun": 0, "since": 0, "predicted": 0.0})
    at = Interval(100, slack, clock, (100, 100), known)
    assert controller._measured(known.results, at).spent == pytest.approx(share)


def test_spent_is_the_loss_of_the_last_period():
    lost = [90] * 3 + [10, 20, 30, 40]
    assert measured(lost, 0.1, p=4).spent == pytest.approx(0.25)
    assert measured(lost, 0.1, p=2).spent == pytest.approx(0.35)
    assert measured([20] * 2, 0.1, p=4).spent == pytest.approx(0.2)  # as far as there is any
    # a period without results has spent what it may
    assert measured([20, 0, 0], 0.1, true=[100, 0, 0], p=2).spent == pytest.approx(0.1)


@pytest.mark.parametrize(("p", "known"), [(4, 300), (30, 300), (40, 400)])
def test_ten_periods_are_remembered_and_at_least_300_intervals(p, known):
    results = asked(p=p)[1].results
    happen(results, lost=[0] * 1000, predicted=0.0)
    assert len(results.between(0, L * 1000)[0]) == known + 2  # the first and the last are cut


# ---- the scale


@pytest.mark.parametrize(("p", "over"), [(4, 60), (30, 60), (40, 80)])
def test_losses_are_compared_over_two_periods_and_at_least_60_intervals(p, over):
    # 50 were lost in the first one only; 10 intervals of what may be are 100: (50 + 100) / 100
    assert measured([50] + [0] * (over - 1), 0.0, p=p).scale == pytest.approx(1.5)
    assert measured([50] + [0] * over, 0.0, p=p).scale == pytest.approx(1.0)


def test_losses_before_a_change_of_disorder_are_not_compared():
    lost = [0, 0, 50, 0]
    scales = [measured(lost, 0.0, unchanged=n).scale for n in (2, 1, 0, -1)]
    assert scales == pytest.approx([1.5, 1.0, 1.0, 1.0])
    assert measured([0, 50], 0.0, unchanged=0).scale == pytest.approx(1.5)  # one there always is


def test_a_model_that_saw_too_much_is_scaled_down():
    assert measured([0] * 10, 0.1).scale == pytest.approx(0.5)  # 100 / (100 + 100)


def test_a_recall_of_1_gives_the_model_no_credit():
    # 30 lost of 20 predicted; if none was predicted, any loss is beyond measure
    assert measured([10] * 3, 0.2 / 3, target=1.0).scale == pytest.approx(1.5)
    assert measured([10] * 3, 0.0, target=1.0).scale > 1e9
    never_wrong = measured([0] * 3, 0.1, target=1.0)
    assert never_wrong.scale == 0.0
    assert asked(target=1.0)[0]._allowed(never_wrong) == 0.0  # and yet nothing may be lost


# ---- the margin: how far a period may exceed what is expected


CLUMPS = ([7] * 5 + [3] * 5) * 2  # 35, 15, 35, 15 of blocks that should lose 25


def test_a_long_period_varies_as_its_blocks_do():
    # A period of 4 blocks, 2000 results, loses 100; each block is 10 off, together √400 = 20: 1 %.
    # Losses come in clumps: one deviation counts as two, 2 %
    def margin(lost, confidence=ONE, p=20):
        return measured(lost, 0.05, p=p, confidence=confidence).margin * sqrt(0.05)

    assert margin(CLUMPS) == pytest.approx(0.02)
    assert margin(CLUMPS, confidence=TWO) == pytest.approx(0.04)
    assert margin(CLUMPS * 3) == pytest.approx(0.02)
    assert margin(CLUMPS[1:]) == 0.0  # of less than 4 blocks nothing is known
    # 2 blocks are √200 off of 1000 results
    assert margin(CLUMPS, p=10) == pytest.approx(0.02 * sqrt(2))
    # 8 blocks are √800 off of 4000 results; these 4 are taken to go on so
    assert margin(CLUMPS, p=40) == pytest.approx(0.02 / sqrt(2))
    assert margin([5] * 20) == pytest.approx(0.0)


def test_a_short_period_varies_as_it_was_seen_to():
    # Five periods of 2 intervals should lose 8 of 200 each, and lost 0, 4, 8, 12, 16: shares of
    # -.04 -.02 0 .02 .04 too much. A confidence of a half is taken for three in four: .02
    lost = [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]

    def margin(lost, true=100):
        return measured(lost, 0.04, true, p=2).margin

    assert margin(lost) * sqrt(0.04) == pytest.approx(0.02)
    assert margin([4, *lost]) * sqrt(0.04) == pytest.approx(0.02)  # half a period is left out
    without = [100] * 10 + [0, 0]  # a period without results has no share
    assert margin([*lost, 0, 0], without) * sqrt(0.04) == pytest.approx(0.02)
    assert margin(lost[:7]) == 0.0  # of less than 4 periods nothing is known
    # half of the periods have one result and lose it, half lose nothing: .5 too much of .5
    few = measured([0, 1, 0, 1], 0.5, true=1, p=1)
    assert few.margin * sqrt(0.5) == pytest.approx(0.5)


def test_periods_that_never_lost_too_much_need_no_margin():
    assert measured([0] * 10, 0.04, p=1).margin == 0.0  # all below what was expected


def test_periods_without_any_result_need_no_margin():
    nothing = np.zeros(20)
    for p in (1, 20):
        assert asked(p=p)[0]._margin(nothing, nothing, nothing) == 0.0


def test_losses_of_which_the_model_knows_nothing_leave_it_no_room():
    # it predicted none and 2 % were lost, whatever K: the square root of nothing is no measure
    found = measured([2] * 10, 0.0, p=1)
    assert asked(p=1)[0]._allowed(found) < 1e-9


def test_what_varied_before_a_change_counts_half():
    # P is one interval that should lose 4 of 100. Before: 24, .2 too much, by √.04: 1
    before, level, rough = [24] * 16, [4] * 4, [0, 0, 8, 8]
    assert measured(before + level, 0.04, p=1, unchanged=4).margin == pytest.approx(0.5)
    # of less than 4 periods nothing is known: all count
    assert measured(before + level, 0.04, p=1, unchanged=3).margin == pytest.approx(1.0)
    # since: -.04 -.04 .04 .04 too much, by √.04: .2; before, nothing
    assert measured([4] * 16 + rough, 0.04, p=1, unchanged=4).margin == pytest.approx(0.2)
    # no change: three in four of the twenty were not above what they should be
    assert measured([4] * 16 + rough, 0.04, p=1, unchanged=20).margin == pytest.approx(0.0)


def test_of_a_long_period_4_blocks_must_have_passed_since_a_change():
    # In five periods of 4 blocks 4, 3, 2, 1, 0 blocks are 10 off, √200 on average; none is now
    def margin(unchanged):
        lost = CLUMPS + [5] * 20
        found = measured(lost, 0.05, p=20, confidence=ONE, unchanged=unchanged)
        return found.margin * sqrt(0.05)

    assert margin(unchanged=19) == pytest.approx(2 * sqrt(200) / 2000)
    assert margin(unchanged=20) == pytest.approx(sqrt(200) / 2000)


# ---- what the last period left over


@pytest.mark.parametrize(("p", "window"), [(1, 0), (2, 10), (2, 30), (5, sw.Tuples(3))])
def test_what_was_spent_is_over_before_the_next_k_can_show(p, window):
    # an interval and a window are as long as the period, or longer
    controller, _ = asked(p=p, window=window)
    for spent in (0.0, 0.1, 1.0):
        assert controller._allowed(Measured(1.0, 0.0, spent)) == pytest.approx(0.1)


def test_it_goes_on_where_it_was():
    controller, known = asked(target=0.85)
    for clock in (20, 50):
        choose(controller, known, clock)
    again, _ = asked(target=0.85)
    again.resume(controller.state())
    assert again.state() == controller.state()
    old = {name: value for name, value in controller.state().items() if name != "scale"}
    again.resume(old)  # versions before did not tell
    assert again.scale == 1.0
