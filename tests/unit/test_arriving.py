"""Delays that grow raise K at once, chance and single events do not."""

import numpy as np

from slackwater.stats.arriving import (
    ArrivingDelays,
    block_length,
    coarse_counts,
    counts_at_the_end,
    last_delays,
)

N, MEAN = 2_000, 100


def exponential(mean, n=N, seed=1):
    return np.random.default_rng(seed).exponential(mean, n).astype(np.int64)


def learnt(batches=20):
    delays = ArrivingDelays(over=60_000)
    for seed in range(batches):
        delays.remember(coarse_counts(exponential(MEAN, seed=seed)), passed=1_000)
    return delays


def test_the_share_beyond_the_slack_is_as_before():
    slack = 300  # 5 % of the delays are beyond
    for times in (2, 5, 20):
        now = exponential(times * MEAN, seed=99)
        raised = learnt().raised(slack, coarse_counts(now), least=0.005)
        assert 0.04 < np.mean(now > raised) < 0.075


def test_more_delays_of_the_same_kind_change_little():
    found = [
        learnt().raised(300, coarse_counts(exponential(MEAN, n, seed)), least=0.005)
        for seed in range(100, 150)
        for n in (20, 200, 2_000)
    ]
    assert np.mean(np.array(found) > 300) < 0.05
    assert max(found) < 400


def test_shorter_delays_and_no_delays_change_nothing():
    delays = learnt()
    for now in (exponential(20), np.empty(0, np.int64)):
        assert delays.raised(300, coarse_counts(now), least=0.005) == 300
    assert ArrivingDelays(60_000).raised(300, coarse_counts(exponential(900)), 0.005) == 300


def test_one_event_an_hour_late_changes_nothing():
    now = np.append(exponential(MEAN, seed=7), 3_600_000)
    assert learnt().raised(2_000, coarse_counts(now), least=0.0005) == 2_000


def test_what_was_long_ago_is_forgotten():
    delays = learnt()
    for seed in range(5):
        delays.remember(coarse_counts(exponential(5 * MEAN, seed=seed)), passed=60_000)
    now = coarse_counts(exponential(5 * MEAN, seed=77))
    assert delays.raised(300, now, least=0.005) == 300
    assert learnt().raised(300, now, least=0.005) > 1_000


def test_behind_a_long_micro_batch_only_its_end_is_remembered():
    delays = ArrivingDelays(over=60_000)
    for mean in (9 * MEAN, MEAN):  # a tide: it was high, and is low now
        delays.remember(coarse_counts(exponential(mean)), passed=60_000)
    raised = delays.raised(300, coarse_counts(exponential(9 * MEAN, seed=7)), least=0.005)
    assert 2_000 < raised < 3_000  # 5 % of the delays were beyond 300 at low tide
    delays.remember(coarse_counts(exponential(9 * MEAN)), passed=1_000)
    assert delays.raised(300, coarse_counts(exponential(9 * MEAN)), least=0.005) < 1_000


def test_the_end_of_a_micro_batch_is_that_of_all_its_parts_in_any_order():
    length = block_length(600)
    assert length == 60
    whole = np.array([0, 10, 5, 59, 130, 100, 179, 180, 121, 239, 200])  # blocks 0, 2, 3
    parts = [last_delays(whole[begin:end], length) for begin, end in ((0, 4), (4, 7), (7, 11))]
    expected = coarse_counts(np.array([0, 30, 0, 0, 59, 0, 39]))
    for some in (parts, parts[::-1], [*parts, last_delays(whole[:0], length)]):
        assert counts_at_the_end(some).tolist() == expected.tolist()
    assert counts_at_the_end([last_delays(whole, length)]).tolist() == expected.tolist()
    assert counts_at_the_end([]).sum() == 0


def test_a_restored_memory_gives_the_same():
    delays, again = learnt(), ArrivingDelays(over=60_000)
    again.resume(delays.state())
    now = coarse_counts(exponential(300))
    assert again.raised(300, now, 0.005) == delays.raised(300, now, 0.005) > 500
