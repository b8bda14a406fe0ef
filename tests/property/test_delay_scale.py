"""The histogram of delays: never below the exact delay, and as fine as asked, whatever comes."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.strategies import tried
from slackwater.kernels import delay_scale as scale
from slackwater.kernels import recall as kernels
from slackwater.kernels.delay_scale import BUCKETS, ENDS, LINEAR, buckets_of, longest_delay
from slackwater.kernels.records import KEY, STREAM, TICK, TS, Arrivals
from slackwater.stats.delays import Delays

DAY = 86_400_000
STEPS = st.integers(0, 2**62 - 1) | st.integers(0, 2 * LINEAR) | st.integers(0, 62).map(
    lambda n: 2**n
)  # fmt: skip
DELAYS = st.integers(0, 300) | st.integers(0, 100_000) | st.sampled_from([3_600_000, DAY])


def test_buckets_follow_each_other_and_have_the_promised_width():
    assert len(ENDS) == BUCKETS
    assert ENDS[: LINEAR + 1].tolist() == list(range(LINEAR + 1))
    assert ENDS[-1] == 2**62
    width = np.diff(ENDS)
    assert (width > 0).all()
    assert (32 * width[LINEAR:] <= ENDS[LINEAR:-1]).all()
    assert [scale.end_of(bucket) for bucket in range(BUCKETS)] == ENDS.tolist()


@given(STEPS)
def test_a_bucket_is_the_first_that_does_not_end_before_the_delay(steps):
    bucket = scale.bucket_of(steps)
    assert bucket == np.searchsorted(ENDS, steps) == buckets_of(np.array([steps]), 1)[0]
    below = scale.bucket_below(steps)
    assert below == np.searchsorted(ENDS, steps, side="right") - 1
    assert ENDS[below] <= steps <= ENDS[bucket]


@pytest.mark.parametrize("steps", [2**62 + 2, 2**62 + 2**58, 2**63 - 1])
def test_what_is_longer_than_any_bucket_counts_in_the_last_one(steps):
    assert scale.bucket_of(steps) == scale.bucket_below(steps) == BUCKETS - 1
    assert buckets_of(np.array([steps]), 1).tolist() == [BUCKETS - 1]


def logged(stream, delay):
    """The log of these arrivals: those of a tick have no delay."""
    event = np.zeros((len(delay), 4), np.int64)
    event[:, STREAM], event[:, TS] = stream, DAY * 2 - np.array(delay)
    return event


def counted(events, granularity, cuts=(), m=2):
    """`Delays` that have taken in (stream, delay), cut into batches."""
    delays = Delays(m, granularity, every=1000)
    stream, delay = (np.array(column, np.int64) for column in zip(*events, strict=True))
    arrivals = as_arrivals(stream, delay)
    for begin, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        delays.arrive(begin, end, int(delay[:end].max(initial=0)), arrivals)
    return delays


def as_arrivals(stream, delay):
    fields = dict.fromkeys(Arrivals._fields)
    event = logged(stream, delay)
    assert not (event[:, KEY] == TICK).any()
    return Arrivals(**fields | {"base": 0, "event": event, "delay": delay})


EVENTS = st.lists(st.tuples(st.integers(0, 1), DELAYS), min_size=1, max_size=60)


@tried(0.25)
@given(EVENTS, st.sampled_from([1, 7, 10]), st.floats(0.01, 1.0))
def test_a_quantile_is_never_below_the_exact_one_and_hardly_above_it(events, g, share):
    delays = counted(events, g)
    delays.close(1000)
    rank = ceil(share * len(events) - 1e-6)
    exact = sorted(delay for _, delay in events)[rank - 1]
    within = np.cumsum(delays.histogram.sum(axis=0))
    found = longest_delay(int(np.searchsorted(within, rank)), g)
    assert exact <= found
    if exact <= LINEAR * g:
        assert found < exact + g
        assert found % g == 0
    else:
        assert 32 * (found - g) <= 33 * exact


@tried(0.25)
@given(EVENTS, EVENTS, st.data())
def test_counts_add_up_and_cuts_do_not_matter(events, more, data):
    both = counted(events + more, 10)
    apart = counted(events, 10), counted(more, 10)
    assert (both._now == apart[0]._now + apart[1]._now).all()
    n = len(events + more)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    cut = counted(events + more, 10, cuts)
    assert cut.state() == both.state()


def test_one_long_delay_changes_nothing_for_the_others():
    events = [(n % 2, 13 * n % 400) for n in range(1000)]
    plain, with_ = counted(events, 10), counted([*events, (0, DAY)], 10)
    for delays in (plain, with_):
        delays.close(1000)
    assert with_.granularity == 10
    difference = with_.histogram - plain.histogram
    assert difference.sum() == 1
    assert longest_delay(with_.largest, 10) == pytest.approx(DAY, rel=1 / 32)


# ---- the recall model on buckets that are wider than a step


@st.composite
def long_delays(draw):
    """(histograms with counts beyond the linear part, leads in steps, windows in steps)."""
    m = draw(st.integers(2, 4))
    buckets = st.integers(0, 20) | st.integers(LINEAR - 5, LINEAR + 90)
    histograms = np.zeros((m, LINEAR + 100), np.int64)
    for histogram in histograms:
        for bucket in draw(st.lists(buckets, min_size=1, max_size=8)):
            histogram[bucket] += draw(st.integers(1, 9))
    leads = np.array([draw(st.integers(0, 300)) for _ in range(m)])
    windows = np.array([draw(st.floats(0.5, 6_000)) for _ in range(m)])
    return histograms, leads, windows


def step_by_step(k, histograms, leads, windows):
    """Eq. (5) where the share of events in order is looked up for each step."""
    m, longest = len(histograms), int(k + leads.max() + windows.max()) + 2
    shares = []
    for histogram in histograms:
        at = np.repeat(ENDS[: len(histogram)], histogram)
        shares.append(np.searchsorted(at, np.arange(longest), side="right") / len(at))
    in_order = [share[k + lead] for share, lead in zip(shares, leads, strict=True)]
    fills = []
    for share, lead, window in zip(shares, leads, windows, strict=True):
        whole = int(window)
        have = share[k + lead : k + lead + whole].sum()
        fills.append(have + (window - whole) * share[k + lead + whole])
    others = [[j for j in range(m) if j != i] for i in range(m)]
    produced = sum(in_order[i] * np.prod([fills[j] for j in others[i]]) for i in range(m))
    return produced / sum(np.prod([windows[j] for j in others[i]]) for i in range(m))


@tried(0.1)
@given(long_delays(), st.integers(0, 50) | st.integers(LINEAR - 400, 20_000))
def test_recall_beyond_the_linear_part_is_that_of_single_steps(model, k):
    histograms, leads, windows = model
    m, buckets = histograms.shape
    share, fill = np.empty((m, buckets)), np.empty((m, buckets + 1))
    kernels.running_sums(histograms, share, fill)
    found = kernels.recall_at(k, leads, windows, 1, share, fill)
    assert found == pytest.approx(step_by_step(k, *model), rel=1e-9)
