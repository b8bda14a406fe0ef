"""Conditions and columns of expressions: what Arrow computes, and what nulls decide."""

import datetime as dt
import math

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.joins.arrow_values import evaluate
from slackwater.joins.column_types import type_in_tree
from slackwater.joins.conditions import _reason
from slackwater.joins.where_plan import may_be_null, never_false, never_true, null_with, plan
from slackwater.query.expression import Column, Type, parse, text_of

NAN, INF = math.nan, math.inf
T = dt.datetime(2026, 3, 4, 5, 6, 7, 250_000)
SECOND = dt.timedelta(seconds=1)
UTC = dt.UTC
COLUMNS = {
    "i": pa.array([7, -7, None, 4]),
    "j": pa.array([2, 2, 2, -2]),
    "f": pa.array([0.5, -2.5, None, NAN]),
    "g": pa.array([0.5, NAN, 1.0, NAN]),
    "p": pa.array([True, False, None, True]),
    "q": pa.array([True, None, False, False]),
    "s": pa.array(["Ab", " x ", None, "ab%"]),
    "r": pa.array(["ab", " x ", "y", "AB"], pa.large_string()),
    "c": pa.array(["u", "v", None, "u"]).dictionary_encode(),
    "t": pa.array([T, T - SECOND, None, T], pa.timestamp("us", "UTC")),
    "m": pa.array([T, T, T, T + SECOND], pa.timestamp("ms")),
    "d": pa.array([T.date(), T.date(), None, dt.date(1970, 1, 1)], pa.date32()),
    "l": pa.array([SECOND, -SECOND, None, 3 * SECOND], pa.duration("ms")),
    "z": pa.nulls(4),
    "v": pa.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]),
    "w": pa.array([[3.0, 4.0], [0.0, 2.0], [1.0, 0.0], [1.0, -1.0]]),
}


def values(text):
    columns = {Column("a", name): column for name, column in COLUMNS.items()}
    found = evaluate(parse(text), columns, "select")
    found = found.cast(pa.timestamp("us")) if pa.types.is_timestamp(found.type) else found
    return found.to_pylist()


def same(found, wanted):
    return [None if isinstance(x, float) and math.isnan(x) else x for x in found] == [
        None if isinstance(x, float) and math.isnan(x) else pytest.approx(x)
        if isinstance(x, float) else x for x in wanted
    ] and [isinstance(x, float) and math.isnan(x) for x in found] == [
        isinstance(x, float) and math.isnan(x) for x in wanted
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # numbers: by Spark's rules, a remainder has the sign of what is divided
        ("a.i + a.j", [9, -5, None, 2]),
        ("a.i - a.p", [6, -7, None, 3]),
        ("a.i * a.j", [14, -14, None, -8]),
        ("a.i / a.j", [3.5, -3.5, None, -2.0]),
        ("a.i // a.j", [3, -4, None, -2]),
        ("a.i % a.j", [1, -1, None, 0]),
        ("a.i div a.j", [3, -3, None, -2]),
        ("a.i // 2.0", [3.0, -4.0, None, 2.0]),
        ("a.f % 2", [0.5, -0.5, None, NAN]),
        ("a.i div 2.0", [3.0, -3.0, None, 2.0]),
        ("a.j ** 2", [4.0, 4.0, 4.0, 4.0]),
        ("-a.i", [-7, 7, None, -4]),
        ("-a.p", [-1, 0, None, -1]),
        ("a.i + a.z", [None] * 4),
        ("a.z * a.z", [None] * 4),
        ("7 - 2", [5] * 4),
        # NaN equals itself and is above all other numbers
        ("a.f == a.g", [True, False, None, True]),
        ("a.f != a.g", [False, True, None, False]),
        ("a.f < a.g", [False, True, None, False]),
        ("a.f <= a.g", [True, True, None, True]),
        ("a.f > a.g", [False, False, None, False]),
        ("a.f >= a.g", [True, False, None, True]),
        ("a.g > 0.75", [False, True, True, True]),
        ("0.75 > a.g", [True, False, False, False]),
        ("a.g >= 0.75", [False, True, True, True]),
        ("0.75 <= a.g", [False, True, True, True]),
        ("0.75 >= a.g", [True, False, False, False]),
        ("a.i < a.f", [False, True, None, True]),
        ("a.p == 1", [True, False, None, True]),
        ("a.i == a.z", [None] * 4),
        ("0 < a.i < 7", [False, False, None, True]),
        ("a.i in (7, 4)", [True, False, None, True]),
        ("a.i in (7, null)", [True, None, None, None]),
        ("a.i is null", [False, False, True, False]),
        # three values of truth
        ("a.p and a.q", [True, False, False, False]),
        ("a.p or a.q", [True, None, None, True]),
        ("not a.p", [False, True, None, False]),
        ("a.i and a.q", [True, None, False, False]),
        ("not a.z", [None] * 4),
        ("a.j < 0 and 1 / (a.j - 2) < 0", [False, False, False, True]),
        ("a.j > 0 or 12 / (a.j - 2) == -3", [True, True, True, True]),
        # the least and the greatest leave nulls out; NaN is the greatest
        ("min(a.i, a.j)", [2, -7, 2, -2]),
        ("max(a.i, a.j)", [7, 2, 2, 4]),
        ("min(a.f, a.g)", [0.5, -2.5, 1.0, NAN]),
        ("max(a.f, a.g, 1)", [1.0, NAN, 1.0, NAN]),
        ("coalesce(a.i, a.j)", [7, -7, 2, 4]),
        ("coalesce(a.i, 0.5)", [7.0, -7.0, 0.5, 4.0]),
        ("coalesce(a.z, a.s)", ["Ab", " x ", None, "ab%"]),
        ("abs(a.i)", [7, 7, None, 4]),
        ("abs(a.p)", [1, 0, None, 1]),
        ("log(a.i)", [math.log(7), None, None, math.log(4)]),
        ("log(a.j - 2)", [None] * 4),
        ("hypot(a.j, 1.5)", [2.5] * 4),
        ("dist(a.j, 1, 5, 5)", [5.0, 5.0, 5.0, math.hypot(7, 4)]),
        ("sqrt(a.i + 9)", [4.0, 2**0.5, None, 13**0.5]),
        ("floor(a.j / 4)", [0, 0, 0, -1]),
        ("ceil(a.j / 4)", [1, 1, 1, 0]),
        ("atan2(a.j, a.j)", [math.pi / 4] * 3 + [-3 * math.pi / 4]),
        ("exp(0 * a.j) + sin(0 * a.j) + cos(0 * a.j) + tan(0 * a.j)", [2.0] * 4),
        # texts
        ("lower(a.s)", ["ab", " x ", None, "ab%"]),
        ("upper(a.r)", ["AB", " X ", "Y", "AB"]),
        ("trim(a.s)", ["Ab", "x", None, "ab%"]),
        ("length(a.s)", [2, 3, None, 3]),
        ("concat(a.s, '-', a.r)", ["Ab-ab", " x - x ", None, "ab%-AB"]),
        ("concat(null, a.s)", [None] * 4),
        ("concat(a.s, null)", [None] * 4),
        ("concat(a.c, a.s)", ["uAb", "v x ", None, "uab%"]),
        ("substring(a.s, 2, 2)", ["b", "x ", None, "b%"]),
        ("substring(a.s, 1, 1)", ["A", " ", None, "a"]),
        ("a.s == a.r", [False, True, None, False]),
        ("a.s < a.r", [True, False, None, False]),
        ("a.c == 'u'", [True, False, None, True]),
        ("startswith(a.s, 'A')", [True, False, None, False]),
        ("endswith(a.s, 'b')", [True, False, None, False]),
        ("contains(a.s, 'b')", [True, False, None, True]),
        ("a.s like '_b%'", [True, False, None, True]),
        ("a.s like null", [None] * 4),
        # times and intervals
        ("a.t == a.m", [True, False, None, False]),
        ("a.t < a.m", [False, True, None, True]),
        ("a.t - a.m", [0 * SECOND, -SECOND, None, -SECOND]),
        ("a.t + a.l", [T + SECOND, T - 2 * SECOND, None, T + 3 * SECOND]),
        ("a.m - interval 2 seconds", [T - 2 * SECOND] * 3 + [T - SECOND]),
        ("a.l + a.l", [2 * SECOND, -2 * SECOND, None, 6 * SECOND]),
        ("coalesce(a.l, interval 5 seconds)", [SECOND, -SECOND, 5 * SECOND, 3 * SECOND]),
        ("-a.l", [-SECOND, SECOND, None, -3 * SECOND]),
        ("a.l > interval 0 seconds", [True, False, None, True]),
        ("a.t > timestamp '2026-03-04 05:06:07'", [True, False, None, True]),
        ("a.d == date '2026-03-04'", [True, True, None, False]),
        ("a.d < a.t", [True, True, None, True]),
        ("coalesce(a.t, a.m)", [T, T - SECOND, T, T]),
        ("max(a.t, a.m)", [T, T, T, T + SECOND]),
        ("year(a.t) * 100 + month(a.t)", [202603, 202603, None, 202603]),
        ("day(a.m) + hour(a.m) + minute(a.m)", [15, 15, 15, 15]),
        ("second(a.m)", [7, 7, 7, 8]),
        ("day(a.d)", [4, 4, None, 1]),
        # choices are computed for the rows that come so far
        ("case when a.i > 5 then 1 when a.i < 0 then 2 else 3 end", [1, 2, 3, 3]),
        ("case when a.j > 0 then 0.5 else 12 div (a.j - 2) end", [0.5, 0.5, 0.5, -3.0]),
        ("case when a.p then a.s end", ["Ab", None, None, "ab%"]),
        ("case when a.i then a.z else 5 end", [None, None, 5, None]),
        # vectors
        ("dot(a.v, a.w)", [25.0, 0.0, 0.0, 0.0]),
        ("l2(a.v, a.w)", [0.0, 5**0.5, 1.0, 2.0]),
        ("cosine(a.v, a.w)", [1.0, 0.0, 0.0, 0.0]),
    ],
)  # fmt: skip
def test_an_expression_of_columns_has_these_values(text, wanted):
    found = values(text)
    assert same(found, wanted), found


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("a.i / (a.j - 2)", sw.DataError, "cannot compute .*divide by zero"),
        ("a.i // (a.j - 2)", sw.DataError, "cannot compute"),
        ("1 / 0", sw.DataError, "divide by zero"),
        ("a.i % 0", sw.DataError, "cannot compute"),
        ("9223372036854775807 + a.i", sw.DataError, "select cannot compute 9223372036854775807"),
    ],
)
def test_what_cannot_be_computed_says_so(text, error, message):
    with pytest.raises(error, match=message):
        values(text)


def test_vectors_must_be_of_one_length_without_nulls():
    def cosine(one, other):
        columns = {Column("a", "v"): pa.array(one), Column("a", "w"): pa.array(other)}
        return evaluate(parse("cosine(a.v, a.w)"), columns, "select").to_pylist()

    assert cosine([[1.0, 2.0]], [[2.0, 4.0]]) == pytest.approx([1.0])
    with pytest.raises(sw.DataError, match="two vectors of the same length, got 2 and 3"):
        cosine([[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    for odd in ([[1.0], [1.0, 2.0]], [[1.0, None], [1.0, 2.0]], [None, [1.0, 2.0]]):
        with pytest.raises(sw.DataError, match="vectors of one length without nulls"):
            cosine(odd, [[1.0, 2.0], [1.0, 2.0]])
    empty = pa.array([], pa.list_(pa.float64()))
    assert cosine(empty, empty) == []


# ---- nulls

KINDS = {
    "i": Type.INTEGER, "j": Type.INTEGER, "k": Type.INTEGER, "s": Type.TEXT, "p": Type.BOOLEAN,
    "t": Type.TIME,
}  # fmt: skip


def kind_of(column):
    return KINDS[column.name]


@pytest.mark.parametrize(
    ("where", "required"),
    [
        ("a.i = 1", "i"),
        ("a.p", "p"),
        ("not a.p", "p"),
        ("a.i = 1 and b.j = 2", "ij"),
        ("a.i = 1 or b.j = 2", ""),
        ("a.i = 1 or a.i = 2", "i"),
        ("a.i = 1 or a.i = b.j", "i"),
        ("a.i = 1 or false", "i"),
        ("a.i = 1 or true", ""),
        ("a.i = 1 or null", "i"),
        ("not a.i = 1", "i"),
        ("not not a.i = 1", "i"),
        ("not (a.i = 1 and b.j = 1)", ""),
        ("not (a.i = 1 or b.j = 1)", "ij"),
        ("not (a.i = 1 and true)", "i"),
        ("not (a.i = 1 and null)", "i"),
        ("not (a.i = 1 and false)", ""),
        ("a.i is null", ""),
        ("a.i is not null", "i"),
        ("a.i + b.j is not null", "ij"),
        ("a.i is null or b.j = 1", ""),
        ("a.i in (1, 2)", "i"),
        ("a.i not in (1, 2)", "i"),
        ("1 in (a.i, 2)", ""),
        ("0 < a.i < b.j", "ij"),
        ("not 0 < a.i < b.j", ""),
        ("not a.i < a.i < a.i", "i"),
        ("not a.i < b.j", "ij"),
        ("coalesce(a.i, b.j) = 1", ""),
        ("coalesce(a.i, a.i + 1) = 1", "i"),
        ("max(a.i, b.j) = 1", ""),
        ("min(a.i, 2 * a.i) = b.j", "ij"),
        ("abs(a.i + b.j) = 1", "ij"),
        ("-a.i = 1", "i"),
        ("a.i = null", "i"),
        ("case when a.i = 1 then b.j = 2 else false end", ""),
        ("case when a.i = 1 then b.j = 2 else null end", "j"),
        ("case when b.j = 1 then a.i = 2 else a.i = 3 end", "i"),
        ("(a.i = 1 and b.j = 2) or (a.i = 3 and b.k = 2)", "i"),
        ("a.i = 1 or (a.i is null and b.j = 2)", ""),
    ],
)
def test_a_row_is_of_no_use_where_these_columns_are_null(where, required):
    found = plan(parse(where), kind_of).required
    assert {column.name for column in found} == set(required)


@pytest.mark.parametrize(
    ("text", "may", "is_null"),
    [
        ("a.i", True, True),
        ("a.j", False, False),
        ("a.i + a.j", True, True),
        ("null", True, True),
        ("5", False, False),
        ("a.i is null", False, False),
        ("log(a.j)", True, False),
        ("coalesce(a.i, a.j)", False, False),
        ("coalesce(a.i, a.i)", True, True),
        ("max(a.j, a.i)", False, False),
        ("case when a.i > 0 then a.j else 1 end", False, False),
        ("case when a.j > 0 then a.i else 1 end", True, False),
        ("case when a.j > 0 then 1 else a.i end", True, False),
        ("case when a.j > 0 then a.i end", True, True),
        ("interval 1 second", False, False),
        ("a.i and a.i", True, True),
        ("a.i or a.j", True, False),
        ("a.i in (1, 2)", True, True),
        ("a.j in (1, a.i)", True, False),
        ("a.i < a.j", True, True),
        ("a.i < a.j < 1", True, False),
    ],
)
def test_whether_a_value_can_be_null_and_is_with_a_column(text, may, is_null):
    i = Column("a", "i")
    assert may_be_null(parse(text), frozenset({i})) == may
    assert null_with(parse(text), i) == is_null


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("a.i > 1", True, True),
        ("a.i > 1 and a.j > 1", True, False),
        ("a.i > 1 or a.j > 1", False, True),
        ("not a.i > 1", True, True),
        ("not (a.i > 1 and a.j > 1)", False, True),
        ("not (a.i > 1 or a.j > 1)", True, False),
        ("a.i is null", False, True),
        ("a.j is null", False, False),
        ("true", False, True),
        ("false", True, False),
        ("null", True, True),
        ("0", True, False),
        ("a.i < a.j < 1", True, False),
    ],
)
def test_what_is_never_true_or_never_false_where_a_column_is_null(text, true, false):
    i = Column("a", "i")
    assert (never_true(parse(text), i), never_false(parse(text), i)) == (true, false)


@pytest.mark.parametrize(
    ("where", "parts", "computed"),
    [
        ("a.i < b.j", ["a.i < b.j"], {}),
        ("a.i < b.j and b.k = 1", ["a.i < b.j", "b.k == 1"], {}),
        ("length(a.s) < b.j", ["a.`length(a.s)` < b.j"], {"length(a.s)": (0, False)}),
        ("a.s = 'x' or b.j = 1", ["a.`a.s == 'x'` or b.j == 1"], {"a.s == 'x'": (0, True)}),
        ("lower(a.s) = b.s",
         ["a.`lower(a.s) #1` == b.`b.s #1` and a.`lower(a.s) #2` == b.`b.s #2`"],
         {"lower(a.s) #1": (1, False), "b.s #1": (1, False),
          "lower(a.s) #2": (2, False), "b.s #2": (2, False)}),
        ("a.s <> b.s or b.j = 1",
         ["not (a.`a.s #1` == b.`b.s #1` and a.`a.s #2` == b.`b.s #2`) or b.j == 1"],
         {"a.s #1": (1, True), "b.s #1": (1, True), "a.s #2": (2, True), "b.s #2": (2, True)}),
        ("length(a.s) = b.j", ["a.`length(a.s)` == b.j"], {"length(a.s)": (0, False)}),
        ("concat(a.s, b.s) is null and b.j = 1",
         ["a.`a.s is null` or b.`b.s is null`", "b.j == 1"],
         {"a.s is null": (0, False), "b.s is null": (0, False)}),
        ("max(length(a.s), b.j) > -b.k", ["max(a.`length(a.s)`, b.j) > -b.k"],
         {"length(a.s)": (0, True)}),
        ("case when a.s = 'x' then b.j > 1 else b.k > 1 end",
         ["case when a.`a.s == 'x'` then b.j > 1 else b.k > 1 end"], {"a.s == 'x'": (0, True)}),
    ],
)  # fmt: skip
def test_what_native_code_tests_and_what_is_computed_before(where, parts, computed):
    found = plan(parse(where), kind_of)
    assert [text_of(part) for part in found.parts] == parts
    assert {c.name: (of.hashed, of.can_be_null) for c, of in found.computed.items()} == computed


@pytest.mark.parametrize(
    "where", ["a.s < b.s", "upper(concat(a.s, b.s)) = 'X'", "contains(concat(a.s, b.s), 'x')"]
)
def test_texts_of_two_streams_are_equal_or_not(where):
    with pytest.raises(sw.QueryError, match="texts of two streams can be equal or not"):
        plan(parse(where), kind_of)


@pytest.mark.parametrize(("where", "kind"), [("a.s", "text"), ("a.t", "time"), ("a.t - b.t", "")])
def test_a_condition_is_true_or_false(where, kind):
    with pytest.raises(sw.QueryError, match=f"where must be true or false, got .*{kind}"):
        plan(parse(where), kind_of)


def test_types_of_arrow_in_a_tree():
    kinds = {
        Type.BOOLEAN: [pa.bool_()], Type.INTEGER: [pa.int8(), pa.uint32(), pa.int64()],
        Type.FLOAT: [pa.float32(), pa.float64()], Type.TEXT: [pa.string(), pa.large_string()],
        Type.TIME: [pa.timestamp("ns"), pa.date32()], Type.INTERVAL: [pa.duration("s")],
        Type.VECTOR: [pa.list_(pa.float64()), pa.list_(pa.float32(), 3)],
        Type.OTHER: [pa.binary(), pa.struct([("x", pa.int64())])],
    }  # fmt: skip
    for kind, types in kinds.items():
        for each in types:
            assert type_in_tree(each) == kind
            assert type_in_tree(pa.dictionary(pa.int32(), each)) == kind


def test_the_reason_is_the_first_line_that_is_none_of_the_steps_that_failed():
    text = "Failed in nopython mode (step: front end)\n\n  \x1b[1mUntyped name 'open'\x1b[0m\nFile"
    assert _reason(ValueError(text)) == "Untyped name 'open'"
    assert _reason(TypeError("Failed in object mode\n")) == "TypeError"
