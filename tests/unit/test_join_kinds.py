"""What a join of a kind refuses, and its columns."""

import pyarrow as pa
import pytest

import slackwater as sw

A, B, C = (sw.Stream(name, "ts", 5) for name in "abc")
PLAIN = sw.Stream("a", "ts"), sw.Stream("b", "ts")
SCHEMA = pa.schema([pa.field("ts", pa.int64(), nullable=False), pa.field("k", pa.string())])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"how": "outer"}, "how must be one of 'inner', 'left', 'right', 'full', 'semi', 'anti'"),
        ({"how": "left", "slide": 3}, "how='left' needs no slide, got slide=3"),
        ({"how": "anti", "select": "count"}, "needs select of columns, got select='count'"),
        ({"how": "left", "pipeline": "icde16"}, "needs pipeline='clocked', got pipeline='icde16'"),
        ({"how": "left", "late": "drop", "goal": sw.Slack(1)}, "needs late='count' or 'emit'"),
        ({"how": "left", "shed": "adaptive"}, "would make another one look as if it had no"),
        ({"emit": "eager", "late": "emit"}, "late='emit' has nothing to correct"),
        ({"emit": "eager", "goal": sw.Latency("1 s")}, "the goal with emit='eager' must be one of"),
        ({"how": "semi", "goal": sw.NoSlack(synchronize=False)}, "needs the common clock"),
        ({"how": "left", "tolerance": 5}, "tolerance= is for how='asof'"),
        ({"direction": "nearest"}, "direction= is for how='asof'"),
        ({"goal": sw.Recall(0.9, unmatched=0.99)}, "unmatched= is for joins with rows that have"),
        ({"how": "asof"}, "how='asof' needs tolerance="),
        ({"how": "asof", "tolerance": 5}, "the tolerance is the window, got window=5"),
        ({"result_id": True, "select": "count"}, "result_id=True needs select of columns"),
        ({"how": "semi", "select": {"x": "b.k"}}, None),
    ],
)
def test_refusals(options, message):
    if message is None:
        query = sw.join(A, B, on="k", **options)
        with pytest.raises(sw.QueryError, match="has columns of stream 'a' only, select reads 'b'"):
            query.result_schema(a=SCHEMA, b=SCHEMA)
        return
    with pytest.raises(sw.QueryError, match=message):
        sw.join(A, B, on="k", **options)


def test_three_streams_are_joined_in_two_steps():
    with pytest.raises(sw.QueryError, match="join two of them first and the results with"):
        sw.join(A, B, C, on="k", how="left")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slide": 3}, "emit='eager' needs no slide, got slide=3; emit='ordered' takes it"),
        ({"pipeline": "icde16"}, "needs pipeline='clocked', got .*; emit='ordered' takes it"),
        ({"late": "drop", "goal": sw.Slack(1)}, "needs late='count', got late='drop'"),
        ({"late": "emit"}, "late='emit' has nothing to correct"),
        ({"shed": "adaptive"}, "needs shed='off', got 'adaptive'; emit='ordered' takes it"),
        ({"goal": sw.NoSlack(synchronize=False)}, "needs the common clock of all streams"),
        ({"goal": sw.Latency("1 s")}, "the goal with emit='eager' must be one of Slack, MaxSlack"),
    ],
)
def test_refusals_of_eager_joins_of_three_streams(options, message):
    with pytest.raises(sw.QueryError, match=message):
        sw.join(A, B, C, on="k", emit="eager", **options)


def test_eager_joins_need_time_windows():
    counted = sw.Stream("c", "ts", sw.Tuples(3))
    with pytest.raises(sw.QueryError, match="got a tuple-count window; emit='ordered' takes it"):
        sw.join(A, B, counted, on="k", emit="eager")


def test_eager_joins_need_an_interval_with_0_in_it():
    with pytest.raises(sw.QueryError, match=r"with 0 in it, got .*\(1, 5\); emit='ordered' takes"):
        sw.join(*PLAIN, on="k", emit="eager", between=(1, 5))


def test_an_eager_join_of_three_streams_has_its_own_goal():
    assert sw.join(A, B, C, on="k", emit="eager").goal == sw.Recall(0.999)


def test_a_report_on_a_kind_without_pairs_says_so():
    tables = dict.fromkeys("ab", pa.table({"ts": [1, 2], "k": [0, 0]}))
    with pytest.raises(sw.QueryError, match="a report compares pairs, and how='anti' has none"):
        sw.join(A, B, on="k", how="anti").replay(tables).report()


@pytest.mark.parametrize(
    ("how", "emit"), [("inner", "eager"), ("left", "eager"), ("full", "ordered")]
)
def test_a_report_counts_pairs(how, emit):
    tables = {
        "a": pa.table({"ts": [1, 9, 3], "k": [0, 0, 0]}),
        "b": pa.table({"ts": [2, 3, 20], "k": [0, 0, 0]}),
    }
    query = sw.join(A, B, on="k", how=how, emit=emit, goal=sw.MaxSlack())
    report = query.replay(tables).report(over=5, every=1)
    assert (report.true, report.produced, report.recall) == (4, 4, 1.0)


def test_an_unmatched_share_is_one():
    with pytest.raises(sw.QueryError, match="unmatched must be above 0 and at most 1, got 99"):
        sw.Recall(0.9, unmatched=99)


@pytest.mark.parametrize(
    ("how", "nullable"),
    [
        ("inner", "b_k a_k"),
        ("left", "a_k b_ts b_k"),
        ("right", "a_ts a_k b_k"),
        ("full", "a_ts a_k b_ts b_k"),
        ("anti", "a_k"),
    ],
)
def test_columns_of_sides_that_may_be_missing_are_null(how, nullable):
    schema = sw.join(A, B, on="k", how=how).result_schema(a=SCHEMA, b=SCHEMA)
    assert {f.name for f in schema if f.nullable} == set(nullable.split())


def test_corrections_have_columns():
    streams = {"a": SCHEMA, "b": SCHEMA}
    query = sw.join(A, B, on="k", how="left", late="emit", result_id=True)
    assert query.result_schema(streams).names[-3:] == ["result_id", "late", "change"]
    query = sw.join(*PLAIN, on="k", how="asof", tolerance=5, emit="eager")
    assert query.result_schema(streams).names == ["result_ts", "a_ts", "a_k", "b_ts", "b_k"]
    query = sw.join(A, B, on="k", how="semi")
    assert query.result_schema(streams).names == ["result_ts", "a_ts", "a_k"]


def test_a_null_key_is_unmatched_on_a_preserved_side_and_rejected_on_the_other():
    table = pa.table({"ts": [1, 2, 9], "k": [None, "x", "x"], "at": [0, 1, 2]})
    run = sw.join(A, B, on="k", how="left", goal=sw.NoSlack()).replay(
        {"a": table, "b": table}, arrival="at"
    )
    assert [r["a_ts"] for r in run.results.to_pylist() if r["b_ts"] is None] == [1]
    assert run.metrics.rejected == {"null key": 1}


def test_rows_wait_for_an_idle_stream_unless_they_may_not():
    from slackwater.engine.factory import join_engine
    from slackwater.engine.replay import recorded

    tables = {
        "a": pa.table({"ts": [1, 50, 99], "k": [0, 0, 0], "at": [1, 2, 3]}),
        "b": pa.table({"ts": [2], "k": [9], "at": [0]}),
    }
    query = sw.join(A, B, on="k", how="anti", goal=sw.NoSlack())
    batch, _ = recorded(query, tables, "at")
    for idle_after, given in ((None, 0), (20, 2)):
        engine = join_engine(query, {n: t.schema for n, t in tables.items()}, idle_after=idle_after)
        assert engine.feed(batch).table.num_rows == given


@pytest.mark.parametrize("result_id", [False, True])
def test_what_is_selected_does_not_decide_between_right_events_of_one_time(result_id):
    tables = {
        "a": pa.table({"ts": [5], "k": [1], "at": [9]}),
        "b": pa.table(
            {"ts": [5] * 9, "k": [1] * 9, "n": range(9), "x": range(9, 0, -1), "at": range(9)}
        ),
    }
    found = set()
    for select in ("*", {"b_n": "b.n"}, {"b_n": "b.n", "x": "b.x"}, {"b_n": "b.n", "t": "b.ts"}):
        query = sw.join(
            *PLAIN, on="k", how="asof", tolerance=5, goal=sw.Slack(0), select=select,
            result_id=result_id,
        )  # fmt: skip
        (row,) = query.replay(tables, arrival="at").results.to_pylist()
        found.add(row["b_n"])
    assert len(found) == 1


def test_metrics_say_which_share_of_the_decided_rows_was_right():
    from slackwater.metrics.progress import metrics_dict

    tables = {
        "a": pa.table({"ts": [1, 2, 9, 30], "k": [0, 1, 2, 3], "at": [0, 1, 2, 5]}),
        "b": pa.table({"ts": [20, 2], "k": [9, 1], "at": [3, 4]}),
    }
    goal = sw.Recall(0.9, unmatched=0.8, over=50, every=50)
    for how, more, recall, right in (
        ("anti", {}, None, 0.8),
        ("left", {}, 1.0, 0.8),
        ("asof", {"goal": sw.Recall(0.7, over=50, every=50), "tolerance": 5}, None, 0.7),
        ("semi", {"goal": sw.Recall(0.7, over=50, every=50)}, 1.0, None),
    ):
        streams = PLAIN if how == "asof" else (A, B)
        options = {"goal": goal, "retention": 100} | more
        query = sw.join(*streams, on="k", how=how, emit="eager", **options)
        run = query.replay(tables, arrival="at")
        told = metrics_dict(run.metrics, query)
        assert (told["recall"], told["right_target"]) == (recall, right)
        if how == "semi":
            assert told["right_rows"] is None
        else:
            wrong = run.metrics.withdrawn_rows
            assert wrong == 1
            assert told["right_rows"] == 1 - wrong / run.metrics.unmatched_rows
