"""Parts of the engine by themselves, against lists and by hand."""

import json
import zlib
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from helpers import batches
from slackwater.engine.commands import Command
from slackwater.engine.join import JoinEngine
from slackwater.engine.lateness_curve import Arrivals, lateness_curve
from slackwater.engine.output import (
    LateEvents,
    Output,
    Production,
    Shape,
    counts,
    late_table,
    rejects_table,
    slack_table,
)
from slackwater.engine.panes import Panes
from slackwater.engine.replay import recorded, schemas_of
from slackwater.engine.report import columns, truth
from slackwater.engine.rows import Rows
from slackwater.engine.shard_report import LearntIn, Reports, ShardReport
from slackwater.engine.snapshot import restored
from slackwater.errors import SnapshotError
from slackwater.events import log
from slackwater.events.batch import Batch
from slackwater.events.limits import Limits
from slackwater.kernels import frame as fields
from slackwater.kernels import keys as key_kernels
from slackwater.kernels import partners
from slackwater.kernels.histogram import BUCKETS
from slackwater.kernels.records import BEFORE, NONE
from slackwater.stats.lateness import LatenessOf

# ---- outputs


def test_tables_of_nothing_and_of_something():
    schema = pa.schema({"result_ts": pa.timestamp("ms"), "n": pa.int64()})
    assert counts([], schema).num_rows == 0
    made = [
        Production(np.array([5, 5, 7]), np.array([1, 2, 4]), np.zeros(3)),
        Production(np.array([7, 9]), np.array([8, 16]), np.zeros(2)),
    ]
    found = counts(made, schema)
    assert found["result_ts"].cast(pa.int64()).to_pylist() == [5, 7, 9]
    assert found["n"].to_pylist() == [3, 12, 16]
    assert slack_table([]).num_rows == 0
    assert slack_table([(1, 2), (5, 3)]).to_pydict() == {"ts": [1, 5], "k": [2, 3]}
    assert late_table([], "ab").num_rows == 0
    some = LateEvents(
        np.array([1, 0]), np.array([3, 4]), np.array([5, 6]), np.array([True, False]),
        np.array([7, 8]), np.array([False, True]),
    )  # fmt: skip
    assert late_table([some], "ab").to_pydict() == {
        "stream": ["b", "a"], "ts": [3, 4], "late_by": [5, 6], "kept": [True, False],
        "lost": [7, 8], "exact": [False, True],
    }  # fmt: skip
    assert rejects_table([], "ab", []).num_rows == 0


def test_the_output_of_later_batches_is_added():
    table = pa.table({"x": [1]})
    one, two = (Output(Shape(table.schema, counts=False, keeps_members=False)) for _ in range(2))
    assert (one.top, one.nbytes, one.table.num_rows) == (BEFORE, 0, 0)
    for at, output in ((5, one), (3, two)):
        output.tables.append(table)
        output.slack(at, 2)
        output.dropped.append(np.array([at]))
        output.waits.append(np.array([at]))
        output.partials.append(at)
        output.top = at
    one.extend(two)
    assert (one.table.num_rows, one.nbytes, one.top) == (2, 2 * table.nbytes, 5)
    assert one.slacks == [(5, 2), (3, 2)]
    assert one.partials == [5, 3]
    assert [len(one.dropped), len(one.waits)] == [2, 2]


# ---- rows by number


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_rows_are_taken_by_number(kind):
    rng, rows, known, oldest = np.random.default_rng(1), Rows(pa.schema({"x": kind})), [], 0
    for turn in range(60):
        n = int(rng.choice([0, 1, 3, 20]))
        more = [7 * (len(known) + i) for i in range(n)]
        known += more
        rows.append(pa.table({"x": pa.array(more, pa.int64()).cast(kind)}))
        assert rows.end == len(known)
        if turn % 3 == 2:
            oldest = int(rng.integers(oldest, len(known) + 1))
            rows.forget(oldest)
        if oldest < len(known):
            numbers = rng.integers(oldest, len(known), 5)
            numbers[0] = rng.choice([-1, numbers[0]])
            found = rows.take(numbers).column("x").to_pylist()
            text = str if kind == pa.string() else int
            assert found == [None if i < 0 else text(known[i]) for i in numbers]
            whole = numbers[numbers >= 0]
            sizes = [len(str(known[i])) + 4 if kind == pa.string() else 8 for i in whole]
            assert np.abs(rows.sizes(whole) - sizes).max(initial=0) <= 4
        assert rows.take(np.empty(0, np.int64)).num_rows == 0
        held = sum(t.num_rows for t in rows._tables)
        assert held <= 2 * (len(known) - oldest) + 20  # memory is freed
        assert len(rows._tables) < 20


def test_tables_of_similar_length_are_merged_when_there_are_many():
    rows = Rows(pa.schema({"x": pa.int64()}))
    for n in (64, 20, 9, 4, 2, 2, 1, 1):
        rows.append(pa.table({"x": [0] * n}))
    found = [[t.num_rows for t in rows._tables]]
    for _ in range(5):
        rows.append(pa.table({"x": [0]}))
        found.append([t.num_rows for t in rows._tables])
    assert found == [
        [64, 20, 9, 4, 2, 2, 1, 1],
        [64, 20, 9, 4, 2, 2, 1, 2],  # the ninth
        [64, 20, 9, 4, 2, 2, 1, 3],
        [64, 20, 9, 4, 2, 2, 1, 4],
        [64, 20, 9, 4, 2, 2, 1, 4, 1],  # less than half as long
        [64, 20, 9, 4, 2, 2, 1, 6],  # 1 and 1, then 4 and 2
    ]


# ---- panes


@pytest.mark.parametrize(("length", "step"), [(20, 10), (20, 20), (15, 10), (10, 25), (7, 3)])
def test_events_are_found_by_window(length, step):
    rng, panes, known = np.random.default_rng(length), Panes(length, step), []
    for turn in range(6):
        ts = rng.integers(-30, 60, 8)
        numbers = np.arange(8 * turn, 8 * turn + 8)
        found = panes.add(numbers, ts)
        assert len(found) == len(set(found))
        known += list(zip(numbers.tolist(), ts.tolist(), strict=True))
        starts = [start for start in range(-90, 90) if start % step == 0]
        for start in starts:
            inside = [n for n, t in known if start <= t < start + length]
            assert panes.events(start).tolist() == inside
        for pane in found:
            own = [t for (n, t) in known[-8:] if t // np.gcd(length, step) == pane]
            for closed in (-100, 20):
                wanted = [
                    start for start in starts
                    if start <= own[0] < start + length and start + length > closed
                ]  # fmt: skip
                assert list(panes.windows_of(pane, closed)) == wanted
    assert sorted(panes.all_events().tolist()) == [n for n, _ in known]
    first = -(-(-30 - length) // step) * step
    for start in range(first, 30, step):
        panes.drop(start)
        later = range(start + step, 200, step)
        needed = {n for n, t in known if any(s <= t < s + length for s in later)}
        kept = set(panes.all_events().tolist())
        assert needed <= kept
        gone = {n for n, t in known if t < start + step and t >= first}
        assert not kept & gone


def test_no_events_are_in_no_pane():
    panes = Panes(10, 10)
    assert panes.add(np.empty(0, np.int64), np.empty(0, np.int64)) == []
    assert panes.events(0).tolist() == panes.all_events().tolist() == []


# ---- codes of keys


def test_values_get_codes_in_the_order_they_come():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 12, 40).astype(np.int64)
    slots = values * 5 % 16
    keys, codes = np.zeros(16, np.int64), np.full(16, NONE)
    out = np.full(40, -7)
    at, code = key_kernels.encode(0, values, slots, keys, codes, 3, 5, out)
    wanted, known = [], {}
    for value in values.tolist():
        if value not in known and len(known) == 5:
            break
        wanted.append(known.setdefault(value, 3 + len(known)))
    assert (at, code, out[:at].tolist()) == (len(wanted), 8, wanted)
    assert (out[at:] == -7).all()
    at, code = key_kernels.encode(at, values, slots, keys, codes, code, 11, out)
    order = list(dict.fromkeys(values.tolist()))
    assert (at, code) == (40, 3 + len(order))
    assert out.tolist() == [3 + order.index(value) for value in values.tolist()]


def test_keys_that_are_forgotten_leave_ticks_and_the_rest_as_they_are(monkeypatch):
    """Few keys at a time, many over time: codes are used again; ticks have none."""
    query = sw.join(sw.Stream("a", "ts", 20), sw.Stream("b", "ts", 20), on="k", goal=sw.Slack(3))
    n = 240
    ts = np.arange(n) * 5
    tables = {name: pa.table({"ts": ts, "k": [f"{name[:0]}{i // 4}" for i in range(n)]})
              for name in "ab"}  # fmt: skip
    batch, _ = recorded(query, tables, "ts")
    arrived, turns, ticks = [], [], []
    at = Counter()
    for s in batch.stream.tolist():
        arrived.append(int(ts[at[s]]))
        at[s] += 1
        turns.append(s)
        if s == 1 and at[s] % 3 == 0:
            turns.append(2)  # a tick of the first stream
            ticks.append(arrived[-1])
            arrived.append(arrived[-1])
    ticking = Batch(
        batch.tables, np.array(turns, np.uint8), np.array(arrived, np.int64),
        (np.array(ticks, np.int64), np.empty(0, np.int64)),
    )  # fmt: skip
    limits = Limits(code_cleanup=4, arrivals_at_once=16)
    found = []
    for cleans in (True, False):
        monkeypatch.setattr(log, "_FEWEST", 32 if cleans else 1024)
        engine = JoinEngine(
            query, schemas_of(query, batch), common_clock=True,
            **({"limits": limits} if cleans else {}),
        )  # fmt: skip
        outputs = [engine.feed(part) for part in batches(ticking, (12, 7))]
        outputs.append(engine.flush())
        rows = [row for output in outputs for row in output.table.to_pylist()]
        found.append(rows)
        assert engine.metrics().is_balanced
        if cleans:
            assert engine.intake.codes.size < 40
    pairs = sum(abs(i - j) <= 4 and i // 4 == j // 4 for i in range(n) for j in range(n))
    assert len(found[0]) == pairs
    assert found[0] == found[1]


# ---- clocks of arrivals


def test_clocks_and_intervals_of_arrivals():
    batch, _ = recorded(
        sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), goal=sw.NoSlack()),
        {
            "a": pa.table({"ts": [3, 12, 7, 40], "n": [0, 1, 4, 6]}),
            "b": pa.table({"ts": [5, 9, 30], "n": [2, 3, 5]}),
        },
        "n",
    )
    known = Arrivals.of(batch, 2)
    assert known.ts.tolist() == [3, 12, 5, 9, 7, 30, 40]
    assert known.top.tolist() == [3, 12, 12, 12, 12, 30, 40]
    assert known.clock.tolist() == [BEFORE, BEFORE, 5, 9, 9, 12, 30]
    assert known.behind == 2  # 7 when the clock is at 9
    intervals = known.intervals(10)
    # they end with the arrival that leaves them: 12 of 0 to 9, 30 of 10 to 19, 40 of 30 to 39
    assert [column.tolist() for column in intervals] == [[0, 2, 6], [12, 30, 40], [BEFORE, 12, 30]]
    # only 7 is late, with results of 7 to 9: bins of (6, 8] and (8, 10]
    assert known.spans(2, 10) == [(0, -1), (3, 4), (0, -1)]
    assert (known.rows_needed(2, 10), known.rows_needed(1, 10), known.rows_needed(50, 10)) == (
        2, 3, 1,
    )  # fmt: skip
    nothing = Arrivals(*np.empty((3, 0), np.int64))
    assert (nothing.behind, nothing.spans(2, 10), nothing.rows_needed(2, 10)) == (0, [], 1)
    assert [len(column) for column in nothing.intervals(10)] == [0, 0, 0]


def test_a_curve_is_measured_up_to_the_last_arrival():
    query = sw.join(sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10), goal=sw.NoSlack())
    tables = {"a": pa.table({"ts": [1, 21]}), "b": pa.table({"ts": [2, 30]})}
    batch, _ = recorded(query, tables, None)
    known = columns(truth(query, batch)[0].made)[:2]
    curve = lateness_curve(query, batch, known, 10, 10)
    # results of 2 and of 30; the first period is over at 11
    assert curve.series(0).to_pydict() == {
        "ts": [30], "produced": [1], "true": [1], "recall": [1.0],
    }  # fmt: skip
    assert (curve.n_true, curve.lost(0), curve.recall(0)) == (2, 0, 1.0)


# ---- commands

RECALL = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), goal=sw.Recall(0.9))
FIXED = sw.join(sw.Stream("a", "ts", 5), sw.Stream("b", "ts", 5), goal=sw.Slack(3))
WINDOW = sw.window(sw.Stream("a", "ts"), window=sw.Tumbling(5), select={"n": sw.count()})


@pytest.mark.parametrize(
    ("query", "text", "command"),
    [
        (FIXED, "{}", Command()),
        (FIXED, '{"flush": true}', Command(flush=True)),
        (FIXED, '{"flush": 1}', Command()),
        (FIXED, '{"set": {"slack": 7}}', Command(slack=7)),
        (RECALL, '{"set": {"slack": "2 s", "recall": 0.5}}', Command(slack=2000, recall=0.5)),
        (RECALL, '{"finished": ["b", "a"]}', Command(finished=("b", "a"))),
    ],
)
def test_commands_are_read(query, text, command):
    assert Command.parse(text, query) == command


@pytest.mark.parametrize(
    ("query", "text", "message"),
    [
        (FIXED, "{", "a command must be a JSON object, got '{'"),
        (FIXED, " [1] ", r"a command must be a JSON object, got '\[1\]'"),
        (FIXED, f'"{"x" * 99}"', f"got '\"{'x' * 59}'"),
        (FIXED, '{"slack": 5}', "a command may have flush, set and finished, got slack"),
        (FIXED, '{"set": 5}', "set must be a JSON object, got 5"),
        (FIXED, '{"set": {"k": 5, "j": 1}}', "set may have slack and recall, got k, j"),
        (FIXED, '{"finished": ["c"]}', r"finished must be a list of streams \(a, b\), got \['c'\]"),
        (FIXED, '{"finished": "a"}', r"finished must be a list of streams \(a, b\), got 'a'"),
        (FIXED, '{"set": {"recall": 0.9}}', "recall can be set only where it is the goal"),
        (FIXED, '{"set": {"slack": "soon"}}', "slack must be"),
        (RECALL, '{"set": {"recall": 9}}', "recall must be above 0 and at most 1, got 9"),
    ],
)
def test_what_is_no_command_is_refused(query, text, message):
    with pytest.raises(sw.DataError, match=message):
        Command.parse(text, query)


def test_slack_is_for_queries_that_have_one():
    aggregate = sw.aggregate(
        sw.Stream("a", "ts"), sw.Stream("b", "ts"), on="k", window=sw.Tumbling(5), deadline=9,
        select={"n": sw.count()},
    )  # fmt: skip
    with pytest.raises(sw.DataError, match="slack cannot be set where the goal is"):
        Command.parse('{"set": {"slack": 5}}', aggregate)


def test_an_engine_obeys():
    done = []
    engine = SimpleNamespace(
        query=RECALL, finish=lambda s: done.append(("finish", s)),
        set_slack=lambda k: done.append(("slack", k)),
        set_goal=lambda goal: done.append(("target", goal.target)),
    )  # fmt: skip
    Command(slack=0, recall=0.5, finished=("b",)).obey(engine)
    assert done == [("finish", 1), ("slack", 0), ("target", 0.5)]
    Command(flush=True).obey(engine)
    assert len(done) == 3
    engine.query = FIXED  # its goal has changed since
    Command(recall=0.5).obey(engine)
    assert len(done) == 3
    assert Command(slack=0, flush=True).as_dict() == {"slack": 0, "flush": True}
    assert Command(recall=0.5, finished=("a",)).as_dict() == {"recall": 0.5, "finished": ["a"]}
    assert Command().as_dict() == {}


# ---- reports of shards


def learnt(end, bucket, n):
    late = np.zeros(BUCKETS, np.int64)
    late[bucket] = n
    return LearntIn(end, end - 3, n, LatenessOf(late, n, 2 * n, np.array([end]), 5 + n))


def test_reports_of_shards_are_read_and_add_up():
    one = ShardReport(5, 90, [{7: learnt(10, 3, 4), 8: learnt(20, 3, 1)}, {}])
    two = ShardReport(6, 80, [{6: learnt(8, 1, 1), 7: learnt(11, 5, 2)}, {1: learnt(9, 2, 2)}])
    again = ShardReport.from_bytes(one.to_bytes())
    assert (again.slack, again.sync_time, again.to_bytes()) == (5, 90, one.to_bytes())
    found = again.intervals[0][7]
    assert found[:3] == (10, 7, 4)
    assert found.lateness.counts.tolist() == one.intervals[0][7].lateness.counts.tolist()
    assert found.lateness.found_in.tolist() == [10]
    assert found.lateness[1:3] == (4, 8)
    reports = Reports([one, two])
    total = reports.learnt()
    assert list(total) == [6, 7, 8]
    both = total[7]
    assert both[:3] == (11, 8, 4)
    assert (both.lateness.counts[3], both.lateness.counts[5]) == (4, 2)
    assert (both.lateness.lost, both.lateness.on_time, both.lateness.passed) == (6, 12, 9)
    assert both.lateness.found_in.tolist() == [10, 11]
    assert list(reports.learnt(1)) == [1]
    assert reports.learnt(2) == {}  # there was no such controller


def test_a_report_of_another_version_is_refused():
    plain = {"version": 1, "slack": 5, "sync_time": 9, "intervals": []}
    text = json.dumps(plain).encode()
    data = zlib.crc32(text).to_bytes(4, "big") + zlib.compress(text)
    with pytest.raises(SnapshotError, match="has version 1; this release reads version 2"):
        ShardReport.from_bytes(data)


# ---- windows go on with another goal


def windowed(goal):
    options = {} if goal is None else {"goal": goal}
    return sw.window(
        sw.Stream("a", "ts"), window=sw.Tumbling(50), select={"n": sw.count()}, **options
    )


def test_a_window_query_may_have_another_goal_after_a_restart():
    rng = np.random.default_rng(1)
    table = pa.table({"ts": np.arange(300) * 5 - rng.choice([0, 0, 0, 40], 300)})
    every = {"every": sw.Tuples(20), "recent": sw.Tuples(20)}
    goals = {
        "slack": sw.Slack(30), "none": sw.NoSlack(), "ratio": sw.DropRatio(0.1, **every),
        "other": sw.DropRatio(0.02, **every), "mean": sw.DropRatio(0.1, "mean", **every),
        "error": sw.ErrorBound(0.1, **every),
    }  # fmt: skip
    before = {}
    for name, goal in goals.items():
        query = windowed(goal)
        batch, _ = recorded(query, {"a": table}, None)
        engine = sw_engine(query, batch)
        parts = list(batches(batch, (150,)))
        engine.feed(parts[0])
        before[name] = engine.snapshot(), parts[1]
    for name, (data, rest) in before.items():
        for other, goal in goals.items():
            query = windowed(goal)
            engine = restored(data, sw_engine(query, rest))
            slack, learns = engine.reorder.slack, engine.controller is not None
            if other in ("slack", "none") and not learns:
                assert slack == (30 if other == "slack" else 0)
            if name == other:
                assert engine.snapshot() == data
            engine.feed(rest)
            engine.flush()
            assert engine.metrics().is_balanced, (name, other)
            assert engine.metrics().arrivals == 300


def sw_engine(query, batch):
    from slackwater.engine.window import WindowEngine

    return WindowEngine(query, schemas_of(query, batch))


# ---- rows without partner


def test_pairs_are_not_made_of_events_that_the_search_for_partners_has_forgotten():
    """Nor later, when events are kept for longer."""
    streams = [sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 20)]
    query = sw.join(*streams, on="k", how="left", goal=sw.Slack(5))
    engine = JoinEngine(query, dict.fromkeys("ab", pa.schema({"ts": pa.int64(), "k": pa.int64()})))
    alone, join = engine.alone, engine.join
    join.frame.ctl[fields.TIME] = 500
    alone.matcher.record.ctl[partners.FORGET] = 490
    alone.set_keep(1_000, join)
    assert [join.stream_horizon(s) for s in range(2)] == [490 - 10, 490 - 20]
    assert [alone.matcher.kept_from(s) for s in range(2)] == [490 - 10, 490 - 20]
