"""What a query refuses, and in which words; and that it survives being written down."""

import json
import pickle
from datetime import timedelta

import pytest

import slackwater as sw
from slackwater.query.join import JoinQuery

A = sw.Stream("a", ts="ts", window=10)
B = sw.Stream("b", ts="ts", window=10)
C = sw.Stream("c", ts="ts", window=10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (sw.join, "a join takes 2 to 32 streams, got 0"),
        (lambda: sw.join(A, goal=sw.NoSlack()), "a join takes 2 to 32 streams, got 1"),
        (
            lambda: sw.join(A, A, goal=sw.NoSlack()),
            "streams must have different names, got a more than once",
        ),
        (lambda: sw.join(A, "b", goal=sw.NoSlack()), "a join takes Stream objects, got 'b'"),
        (lambda: sw.Stream("a b", "ts", 1), "name must be letters, digits and _, got 'a b'"),
        (lambda: sw.Stream("a", "", 1), "ts must be the name of its time column, got ''"),
        (
            lambda: sw.join(A, sw.Stream("b", "ts", -5), goal=sw.NoSlack()),
            "stream 'b': window must be >= 0, got -5",
        ),
        (
            lambda: sw.join(A, sw.Stream("b", "ts", "soon"), goal=sw.NoSlack()),
            "window must be like '5 seconds'",
        ),
        (
            lambda: sw.join(A, sw.Stream("b", "ts", "1 us"), goal=sw.NoSlack()),
            "must be a whole number of ms",
        ),
        (
            lambda: sw.join(A, sw.Stream("b", "ts", 1.5), goal=sw.NoSlack()),
            "window must be a number of ms",
        ),
        (lambda: sw.Stream("b", "ts", sw.Tuples(0)), "must hold at least 1 tuple, got 0"),
        (lambda: sw.join(A, B, goal=sw.Slack(-1)), "slack must be >= 0"),
        (lambda: sw.join(A, B, goal="fast"), "goal must be one of NoSlack, Slack, MaxSlack"),
        (
            lambda: sw.join(A, B, select="all", goal=sw.NoSlack()),
            r"select must be '\*', 'count' or columns by name .*got 'all'",
        ),
        (
            lambda: sw.join(A, B, late="keep", goal=sw.NoSlack()),
            "late must be one of 'count', 'emit', 'drop'",
        ),
        (lambda: sw.join(A, B, bounds="()", goal=sw.NoSlack()), "bounds must be one of"),
        (
            lambda: sw.join(A, B, unit="s", goal=sw.NoSlack()),
            "unit must be one of 'ms', 'us', got 's'",
        ),
        (lambda: sw.join(A, B, bounds="[)", goal=sw.NoSlack()), r"bounds='\[\)' .* needs slide="),
        (lambda: sw.join(A, B, slide=0, goal=sw.NoSlack()), "slide must be at least 1 ms, got 0"),
        (
            lambda: sw.join(A, sw.Stream("b", "ts", 0), bounds="(]", goal=sw.NoSlack()),
            r"window must be at least 1 ms with bounds='\(\]'",
        ),
        (
            lambda: sw.join(
                A, sw.Stream("b", "ts", sw.Tuples(2)), late_probe="window-end", goal=sw.NoSlack()
            ),
            "late_probe='window-end' needs time windows",
        ),
        (
            lambda: sw.join(A, sw.Stream("b", "ts", sw.Tuples(2)), slide=5, goal=sw.NoSlack()),
            "slide= needs time windows on all streams",
        ),
        (lambda: sw.join(A, B, on="", goal=sw.NoSlack()), "on must be a column name or equalities"),
        (
            lambda: sw.join(A, B, on="a.x = b", goal=sw.NoSlack()),
            "on must be a column name or equalities",
        ),
        (
            lambda: sw.join(A, B, on=["a.x = z.x"], goal=sw.NoSlack()),
            "unknown stream 'z' in 'a.x = z.x'",
        ),
        (
            lambda: sw.join(A, B, on=["a.x = a.y"], goal=sw.NoSlack()),
            "must tie two different streams",
        ),
        (
            lambda: sw.join(A, B, on=["a.x = b.x", "a.y = b.x"], goal=sw.NoSlack()),
            "x and y of stream 'a' equal",
        ),
        (
            lambda: sw.join(A, B, C, on=["a.x = b.x", "b.y = c.y", "c.z = a.z"], goal=sw.NoSlack()),
            "on forms a cycle: a, c are tied in two ways.*move one of the equalities to where=",
        ),
        (
            lambda: sw.join(A, B, where="a.x <", goal=sw.NoSlack()),
            "where does not parse: expected a value, got the end",
        ),
        (
            lambda: sw.join(A, B, where="a.x < 'b", goal=sw.NoSlack()),
            "where does not parse: a ' is not closed",
        ),
        (
            lambda: sw.join(A, B, where="x < 1", goal=sw.NoSlack()),
            "must name columns as stream.column, got 'x'",
        ),
        (
            lambda: sw.join(A, B, where="a.x < z.x", goal=sw.NoSlack()),
            "unknown stream in z.x; streams are a, b",
        ),
        (
            lambda: sw.join(A, B, where="open(a.x)", goal=sw.NoSlack()),
            "where knows the functions .*; got 'open'",
        ),
        (
            lambda: sw.join(A, B, where="sqrt(a.x, 2)", goal=sw.NoSlack()),
            "sqrt takes 1 arguments, got 2",
        ),
        (
            lambda: sw.join(A, B, where="dot(a.v) > 1", goal=sw.NoSlack()),
            "dot takes 2 arguments, got 1 in",
        ),
        (
            lambda: sw.join(A, B, where="cosine(a.v, 2 * b.v) > 0.8", goal=sw.NoSlack()),
            r"cosine takes columns of vectors, stream.column, got 2 \* b.v in",
        ),
        (
            lambda: sw.join(A, B, where="l2(a.v, c.v) < 1", goal=sw.NoSlack()),
            "unknown stream in c.v; streams are a, b",
        ),
        (
            lambda: sw.Stream("a", "ts", 1, vectors={"v": 0}),
            r"stream 'a': vectors must be lengths not below 1 by column, like "
            r"\{'embedding': 512\}, got \{'v': 0\}",
        ),
        (
            lambda: sw.Stream("a", "ts", 1, vectors={"v": 2.5}),
            r"lengths not below 1.*got \{'v': 2.5",
        ),
        (lambda: sw.Stream("a", "ts", 1, vectors={"v": True}), "lengths not below 1"),
        (lambda: sw.Stream("a", "ts", 1, vectors={1: 2}), r"lengths not below 1.*got \{1: 2\}"),
        (lambda: sw.Stream("a", "ts", 1, vectors="v"), "lengths not below 1.*got 'v'"),
        (lambda: sw.Stream("a", "ts", 1, vectors=3), "lengths not below 1.*got 3"),
        (
            lambda: sw.join(A, B, where="[a.x]", goal=sw.NoSlack()),
            "where does not parse: '\\[' has no meaning here",
        ),
        (
            lambda: sw.join(A, B, where=3, goal=sw.NoSlack()),
            "where must be an expression or a function, got 3",
        ),
    ],
)
def test_a_query_that_cannot_be_run_is_refused_with_the_reason(make, message):
    with pytest.raises(sw.QueryError, match=message):
        make()


def test_durations_are_understood_in_every_common_spelling():
    spellings = ["2 s", "2 seconds", "2000 ms", "2 SEC", 2000, timedelta(seconds=2), "2000000 us"]
    queries = [sw.join(A, sw.Stream("b", "ts", window), goal=sw.NoSlack()) for window in spellings]
    assert {query.lengths[1] for query in queries} == {2000}


def test_an_open_start_is_a_window_one_unit_shorter():
    assert sw.join(A, B, bounds="(]", goal=sw.NoSlack()).lengths == (9, 9)
    assert sw.join(A, B, goal=sw.NoSlack()).lengths == (10, 10)


@pytest.mark.parametrize(
    "query",
    [
        sw.join(A, B, goal=sw.NoSlack()),
        sw.join(A, B, C, on=["a.x = b.x", "b.y = c.z"], goal=sw.Slack(timedelta(seconds=1))),
        sw.join(
            A, sw.Stream("b", "t", sw.Tuples(3)), on="k", where="a.x < b.y", goal=sw.MaxSlack()
        ),
        sw.join(
            A,
            B,
            bounds="[)",
            slide="1 s",
            late="emit",
            select="*",
            retention="1 h",
            unit="us",
            goal=sw.NoSlack(),
        ),
        sw.join(
            sw.Stream("a", "ts", 5, vectors={"w": 2, "v": 512}),
            B,
            where="cosine(a.v, b.v) > 0.8",
            goal=sw.NoSlack(),
        ),
    ],
)
def test_a_query_survives_json_and_pickle(query):
    again = JoinQuery.from_dict(json.loads(json.dumps(query.to_dict())))
    assert again.lengths == query.lengths
    assert again.slack == query.slack
    assert again.to_dict() == query.to_dict()
    assert pickle.loads(pickle.dumps(query)) == query


def test_the_order_in_which_vectors_are_given_does_not_matter():
    streams = [sw.Stream("a", "ts", 5, vectors=v) for v in ({"v": 2, "w": 3}, {"w": 3, "v": 2})]
    assert streams[0] == streams[1]
    assert len({*streams}) == 1


def test_a_query_with_a_function_is_not_plain_data():
    with pytest.raises(sw.QueryError, match="plain data only if where is text"):
        sw.join(A, B, where=lambda a, b: True, goal=sw.NoSlack()).to_dict()
