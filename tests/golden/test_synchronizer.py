"""The Synchronizer (ICDE16 Alg. 1) behind K-slack, arrival by arrival.

One line per arrival: what came (stream and time), what left the Synchronizer, then what the
K-slack buffers and the Synchronizer's buffers of all streams hold.
"""

import pytest

from helpers import arrivals, engine_steps, naive_steps
from naive import pipeline, truth

both = pytest.mark.parametrize("trace", [naive_steps, engine_steps], ids=["oracle", "engine"])


def replay(trace, lines, **options):
    """Run the arrivals of `lines`; return the lines as they really were, and the flush."""
    events = arrivals(*((int(line[0][1]) - 1, int(line[0][3:])) for line in lines))
    *steps, flush = trace(events, **options)
    story = [(line[0], *step) for line, step in zip(lines, steps, strict=True)]
    return story, flush.left


# fmt: off


@both
def test_algorithm_1_without_slack_holds_the_leading_stream_back(trace):
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S1:1", [],          [[], []],    [[1], []]),
        ("S1:3", [],          [[], []],    [[1, 3], []]),
        ("S2:2", [1, 2],      [[], []],    [[3], []]),         # T_sync = 2
        ("S2:4", [3],         [[], []],    [[], [4]]),         # T_sync = 3
        ("S2:6", [],          [[], []],    [[], [4, 6]]),
        ("S1:5", [4, 5],      [[], []],    [[], [6]]),         # T_sync = 5
        ("S2:9", [],          [[], []],    [[], [6, 9]]),
        ("S1:9", [6, 9, 9],   [[], []],    [[], []]),
        ("S2:12", [],         [[], []],    [[], [12]]),
    ]
    assert replay(trace, lines, slack=0, n_streams=2) == (lines, [12])


@both
def test_algorithm_1_lets_an_event_at_or_behind_its_time_out_immediately(trace):
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S1:5", [],          [[], []],    [[5], []]),
        ("S2:5", [5, 5],      [[], []],    [[], []]),          # T_sync = 5
        ("S1:7", [],          [[], []],    [[7], []]),
        ("S1:6", [],          [[], []],    [[6, 7], []]),      # late in S1, in time for the rest
        ("S2:4", [4],         [[], []],    [[6, 7], []]),      # 4 <= T_sync
        ("S2:5", [5],         [[], []],    [[6, 7], []]),      # so is 5: the test is "ts > T_sync"
        ("S2:6", [6, 6],      [[], []],    [[7], []]),
    ]
    assert replay(trace, lines, slack=0, n_streams=2, overdue="now") == (lines, [7])


@both
def test_slack_and_synchronizer_in_a_row(trace):
    lines = [  # leaves       in K-slack        in the Synchronizer
        ("S1:1", [],          [[1], []],        [[], []]),
        ("S1:4", [],          [[4], []],        [[1], []]),
        ("S2:2", [],          [[4], [2]],       [[1], []]),
        ("S1:3", [],          [[3, 4], [2]],    [[1], []]),
        ("S2:5", [1],         [[3, 4], [5]],    [[], [2]]),    # T_sync = 1
        ("S1:6", [2],         [[6], [5]],       [[3, 4], []]), # T_sync = 2
        ("S2:3", [],          [[6], [3, 5]],    [[3, 4], []]), # overdue: S2's next advance
        ("S2:7", [3, 3, 4],   [[6], [7]],       [[], [5]]),    # T_sync = 4; S1 before S2 at time 3
        ("S2:4", [],          [[6], [4, 7]],    [[], [5]]),
        ("S2:8", [4],         [[6], [8]],       [[], [5, 7]]), # 4 <= T_sync: out, behind the rest
    ]
    assert replay(trace, lines, slack=1, n_streams=2) == (lines, [5, 6, 7, 8])


@both
def test_three_streams_wait_for_the_slowest(trace):
    lines = [  # leaves       in K-slack       in the Synchronizer
        ("S1:3", [],          [[], [], []],    [[3], [], []]),
        ("S2:5", [],          [[], [], []],    [[3], [5], []]),
        ("S3:4", [3],         [[], [], []],    [[], [5], [4]]),
        ("S1:9", [4],         [[], [], []],    [[9], [5], []]),
        ("S3:8", [5],         [[], [], []],    [[9], [], [8]]),
    ]
    assert replay(trace, lines, slack=0, n_streams=3) == (lines, [8, 9])


@both
def test_ties_are_held_back_until_their_time_is_complete_where_the_order_counts(trace):
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S2:5", [],          [[], []],    [[], [5]]),
        ("S1:5", [],          [[], []],    [[5], [5]]),        # T_sync = 4: more 5s may follow
        ("S1:7", [],          [[], []],    [[5, 7], [5]]),     # S2 may still bring a 5
        ("S2:6", [5, 5],      [[], []],    [[7], [6]]),        # T_sync = 5
    ]
    assert replay(trace, lines, slack=0, n_streams=2, hold_ties=True) == (lines, [6, 7])


@both
def test_times_of_one_release_that_are_as_far_apart_as_there_are_buckets(trace):
    # 64 buckets: 1 and 65 would share one. The 1 is overdue and enters together with the 65.
    lines = [  # leaves       in K-slack   in the Synchronizer
        ("S1:0", [],          [[], []],    [[0], []]),
        ("S2:0", [0, 0],      [[], []],    [[], []]),          # T_sync = 0
        ("S1:2", [],          [[], []],    [[2], []]),
        ("S1:1", [],          [[1], []],   [[2], []]),
        ("S1:65", [],         [[], []],    [[1, 2, 65], []]),
        ("S2:1", [1, 1],      [[], []],    [[2, 65], []]),     # T_sync = 1
    ]
    assert replay(trace, lines, slack=0, n_streams=2) == (lines, [2, 65])


# fmt: on


def total_buffers(k1, k2, trace=naive_steps):
    """Events (one per time unit) of S1 up to 20 and S2 up to 14 that wait, as (K-slack, sync)."""
    dense = arrivals(*((0, t) for t in range(1, 21)), *((1, t) for t in range(1, 15)))
    slack = k1 if k1 == k2 else [k1, k2]
    *_, last, _ = trace(dense, slack=slack, n_streams=2)
    return [(len(last.slack[s]), len(last.sync[s])) for s in (0, 1)]


# S1 leads: its local time is 20, that of S2 is 14, and one event stands for one time unit.
#
#   S1  ......................|20      without K-slack, S1 waits for S2: 6 = 20 - 14 units
#   S2  ................|14


def test_icde16_figure_4a_without_slack_the_leading_stream_is_buffered_by_its_lead():
    assert total_buffers(0, 0) == [(0, 6), (0, 0)]


def test_icde16_figure_4b_case_1_the_leading_stream_keeps_leading():
    # 20 - 2 > 14 - 3: S1 waits 7 = (20 - 2) - (14 - 3) in the Synchronizer.
    (slack_1, sync_1), (slack_2, sync_2) = total_buffers(2, 3)
    assert (slack_1, sync_1) == (2, 7)
    assert (slack_2, sync_2) == (3, 0)
    assert slack_1 + sync_1 == 20 - 14 + 3


def test_icde16_figure_4c_case_2_the_other_stream_takes_the_lead():
    # 20 - 10 < 14 - 3: now S2 waits 1 = (14 - 3) - (20 - 10) in the Synchronizer.
    (slack_1, sync_1), (slack_2, sync_2) = total_buffers(10, 3)
    assert (slack_1, sync_1) == (10, 0)
    assert (slack_2, sync_2) == (3, 1)
    assert slack_2 + sync_2 == 14 - 20 + 10


@both
@pytest.mark.parametrize(
    ("k1", "k2", "same"),
    [(2, 3, 3), (10, 3, 14 - 20 + 10)],
    ids=["case 1", "case 2"],
)
def test_icde16_figure_4_one_slack_for_both_streams_buffers_as_much(trace, k1, k2, same):
    totals = [sum(parts) for parts in total_buffers(k1, k2)]
    assert [sum(parts) for parts in total_buffers(same, same, trace)] == totals


def test_icde16_theorem_1_is_not_exact_on_discrete_times():
    # One slack per stream, K = (0, 3); W = 3 on both; 10 comes last and 2 behind local time 12.
    #
    #   arrives   S1:4  S2:4  S2:12  S1:12  S2:10
    #   T_1, T_2  4, -  4, 4  4, 12  12, 12
    #   theorem's k     3     0      3               k = min(T_i) - min(T_i - K_i)
    #
    # When S1:12 comes the theorem asks for k = 0 on both streams, since T = (4, 12). With K = 0
    # both 12s leave and 10 is late; with K = (0, 3) S2's 12 is still in K-slack and 10 is in time.
    events = arrivals((0, 4), (1, 4), (1, 12), (0, 12), (1, 10))
    windows = (3, 3)

    def cross(*_):
        return True

    def times(results):
        return [tuple(e.ts for e in r) for r in results]

    def theorem_k(t1, t2):
        return min(t1, t2) - min(t1 - 0, t2 - 3)

    assert [theorem_k(4, 4), theorem_k(4, 12), theorem_k(12, 12)] == [3, 0, 3]
    assert sorted(times(truth(events, windows, cross))) == [(4, 4), (12, 10), (12, 12)]
    apart, late_apart = pipeline(events, windows, cross, ks=[0, 3])
    same, late_same = pipeline(events, windows, cross, ks=[0, 0])
    assert (times(apart), late_apart) == ([(4, 4), (12, 10), (12, 12)], [])
    assert (times(same), late_same) == ([(4, 4), (12, 12)], [(events[4], True)])
