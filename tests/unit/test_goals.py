"""Each controller at work, and goals that cannot be served."""

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import fed
from slackwater.controllers.controller import Interval
from slackwater.controllers.factory import controller_for
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels.delay_scale import longest_delay
from slackwater.kernels.records import BEFORE
from slackwater.stats.productivity import Productivity

SMALL = {"over": 1000, "every": 100, "granularity": 10}


def query(goal, window=200, m=2, **options):
    streams = (sw.Stream(name, "ts", window) for name in "abc"[:m])
    return sw.join(*streams, on="k", goal=goal, **options)


# ---- goals that cannot be served


@pytest.mark.parametrize("target", [0, -0.1, 1.01, 95, True, "0.9"])
@pytest.mark.parametrize("goal", [sw.Recall, sw.InputQuantile])
def test_a_share_is_above_0_and_at_most_1(goal, target):
    with pytest.raises(sw.QueryError, match=f"must be above 0 and at most 1, got {target!r}"):
        goal(target)


def test_a_period_is_no_shorter_than_the_adaptation_interval():
    with pytest.raises(sw.QueryError, match=r"over must not be shorter than every.*got '1 second'"):
        query(sw.Recall(0.9, over="1 second", every="2 seconds"))


@pytest.mark.parametrize("limit", [-5, timedelta(milliseconds=-5)])
def test_a_latency_is_not_negative(limit):
    with pytest.raises(sw.QueryError, match="latency must be >= 0"):
        query(sw.Latency(limit))


@pytest.mark.parametrize("every", [0, "0 ms"])
def test_intervals_have_a_length(every):
    with pytest.raises(sw.QueryError, match="every and granularity must be at least 1 ms"):
        query(sw.InputQuantile(0.9, every=every))


def test_an_unknown_model_is_refused():
    with pytest.raises(sw.QueryError, match="model must be one of 'lateness', .*got 'neural'"):
        sw.Recall(0.9, model="neural")


def test_late_degrees_are_for_two_streams():
    with pytest.raises(sw.QueryError, match="model='late-degree' joins two streams, got 3"):
        controller_for(query(sw.Recall(0.9, model="late-degree"), m=3))


# ---- all of them on one long run


def stream(seed, n=600):
    """Ten events per 100 ms; heavy tailed delays that get worse half way."""
    rng = np.random.default_rng(seed)
    clock = np.arange(n) * 10
    delay = 10 * (rng.zipf(2.2, n) - 1) * np.where(clock < 5 * n, 1, 4)
    ts = np.maximum(0, clock - np.minimum(delay, 900))
    return pa.table({"ts": ts, "k": rng.integers(0, 3, n), "arr": clock})


TABLES = {"a": stream(1), "b": stream(2)}
GOALS = {
    "quantile": sw.InputQuantile(0.9, every=100),
    "latency": sw.Latency(100, every=100, granularity=1),
    "drop ratio": sw.DropRatio(0.05),
    "measured": sw.Recall(0.9, **SMALL),
    "eqsel": sw.Recall(0.9, model="eqsel", **SMALL),
    "noneqsel": sw.Recall(0.9, model="noneqsel", **SMALL),
    "late-degree": sw.Recall(0.9, model="late-degree", **SMALL),
    "late-degree, overall": sw.Recall(0.9, model="late-degree", overall=True, **SMALL),
    "pd": sw.Recall(0.9, model="pd", gains=(200, 100), **SMALL),
    "pd, overall": sw.Recall(0.9, model="pd", gains=(200, 100), overall=True, **SMALL),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", GOALS)
def test_a_long_run_may_be_cut_and_restarted_anywhere(name):
    asked = query(GOALS[name], select="count")
    batch, _ = recorded(asked, TABLES, "arr")
    whole = fed(asked, batch)
    assert len(whole[3]) > 3  # K changes
    assert fed(asked, batch, (97, 31, 200), restart=True) == whole


@pytest.mark.parametrize(
    "name", ["measured", "eqsel", "noneqsel", "late-degree", "late-degree, overall"]
)
def test_quality_comes_near_what_was_asked(name):
    run = query(GOALS[name], select="count").replay(TABLES, arrival="arr")
    report = run.report(target=0.9, over=1000, every=100)
    assert report.recall > 0.85
    assert report.average_slack < 900  # the largest delay


@pytest.mark.compiled
def test_a_drop_ratio_of_a_join_is_that_of_late_events():
    run = query(sw.DropRatio(0.05), select="count").replay(
        {"a": stream(1, 20_000), "b": stream(2, 20_000)}, arrival="arr"
    )
    late = sum(s.late_kept + s.late_dropped for s in run.metrics.streams.values())
    assert 0.8 * 0.05 <= late / 40_000 <= 0.05
    follows = query(sw.DropRatio(), select="count").replay(TABLES, arrival="arr")
    widest = query(sw.MaxSlack(), select="count").replay(TABLES, arrival="arr")
    assert follows.slack == widest.slack
    with pytest.raises(sw.QueryError, match="a join has no heartbeat"):
        query(sw.DropRatio(heartbeat="mean"))


def test_a_snapshot_of_a_profiler_has_only_what_is_there():
    asked = query(GOALS["noneqsel"], select="count")
    batch, _ = recorded(asked, TABLES, "arr")
    engine = JoinEngine(asked, {name: table.schema for name, table in TABLES.items()})
    engine.feed(batch)
    maps = engine.statistics.state()["productivity"]["maps"]
    assert all(0 < len(at) < 100 for at, _ in maps[:2])


# ---- one by one


def interval(controller, asked, slack=0, join_time=BEFORE, local=(0, 0), statistics=None):
    statistics = statistics or controller.statistics(asked)
    return Interval(max(local), slack, join_time, local, statistics)


def learnt(controller, asked, *histograms):
    """Statistics with these delay histograms."""
    statistics = controller.statistics(asked)
    for s, counts in enumerate(histograms):
        statistics.delays.histogram[s, : len(counts)] = counts
        statistics.delays.latest[s, : len(counts)] = counts
        statistics.delays.top = max(statistics.delays.top, len(counts))
    return statistics


def add(statistics, ts, produced, lost):
    one = np.array([ts])
    statistics.results.produce(one, np.array([produced]))
    statistics.results.lose(one, np.array([lost]))
    statistics.produced += produced
    statistics.lost += lost


class TestIcde16:
    def test_more_is_asked_after_losses_and_less_after_none(self):
        asked = query(GOALS["eqsel"])
        controller = controller_for(asked)
        statistics = learnt(controller, asked, [80, 10, 5, 5], [80, 10, 5, 5])
        for ts in range(0, 1000, 100):
            add(statistics, ts, 100, 0)
        generous = controller.instant_requirement(statistics.results, 1000)
        assert generous == pytest.approx(0.9 - 0.1 * 9)  # nine intervals had 10 % to spare
        controller.resume({"lost": [[n, 20.0] for n in range(10)]})
        assert controller.instant_requirement(statistics.results, 1000) == 1.0

    def test_a_silent_join_changes_nothing(self):
        asked = query(GOALS["noneqsel"])
        controller = controller_for(asked)
        statistics = learnt(controller, asked, [80, 10, 5, 5], [80, 10, 5, 5])
        add(statistics, 50, 90, 0)
        first = controller.next_slack(interval(controller, asked, 0, 120, (150, 150), statistics))
        for end in (250, 350, 450):  # nothing leaves K-slack
            at = interval(controller, asked, first, 120, (end, end), statistics)
            assert controller.next_slack(at) == first

    def test_without_a_result_the_requirement_is_the_target(self):
        controller = controller_for(query(GOALS["eqsel"]))
        results = controller.statistics(query(GOALS["eqsel"])).results
        assert controller.instant_requirement(results, BEFORE) == 0.9
        assert controller.instant_requirement(results, 500) == 0.9

    def test_what_late_events_should_have_made_adds_up(self):
        # a 100 meets b 110: the most that an event made is 1. a 40 comes late, in two intervals
        asked = query(GOALS["noneqsel"])
        controller = controller_for(asked)
        statistics = controller.statistics(asked)
        sums = []
        for _ in range(2):
            columns = [[0, 1, 0], [100, 110, 40], [0, 0, 80], [0, 1, 0], [0, 0, 1]]
            statistics.productivity.join(*map(np.array, columns))
            controller.next_slack(interval(controller, asked, 0, 120, (120, 120), statistics))
            sums.append(controller.state()["lost"])
        assert sums == [[(0, 1.0)], [(0, 2.0)]]

    def test_unproductive_late_events_need_no_slack(self):
        # a fifth of the events is 10 late; they meet as many others, but make nothing
        asked = query(GOALS["noneqsel"])
        slacks = []
        for joined in ([80, 20], [100, 0]):
            controller = controller_for(asked)
            statistics = learnt(controller, asked, [80, 20], [80, 20])
            statistics.productivity.crossed[:2] = [80, 20]
            statistics.productivity.joined[:2] = joined
            slacks.append(controller.next_slack(interval(controller, asked, statistics=statistics)))
        assert slacks == [10, 0]


class TestProfiler:
    def test_a_late_event_counts_as_much_as_the_most_productive_one(self):
        profile = Productivity(query(sw.NoSlack()), every=100, granularity=10)
        # a 100, b 110 meets it, a 120 meets b; a 40 comes late by 80
        columns = [[0, 1, 0, 0], [100, 110, 120, 40], [0, 0, 0, 80], [0, 1, 1, 0], [0, 0, 0, 1]]
        profile.join(*map(np.array, columns))
        assert profile.close() == {0: 1.0}  # in the interval of its own time
        assert profile.crossed[[0, 8]].tolist() == [2, 1]
        assert profile.joined[[0, 8]].tolist() == [2, 1]

    def test_an_empty_interval_leaves_the_maps_alone(self):
        profile = Productivity(query(sw.NoSlack()), every=100, granularity=10)
        columns = [[0, 1], [100, 110], [0, 0], [0, 1], [0, 0]]
        profile.join(*map(np.array, columns))
        profile.close()
        late = [[0], [90], [20], [0], [1]]
        profile.join(*map(np.array, late))
        assert profile.close() == {0: 1.0}  # as before
        assert profile.crossed.sum() == profile.joined.sum() == 1

    def test_a_long_delay_does_not_change_the_steps_of_short_ones(self):
        profile = Productivity(query(sw.NoSlack()), every=100, granularity=10)
        columns = [[0, 1, 1], [100, 110, 120], [0, 30, 86_400_000], [0, 1, 1], [0, 0, 0]]
        profile.join(*map(np.array, columns))
        profile.close()
        short, long = np.flatnonzero(profile.joined).tolist()
        assert short == 3  # (20, 30]
        assert 86_400_000 <= longest_delay(long, 10) <= 86_400_000 * 33 / 32

    def test_tuple_count_windows_do_not_grow(self):
        profile = Productivity(query(sw.NoSlack(), window=sw.Tuples(3)), every=100, granularity=10)
        for begin in range(0, 3000, 100):
            ts = np.arange(begin, begin + 100)
            nothing = np.zeros(100, np.int64)
            profile.join(ts % 2, ts, nothing, nothing, nothing)
        assert profile.state()["rows"][0][0] == [2994, 2996, 2998]
        assert profile._row.shape[1] == 1024


class TestLateDegree:
    def test_a_record_decays(self):
        asked = query(sw.Recall(0.9, model="late-degree", decay=0.5, **SMALL))
        controller = controller_for(asked)
        slacks = []
        for n in range(6):  # one bad interval, then none is late
            counts = [5, 0, 0, 5] if n == 0 else [10]
            statistics = learnt(controller, asked, counts, counts)
            slacks.append(controller.next_slack(interval(controller, asked, statistics=statistics)))
        assert slacks[0] == 30
        assert slacks[-1] == 0
        assert slacks == sorted(slacks, reverse=True)

    def test_slack_is_at_most_the_largest_late_degree(self):
        asked = query(sw.Recall(1.0, model="late-degree", **SMALL))
        controller = controller_for(asked)
        statistics = learnt(controller, asked, [9, 0, 1], [9, 1])
        assert controller.next_slack(interval(controller, asked, statistics=statistics)) == 20

    def test_a_stream_without_events_leaves_slack_alone(self):
        asked = query(GOALS["late-degree"])
        controller = controller_for(asked)
        statistics = learnt(controller, asked, [9, 0, 1])
        at = interval(controller, asked, 70, statistics=statistics)
        assert controller.next_slack(at) == 70

    def test_windows_are_counted_in_buckets_of_which_there_is_at_least_one(self):
        # buckets of 10; the 3 tuples of b take 30 units at a rate of .1, and for ever at none
        streams = sw.Stream("a", "ts", 2), sw.Stream("b", "ts", sw.Tuples(3))
        controller = controller_for(sw.join(*streams, on="k", goal=GOALS["late-degree"]))
        for rates, steps in (([1.0, 0.1], (1, 3)), ([0.0, 0.0], (1, 2**20))):  # 2**20: the most
            assert controller._steps(controller._windows(np.array(rates))) == steps

    def test_a_lead_makes_up_for_slack(self):
        asked = query(GOALS["late-degree"])
        slacks = []
        for local in ((500, 500), (530, 500)):
            controller = controller_for(asked)
            statistics = learnt(controller, asked, [5, 0, 0, 5], [10])
            at = interval(controller, asked, local=local, statistics=statistics)
            slacks.append(controller.next_slack(at))
        assert slacks == [30, 0]

    @pytest.mark.parametrize(("lost", "slack"), [(0, 0), (50, 30)])
    def test_overall_makes_up_for_the_past(self, lost, slack):
        # 10 % may be lost. If nothing was in five intervals, all of this one may be
        asked = query(GOALS["late-degree, overall"])
        controller = controller_for(asked)
        statistics = learnt(controller, asked, [5, 0, 0, 5], [5, 0, 0, 5])
        for ts in range(0, 1000, 100):
            add(statistics, ts, 100 - lost, lost)
        at = interval(controller, asked, 0, 1000, (1000, 1000), statistics)
        assert controller.next_slack(at) == slack


class TestLateRatio:
    def test_an_interval_without_events_leaves_slack_alone(self):
        asked = query(sw.DropRatio(0.05))
        controller = controller_for(asked)
        assert controller.next_slack(interval(controller, asked, slack=70)) == 70

    def test_at_first_slack_is_twice_the_largest_delay(self):
        # one event in order, one 30 late, then one in order: too few to know the share beyond
        asked = query(sw.DropRatio(0.05))
        controller = controller_for(asked)
        assert controller.start == 0
        for counts in ([1, 0, 0, 1], [1]):
            statistics = learnt(controller, asked, counts)
            at = interval(controller, asked, slack=70, statistics=statistics)
            assert controller.next_slack(at) == 60

    def steps(self, *intervals):
        """K after intervals of 100 events by delay, so many before and so many of them late."""
        asked = query(sw.DropRatio(0.1))
        controller = controller_for(asked)
        slacks = []
        for counts, events, late in intervals:
            statistics = learnt(controller, asked, counts)
            statistics.events, statistics.late = events, late
            at = interval(controller, asked, slack=70, statistics=statistics)
            slacks.append(controller.next_slack(at))
        return slacks

    @pytest.mark.parametrize(("late", "slack"), [(18, 0), (19, 10), (29, 10), (30, 20)])
    def test_the_budget_is_what_the_ratio_allows_by_the_end_of_the_next_interval(self, late, slack):
        # a tenth of 200 and of 100 more is 30, less those late so far. Beyond 0 there are 4 events,
        # at worst 4 + 4 * 2 = 12, beyond 10 none; without budget it is twice the largest delay
        assert self.steps(([96, 4], 200, late)) == [slack]

    def test_what_was_learnt_lasts(self):
        # then none is beyond 0. On average 2 are, at worst 2 + 4 * 2 = 10, of a budget of 40 - 31
        assert self.steps(([96, 4], 200, 0), ([100], 300, 31)) == [0, 10]


class TestPd:
    ASKED = query(sw.Recall(0.9, model="pd", gains=(1000, 500), **SMALL), window=0)

    def steps(self, *qualities, largest=50):
        """K after each interval with so many results of 100."""
        controller = controller_for(self.ASKED)
        statistics = learnt(controller, self.ASKED, [10] + [0] * (largest - 1) + [1])
        slacks, slack = [], 0
        for n, quality in enumerate(qualities):
            if quality is not None:
                add(statistics, 100 * n, quality, 100 - quality)
            clock = 100 * (n + 1)
            at = interval(controller, self.ASKED, slack, clock, (clock, clock), statistics)
            slack = controller.next_slack(at)
            slacks.append(slack)
        return slacks

    def test_it_follows_the_error_and_its_change(self):
        # 1000 * .1; then 1000 * .2 + 500 * .1 more; then 500 * -.2 less
        assert self.steps(80, 70, 90) == [100, 350, 250]

    def test_it_begins_where_it_has_learnt_nothing(self):
        begin = {"slack": 0.0, "error": None, "measured": BEFORE, "largest": 0}
        assert controller_for(self.ASKED).state() == begin

    def test_it_stays_between_0_and_the_largest_delay(self):
        assert self.steps(100, 100, 100) == [0, 0, 0]
        assert self.steps(0, 0, 100, largest=5) == [50, 50, 0]

    def test_without_a_result_it_stays(self):
        assert self.steps(80, None, None, 90) == [100, 100, 100, 50]

    def test_a_silent_join_is_not_judged_twice(self):
        controller = controller_for(self.ASKED)
        statistics = learnt(controller, self.ASKED, [10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        add(statistics, 0, 90, 10)
        add(statistics, 50, 10, 10)
        slacks = []
        for end in (150, 250, 350):
            at = interval(controller, self.ASKED, 70, 110, (end, end), statistics)
            slacks.append(controller.next_slack(at))
        assert slacks[1:] == [70, 70]
