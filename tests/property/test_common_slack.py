"""One K for all shards: S is equal behind each micro-batch, and later results lie above it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import LONG, engine_query, plain, replicate, shard_batch, true_results
from lockstep import Lockstep, micro_batches, naive_shared
from property.strategies import cases, tried
from property.test_goals import GOALS as ALL_GOALS
from property.test_lateness import Scripted, clocked_case
from slackwater.engine.commands import Command
from slackwater.engine.join import JoinEngine
from slackwater.engine.shard_report import ShardReport
from slackwater.errors import SnapshotError

pytestmark = pytest.mark.determinism

KEYS = ("key", "keys")
COUNTS = st.sampled_from([2, 4, 8])
ANY_COUNT = st.sampled_from([1, 2, 4, 8])
SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=6)
FLUSH = Command(flush=True)
SILENCE = st.sampled_from([None, None, 1, 5, 20, 60])
GOALS = {name: goal for name, goal in ALL_GOALS.items() if name != "no slack"} | {
    "fixed": sw.Slack(7),
    "none": sw.NoSlack(),
    "largest": sw.MaxSlack(),
    "late events": sw.DropRatio(0.05),
    "at least": sw.Recall(0.9, over=12, every=3, granularity=2, at_least=5),
}


def scripts(draw, n):
    slacks = st.lists(st.integers(0, 40), min_size=1, max_size=4)
    return [tuple(draw(slacks)) for _ in range(n)]


@st.composite
def series(draw):
    """K as each of some shards wants it."""
    return scripts(draw, draw(COUNTS))


def is_in_order(times, reached):
    """Whether results lie above what was complete: S is equal, and none is at or below S - 1."""
    return not times or min(times) >= reached


def through(lockstep, case, sizes, commands=None):
    """All micro-batches; what was promised holds behind each."""
    for number, events in enumerate(micro_batches(case.events, sizes)):
        before = lockstep.reached[0]
        times = lockstep.run(events, (commands or {}).get(number, ()))
        assert is_in_order(times, before)
        assert len(set(lockstep.reached)) == 1
        assert len(set(lockstep.slacks)) == 1
        yield lockstep


@pytest.mark.differential
@tried(0.5)
@given(
    cases(slack=None, kinds=KEYS), SIZES, series(), st.sampled_from([1, 3, 10]), SILENCE,
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_shards_that_want_any_slack_are_the_oracles(
    case, sizes, wanted, every, idle_after, restart, retry
):
    case = clocked_case(case)._replace(slack=0)
    oracle = naive_shared(case, sizes, wanted, every, idle_after)
    query = replace(engine_query(case, retention=LONG), goal=sw.Recall(0.9))
    controllers = [Scripted(script, every) for script in wanted]
    lockstep = Lockstep(
        query, case, len(wanted), controllers, restart, retry, idle_after=idle_after
    )
    told = [(s.reached[0], s.slacks[0]) for s in through(lockstep, case, sizes)]
    assert told == list(zip(oracle.reached, oracle.slacks, strict=True))
    lockstep.run([], [FLUSH])
    assert sorted(lockstep.results) == plain(oracle.results)


@pytest.mark.differential
@tried(0.2)
@given(cases(slack=None, kinds=("theta", "cross")), SIZES, series(), SILENCE)
def test_so_are_shards_to_which_streams_are_copied(case, sizes, wanted, idle_after):
    case = clocked_case(case)._replace(slack=0)
    oracle = naive_shared(case, sizes, wanted, 3, idle_after, replicate)
    query = replace(engine_query(case, retention=LONG), goal=sw.Recall(0.9))
    controllers = [Scripted(script, 3) for script in wanted]
    lockstep = Lockstep(
        query, case, len(wanted), controllers, home=replicate, idle_after=idle_after
    )
    assert [s.reached[0] for s in through(lockstep, case, sizes)] == oracle.reached
    lockstep.run([], [FLUSH])
    assert sorted(lockstep.results) == plain(oracle.results)


@pytest.mark.parametrize("name", GOALS)
@tried(0.05)
@given(
    cases(kinds=KEYS), ANY_COUNT, SIZES, SILENCE, st.booleans(), st.booleans(), st.integers(0, 9)
)
def test_every_goal_keeps_the_order(name, case, n, sizes, idle_after, restart, retry, at):
    case = clocked_case(case)
    if name.startswith("late-degree"):
        case = case._replace(events=[e for e in case.events if e.stream < 2], kind="key",
                             windows=case.windows[:2])  # fmt: skip
    query = replace(engine_query(case, retention=LONG), goal=GOALS[name])
    lockstep = Lockstep(query, case, n, restart=restart, retry=retry, idle_after=idle_after)
    recall = 0.99 if isinstance(query.goal, sw.Recall) else None
    commands = {
        at: [Command(recall=recall, finished=("a",), flush=at % 2 == 0)],
        at + 1: [Command(slack=at)],
    }
    for _ in through(lockstep, case, sizes, commands):
        pass
    lockstep.run([], [FLUSH])
    lost = sum(engine.metrics().lost for engine in lockstep.engines)
    assert len(lockstep.results) == len(set(lockstep.results))
    assert len(lockstep.results) + lost == len(true_results(case))


@pytest.mark.differential
@tried(0.2)
@given(cases(slack=None, kinds=KEYS), COUNTS, SIZES)
def test_a_fixed_slack_gives_the_same_results_for_any_cuts(case, n, sizes):
    case = clocked_case(case)._replace(slack=3)
    found = []
    for cut in (sizes, [100]):
        lockstep = Lockstep(engine_query(case, retention=LONG), case, n)
        assert not lockstep.engines[0].common_slack.needs_reports
        for _ in through(lockstep, case, cut):
            pass
        lockstep.run([], [FLUSH])
        found.append((sorted(lockstep.results), lockstep.reached))
    assert found[0] == found[1]


# ---- what is learnt together


@pytest.mark.differential
@tried(0.2)
@given(cases(slack=None, kinds=KEYS), COUNTS, SIZES)
def test_the_sum_of_the_reports_is_what_one_shard_would_learn(case, n, sizes):
    case = clocked_case(case)._replace(slack=0)
    goal = sw.Recall(0.9, over=12, every=3, granularity=2)
    query = replace(engine_query(case, retention=LONG), goal=goal)
    lockstep, total = Lockstep(query, case, n), {}
    for _ in through(lockstep, case, sizes):
        for number, learnt in lockstep.reports.learnt().items():
            assert number not in total
            total[number] = learnt.lateness.counts.tolist()
    alone = Learning(query, case)
    assert {number: counts for number, counts in total.items() if any(counts)} == alone.counts


class Learning:
    """What one shard learns: `counts` of late results by interval."""

    def __init__(self, query, case):
        batch = shard_batch(case, case.events)
        schemas = dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
        engine = JoinEngine(query, schemas)
        choose, self.counts = engine.controller.next_slack, {}

        def next_slack(interval):
            counts = interval.lateness.counts.tolist()
            if any(counts):
                self.counts[interval.end // 3] = counts
            return choose(interval)

        engine.controller.next_slack = next_slack
        engine.feed(batch)


def test_a_report_that_was_changed_is_noticed():
    report = ShardReport(5, 100, [{}])
    data = report.to_bytes()
    assert ShardReport.from_bytes(data) == report
    for damaged in (data[:-1], b"", data[:-1] + bytes([data[-1] ^ 1]), b"x" + data[1:]):
        with pytest.raises(SnapshotError, match="the report of a shard is damaged"):
            ShardReport.from_bytes(damaged)
