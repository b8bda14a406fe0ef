"""Where probes of lateness are sampled, the tail is counted exactly, and the rest on average."""

import numpy as np
import pytest

import slackwater as sw
from slackwater.controllers.lateness import LatenessController
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels import lateness as places
from slackwater.kernels.histogram import bucket_of, upper_edges
from slackwater.stats import lateness
from slackwater.testing.workloads import uniform_keys

EDGES = upper_edges()


class Recorder(LatenessController):
    """Notes the histogram of each interval, and how far behind was far in it."""

    def __init__(self, query, statistics_of):
        super().__init__(query, query.goal)
        self.far, self.one_in, self.counts, self._statistics_of = [1], [1], [], statistics_of

    def next_slack(self, interval):
        self.counts.append(interval.lateness.counts.copy())
        ctl = self._statistics_of().lateness.record.ctl
        self.far.append(int(ctl[places.FAR]))
        self.one_in.append(int(ctl[places.ONE_IN]))
        return 0


def histograms():
    """Of each interval of a join in which arrivals meet some thirty partners."""
    streams = [sw.Stream(name, ts="ts", window="2 s") for name in "ab"]
    query = sw.join(*streams, on="k", goal=sw.Recall(0.95, over="20 s"), select="count")
    tables = {
        name: uniform_keys(20_000, seed, rate_per_s=1_000, keys=64, mean_delay_ms=300)
        for seed, name in enumerate("ab", 7)
    }
    batch, _ = recorded(query, tables, "arrival")
    schemas = dict(zip(query.names, (t.schema for t in batch.tables), strict=True))
    recorder = Recorder(query, lambda: engine.statistics)
    engine = JoinEngine(query, schemas, controller=recorder)
    engine.feed(batch)
    return recorder


@pytest.fixture(scope="module")
def all_probed():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lateness, "_MOST_PROBES", 2**40)
        patch.setattr(lateness, "_MOST_STEPS", 2**40)
        return histograms()


@pytest.fixture(scope="module")
def sampled():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lateness, "_MOST_PROBES", 8)
        return histograms()


@pytest.mark.compiled
def test_the_tail_is_exact(all_probed, sampled):
    assert max(sampled.one_in) > 4
    assert max(all_probed.one_in) == 1
    judged = 0
    intervals = zip(sampled.far, sampled.one_in, sampled.counts, all_probed.counts, strict=False)
    for far, one_in, some, every in intervals:
        # An arrival that is `far` behind may complete results one unit later than that.
        beyond = bucket_of(far + 1) + 1
        assert some[beyond:].tolist() == every[beyond:].tolist()
        judged += int(every[beyond:].sum()) * (one_in > 1)
    assert judged > 1_000


@pytest.mark.compiled
def test_the_rest_is_right_on_average(all_probed, sampled):
    some, every = np.sum(sampled.counts, axis=0), np.sum(all_probed.counts, axis=0)
    assert some.sum() == pytest.approx(every.sum(), rel=0.05)
    assert np.average(EDGES, weights=some) == pytest.approx(
        np.average(EDGES, weights=every), rel=0.05
    )


@pytest.mark.parametrize(
    ("far", "probed", "steps", "then"),
    [
        (64, 2**9, 2**13, 64),  # just what may be done
        (64, 2**9 + 1, 0, 128),  # too many arrivals are that far behind
        (64, 0, 2**13 + 1, 128),  # or they take too long
        (64, 2**6, 0, 64),  # an eighth of it
        (64, 2**6 - 1, 2**10 - 1, 32),  # less than an eighth
        (1, 0, 0, 1),
    ],
)
def test_what_is_far_follows_what_it_costs(far, probed, steps, then):
    assert lateness._next_far(far, probed, steps) == then
