"""The grammar of the API: three verbs, one vocabulary, no default that loses results silently."""

import builtins
import json
from importlib.metadata import version

import pyarrow as pa
import pytest

import slackwater as sw

A, B = sw.Stream("a", "ts", 10), sw.Stream("b", "ts", 10)
PLAIN = sw.Stream("a", "ts"), sw.Stream("b", "ts")
TABLE = pa.table({"ts": [1, 2, 3], "k": [1, 1, 2]})
COUNT = {"n": sw.count()}
WINDOW = sw.window(PLAIN[0], window=sw.Tumbling(2), select=COUNT)
AGGREGATE = sw.aggregate(*PLAIN, on="k", window=sw.Tumbling(2), select=COUNT, deadline=4)


def test_a_join_without_a_goal_has_a_recall_that_everything_states():
    query = sw.join(A, B, on="k")
    assert query.goal == sw.Recall(0.95)
    assert "goal=Recall(target=0.95" in repr(query)
    assert "WITH RECALL 0.95" in str(query)
    assert sw.sql("SELECT * FROM a [5 SEC], b [5 SEC] WHERE a.k = b.k").goal == sw.Recall(0.95)


def test_keys_may_be_equalities_of_columns():
    for on in (
        sw.col("a.k") == sw.col("b.j"),
        (sw.col("a.k") == sw.col("b.j")) & (sw.col("a.xy") == sw.col("b.xy")),
        ["a.k = b.j", sw.col("a", "the key") == sw.col("b", "the key")],
    ):
        assert sw.join(A, B, on=on).on[0] == "a.k = b.j"
    assert sw.join(A, B, on=on).on[1] == "a.`the key` = b.`the key`"
    aggregate = sw.aggregate(
        *PLAIN, on=sw.col("a.k") == sw.col("b.j"), window=sw.Tumbling(2), select=COUNT, deadline=4
    )
    assert aggregate.on == ("a.k = b.j",)


class Column:
    """What PySpark's columns look like from outside."""

    __module__ = "pyspark.sql.column"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sw.join(A, B, on=sw.col("a.k")),
            "got Expression('a.k'); other conditions are",
        ),
        (
            lambda: sw.join(A, B, on=sw.col("a.k") < sw.col("b.k")),
            "other conditions are for wh",
        ),
        (lambda: sw.join(A, B, on=5), "or the same as sw.col('a.x') == sw.col('b.y'), got 5"),
        (lambda: sw.join(A, B, on=Column()), "got a Spark column, which belongs to a DataFrame"),
        (lambda: sw.join(A, B, where=Column()), "got a Spark column: write sw.col('a.x')"),
        (lambda: A.k == B.k, "a Stream has no attribute 'k'; a column of it is sw.col('a', 'k')"),
        (lambda: sw.join(TABLE, TABLE), "got Table; sw.Stream('a', ts='time', window='5 s')"),
        (lambda: sw.join(A, B, on="k").replay(TABLE, TABLE), "by its name, a=…, b=…, got Table"),
    ],
)
def test_what_readers_of_other_libraries_try_is_answered_with_the_way(make, message):
    with pytest.raises((sw.QueryError, AttributeError)) as error:
        make()
    assert message in str(error.value)


def test_an_interval_is_two_windows_or_a_condition_on_times():
    plain = [sw.Stream(name, "ts") for name in "ab"]
    both = sw.join(*plain, on="k", between=("-5 min", "30 min"))
    assert both == sw.join(sw.Stream("a", "ts", "30 min"), sw.Stream("b", "ts", "5 min"), on="k")
    later = sw.join(*plain, on="k", between=("10 min", "30 min"))
    assert (later.lengths, later.gap) == ((1_800_000, 0), (600_000, 1_800_000))
    earlier = sw.join(*plain, on="k", between=("-1 hour", "-1 s"))
    assert (earlier.lengths, earlier.gap) == ((0, 3_600_000), (-3_600_000, -1_000))
    for query in (both, later, earlier):
        assert type(query).from_dict(json.loads(json.dumps(query.to_dict()))) == query
        again = sw.sql(str(query))
        assert (again.lengths, again.gap, again.keys) == (query.lengths, query.gap, query.keys)


SECONDS = "SELECT * FROM a, b WHERE a.k = b.k AND "


@pytest.mark.parametrize(
    ("text", "lengths", "gap"),
    [
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 30 MINUTES", (1_800_000, 0), None),
        ("b.ts >= a.ts AND b.ts <= a.ts + INTERVAL '30' MINUTE", (1_800_000, 0), None),
        ("b.ts BETWEEN a.ts - INTERVAL '5 seconds' AND a.ts", (0, 5_000), None),
        ("a.ts BETWEEN b.ts - INTERVAL 2 SECONDS AND b.ts + INTERVAL 1 S", (2_000, 1_000), None),
        ("a.ts + INTERVAL 1 SECOND <= b.ts AND a.ts + INTERVAL 2 SECONDS >= b.ts",
         (2_000, 0), (1_000, 2_000)),
        ("a.ts >= b.ts + INTERVAL 1 MS AND a.ts <= b.ts + INTERVAL 2 MS", (0, 2), (-2, -1)),
    ],
)  # fmt: skip
def test_an_interval_may_be_written_as_in_spark_and_flink(text, lengths, gap):
    query = sw.sql(SECONDS + text)
    assert (query.lengths, query.gap, query.where) == (lengths, gap, None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.join(A, B, between=(0, 1)), "but stream 'a' has one: 10; leave it out"),
        (lambda: sw.join(*PLAIN, between=("1 s",)), "must be two durations like ('0 s', '30 min')"),
        (lambda: sw.join(*PLAIN, between=("2 s", "1 s")), "must have the smaller end first, got"),
        (
            lambda: sw.join(*PLAIN, sw.Stream("c", "ts"), between=(0, 1)),
            "for two streams, got 3",
        ),
        (lambda: sw.join(*PLAIN, between=(0, 1), bounds="(]"), "bounds must be '[]', got '(]'"),
        (lambda: sw.join(*PLAIN, between=(1, 2), slide=5), "without a slide"),
        (lambda: sw.sql(SECONDS + "b.ts >= a.ts + INTERVAL 1 SECOND"), "need both ends: r.ts BETW"),
        (lambda: sw.sql(SECONDS + "b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MOON"), "1 MOON"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(make, message):
    with pytest.raises(sw.QueryError) as error:
        make()
    assert message in str(error.value)


def test_a_bare_window_over_timestamps_needs_a_unit():
    times = pa.table({"ts": pa.array([1], pa.timestamp("ms"))})
    with pytest.raises(sw.QueryError, match="window = 10 needs a unit, because the times in 'ts'"):
        sw.join(A, B).replay(a=times, b=times)


def test_streams_are_keywords_or_one_mapping():
    query = sw.join(A, B, on="k")
    by_keyword = query.replay(a=TABLE, b=TABLE)
    assert by_keyword.results == query.replay({"a": TABLE, "b": TABLE}).results
    assert by_keyword.results.schema == query.result_schema(a=TABLE.schema, b=TABLE.schema)
    with pytest.raises(sw.QueryError, match="keywords or as one mapping, got both: .* and b"):
        query.replay({"a": TABLE}, b=TABLE)
    with pytest.raises(sw.QueryError, match="give each stream by its name, a=…, b=…, got Table"):
        query.replay(TABLE)


def test_a_stream_called_like_an_option_is_given_by_the_mapping():
    named = sw.Stream("arrival", "ts", 10)
    query = sw.join(named, B, on="k")
    assert query.replay({"arrival": TABLE, "b": TABLE}).metrics.arrivals == 6


def test_the_only_stream_of_a_window_needs_no_name():
    assert WINDOW.replay(TABLE).results == WINDOW.replay(a=TABLE).results


def test_a_source_may_name_the_data_of_two_streams():
    twice = [sw.Stream(name, "ts", 10, source="trades") for name in "ab"]
    query = sw.join(*twice, on="k")
    assert query.replay(trades=TABLE).results.num_rows > 0
    assert query.result_schema(trades=TABLE.schema).names[0] == "result_ts"


@pytest.mark.parametrize("query", [sw.join(A, B, on="k"), WINDOW, AGGREGATE], ids=lambda q: q.kind)
def test_every_kind_is_plain_data_and_sql(query):
    assert type(query).from_dict(query.to_dict()) == query
    assert sw.sql(str(query)) == query


def test_a_deadline_is_a_duration_or_has_settings():
    options = {"on": "k", "window": sw.Tumbling(2), "select": COUNT}
    assert sw.aggregate(*PLAIN, deadline=sw.Deadline(4), **options) == AGGREGATE
    after = sw.aggregate(*PLAIN, deadline=sw.Deadline(1, after="end"), **options)
    assert after.deadline_of(0) == 3


def test_windows_that_tumble_are_described_in_one_way():
    sliding = sw.window(PLAIN[0], window=sw.Sliding("2 s", 2000), select=COUNT)
    assert sliding.window == sw.Tumbling("2 s")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.Tuples(0), "a tuple-count window must hold at least 1 tuple, got 0"),
        (lambda: sw.Tuples(5, slide=0), "must slide by at least 1 tuple, got 0"),
        (lambda: sw.Stream("a", "ts", sw.Tuples(5, slide=2)), "the window of a join has no slide"),
        (lambda: sw.join(A, B, select=COUNT), "aggregates are for sw.aggregate"),
        (lambda: sw.window(PLAIN[0], window="5 s", select=COUNT), "must be a Tumbling, a Sliding"),
    ],
)
def test_words_of_another_grammar_are_refused_with_the_right_one(make, message):
    with pytest.raises(sw.QueryError, match=message):
        make()


def test_a_star_import_shadows_no_function_of_python():
    assert set(sw.__all__) & set(vars(builtins)) == set()
    assert sw.functions.sum("x") == sw.Aggregate("sum", "x")


def test_the_version_is_that_of_the_package():
    assert sw.__version__ == version("slackwater")
