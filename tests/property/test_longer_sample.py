"""What lies beyond retention is estimated from a sample: right on average, and never silently 0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import engine_query, fed, tables, true_results
from property.strategies import cases, tried
from slackwater.engine.replay import recorded
from slackwater.stats.sampling import Sampling

CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
ALL = Sampling(share=1.0, times=10**9)  # it keeps every event, and for ever


@st.composite
def late_cases(draw):
    """Queries with short windows, so that retention is short; some events come very late."""
    return very_late(draw(cases()), draw(st.lists(st.integers(0, 24), max_size=6)))


def very_late(case, moved):
    """The case with the events at these places at the end."""
    least = 1 if case.bounds == "(]" else 0
    behind = [e for n, e in enumerate(case.events) if n in moved]
    events = [e for n, e in enumerate(case.events) if n not in moved] + behind
    return case._replace(
        events=[e._replace(arrival=n) for n, e in enumerate(events)],
        windows=[max(least, w % 9) for w in case.windows],
        pipeline="clocked",
        overdue="advance",
        late_probe="none",
    )


def metrics_of(case, sampling, counts=False):
    query = engine_query(case, select="count" if counts else "*")
    batch, _ = recorded(query, tables(case), "arr")
    return fed(query, batch, sampling=sampling)[-1]


@pytest.mark.differential
@tried()
@given(late_cases(), st.booleans())
def test_with_every_event_in_the_sample_the_estimate_is_what_is_missing(case, counts):
    metrics = metrics_of(case, ALL, counts)
    assert metrics.lost_not_estimated == 0
    found = metrics.produced + metrics.lost + metrics.lost_estimated
    assert found == len(true_results(case))
    assert metrics.lost_estimated_error == 0


@pytest.mark.differential
@tried(0.5)
@given(late_cases(), st.sampled_from([1, 2, 3]))
def test_a_short_reach_never_counts_too_much_and_says_when_it_is_too_short(case, times):
    metrics = metrics_of(case, Sampling(share=1.0, times=times))
    true = len(true_results(case))
    found = metrics.produced + metrics.lost + metrics.lost_estimated
    assert found == true if metrics.lost_not_estimated == 0 else found <= true
    assert metrics.lost_not_estimated <= metrics.lost_unknown


@pytest.mark.determinism
@tried(0.25)
@given(late_cases(), CUTS, st.booleans(), st.sampled_from([1, 2, 40]), st.integers(0, 3))
def test_cuts_and_restarts_change_neither_the_sample_nor_the_estimate(
    case, sizes, restart, times, seed
):
    query = engine_query(case)
    batch, _ = recorded(query, tables(case), "arr")
    sampling = Sampling(share=0.5, times=times, seed=seed)
    whole = fed(query, batch, sampling=sampling)
    assert fed(query, batch, sizes, restart=restart, sampling=sampling) == whole
