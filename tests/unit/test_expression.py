"""Expressions as text and with `col`: what they are, what is refused, and that all ways are one."""

import datetime as dt
import json
import math
import pickle
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.joins.arrow_values import evaluate
from slackwater.joins.numba_source import LIBRARY, source_of
from slackwater.query.expression import (
    Binary,
    Column,
    Condition,
    Expression,
    Literal,
    Negate,
    Type,
    parse,
    text_of,
    type_of,
)
from slackwater.query.join import JoinQuery
from slackwater.testing import oracle
from slackwater.testing.sql_condition import NotSqlError, as_sql

F = sw.functions
A = sw.Stream("a", ts="ts", window=10)
B = sw.Stream("b", ts="ts", window=10)
X, Y = sw.col("a.x"), sw.col("b.y")


# ---- text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a.x<1", "a.x < 1"),
        ("((a.x)) + (b.y * 2)", "a.x + b.y * 2"),
        ("(a.x + b.y) * 2", "(a.x + b.y) * 2"),
        ("a.x - (b.y - 1)", "a.x - (b.y - 1)"),
        ("(-a.x) ** 2", "(-a.x) ** 2"),
        ("-(a.x ** 2)", "-a.x ** 2"),
        ("a.x ** (b.y ** 2) ** -1", "a.x ** (b.y ** 2) ** -1"),
        ("(a.x ** b.y) ** 2", "(a.x ** b.y) ** 2"),
        ("+a.x", "a.x"),
        ("not (a.x == 1)", "not a.x == 1"),
        ("(a.x < 1) == True", "(a.x < 1) == True"),
        ("a.x > 1 and (b.y > 1 and a.z > 1)", "a.x > 1 and b.y > 1 and a.z > 1"),
        ("a.x > 1 and (b.y > 1 or a.z > 1)", "a.x > 1 and (b.y > 1 or a.z > 1)"),
        ("0<a.x<=b.y", "0 < a.x <= b.y"),
        ("1e400 > .5e-4", "1e309 > 5e-05"),
        ("a.`x`", "a.x"),
        ("a . ` x` * a.`y.z`", "a.` x` * a.`y.z`"),
        ("a.`tick``s`", "a.`tick``s`"),
        ("`class`.x", "`class`.x"),
        ("a.`class`", "a.`class`"),
        ("a.ﬁ", "a.fi"),  # Python normalises names
        ("a.`ﬁ`", "a.`ﬁ`"),  # but for those in backticks
        ("a._q0 + a.`odd one`", "a._q0 + a.`odd one`"),
    ],
)
def test_a_text_has_one_canonical_form(text, canonical):
    assert text_of(parse(text)) == canonical
    assert parse(canonical) == parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a.s = 'it''s' AND b.x IN (1, 2)", "a.s == 'it''s' and b.x in (1, 2)"),
        ("a.x NOT IN (1) OR NOT a.y IS NULL", "a.x not in (1) or a.y is not null"),
        ("a.x <> 1", "a.x != 1"),
        ("a.x BETWEEN 1 AND 2 AND b.y", "1 <= a.x <= 2 and b.y"),
        ("CASE WHEN a.x > 1 THEN 'a' ELSE b.s END", "case when a.x > 1 then 'a' else b.s end"),
        ("CASE a.x WHEN 1 THEN 2 END", "case when a.x == 1 then 2 end"),
        ("if(a.x, 1, 2)", "case when a.x then 1 else 2 end"),
        ("a.t > TIMESTAMP '2026-01-01T01:00:00+01:00'", "a.t > timestamp '2026-01-01 00:00:00'"),
        ("a.t - INTERVAL '90' SECOND", "a.t - interval '90 seconds'"),
        ("a.d = date '2026-01-31'", "a.d == date '2026-01-31'"),
        ("a.s NOT LIKE 'x%'", "not a.s like 'x%'"),
        ("a.s || 'x'", "concat(a.s, 'x')"),
        ("a.flag IS TRUE", "coalesce(not not a.flag, False)"),
        ("LEAST(a.x, 1) + Greatest(a.x, null)", "min(a.x, 1) + max(a.x, null)"),
        ("a.x DIV 2", "a.x div 2"),
        ("power(a.x, 2)", "a.x ** 2"),
    ],
)
def test_text_sql_and_col_are_one_grammar(text, canonical):
    tree = parse(text)
    assert text_of(tree) == canonical and parse(canonical) == tree
    select = f"SELECT {text} AS v FROM a [RANGE 10], b [RANGE 10]"
    assert dict(sw.sql(select).listed)["v"] == canonical
    assert sw.sql(str(sw.sql(select))) == sw.sql(select)


def test_texts_times_and_nulls_may_be_built():
    at, T = sw.col("a.t"), dt.datetime(2026, 1, 1)  # noqa: N806
    built = (X.isin(1, 2) & ~Y.is_null()) | sw.col("a.s").like("x%") | (at > T)
    assert str(built) == (
        "a.x in (1, 2) and b.y is not null or a.s like 'x%' "
        "or a.t > timestamp '2026-01-01 00:00:00'"
    )
    assert str(at - dt.timedelta(minutes=5) < dt.date(2026, 1, 2)) == (
        "a.t - interval '5 minutes' < date '2026-01-02'"
    )
    assert str(sw.col("a.s") == "u") == "a.s == 'u'"


def test_an_error_shows_the_place_and_what_may_have_been_meant():
    with pytest.raises(sw.QueryError) as error:
        parse("a.x > 1 and lowr(a.s) = 'u'")
    first, line, caret = str(error.value).splitlines()
    assert "did you mean lower?" in first
    assert line[caret.index("^") : caret.rindex("^") + 1].startswith("lowr")


def test_literals_of_different_types_are_different():
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3
    assert parse("a.x > 1") != parse("a.x > 1.0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.`x > 1", "where does not parse: a ` is not closed in 'a.`x > 1'"),
        ("a.`` > 1", "a ` is not closed"),
        ("a.`x`y > 1", "where does not parse: expected an operator or the end, got 'y' in"),
        ("`x` > 1", "must name columns as stream.column, got 'x' in"),
        ("`bid price` > 1", "must name columns as stream.column, got '`bid price`' in"),
        ("`abs x`(a.x) > 1", "knows the functions .*; got 'abs x'"),
        ("a.x << 1", "where does not parse: expected a value, got '<' in"),
        ("a.x is b.x", "expected NULL, TRUE or FALSE behind IS, got 'b' in"),
        ("~a.x", "'~' has no meaning here in"),
        ("min() > 1", "min takes 1 or more arguments, got 0 in"),
        ("l2(a.v, a.`odd v` + 1) < 1", "takes columns of vectors, .* got a.`odd v` \\+ 1 in"),
        ("a.x > 9223372036854775808", "may hold whole numbers below 2\\*\\*63, got 92233720368547"),
        (" + ".join(["a.x"] * 102), "nested too deeply, at most 100 operators inside each other"),
        (" and ".join(["a.x"] * 501), "may have 500 names and numbers, got 501 in 'a.x and a.x"),
        ("a.x" + " " * 10_000, "where may have 10,000 characters, got 10,003"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(text, message):
    with pytest.raises(sw.QueryError, match=message):
        parse(text)


def test_what_is_at_the_limits_is_not_refused():
    for text in (
        " + ".join(["a.x"] * 101),
        " and ".join(["a.x"] * 500),
        "(" * 90 + "a.x" + " and a.x)" * 90,
    ):
        assert text_of(parse(text_of(parse(text)))) == text_of(parse(text))


def test_a_condition_is_split_where_all_must_hold():
    parts = Condition.parse(
        "abs(a.x - b.y) < 1 and (a.x > 0 or b.y > 0) and l2(a.v, b.v) < 2"
    ).parts
    assert [part.source for part in parts] == [
        "abs(a.x - b.y) < 1",
        "a.x > 0 or b.y > 0",
        "l2(a.v, b.v) < 2",
    ]
    assert parts[0].band is not None and parts[1].band is None
    assert [sorted(part.numbers) for part in parts[1:]] == [[("a", "x"), ("b", "y")], []]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a.n + 1", Type.INTEGER),
        ("-a.flag", Type.INTEGER),
        ("a.n * 0.5", Type.FLOAT),
        ("a.n / 2", Type.FLOAT),
        ("a.n // 2", Type.INTEGER),
        ("a.n div 2", Type.INTEGER),
        ("a.n % 0.5", Type.FLOAT),
        ("a.n ** 2", Type.FLOAT),
        ("floor(a.x)", Type.INTEGER),
        ("a.s || 'x'", Type.TEXT),
        ("length(a.s)", Type.INTEGER),
        ("a.t - a.t", Type.INTERVAL),
        ("a.t + interval 5 minutes", Type.TIME),
        ("-(a.t - a.t)", Type.INTERVAL),
        ("hour(a.t)", Type.INTEGER),
        ("case when a.n > 1 then a.s end", Type.TEXT),
        ("coalesce(a.n, 0.5)", Type.FLOAT),
        ("a.s is null", Type.BOOLEAN),
        ("a.s in ('x')", Type.BOOLEAN),
        ("null", Type.NULL),
        ("abs(a.n)", Type.INTEGER),
        ("max(a.n, 0.5)", Type.FLOAT),
        ("a.flag and a.n > 1", Type.BOOLEAN),
        ("not a.n", Type.BOOLEAN),
        ("cosine(a.v, a.v)", Type.FLOAT),
        ("a.k", Type.OTHER),
        ("True", Type.BOOLEAN),
    ],
)
def test_a_tree_has_a_type(text, kind):
    assert type_of(parse(text), kind_of) is kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 + abs(a.v) < 2", "where: the vector a.v is for dot, cosine and l2; got abs\\(a.v\\)"),
        ("a.v == a.v", "the vector a.v is for dot, cosine and l2; got a.v == a.v"),
        ("a.s > 1", "values of different types: a.s is a text, 1 is a whole number; got a.s > 1"),
        ("a.s + 1", "a.s is a text, no number; got a.s \\+ 1"),
        ("a.t > '2026-01-01'", "a time is written TIMESTAMP '2026-01-31 12:00:00'; got a.t >"),
        ("a.t + a.t", "a time and an INTERVAL can be added, two times subtracted; got a.t \\+ a.t"),
        ("lower(a.n)", "a.n is a whole number, no text; got lower"),
        ("year(a.s)", "a.s is a text, no time; got year"),
        ("a.s and a.n > 1", "a.s is a text, no condition; got a.s and"),
        ("l2(a.v, a.n) < 2", "l2 takes vectors, lists of numbers; got a.n of type whole number"),
    ],
)
def test_a_wrong_type_is_refused_at_its_place(text, message):
    with pytest.raises(sw.QueryError, match=message):
        type_of(parse(text), kind_of)


def kind_of(column):
    kinds = {"n": Type.INTEGER, "flag": Type.BOOLEAN, "v": Type.VECTOR, "x": Type.FLOAT,
             "s": Type.TEXT, "t": Type.TIME}  # fmt: skip
    return kinds.get(column.name, Type.OTHER)


# ---- col


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (abs(X - Y) < 1, "abs(a.x - b.y) < 1"),
        (1 - X > 2 / Y, "1 - a.x > 2 / b.y"),
        ((X + 1) * 2 % 3 // 4 == Y**2, "(a.x + 1) * 2 % 3 // 4 == b.y ** 2"),
        (2**X != 3 // Y, "2 ** a.x != 3 // b.y"),
        (5 % X <= 1 + Y, "5 % a.x <= 1 + b.y"),
        (3 * X >= -Y, "3 * a.x >= -b.y"),
        (+X < -1, "a.x < -1"),
        (X > -0.5, "a.x > -0.5"),
        (X < math.inf, "a.x < 1e309"),
        ((X > 0) & (Y > 0) & ~(X == Y), "a.x > 0 and b.y > 0 and not a.x == b.y"),
        ((X > 0) | ((Y > 0) & True), "a.x > 0 or b.y > 0 and True"),
        (False | (X > 0), "False or a.x > 0"),
        (True & (X > 0), "True and a.x > 0"),
        (X.between(0, Y), "0 <= a.x <= b.y"),
        (0 < X, "a.x > 0"),  # Python turns it round
        (np.float64(0.5) * X < np.int64(3), "0.5 * a.x < 3"),
        (X * np.float32(0.5) < 3, "a.x * 0.5 < 3"),
        ((X > 0) == np.bool_(True), "(a.x > 0) == True"),
        (sw.col("a", "bid price") > sw.col("b.`odd`"), "a.`bid price` > b.odd"),
        (sw.col("class", "x") > 0, "`class`.x > 0"),
        (F.sqrt(X) + F.exp(X) + F.log(X) < 1, "sqrt(a.x) + exp(a.x) + log(a.x) < 1"),
        (F.floor(X) + F.ceil(X) < 1, "floor(a.x) + ceil(a.x) < 1"),
        (F.sin(X) + F.cos(X) + F.tan(X) < 1, "sin(a.x) + cos(a.x) + tan(a.x) < 1"),
        (F.atan2(X, 1) + F.hypot(X, Y) < 1, "atan2(a.x, 1) + hypot(a.x, b.y) < 1"),
        (F.dist(X, X, Y, 0) < 1, "dist(a.x, a.x, b.y, 0) < 1"),
        (F.least(X, Y, 3) < F.greatest(X, Y), "min(a.x, b.y, 3) < max(a.x, b.y)"),
        (F.cosine(X, Y) > F.dot(X, Y), "cosine(a.x, b.y) > dot(a.x, b.y)"),
        (F.l2(X, Y) < 5, "l2(a.x, b.y) < 5"),
    ],
)
def test_what_is_built_is_what_is_written(built, text):
    assert str(built) == text
    assert repr(built) == f"Expression({text!r})"
    assert built.tree == parse(text)


def test_a_query_does_not_know_how_its_condition_was_written():
    where, gap = (abs(sw.col("a.x") - sw.col("b.x")) < 1) & (sw.col("a.x") > 0), X - Y
    built = sw.join(A, B, on="k", where=where, select={"gap": gap, "b.*": "b.*"})
    text = "abs(a.x-b.x)<1 and (a.x > 0)"
    written = sw.join(A, B, on="k", where=text, select={"gap": "(a.x - b.y)", "b.*": "b.*"})
    assert built == written and hash(built) == hash(written)
    assert built.where == "abs(a.x - b.x) < 1 and a.x > 0"
    assert str(built) == str(written) and sw.sql(str(built)) == built
    assert JoinQuery.from_dict(json.loads(json.dumps(built.to_dict()))) == built
    assert pickle.loads(pickle.dumps(built)) == built


def test_an_expression_has_no_truth_value():
    for use in (lambda: bool(X > 1), lambda: 0 < X < 1, lambda: X > 1 and Y > 1, lambda: min(X, Y)):
        with pytest.raises(sw.QueryError, match=r"write & \| ~ for and, or, not.*between.*least"):
            use()
    with pytest.raises(TypeError, match="unhashable"):
        hash(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.col("x"), "col takes 'stream.column', or .*, got 'x'"),
        (lambda: sw.col("a.bid price"), r"col\('quotes', 'bid price'\), got 'a.bid price'"),
        (lambda: sw.col("a.b.c"), "got 'a.b.c'"),
        (lambda: sw.col("a", ""), "got 'a', ''"),
        (lambda: sw.col("a b", "x"), "got 'a b', 'x'"),
        (lambda: sw.col(3), "got 3"),
        (lambda: X < [1], r"made of expressions, numbers, texts and times, got \[1\]"),
        (lambda: X.between(math.nan, 1), "made of expressions, numbers, texts and times, got nan"),
        (lambda: X < None, "got None"),
        (lambda: X < 2**63, r"whole numbers below 2\*\*63, got 9223372036854775808"),
        (lambda: sum([X] * 200), "an expression is nested too deeply, at most 100 operators"),
        (lambda: F.cosine(X, Y * 2), r"cosine takes columns of vectors, .*, got b.y \* 2"),
        (
            lambda: sw.join(A, B, where=sw.col("c.x") > 1),
            "unknown stream in c.x; streams are a, b",
        ),
        (
            lambda: sw.join(A, B, select={"": X}),
            "a column of results needs a name, got ''",
        ),
        (
            lambda: sw.join(A, B, select={"x": X, "n": sw.count()}),
            "select must be",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_with_the_reason(make, message):
    with pytest.raises(sw.QueryError, match=message):
        make()


def test_a_tree_is_made_of_plain_values():
    assert Expression(Binary("+", Column("a", "x"), Negate(Literal(1)))).tree == parse("a.x + -1")
    with pytest.raises(ValueError, match="a literal is a number that is not negative, got -1"):
        Literal(-1)


# ---- odd names, end to end

ODD = ["bid price", "a.b", "class", "价格", "x = y", "tick`s", 'say "hi"', "1st", " ", "{0}"]


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def test_a_column_may_be_called_anything():
    keys = [f"key {name}" for name in ODD]
    time = ' `time` = "x".y'
    rows = {time: [1, 2, 3]} | {key: ["u", "v", "u"] for key in keys}
    tables = dict.fromkeys("ab", pa.table(rows | {name: [1.0, 2.0, 3.0] for name in ODD}))
    written = sw.join(
        *(sw.Stream(s, ts=time, window=10) for s in "ab"),
        on=[quoted(key) for key in keys],
        where=" and ".join(f"a.{quoted(name)} < b.{quoted(name)}" for name in ODD),
        select={name: f"b.{quoted(name)} - a.{quoted(name)}" for name in ODD},
        goal=sw.MaxSlack(),
    )
    where = [sw.col("a", name) < sw.col("b", name) for name in ODD]
    built = sw.join(
        *written.streams,
        on=[f"a.{quoted(key)} = b.{quoted(key)}" for key in keys],
        where=reduce(and_, where),
        select={name: sw.col("b", name) - sw.col("a", name) for name in ODD},
        goal=sw.MaxSlack(),
    )
    assert (built.where, built.select, built.keys) == (written.where, written.select, written.keys)
    again = sw.sql(str(written))
    assert (again.where, again.select, again.keys) == (written.where, written.select, written.keys)
    assert sw.sql(str(again)) == again and sw.sql(str(built)) == built
    assert JoinQuery.from_dict(json.loads(json.dumps(built.to_dict()))) == built
    [row] = built.replay(tables).results.to_pylist()
    assert row == {"result_ts": 3} | dict.fromkeys(ODD, 2.0)
    assert oracle.exact(built, tables).table.to_pylist() == [row]
    columns = sw.join(*written.streams, on=[quoted(key) for key in keys]).replay(tables).results
    assert columns.column_names == [
        "result_ts",
        *(f"{s}_{c}" for s in "ab" for c in tables[s].column_names),
    ]


def test_a_name_in_sql_may_be_anything_in_quotes():
    query = sw.sql(
        'SELECT a."bid price", SQRT(b."a.b") AS root FROM a [RANGE 10, WATTR "at time"] '
        'JOIN b [RANGE 10] USING ("the key") WHERE a."bid price" < b."say ""hi"""'
    )
    assert query.on == "the key" and query.where == 'a.`bid price` < b.`say "hi"`'
    assert query.select == (("bid price", "a.`bid price`"), ("root", "sqrt(b.`a.b`)"))
    assert query.streams[0].ts == "at time"
    ticks = sw.sql(
        "SELECT a.`bid price`, SQRT(b.`a.b`) AS root FROM a [RANGE 10, WATTR `at time`] "
        'JOIN b [RANGE 10] USING (`the key`) WHERE a.`bid price` < b.`say "hi"`'
    )
    assert ticks == query
    assert sw.sql("SELECT a.`a``b` FROM a [5 SEC], b [5 SEC]").listed == (("a`b", "a.`a``b`"),)
    with pytest.raises(sw.QueryError, match='not of letters, digits and _ needs "quotes", got'):
        sw.sql("SELECT * FROM a [RANGE 10], b [RANGE 10] WHERE a.x\0 > 1")


@pytest.mark.parametrize("name", ODD)
def test_groups_may_be_called_anything(name):
    rows = pa.table({"ts": [1, 2, 3], "at": [1, 2, 3], "k": [1, 1, 2], name: ["u", "v", "u"]})
    windows = sw.window(
        sw.Stream("s", ts="ts"), window=sw.Tumbling("10 ms"), select={"n": sw.count(name)}, by=name
    )
    assert sw.sql(str(windows)) == windows
    found = windows.replay(rows).results.to_pylist()
    assert {row[name]: row["n"] for row in found} == {"u": 2, "v": 1}
    joined = sw.aggregate(
        *(sw.Stream(s, ts="ts") for s in "ab"), on="k", by=f"a.{name}", select={"n": sw.count()},
        window=sw.Tumbling("10 ms"), deadline="20 ms",
    )  # fmt: skip
    assert sw.sql(str(joined)) == joined
    found = joined.replay({"a": rows, "b": rows}, "at").results
    assert sorted(zip(found[name].to_pylist(), found["n"].to_pylist(), strict=True)) == [
        ("u", 3), ("v", 2)
    ]  # fmt: skip


# ---- back ends


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a.x == 1", False), ("a.x < 1", False), ("a.x >= 1", True), ("1 <= a.x", True),
     ("a.x != 1", True), ("a.x == a.x", True), ("a.x != a.x", False), ("a.x <= a.x", True),
     ("a.x > b.x", True), ("a.x < b.x", False), ("b.x < a.x", True), ("b.x >= a.x", False),
     ("max(a.x, b.x) = b.x", False), ("min(a.x, b.x) = b.x", True)],
)  # fmt: skip
def test_nan_equals_itself_and_is_above_all_numbers_as_in_spark(text, expected):
    tree = parse(text)
    columns = {Column("a", "x"): "x", Column("b", "x"): "y"}
    found = eval(source_of(tree, columns), dict(LIBRARY), {"x": math.nan, "y": math.inf})
    assert found is expected
    arrays = {Column("a", "x"): pa.array([math.nan]), Column("b", "x"): pa.array([math.inf])}
    assert evaluate(tree, arrays, "select").to_pylist() == [expected]


def test_the_cosine_of_a_zero_vector_is_0_in_select_too():
    columns = {Column("a", "v"): pa.array([[0.0, 0.0], [3.0, 4.0]])}
    found = evaluate(parse("cosine(a.v, a.v)"), columns, "select")
    assert found.to_pylist() == [0.0, 1.0]


def test_an_error_of_arrow_names_the_part_that_fails():
    columns = {Column("a", "k"): pa.array(["u"]), Column("a", "n"): pa.array([2**62])}
    with pytest.raises(sw.QueryError, match=r"select: a.k is a text, no number; got a.k \+ 1$"):
        evaluate(parse("abs(a.n) + 2 * (a.k + 1)"), columns, "select")
    with pytest.raises(sw.DataError, match=r"select cannot compute a.n \* 4: overflow"):
        evaluate(parse("a.n * 4 > 1"), columns, "select")


def test_sql_that_would_grow_without_end_is_left_to_our_engine():
    with pytest.raises(NotSqlError, match="is too long as SQL"):
        as_sql("log(" * 90 + "a.x" + ")" * 90 + " > 0", {"a": "s0"})
