"""K-slack on one stream, arrival by arrival; every table is also the picture in the paper.

Read a table column by column: `arrives` comes in, then `buffered` is what K-slack holds and
`leaves` is what it let go. The oracle and the engine answer the same tables.
"""

import numpy as np
import pytest

from helpers import arrivals, engine_steps, naive_steps
from slackwater.disorder import rings
from slackwater.disorder.reorder import Reorder
from slackwater.events.limits import Limits
from slackwater.events.log import Log

DAY_MS = 86_400_000

both = pytest.mark.parametrize("trace", [naive_steps, engine_steps], ids=["oracle", "engine"])


def table(trace, times, **options):
    """The rows (buffered, leaves) of a trace over one stream, without the flush."""
    steps = list(trace(arrivals(*((0, ts) for ts in times)), **options))[:-1]
    return [step.slack[0] for step in steps], [step.left for step in steps]


# fmt: off


@both
def test_icde16_figure_3_slack_of_one_repairs_a_delay_of_one_but_not_of_two(trace):
    arrives  = [1,   4,   3,      5,      7,   8,   6,      9]
    # local time 1   4    4       5       7    8    8       9
    buffered = [[1], [4], [3, 4], [5],    [7], [8], [6, 8], [9]]
    leaves   = [[],  [1], [],     [3, 4], [5], [7], [],     [6, 8]]  # 6 leaves behind 7
    assert table(trace, arrives, slack=1) == (buffered, leaves)


@both
def test_thesis_figure_3_2_static_slack_lets_an_overdue_event_out_at_once(trace):
    arrives  = [2,   3,      1,      4,      6,      5,      7,      8]
    # local - K  0   1       1       2       4       4       5       6
    buffered = [[2], [2, 3], [2, 3], [3, 4], [6],    [5, 6], [6, 7], [7, 8]]
    leaves   = [[],  [],     [1],    [2],    [3, 4], [],     [5],    [6]]
    assert table(trace, arrives, slack=2, overdue="now") == (buffered, leaves)


@both
def test_the_same_stream_with_overdue_events_waiting_for_the_next_advance(trace):
    arrives  = [2,   3,      1,         4,      6,      5,      7,      8]
    buffered = [[2], [2, 3], [1, 2, 3], [3, 4], [6],    [5, 6], [6, 7], [7, 8]]
    leaves   = [[],  [],     [],        [1, 2], [3, 4], [],     [5],    [6]]
    assert table(trace, arrives, slack=2, overdue="advance") == (buffered, leaves)


@both
def test_thesis_figure_3_3_slack_follows_the_largest_delay(trace):
    # Corrected: the figure lets 5 out on arrival, but 5 + 2 > 6: it is buffered and leaves at 7.
    arrives  = [2,   3,   1,   4,   6,   5,      7,      8]
    # K          0   0    2    2    2    2       2       2
    # local - K  2   3    1    2    4    4       5       6
    buffered = [[],  [],  [],  [4], [6], [5, 6], [6, 7], [7, 8]]
    leaves   = [[2], [3], [1], [],  [4], [],     [5],    [6]]
    assert table(trace, arrives, slack=0, follow=True, overdue="now") == (buffered, leaves)


def test_thesis_figure_3_7_half_of_the_adaptive_slack():
    # Speculative K-slack with alpha = 0.5: K is 2 from the event 1 on, so alpha * K is 1.
    arrives  = [2,   3,   1,   4,   6,   5,   7,   8]
    # alpha * K  0   0    1    1    1    1    1    1
    buffered = [[],  [],  [],  [4], [6], [6], [7], [8]]
    leaves   = [[2], [3], [1], [],  [4], [5], [6], [7]]
    stage = Reorder(n_streams=1, slack=0, overdue="now")
    seen = []
    for ts in arrives:
        if ts == 1:
            stage.set_slack(1)
        left = [arrives[n] for n in stage.arrive(0, ts)]
        seen.append((stage.in_slack(0), left))
    assert seen == list(zip(buffered, leaves, strict=True))


@both
def test_equal_times_leave_in_the_order_they_came(trace):
    events = arrivals((0, 5), (0, 5), (0, 4), (0, 5), (0, 9))
    steps = list(trace(events, slack=2))
    assert [s.slack[0] for s in steps[:-1]] == [[5], [5, 5], [4, 5, 5], [4, 5, 5, 5], [9]]
    stage = Reorder(n_streams=1, slack=2)
    assert [stage.arrive(0, e.ts) for e in events][-1] == [2, 0, 1, 3]


@both
def test_an_equal_time_is_no_advance(trace):
    arrives  = [5,   3,      5,         6]
    buffered = [[5], [3, 5], [3, 5, 5], [6]]
    leaves   = [[],  [],     [],        [3, 5, 5]]
    assert table(trace, arrives, slack=1) == (buffered, leaves)


@both
def test_without_slack_only_the_overdue_wait(trace):
    arrives  = [5,   3,   7,      7,   8]
    buffered = [[],  [3], [],     [7], []]   # the second 7 does not advance local time
    leaves   = [[5], [],  [3, 7], [],  [7, 8]]
    assert table(trace, arrives, slack=0) == (buffered, leaves)


def with_slacks(first, slacks, arrives):
    """What is buffered and what leaves with each arrival, before which K is set."""
    stage, seen = Reorder(n_streams=1, slack=first), []
    for k, ts in zip(slacks, arrives, strict=True):
        stage.set_slack(k)
        left = [arrives[n] for n in stage.arrive(0, ts)]
        seen.append((stage.in_slack(0), left))
    return seen


def test_slack_grows_and_shrinks_and_what_has_left_is_not_called_back():
    # K is set before the arrival of the same column. A change alone lets nothing out.
    slack    = [2,   2,      5,         5,            1,         1,      4]
    arrives  = [1,   2,      4,         5,            6,         7,      8]
    buffered = [[1], [1, 2], [1, 2, 4], [1, 2, 4, 5], [6],       [7],    [7, 8]]
    leaves   = [[],  [],     [],        [],           [1, 2, 4, 5], [6], []]
    stage = Reorder(n_streams=1, slack=2)
    seen = []
    for k, ts in zip(slack, arrives, strict=True):
        before = stage.in_slack(0)
        stage.set_slack(k)
        assert (stage.slack, stage.in_slack(0)) == (k, before)
        left = [arrives[n] for n in stage.arrive(0, ts)]
        seen.append((stage.in_slack(0), left))
    assert seen == list(zip(buffered, leaves, strict=True))


def test_what_is_overdue_waits_again_when_slack_grows_over_its_delay():
    # K is set before the arrival of the same column.
    slack    = [1,    1,       1,          5,          5,                5]
    arrives  = [10,   4,       7,          10,         11,               12]
    # local     10    10       10          10          11                12
    buffered = [[10], [4, 10], [4, 7, 10], [4, 7, 10, 10], [7, 10, 10, 11], [10, 10, 11, 12]]
    leaves   = [[],   [],      [],         [],         [4],              [7]]  # 4 + 5 <= 10
    assert with_slacks(1, slack, arrives) == list(zip(buffered, leaves, strict=True))


def test_when_slack_has_shrunk_an_overdue_event_stays_behind_an_older_one():
    slack    = [0,   10,  1,      1]
    arrives  = [8,   4,   5,      9]
    buffered = [[],  [4], [4, 5], [9]]
    leaves   = [[8], [],  [],     [4, 5]]  # the 5 came when K did not cover it any more
    assert with_slacks(0, slack, arrives) == list(zip(buffered, leaves, strict=True))


# fmt: on


def test_when_slack_has_shrunk_an_overdue_event_stays_behind_one_of_the_same_time():
    stage = Reorder(n_streams=1)
    stage.arrive(0, 8)
    stage.set_slack(10)
    stage.arrive(0, 4)
    stage.set_slack(1)
    stage.arrive(0, 4)
    assert stage.arrive(0, 9) == [1, 2]


@pytest.mark.parametrize("delay", [61, 62, 63])
def test_slack_follows_a_delay_that_just_fits_or_does_not_fit_into_the_buckets(delay):
    stage = Reorder(n_streams=1, follow=True)  # 64 buckets, and one is spare
    assert [stage.arrive(0, 100), stage.arrive(0, 100 - delay)] == [[0], []]
    assert stage.slack == delay
    assert stage.rings.length == (128 if delay > 62 else 64)
    assert stage.arrive(0, 101) == [1]


def test_flush_lets_everything_out_in_order():
    stage = Reorder(n_streams=1, slack=10)
    for ts in (4, 1, 3, 2):
        assert stage.arrive(0, ts) == []
    assert stage.flush().event.tolist() == [1, 3, 2, 0]
    assert stage.in_slack(0) == []


def test_a_hole_of_a_day_does_not_allocate_a_day_of_buckets():
    # Kim: one bucket per timestamp would be 86 million of them.
    stage = Reorder(n_streams=1, slack=1_000)
    for ts in (0, 500, DAY_MS, DAY_MS + 1, DAY_MS - 500):
        stage.arrive(0, ts)
    assert stage.in_slack(0) == [DAY_MS - 500, DAY_MS, DAY_MS + 1]
    assert stage.rings.length <= 4096


def test_a_hole_of_a_day_in_the_synchronizer_does_not_allocate_a_day_of_buckets():
    stage = Reorder(n_streams=2, slack=0)
    stage.arrive(0, 0)
    stage.arrive(0, DAY_MS)  # waits for the other stream, a day ahead of it
    stage.arrive(0, DAY_MS + 5)
    assert stage.in_sync(0) == [0, DAY_MS, DAY_MS + 5]
    assert stage.rings.length <= 2**20
    assert stage.arrive(1, 3) == [0, 3]
    assert stage.arrive(1, DAY_MS + 1) == [1, 4]


def test_a_slack_of_a_day_keeps_the_buckets_bounded_and_the_order_right():
    stage = Reorder(n_streams=1, slack=DAY_MS)
    times = [7, 3, 40_000_000, 39_999_999, 12, 3, 80_000_000]
    for ts in times:
        assert stage.arrive(0, ts) == []
    assert stage.rings.length <= 2**20
    assert stage.in_slack(0) == sorted(times)
    assert stage.arrive(0, DAY_MS + 7) == [1, 5, 0]


def test_a_change_of_slack_keeps_the_buckets_that_a_wide_buffer_needs():
    stage = Reorder(n_streams=2, slack=0)
    for ts in (0, 8, 5_000_000):
        stage.arrive(0, ts)
    stage.set_slack(1)
    assert stage.in_sync(0) == [0, 8, 5_000_000]
    stage.arrive(1, 10)
    assert stage.arrive(1, 11) == [0, 1, 3]


@pytest.mark.parametrize("far", [500, 5_000_000], ids=["buckets of one time", "wide buckets"])
def test_forgetting_events_that_have_left_changes_nothing(far):
    plain, trimmed = (Reorder(n_streams=2, slack=0) for _ in range(2))

    def arrive(stream, ts):
        left = plain.arrive(stream, ts)
        assert trimmed.arrive(stream, ts) == left
        return left

    for n in range(20):
        arrive(n % 2, n // 2)
    trimmed.log.trim(int(trimmed.waiting().min(initial=trimmed.log.end)))
    assert trimmed.log.base > 10
    for stage in (plain, trimmed):
        stage.set_slack(far)
    late = np.random.default_rng(1).integers(10, 40, 30).tolist()
    for n, ts in enumerate([far, far, *late, far + 30]):
        arrive(n % 2, ts)
    assert len(arrive(1, far + 30)) > 10


def resumed(stage, slack, **options):
    """A stage that goes on where `stage` is, as after a restart."""
    other = Reorder(stage.n_streams, slack, log=stage.log, **options)
    other.resume(stage.state())
    return other


@pytest.mark.parametrize(
    "late", [67, 68, 900, 1_000], ids=["just fits", "does not fit", "far ahead", "local time"]
)
def test_a_buffer_that_holds_more_than_a_slack_that_shrank_has_buckets_for_it(late):
    #   4 . . . . . 900 . 1000     K was 1000 and is 1: since then local time has not moved on, so
    #   K-slack      late local    4 is still here; what comes behind it stays in order
    before = Reorder(1, slack=1_000, common_clock=True)
    before.arrive(0, 4)
    before.arrive(0, 1_000, tick=True)
    before.set_slack(1)
    stage = resumed(before, slack=1, common_clock=True)
    assert stage.rings.length == 64
    assert stage.arrive(0, late) == []
    assert stage.in_slack(0) == [4, late]
    assert stage.arrive(0, 1_002) == [0, 2]


def test_the_same_when_wide_buckets_have_become_narrow_again():
    stage = Reorder(1)
    stage.arrive(0, 5_000_000)
    stage.set_slack(5_000_000)
    stage.arrive(0, 4)
    stage.set_slack(1)
    assert stage.rings.length == 64
    assert stage.arrive(0, 4_999_000) == []
    assert stage.in_slack(0) == [4, 4_999_000]


def test_a_restart_finds_buckets_for_all_that_waits_whatever_the_times_are():
    #   -200 . . . 0 . . . 200      farther apart than there are buckets at first
    stage = Reorder(2, slack=0)
    for ts in (-200, 0, 200):
        assert stage.arrive(0, ts) == []  # the other stream is awaited
    again = resumed(stage, slack=0)
    assert again.in_sync(0) == [-200, 0, 200]
    assert again.arrive(1, 100) == [0, 1, 3]


# ---- buckets


def test_there_are_as_many_buckets_as_time_units_and_wider_ones_when_that_is_too_many():
    limits = Limits(most_buckets=128)
    seen = []
    for span in (0, 62, 63, 126, 127, 253, 254, 10):
        row = rings.BucketRings(1, Log(), limits)
        row.make_room(1_000)
        row.make_room(span)
        seen.append((span, 1 << row.shift, row.length))
    # (span, times per bucket, buckets): a span may begin in one bucket and end in another
    assert seen == [
        (0, 1, 64), (62, 1, 64), (63, 1, 128), (126, 1, 128), (127, 2, 128), (253, 2, 128),
        (254, 4, 128), (10, 1, 64),
    ]  # fmt: skip


def test_buckets_that_are_enough_are_kept():
    row = rings.BucketRings(1, Log())
    before = row.arrays
    row.make_room(62)
    assert row.arrays is before
    row.make_room(63)
    assert row.arrays is not before
