"""The reordering stage against the oracle, and what K-slack and the Synchronizer promise."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import arrivals, engine_steps, naive_steps
from naive import join, pipeline, reorder
from property.strategies import largest_delay, stages, tried
from slackwater.disorder.reorder import Reorder


def departures(m, events, slack, **options):
    """Arrival numbers in the order of leaving, flush included."""
    stage = Reorder(n_streams=m, slack=slack, **options)
    left = [n for e in events for n in stage.arrive(e.stream, e.ts, tick=e.values is None)]
    return left + stage.flush().event.tolist()


@pytest.mark.differential
@tried()
@given(stages())
def test_after_every_arrival_output_and_buffers_are_the_oracles(drawn):
    m, events, slack, options = drawn
    expected = list(naive_steps(events, slack, m, **options))
    assert list(engine_steps(events, slack, m, **options)) == expected


@pytest.mark.differential
@tried()
@given(stages())
def test_events_leave_exactly_in_the_oracles_order(drawn):
    m, events, slack, options = drawn
    steps = reorder(events, [slack] * m, **options)
    assert departures(m, events, slack, **options) == [
        e.arrival for left, *_ in steps for e in left
    ]


@tried(0.25)  # after each arrival it looks for all that waits
@given(stages())
def test_forgetting_events_that_have_left_changes_nothing(drawn):
    m, events, slack, options = drawn
    stage = Reorder(n_streams=m, slack=slack, **options)
    left = []
    for e in events:
        left += stage.arrive(e.stream, e.ts, tick=e.values is None)
        stage.log.trim(int(stage.waiting().min(initial=stage.log.end)))
    left += stage.flush().event.tolist()
    assert left == departures(m, events, slack, **options)


@pytest.mark.differential
@tried()
@given(stages(), st.binary(min_size=24, max_size=24))
def test_slack_may_change_between_any_two_arrivals(drawn, changes):
    m, events, slack, options = drawn
    options["follow"] = False
    stage = Reorder(n_streams=m, slack=slack, **options)
    ks = [slack] * m
    oracle = reorder(events, ks, **options)
    for e, change in zip(events, changes, strict=False):
        if change >= 128:
            ks[:] = [change - 128] * m  # the oracle reads this list at each arrival
            stage.set_slack(change - 128)
        left, slacks, syncs = next(oracle)
        tick = e.values is None
        assert stage.arrive(e.stream, e.ts, tick) == [x.arrival for x in left]
        assert [stage.in_slack(s) for s in range(m)] == [[x.ts for x in s] for s in slacks]
        assert [stage.in_sync(s) for s in range(m)] == [sorted(x.ts for x in s) for s in syncs]
    assert stage.flush().event.tolist() == [x.arrival for x in next(oracle)[0]]


@tried()
@given(stages())
def test_slack_no_smaller_than_every_delay_sorts_everything(drawn):
    m, events, extra, options = drawn
    left = departures(m, events, largest_delay(events) + extra, **options)
    times = [events[n].ts for n in left]
    if options["idle_after"] is None:
        assert times == sorted(times)
    if options["hold_ties"] and options["idle_after"] is None:
        assert [events[n] for n in left] == sorted(e for e in events if e.values is not None)


@tried()
@given(stages(streams=(1,)))
def test_one_stream_leaves_disordered_only_where_the_delay_exceeds_the_slack(drawn):
    _, events, slack, options = drawn
    newest = None
    for n in departures(1, events, slack, **options | {"follow": False}):
        e = events[n]
        if newest is not None and e.ts < newest:
            local = max(x.ts for x in events[: n + 1])
            assert local - e.ts > slack
        newest = e.ts if newest is None else max(newest, e.ts)


@tried()
@given(stages(), st.integers(1, 40))
def test_proposition_1_one_slack_for_all_keeps_the_skew(drawn, length):
    # Time is dense: every unit up to the last one has an event in order. Late ones come between.
    m, events, slack, _ = drawn
    extra = [e.ts % 50 for e in events] or [0]
    local = [length + slack + 5 * s for s in range(m)]
    reached = []
    for s in range(m):
        stage = Reorder(n_streams=1, slack=slack)
        times, left = [], []
        for t in range(local[s] + 1):
            for ts in [t, t - extra[t % len(extra)]]:
                times.append(max(0, ts))
                left += stage.arrive(0, times[-1])
        reached.append(max(times[n] for n in left))
        assert stage.local(0) == local[s]
    assert [local[s] - reached[s] for s in range(m)] == [slack] * m
    assert [reached[s] - reached[0] for s in range(m)] == [local[s] - local[0] for s in range(m)]


GRAIN = 4  # time units per unit of slack, lead, delay and window below


def dense_streams(rng, length, lead):
    """Two streams with an event per time unit and heavy delays; S1 leads S2 by `lead` units."""
    arriving = []
    for t in range(1, length + 1):
        for stream, now in ((0, t + lead), (1, t)):
            late = rng.random() < 0.3
            arriving.append((stream, max(1, now - rng.randint(1, 12 * GRAIN)) if late else now))
            arriving.append((stream, now))
    return arrivals(*arriving)


@tried(0.01)
@given(st.integers(0, 10**6), st.integers(0, 8), st.integers(0, 10), st.integers(0, 10))
def test_theorem_1_one_slack_recalls_as_much_as_one_per_stream(seed, lead, k1, k2):
    # Needs a constant lead (golden case: elsewhere it fails outright) and time that is fine
    # against the delays. Between two arrivals the lead is off by one unit, and that costs recall
    # whatever the length of the streams: up to 2 % with GRAIN = 1, 0.5 % with 3, 0.3 % with 5.
    lead, k1, k2 = GRAIN * lead, GRAIN * k1, GRAIN * k2
    events = dense_streams(random.Random(seed), 300, lead)
    windows = (4 * GRAIN, 6 * GRAIN)

    def meet(a, b):
        return (a.arrival + b.arrival) % 3 == 0

    same = max(k2, k1 - lead)  # min(T_i) - min(T_i - K_i), with T_1 = T_2 + lead
    true = len(join(sorted(events), windows, meet)[0])
    apart = len(pipeline(events, windows, meet, ks=[k1, k2])[0])
    alike = len(pipeline(events, windows, meet, ks=[same, same])[0])
    assert abs(apart - alike) <= 0.01 * true
