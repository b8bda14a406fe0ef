"""Trees to text and back; numba, Arrow and SQL against a naive evaluator."""

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_expression
import profiles
import slackwater as sw
from naive_expression import UndefinedError
from slackwater.joins.arrow_values import evaluate
from slackwater.joins.numba_source import LIBRARY, Source
from slackwater.query.expression import (
    And,
    Binary,
    Call,
    Case,
    Column,
    Compare,
    Condition,
    Expression,
    In,
    IsNull,
    Literal,
    Moment,
    Negate,
    Not,
    Or,
    Type,
    literal,
    parse,
    text_of,
    type_of,
)
from slackwater.query.expression.nodes import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    NUMBER_FUNCTIONS,
    VECTOR_FUNCTIONS,
)
from slackwater.testing.sql_condition import sql_of

# ---- text

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.sampled_from(
    ["x", "bid price", "a.b", "class", "not", "`", "``", "*", "=", "1", "ﬁ", "_q0", "＿q0", "é"]
)
STREAMS = st.sampled_from(["a", "b", "quotes", "select", "class", "_q"])
LITERALS = st.builds(
    Literal,
    st.one_of(
        st.none(),
        st.text(max_size=4) | st.sampled_from(["it's", "a.x", "--", "%"]),
        st.booleans(),
        st.integers(0, 2**63 - 1),
        st.floats(0.0, allow_nan=False).map(abs),  # -0.0 is a Negate
    ),
)
SCALARS = {name: n for name, n in FUNCTIONS.items() if name not in VECTOR_FUNCTIONS}
OF_NUMBERS = {n: SCALARS[n] for n in (*NUMBER_FUNCTIONS, "coalesce") if n in SCALARS}
MOMENTS = st.builds(Moment, st.just("interval"), st.integers(0, 10**12)) | st.builds(
    Moment, st.just("timestamp"), st.integers(-(10**15), 10**15)
)


def several(operand, most=3):
    return st.lists(operand, min_size=2, max_size=most).map(tuple)


@st.composite
def comparisons(draw, operand):
    operands = draw(several(operand))
    signs = st.sampled_from(COMPARISONS)
    return Compare(operands, tuple(draw(signs) for _ in operands[1:]))


@st.composite
def calls(draw, argument, functions):
    name = draw(st.sampled_from(sorted(functions)))
    n = functions[name]
    size = {"min_size": n or 1, "max_size": n or 3}
    return Call(name, tuple(draw(st.lists(argument, **size))))


def cases(inner):
    branches = st.lists(st.tuples(inner, inner), min_size=1, max_size=2).map(tuple)
    return st.builds(Case, branches, inner | st.just(Literal(None)))


def more(inner, functions=OF_NUMBERS):
    return st.one_of(
        st.builds(IsNull, inner),
        st.builds(In, inner, several(inner)),
        cases(inner),
        st.builds(Negate, inner),
        st.builds(Not, inner),
        st.builds(Binary, st.sampled_from(ARITHMETIC), inner, inner),
        st.builds(And, several(inner)),
        st.builds(Or, several(inner)),
        comparisons(inner),
        calls(inner, functions),
    )


COLUMNS = st.builds(Column, STREAMS, NAMES)
TREES = st.recursive(
    COLUMNS | LITERALS | MOMENTS | calls(COLUMNS, dict.fromkeys(VECTOR_FUNCTIONS, 2)),
    lambda inner: more(inner, SCALARS),
    max_leaves=12,
)


@given(tree=TREES)
def test_a_tree_is_the_same_after_its_own_text(tree):
    text = text_of(tree)
    assert parse(text) == tree
    assert text_of(parse(f" ({text}) ")) == text
    assert sw.query.expression.canonical(Expression(tree), "where") == text
    parts = Condition(tree).parts
    assert tree == (And(tuple(p.tree for p in parts)) if len(parts) > 1 else parts[0].tree)


@given(left=COLUMNS, right=COLUMNS, shared=NAMES)
def test_names_of_keys_are_the_same_after_their_own_text(left, right, shared):
    from slackwater.query.keys import equality_text, shared_text, tied_columns

    assert tied_columns(equality_text(left, right)) == (left, right)
    assert tied_columns(shared_text(shared)) == shared


# ---- the back ends

KINDS = {Column("a", "n"): pa.int64(), Column("a", "odd name"): pa.float64(),
         Column("b", "n"): pa.int64(), Column("b", "x"): pa.float64()}  # fmt: skip
FLOATS = st.sampled_from([0.0, 0.5, -1.5, 2.25, 7.0, -0.125])
INTEGERS = st.integers(-5, 5)


def values(kind):
    return FLOATS if kind == pa.float64() else INTEGERS


ROW = st.fixed_dictionaries({column: values(kind) for column, kind in KINDS.items()})
ROW_WITH_NULLS = st.fixed_dictionaries(
    {column: st.none() | values(kind) for column, kind in KINDS.items()}
)
NUMBERS = st.recursive(
    st.sampled_from(list(KINDS)) | st.builds(literal, INTEGERS | FLOATS | st.booleans()),
    more,
    max_leaves=7,
)
CONDITIONS = comparisons(NUMBERS) | st.builds(And, several(comparisons(NUMBERS)))


def meaning(tree, row):
    """What the naive evaluator finds, if it is defined."""
    try:
        return naive_expression.value(tree, row)
    except UndefinedError:
        assume(False)


def same(found, expected):
    if None in (found, expected):
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


def steady(tree, row):
    """Whether the value does not hang on the last digit of a float: both sides of it agree."""
    nudged = {c: v * (1 + 1e-12) if isinstance(v, float) else v for c, v in row.items()}
    return same(meaning(tree, nudged), meaning(tree, row))


@given(tree=NUMBERS, rows=st.lists(ROW_WITH_NULLS, min_size=1, max_size=4))
def test_arrow_computes_what_a_tree_means(tree, rows):
    expected = [meaning(tree, row) for row in rows]
    assume(all(steady(tree, row) for row in rows))
    table = {c: pa.array([row[c] for row in rows], kind) for c, kind in KINDS.items()}
    found = evaluate(tree, table, "select")
    assert len(found) == len(rows)
    assert all(map(same, found.to_pylist(), expected)), (found, expected)
    kinds = {pa.int64(): Type.INTEGER, pa.float64(): Type.FLOAT}
    kind = type_of(tree, lambda column: kinds[KINDS[column]])
    assert (kind is Type.BOOLEAN) == pa.types.is_boolean(found.type)
    assert (kind is Type.INTEGER) == pa.types.is_integer(found.type)


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        yield connection


@given(tree=NUMBERS, rows=st.lists(ROW_WITH_NULLS, min_size=1, max_size=4))
def test_duckdb_computes_what_a_tree_means(database, tree, rows):
    expected = [meaning(tree, row) for row in rows]
    assume(all(steady(tree, row) for row in rows))
    for name in "ab":
        own = {c.name: pa.array([r[c] for r in rows], k) for c, k in KINDS.items() if c[0] == name}
        database.register(f"rows_{name}", pa.table({"i": range(len(rows)), **own}))
    sql = sql_of(tree, {"a": "rows_a", "b": "rows_b"})
    found = database.sql(f"SELECT {sql} FROM rows_a JOIN rows_b USING (i) ORDER BY i").fetchall()
    assert all(map(same, [value for (value,) in found], expected)), (sql, found, expected)


@given(tree=NUMBERS, row=ROW_WITH_NULLS)
def test_the_source_for_numba_is_python_that_computes_what_a_tree_means(tree, row):
    expected = meaning(tree, row)
    assume(steady(tree, row))
    values = {column: f"v{i}" for i, column in enumerate(KINDS)}
    nulls = {column: f"n{i}" for i, column in enumerate(KINDS)}
    known = {name: row[column] or 0 for column, name in values.items()}
    known |= {name: row[column] is None for column, name in nulls.items()}
    source, library = Source(values, nulls), dict(LIBRARY)
    assert eval(source.null(tree), library, known) is (expected is None)
    truth = naive_expression.truth(expected)
    assert eval(source.true(tree), library, known) is (truth is True)
    assert eval(source.false(tree), library, known) is (truth is False)
    if expected is not None:
        assert same(eval(source.value(tree), library, known), expected)


# Compiling takes a second.
@settings(max_examples=profiles.share(0.08), deadline=None)
@given(tree=CONDITIONS, rows=st.lists(ROW_WITH_NULLS, min_size=1, max_size=8))
def test_a_join_finds_what_its_condition_means(tree, rows):
    streams = [sw.Stream(name, ts="ts", window=len(rows)) for name in "ab"]
    tables = {
        name: pa.table(
            {"ts": range(len(rows))}
            | {c.name: pa.array([r[c] for r in rows], k) for c, k in KINDS.items() if c[0] == name}
        )
        for name in "ab"
    }
    pairs = [
        (i, j, {c: (a if c.stream == "a" else b)[c] for c in KINDS})
        for i, a in enumerate(rows)
        for j, b in enumerate(rows)
    ]
    expected = []
    for i, j, row in pairs:
        if meaning(tree, row):
            expected.append((i, j))
        assume(steady(tree, row))
    query = sw.join(
        *streams, where=Expression(tree), select={"i": "a.ts", "j": "b.ts"}, goal=sw.MaxSlack()
    )
    found = query.replay(tables).results
    pairs_found = zip(found["i"].to_pylist(), found["j"].to_pylist(), strict=True)
    assert sorted(pairs_found) == expected
    again = sw.sql(str(query))
    assert again.where == query.where or parse(again.where) != tree  # a chain becomes two tests
