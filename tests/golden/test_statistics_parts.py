"""What the engine learns, part by part, against lists and loops."""

from types import SimpleNamespace

import numpy as np
import pytest

import slackwater as sw
from slackwater.engine.event_gaps import Gaps, slack_at
from slackwater.engine.report import (
    _weighted_quantile,
    average_slack,
    recall_series,
    sum_within,
)
from slackwater.kernels import lateness as lateness_kernels
from slackwater.kernels.histogram import BUCKETS, bucket_of, buckets_of, upper_edges
from slackwater.kernels.partners import (
    IN_TIME,
    LATE,
    LATE_PAIRS,
    N_ARRIVALS,
    N_PAIRS,
    WITHDRAWN,
)
from slackwater.kernels.records import BEFORE, KEY, STREAM, TICK, TS, Arrivals
from slackwater.kernels.statistics import has_cut, is_beyond
from slackwater.stats.arriving import ArrivingDelays, coarse_counts
from slackwater.stats.delays import Delays
from slackwater.stats.lateness import LatenessOf, ResultLateness
from slackwater.stats.needed import NeededWaits
from slackwater.stats.productivity import Productivity
from slackwater.stats.recent import RecentDelays, octaves
from slackwater.stats.results import LOST, PREDICTED, PRODUCED, Results

# ---- results by result time


class Bins:
    """Produced, lost and predicted, by bin, as dicts."""

    def __init__(self, every, keep):
        self.every, self.keep = every, keep
        self.produced, self.lost, self.loss, self.first, self.last = {}, {}, {}, None, None

    def reach(self, numbers):
        high = max(numbers)
        low = max(min(numbers), high - self.keep)
        if self.first is None:
            self.first, self.last = low, low - 1
        self.first = min(self.first, max(low, self.last + 1 - self.keep))
        self.last = max(self.last, high)
        return low

    def produce(self, ts, n):
        low = self.reach([t // self.every for t in ts])
        for t, k in zip(ts, n, strict=True):
            if t // self.every >= low:
                self.produced[t // self.every] = self.produced.get(t // self.every, 0) + k
        return sum(n)

    def lose(self, ts, n):
        low = self.reach([t // self.every for t in ts])
        for t, k in zip(ts, n, strict=True):
            if t // self.every >= low:
                self.lost[t // self.every] = self.lost.get(t // self.every, 0) + k
        return sum(n)

    def predict(self, begin, end, loss):
        low, high = begin // self.every, end // self.every
        self.reach([low, high])
        for number in range(low, high + 1):
            self.loss[number] = loss

    def known(self):
        """The bins of the last `keep`."""
        return range(max(self.first, self.last + 1 - self.keep), self.last + 1)


@pytest.mark.parametrize("seed", range(8))
def test_results_are_counted_by_their_time(seed):
    rng, every, keep = np.random.default_rng(seed), 10, 6
    results, naive, at = Results(every, keep), Bins(every, keep), 200
    for turn in range(40):
        at += int(rng.choice([0, 3, 9, 25, 70, 300 if seed % 2 else 0]))
        n = int(rng.integers(1, 5))
        ts = np.sort(at - rng.integers(0, 45, n))
        counts = rng.integers(1, 9, n)
        act = "produce" if turn == 0 else rng.choice(["produce", "lose", "predict"])
        if act == "predict":
            begin, loss = at - int(rng.integers(0, 40)), float(rng.integers(1, 9)) / 10
            results.predict(begin, at, loss)
            naive.predict(begin, at, loss)
        else:
            given = ts if act == "produce" else rng.permutation(ts)
            found = getattr(results, act)(given, counts)
            assert found == getattr(naive, act)(given.tolist(), counts.tolist())
        known = naive.known()
        assert results.first == known[0]
        bins = results.between(known[0] * every, (known[-1] + 1) * every)
        assert bins.shape[1] == len(known)
        for row, wanted in ((PRODUCED, naive.produced), (LOST, naive.lost)):
            assert bins[row].tolist() == [wanted.get(number, 0) for number in known]
        assert bins[PREDICTED].tolist() == [naive.loss.get(number, 0) for number in known]
        again = Results(every, keep)
        again.resume(results.state())
        assert again.state() == results.state()
        if turn % 5 == 4:
            results = again


def test_only_whole_bins_are_between_two_times():
    results = Results(10, 6)
    results.produce(np.array([5, 15, 25, 35]), np.array([1, 2, 4, 8]))
    assert results.produce(np.empty(0, np.int64), np.empty(0, np.int64)) == 0
    assert results.lose(np.empty(0, np.int64), np.empty(0, np.int64)) == 0
    found = {
        (a, b): results.between(a, b)[PRODUCED].sum()
        for a in (-20, 0, 1, 10, 11) for b in (-20, 0, 9, 29, 30, 40, 99)
    }  # fmt: skip
    assert found == {
        (a, b): sum(n for n, t in ((1, 0), (2, 10), (4, 20), (8, 30)) if a <= t and t + 10 <= b)
        for a, b in found
    }


# ---- histograms


def test_every_number_is_in_the_bucket_that_ends_at_or_behind_it():
    edges = upper_edges()
    assert len(edges) == BUCKETS
    numbers = [*range(-2, 300), *(2**k + d for k in range(8, 52) for d in (-1, 0, 1, 2**k // 3))]
    for number in numbers:
        bucket = bucket_of(number)
        assert bucket == buckets_of(np.array([number]))[0]
        if number <= 0:
            assert bucket == 0
            continue
        assert edges[bucket] >= number
        assert edges[bucket - 1] < number
        assert edges[bucket] - number <= number / 32


# ---- a change in the mean


def naive_cut(parts, delta):
    numbers = [(n, mean) for n, mean, _ in parts]
    count = sum(n for n, _ in numbers)
    if count <= 10:
        return False
    mean = sum(n * m for n, m in numbers) / count
    variance = sum(s + n * (m - mean) ** 2 for n, m, s in parts) / count
    confidence = np.log(2 * np.log(count) / delta)
    for cut in range(1, len(parts)):
        old, new = (sum(n for n, _ in side) for side in (numbers[:cut], numbers[cut:]))
        if old < 5 or new < 5:
            continue
        apart = abs(
            sum(n * m for n, m in numbers[:cut]) / old - sum(n * m for n, m in numbers[cut:]) / new
        )
        share = 1 / (old - 4) + 1 / (new - 4)
        if apart > np.sqrt(2 * share * variance * confidence) + 2 / 3 * share * confidence:
            return True
    return False


def test_a_cut_is_where_the_paper_has_it():
    rng, found = np.random.default_rng(1), []
    for _ in range(400):
        k = int(rng.integers(1, 8))
        size = rng.integers(1, 30, k).astype(float)
        step = rng.random() * (np.arange(k) >= rng.integers(0, k + 1))
        parts = np.stack([size, rng.random(k) * 0.1 + step * 0.8, rng.random(k) * size * 0.05], 1)
        found.append(naive_cut(parts.tolist(), 0.05))
        assert has_cut(parts, 0.05) == found[-1]
    assert 40 < sum(found) < 360
    sizes = {(5, 999): True, (999, 5): True, (4, 999): False, (999, 4): False, (5, 5): False}
    for counts, is_cut in sizes.items():
        parts = np.array([[counts[0], 0.0, 0.0], [counts[1], 100.0, 0.0]])
        assert has_cut(parts, 0.002) == naive_cut(parts.tolist(), 0.002) == is_cut


def test_the_latest_mean_is_beyond_those_before_it():
    rng = np.random.default_rng(2)
    for _ in range(150):
        n, sign = int(rng.integers(1, 4)), rng.choice([-1.0, 1.0])
        means = rng.integers(0, 6, int(rng.integers(2 * n, 14))) / 4
        means[-n:] += rng.integers(-4, 5) / 4
        of = [sign * means[i : i + n].mean() for i in range(len(means) - n + 1)]
        before = of[: len(means) - 2 * n + 1]
        wanted = of[-1] > max(before) + max((max(before) - min(before)) / 2, 0.3)
        assert is_beyond(means, n, sign, 0.3) == wanted


# ---- delays and leads


def arrivals_of(events, base=0):
    """(stream, ts, delay) of events; a delay of None is a tick."""
    event = np.zeros((len(events), 4), np.int64)
    for i, (s, ts, delay) in enumerate(events):
        event[i, [TS, STREAM, KEY]] = ts, s, TICK if delay is None else 5
    delays = np.array([delay or 0 for *_, delay in events], np.int64)
    none = np.zeros((0, len(events)))
    return Arrivals(
        base, event, delays, delays, delays, none.astype(np.int64), none, none.T, none.T
    )


def test_delays_rates_and_leads_by_hand():
    delays = Delays(2, granularity=10, every=100)
    events = [
        (0, 5, 0),
        (0, 40, 0),
        (1, 20, 0),
        (1, 10, 10),
        (0, 90, None),
        (1, 30, 11),
        (0, 80, 20),
    ]
    delays.arrive(7, 14, 20, arrivals_of(events, base=7))
    delays.close(100)
    assert delays.counts == [3, 3]
    assert delays.largest == 2
    assert np.flatnonzero(delays.histogram[0]).tolist() == [0, 2]
    assert delays.histogram[:, :3].tolist() == [[2, 0, 1], [1, 1, 1]]
    assert delays.latest[:, :3].tolist() == delays.histogram[:, :3].tolist()
    assert delays.rates().tolist() == [0.03, 0.03]
    # of a: 80 when b is at 30, so 60; of b: as it is the slower one, none
    assert delays.leads().tolist() == [6, 0]
    delays.arrive(14, 15, 20, arrivals_of([(1, 250, 0)], base=14))
    delays.close(300)
    assert delays.rates().tolist() == [0.03, 4 / 300]
    # b leads by 160 once, in four events
    assert delays.leads().tolist() == [round((60 - 40) / 10), 0]
    again = Delays(2, granularity=10, every=100)
    again.resume(delays.state())
    assert again.state() == delays.state()
    assert again.histogram.tolist() == delays.histogram.tolist()
    for one in (delays, again):
        one.arrive(15, 16, 30, arrivals_of([(0, 240, 30)], base=15))
        one.close(400)
    assert again.state() == delays.state()
    assert again.largest == 3


def test_a_steady_window_takes_an_interval_as_one_number():
    steady, usual = (Delays(1, 1, 10, steady=is_steady) for is_steady in (True, False))
    rng, at = np.random.default_rng(1), 0
    for interval in range(40):
        late = 3 if interval < 25 else 900
        events = [(0, at + i, int(rng.integers(0, late))) for i in range(10)]
        for delays in (steady, usual):
            delays.arrive(at, at + 10, 900, arrivals_of(events, base=at))
            delays.close(at + 10)
        at += 10
        if interval == 24:
            assert (steady.changed, steady.counts, usual.counts) == (BEFORE, [250], [250])
    # one interval that is much worse is a change, with the one before it; later on nothing is new
    assert steady.changed == 260
    assert steady.counts == [160]
    assert usual.counts[0] < 250


# ---- a sample of delays


def test_delays_by_octave_are_those_of_all_and_then_of_a_sample():
    recent, rng = RecentDelays(2), np.random.default_rng(1)
    events = [(int(rng.integers(0, 2)), i, int(rng.choice([0, 1, 5, 300]))) for i in range(900)]
    events[5] = (0, 5, None)
    recent.take(0, arrivals_of(events).event, arrivals_of(events).delay)
    wanted = np.zeros((2, 32), int)
    for s, _, delay in events:
        if delay is not None:
            wanted[s, int(octaves(np.array([delay]))[0])] += 1
    assert recent.counts.tolist() == wanted.tolist()
    # later on 8 in a row of 127 times 8
    recent = RecentDelays(1)
    events = [(0, i, 1) for i in range(2_500)]
    recent.take(4096, arrivals_of(events).event, arrivals_of(events).delay)
    sampled = [n for n in range(4096, 4096 + 2_500) if n % (127 * 8) < 8]
    assert recent.counts[0, 1] == 127 * len(sampled)
    assert octaves(np.array([2**31, 2**62])).tolist() == [31, 31]
    again = RecentDelays(1)
    again.resume(recent.state())
    assert again.counts.tolist() == recent.counts.tolist()


def test_delays_of_the_span_before_count_too():
    recent, span = RecentDelays(1), 2**17
    one = arrivals_of([(0, 0, 1)] * 8)

    def take(begin):
        begin = -(-begin // 1016) * 1016  # where a row of the sample begins
        recent.take(begin, one.event, one.delay)
        return int(recent.counts.sum())

    assert [take(at) for at in (span, 2 * span, 3 * span)] == [1016, 2 * 1016, 2 * 1016]
    assert take(5 * span) == 1016  # the one between them had nothing


# ---- growing delays


def test_a_larger_share_of_late_arrivals_raises_the_slack():
    known = ArrivingDelays(over=100)
    assert known.raised(50, coarse_counts(np.array([900] * 99)), 0.01) == 50  # nothing is known
    known.remember(coarse_counts(np.arange(0, 1000)), passed=0)
    nothing = coarse_counts(np.empty(0, np.int64))
    assert known.raised(50, nothing, 0.01) == 50
    assert known.raised(50, coarse_counts(np.arange(0, 1000)), 0.01) == 50
    few = coarse_counts(np.array([5000] * 3))
    assert known.raised(50, few, 0.9) == 50  # as many as chance may bring
    before = known.state()
    known.remember(nothing, passed=20)  # a fifth of the period, two blocks
    after = known.state()
    assert after[0] == before[0]
    assert np.array(after[1]) == pytest.approx(np.array(before[1]) * np.exp(-0.2))
    again = ArrivingDelays(over=100)
    again.resume(after)
    many = coarse_counts(np.arange(0, 3000))
    assert again.raised(900, many, 0.01) == known.raised(900, many, 0.01) > 900
    known.remember(nothing, passed=21)  # longer than two blocks: its end says all
    assert known.raised(900, many, 0.01) == 900


# ---- what each event meets


class Meets:
    """The two maps of an interval, event by event."""

    def __init__(self, lengths, tuples, slide, shift):
        self.lengths, self.tuples, self.slide, self.shift = lengths, tuples, slide, shift
        self.rows = [[] for _ in lengths]

    def end(self, t):
        return (t + self.shift) // self.slide * self.slide

    def meet(self, s, t):
        met = 1
        for other, row in enumerate(self.rows):
            if self.tuples[other]:
                del row[: max(0, len(row) - self.tuples[other])]
            row[:] = [x for x in row if x >= self.end(t) - (self.lengths[other] or 2**61)]
            met *= len(row) if other != s else 1
        return met


@pytest.mark.parametrize(
    ("windows", "options"),
    [((30, 50), {}), ((30, 50, 20), {}), ((30, sw.Tuples(4)), {}), ((30, 50), {"slide": 20}),
     ((30, 50), {"slide": 20, "bounds": "[)"})],
)  # fmt: skip
def test_productivity_is_what_events_meet_and_make(windows, options):
    streams = [sw.Stream(n, "ts", w) for n, w in zip("abc", windows, strict=False)]
    query = sw.join(*streams, on="k", goal=sw.NoSlack(), pipeline="icde16", **options)
    profile = Productivity(query, 100, 10)
    slide = options.get("slide", 1)
    naive = Meets(
        [None if isinstance(w, sw.Tuples) else w for w in windows],
        [w.count if isinstance(w, sw.Tuples) else None for w in windows],
        slide, slide - (options.get("bounds") != "[)"),
    )  # fmt: skip
    rng, at = np.random.default_rng(len(windows)), 0
    most = [0.0, 0.0]
    for interval in range(6):
        n = 0 if interval == 3 else 40
        stream = rng.integers(0, len(windows), n)
        ts = np.sort(at + rng.integers(0, 100, n))
        delay, made = rng.integers(0, 45, n), rng.integers(0, 6, n)
        late = (rng.random(n) < 0.2).astype(np.int64)
        if interval == 4:  # nothing in order: the maps stay
            late[:] = 1
        ts = np.where(late, ts - 30, ts)
        crossed, joined, missed, top = {}, {}, {}, [0.0, 0.0]
        for s, t, d, k, is_late in zip(stream, ts, delay, made, late, strict=True):
            bucket = -(-int(d) // 10)
            if is_late:
                missed[bucket] = missed.get(bucket, 0) + 1
            else:
                met = naive.meet(s, int(t))
                crossed[bucket] = crossed.get(bucket, 0) + met
                joined[bucket] = joined.get(bucket, 0) + int(k)
                top = [max(top[0], met), max(top[1], int(k))]
            naive.rows[s] = sorted([*naive.rows[s], int(t)])
        before = profile.crossed.copy(), profile.joined.copy()
        for part in np.array_split(np.arange(n), 3):
            profile.join(stream[part], ts[part], delay[part], made[part], late[part])
        again = Productivity(query, 100, 10)
        again.resume(profile.state())
        assert again.state() == profile.state()
        lost, other = profile.close(), again.close()
        assert (again.state(), other) == (profile.state(), lost)
        if top[0] > 0:
            most = top
            for found, wanted, of_late in (
                (profile.crossed, crossed, most[0]), (profile.joined, joined, most[1]),
            ):  # fmt: skip
                whole = np.zeros(len(found))
                for bucket, count in wanted.items():
                    whole[bucket] += count
                for bucket, count in missed.items():
                    whole[bucket] += count * of_late
                assert found.tolist() == whole.tolist()
        else:
            assert profile.crossed.tolist() == before[0].tolist()
            assert profile.joined.tolist() == before[1].tolist()
        bins = {}
        for t in ts[late > 0].tolist():
            bins[t // 100] = bins.get(t // 100, 0) + most[1]
        assert lost == dict(sorted(bins.items()))
        at += 100


# ---- lateness of results


def test_the_lateness_of_results_is_that_of_the_last_member():
    kernels, lateness = lateness_kernels, ResultLateness(10)
    record = lateness.record
    assert not kernels.is_probed(0, record)
    assert kernels.is_probed(1, record)
    # the clock is at 30, an event of 20 comes; the join's clock is at 25
    kernels.begin_probe(20, 10, 25, record)
    for t, n in ((20, 2), (24, 1), (25, 4), (29, 8), (30, 16), (31, 32), (32, 0)):
        kernels.note_results(t, n, record)
    counts = record.counts[0]
    # 20 is the last member itself; the others have a newer member, so one more; 31 is in time
    assert {i: int(counts[i]) for i in np.flatnonzero(counts)} == {10: 2, 7: 1, 6: 4, 2: 8, 1: 16}
    assert record.ctl[kernels.LOST] == 2 + 1 + 4  # at 25 too: a newer member waited for it
    assert record.ctl[kernels.STEPS] == 7
    assert record.ctl[kernels.PROBED] == 1
    assert record.caught[:5].tolist() == [0, 0, 8, 16, 0]
    results = Results(10, 50)
    results.produce(np.array([12, 22, 27, 33, 41]), np.array([5, 10, 20, 30, 40]))
    closed = lateness.close(35, results)  # bins 1 and 2 are settled
    assert (closed.lost, closed.on_time, closed.found_in.tolist(), closed.passed) == (
        7, 5 + 30 - 8, [1, 2], 2,
    )  # fmt: skip
    assert closed.counts.sum() == 31
    closed = lateness.close(50, results)
    assert (closed.lost, closed.on_time, closed.found_in.tolist(), closed.passed) == (
        0, 30 - 16 + 40, [3, 4], 2,
    )  # fmt: skip
    assert not closed.counts.any()
    assert lateness.close(50, results).passed == 0


def test_before_the_clock_begins_nothing_is_settled():
    closed = ResultLateness(10).close(BEFORE, Results(10, 50))
    assert (closed.lost, closed.on_time, closed.passed, closed.bins) == (0, 0, 0, 0)


def test_of_many_probes_a_share_is_taken_and_each_counts_for_the_others():
    for probed, steps, one_in in ((512, 0, 1), (513, 0, 2), (1025, 0, 4), (9, 8193, 2),
                                  (0, 2**13 * 5, 8), (2**40, 0, 2**14)):  # fmt: skip
        lateness = ResultLateness(10)
        ctl = lateness.record.ctl
        ctl[lateness_kernels.PROBED], ctl[lateness_kernels.STEPS] = probed + 7, steps + 70
        ctl[lateness_kernels.FAR_PROBED], ctl[lateness_kernels.FAR_STEPS] = 7, 70
        lateness.close(BEFORE, Results(10, 5))
        assert ctl[lateness_kernels.ONE_IN] == one_in
        assert ctl[lateness_kernels.PROBED] == ctl[lateness_kernels.STEPS] == 0
        assert ctl[lateness_kernels.FAR_PROBED] == ctl[lateness_kernels.FAR_STEPS] == 0
    ctl[lateness_kernels.ONE_IN], ctl[lateness_kernels.FAR] = 4, 15
    probes = [lateness_kernels.is_probed(14, lateness.record) for _ in range(400)]
    assert 60 < sum(probes) < 140
    assert all(lateness_kernels.is_probed(15, lateness.record) for _ in range(400))
    lateness_kernels.begin_probe(20, 10, 0, lateness.record)
    lateness_kernels.note_results(20, 3, lateness.record)
    assert lateness.record.counts[0, 10] == 12
    lateness_kernels.begin_probe(20, 15, 0, lateness.record)  # far behind: for itself alone
    lateness_kernels.note_results(20, 3, lateness.record)
    assert lateness.record.counts[0, 15] == 3
    assert (ctl[lateness_kernels.FAR_PROBED], ctl[lateness_kernels.FAR_STEPS]) == (1, 1)
    again = ResultLateness(10)
    again.resume(lateness.state())
    assert again.state() == lateness.state()
    ctl[lateness_kernels.PROBED] = 1 + 129  # those that are not far: four times as many
    lateness.close(BEFORE, Results(10, 5))
    assert ctl[lateness_kernels.ONE_IN] == 2


def test_the_lateness_of_shards_adds_up():
    one = LatenessOf(np.array([1, 2]), 3, 40, np.array([5, 7]), 6)
    two = LatenessOf(np.array([4, 0]), 1, 2, np.array([7, 8]), 9)
    both = LatenessOf.together([one, two])
    assert (both.counts.tolist(), both.lost, both.on_time, both.found_in.tolist(), both.passed) == (
        [5, 2], 4, 42, [5, 7, 8], 9,
    )  # fmt: skip
    assert (one.bins, both.bins, two._replace(passed=3).bins) == (5, 7, 3)
    thrice = one.times(3)
    assert (thrice.counts.tolist(), thrice.lost, thrice.on_time) == ([3, 6], 9, 120)
    assert thrice.found_in is one.found_in


# ---- waits that rows without partner, as-of rows and pairs need


def record_of(**counts):
    names = {
        "in_time": IN_TIME, "late": LATE, "withdrawn": WITHDRAWN, "pairs": N_PAIRS,
        "late_pairs": LATE_PAIRS, "arrivals": N_ARRIVALS,
    }  # fmt: skip
    ctl = np.zeros(64, np.int64)
    for name, n in counts.items():
        ctl[names[name]] = n
    return SimpleNamespace(
        ctl=ctl, needs=np.array([0, 4, -3, 2]), keeps=np.array([1, 0, 6, 0]),
        unseen=np.array([0, 1, 1, 2]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "counts", "lost", "on_time"),
    [
        ("semi", {"late_pairs": 3, "pairs": 20}, 3, 14),
        ("asof", {"in_time": 10, "late": 5, "withdrawn": 2}, 7, 9),
        ("alone", {"in_time": 30, "late": 6, "withdrawn": 4}, 4, 32 / 0.8 - 6),
        ("alone", {"in_time": 3, "withdrawn": 4}, 4, 0),
    ],
)
def test_waits_that_rows_needed(what, counts, lost, on_time):
    record = record_of(**counts)
    waits = NeededWaits(record, what, right=0.8)
    closed = waits.close()
    assert closed.counts.tolist() == [0, 4, 0, 2]
    assert (closed.lost, closed.on_time, closed.passed) == (lost, on_time, 1)
    assert closed.found_in.tolist() == [0] * int(on_time > 0)
    assert record.needs.tolist() == [0, 0, -3, 0]
    again = waits.close()
    assert (again.lost, again.on_time, again.passed) == (0, 0, 1)  # nothing is new
    other = NeededWaits(record_of(), what)
    other.resume(waits.state())
    assert other.state() == waits.state()


def test_pairs_of_arrivals_later_than_what_is_kept_count_as_those_of_others():
    record = record_of(pairs=30, arrivals=20)
    closed = NeededWaits(record, "kept").close()
    # 1.5 pairs of each arrival: 0, 2 (1.5), 3 (1 more) and 6 of those that were not seen
    assert closed.counts.tolist() == [1, 2, 6 + 1, 3]
    assert (closed.lost, closed.on_time) == (6, 30 - 7)
    assert not record.keeps.any()
    assert not record.unseen.any()


# ---- reports


def test_results_of_a_period_and_their_share():
    made, true = [(5, 2), (12, 1), (30, 4)], [(5, 2), (12, 3), (26, 1), (30, 5), (47, 2)]

    def within(rows, t, p=20):
        return sum(n for ts, n in rows if t - p < ts <= t)

    columns = [np.array(c) for rows in (made, true) for c in zip(*rows, strict=True)]
    series = recall_series(*columns, begin=10, end=60, p=20, step=7).to_pydict()
    grid = [t for t in range(14, 61, 7) if within(true, t)]
    assert series["ts"] == grid
    assert series["produced"] == [within(made, t) for t in grid]
    assert series["true"] == [within(true, t) for t in grid]
    assert series["recall"] == [within(made, t) / within(true, t) for t in grid]
    at = np.array([4, 5, 24, 25, 26, 31, 32])
    assert sum_within(*columns[2:], at, 20).tolist() == [within(true, t) for t in at]
    far = recall_series(*[np.array(c) for c in ([0, 10**15], [1, 1]) * 2], 0, 2 * 10**15, 5, 2)
    assert far["ts"].to_pylist() == [0, 2, 4, 10**15, 10**15 + 2, 10**15 + 4]


def test_the_average_slack_is_over_event_time():
    slacks = [(0, 4), (10, 8), (30, 2)]
    assert average_slack(slacks, 0, 40) == (10 * 4 + 20 * 8 + 10 * 2) / 40
    assert average_slack(slacks, 5, 35) == (5 * 4 + 20 * 8 + 5 * 2) / 30
    assert average_slack(slacks, 15, 25) == 8.0
    assert average_slack(slacks, 40, 40) == 2.0
    assert average_slack([], 0, 40) == 0.0
    assert slack_at(slacks, np.array([-5, 0, 9, 10, 29, 30, 99])).tolist() == [4, 4, 4, 8, 8, 2, 2]
    assert slack_at([], np.array([3, 4])).tolist() == [0, 0]


def test_a_quantile_is_the_smallest_value_with_enough_weight():
    values, weights = np.array([5, 1, 9, 3]), np.array([2, 4, 1, 3])
    assert [_weighted_quantile(values, weights, q) for q in (0.1, 0.4, 0.41, 0.7, 0.9, 0.95)] == [
        1.0, 1.0, 3.0, 3.0, 5.0, 9.0,
    ]  # fmt: skip
    assert _weighted_quantile(values[:0], weights[:0], 0.5) == 0.0


def test_gaps_of_event_time_are_no_latency_beyond_the_slack():
    gaps = Gaps.of(np.array([0, 5, 30, 35, 60, 64]), longest=20)
    assert gaps.end.tolist() == [30, 60]
    assert gaps.total.tolist() == [0, 25, 50]
    # a result of 3 that was there at 33 has waited for 5 of its 30
    found = gaps.latency(np.array([3, 3, 31, 3]), np.array([30, 27, 4, 60]), np.array([2, 8, 8, 2]))
    assert found.tolist() == [5, 8, 4, 10]
