"""The grammar of the API: three verbs, one vocabulary, no default that loses results silently."""

import builtins
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
