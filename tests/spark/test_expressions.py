"""One expression, four answers: Spark's is the standard; Arrow, native code and DuckDB agree."""

import datetime as dt
import math
import random

import duckdb
import pyarrow as pa
import pytest

import profiles
import slackwater as sw
from slackwater.joins.arrow_values import evaluate
from slackwater.joins.numba_source import LIBRARY, Source
from slackwater.query.expression import Column, Type, columns_of, parse, text_of, type_of
from slackwater.sql.expressions import to_sql
from slackwater.testing.sql_condition import sql_of

ROWS = 100
SEED = 24
T = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KINDS = {
    "a.n": (Type.INTEGER, pa.int64(), [0, 1, -2, 3, 7, -11]),
    "a.f": (Type.FLOAT, pa.float64(), [0.0, 0.5, -1.5, 2.25, math.nan, math.inf, 7.0]),
    "a.s": (Type.TEXT, pa.string(), ["", "u", "Uv", " x ", "100 %", "vw_x"]),
    "a.t": (Type.TIME, pa.timestamp("us", "UTC"), [T, T + dt.timedelta(minutes=90)]),
    "a.flag": (Type.BOOLEAN, pa.bool_(), [True, False]),
    "b.n": (Type.INTEGER, pa.int64(), [1, 2, 3, -4]),
    "b.f": (Type.FLOAT, pa.float64(), [1.5, -0.25, math.nan]),
    "b.s": (Type.TEXT, pa.string(), ["u", "Uv", "z"]),
    "b.t": (Type.TIME, pa.timestamp("us", "UTC"), [T, T - dt.timedelta(days=1)]),
}


class Maker:
    """Draws expressions that are defined for all rows, as text."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def column(self, *kinds):
        return self.rng.choice([name for name, (kind, *_) in KINDS.items() if kind in kinds])

    def of(self, what, depth):
        made = self.rng.choice(getattr(self, what)(depth))
        return made() if callable(made) else made

    def number(self, d):
        column = self.column(Type.INTEGER, Type.FLOAT)
        leaves = [column, column, str(self.rng.choice([0, 1, 2, 0.5]))]
        if d == 0:
            return leaves
        x, y = (lambda: f"({self.of('number', d - 1)})"), (lambda: self.of("number", d - 1))
        return [
            *leaves,
            lambda: f"{x()} {self.rng.choice('+-*')} {x()}",
            lambda: f"{x()} / {self.rng.choice(['2', '-4', '0.5'])}",
            lambda: f"{x()} % {self.rng.choice(['2', '-3'])}",
            lambda: f"{self.column(Type.INTEGER)} div {self.rng.choice(['2', '-3'])}",
            lambda: f"abs({y()}) - floor({self.column(Type.INTEGER)})",
            lambda: f"least({y()}, {y()}, {y()}) + greatest({y()}, {y()})",
            lambda: f"coalesce({y()}, {y()})",
            lambda: f"ln({y()})",
            lambda: f"case when {self.of('truth', d - 1)} then {y()} else {y()} end",
            lambda: f"case when {self.of('truth', d - 1)} then {y()} end",
            lambda: f"length({self.of('text', d - 1)})",
            lambda: f"hour({self.of('time', d - 1)}) - year({self.column(Type.TIME)})",
        ]

    def text(self, d):
        leaves = [self.column(Type.TEXT), "'u'", "'Uv'"]
        if d == 0:
            return leaves
        s = lambda: self.of("text", d - 1)  # noqa: E731
        return [
            *leaves,
            lambda: f"upper({s()})",
            lambda: f"lower({s()})",
            lambda: f"trim({s()})",
            lambda: f"({s()}) || 'x'",
            lambda: f"substring({s()}, 2, 2)",
            lambda: f"coalesce({s()}, 'none')",
            lambda: f"case when {self.of('truth', d - 1)} then {s()} else {s()} end",
        ]

    def time(self, d):
        shift = lambda: f"{self.column(Type.TIME)} - interval 90 minutes"  # noqa: E731
        return [self.column(Type.TIME), "timestamp '2026-01-01 00:00:00'", *([shift] if d else [])]

    def truth(self, d):
        sign = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        leaf = lambda: f"{self.column(Type.INTEGER, Type.FLOAT)} {sign} 1"  # noqa: E731
        if d == 0:
            return [leaf, "a.flag", "true", "null = 1"]
        c = lambda: f"({self.of('truth', d - 1)})"  # noqa: E731
        n, s, t = (
            lambda kind=kind: f"({self.of(kind, d - 1)})" for kind in ("number", "text", "time")
        )  # noqa: E501
        return [
            leaf,
            lambda: f"{n()} {sign} {n()}",
            lambda: f"{s()} {sign} {s()}",
            lambda: f"{t()} {sign} {t()}",
            lambda: f"{t()} - {t()} {sign} interval '30' minutes",
            lambda: f"{c()} and {c()}",
            lambda: f"{c()} or {c()}",
            lambda: f"not {c()}",
            lambda: f"{n()} is null",
            lambda: f"{s()} is not null",
            lambda: f"{n()} in (1, 2, {n()})",
            lambda: f"{s()} not in ('u', {s()})",
            lambda: f"{n()} between {n()} and {n()}",
            lambda: f"{s()} like '%{self.rng.choice(['u', 'x_', 'U%'])}'",
            lambda: f"startswith({s()}, 'U')",
            lambda: f"contains({s()}, 'x')",
            lambda: f"{c()} is not true",
        ]


def rows(seed):
    rng = random.Random(seed)
    columns = {}
    for name, (_, kind, values) in KINDS.items():
        drawn = [None if rng.random() < 0.2 else rng.choice(values) for _ in range(ROWS)]
        columns[Column(*name.split("."))] = pa.array(drawn, kind)
    return columns


def same(one, other):
    if one is None or other is None or isinstance(one, str | dt.datetime):
        return one == other
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def as_native(value):
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return value


@pytest.fixture(scope="module")
def asked():
    maker = Maker(SEED)
    n = max(100, profiles.share(1.0))
    texts = [maker.of(maker.rng.choice(["truth", "truth", "number", "text"]), 3) for _ in range(n)]
    return [parse(text, "select") for text in dict.fromkeys(texts)]


def test_spark_arrow_native_code_and_duckdb_give_one_answer(spark, asked):
    columns = rows(SEED)
    table = pa.table({f"{c.stream}_{c.name}": values for c, values in columns.items()})
    table = table.append_column("i", pa.array(range(ROWS)))
    frame = spark.createDataFrame(table).selectExpr(
        "i",
        *(
            f"struct({', '.join(f'{c.stream}_{c.name} as {c.name}' for c in columns if c.stream == s)}) as {s}"  # noqa: E501
            for s in "ab"
        ),
    )
    written = [to_sql(text_of(tree), as_condition=False) for tree in asked]
    by_spark = frame.selectExpr("i", *(f"{sql} as v{k}" for k, sql in enumerate(written)))
    answers = sorted(by_spark.collect())
    kinds = {Column(*name.split(".")): kind for name, (kind, *_) in KINDS.items()}
    base = duckdb.connect()
    base.execute("SET TimeZone = 'UTC'")
    for s in "ab":
        own = {c.name: v for c, v in columns.items() if c.stream == s}
        base.register(f"t{s}", pa.table({"i": range(ROWS)} | own))
    compared = native = 0
    for k, tree in enumerate(asked):
        standard = [row[k + 1] for row in answers]
        here = evaluate(tree, columns, "select").to_pylist()
        assert all(map(same, standard, here)), (text_of(tree), standard, here)
        sql = sql_of(tree, {"a": "ta", "b": "tb"})
        there = base.sql(f"SELECT {sql} FROM ta JOIN tb USING (i) ORDER BY i").fetchall()
        assert all(map(same, standard, [value for (value,) in there])), (text_of(tree), sql)
        compared += ROWS
        if type_of(tree, kinds.get) is not Type.TEXT and is_native(tree, kinds):
            check_native(tree, columns, standard)
            native += 1
    assert compared >= 9_000 and native >= 10


def is_native(tree, kinds):
    from slackwater.joins.where_plan import _Splitter

    return _Splitter(kinds.get, frozenset(kinds))._is_native(tree)


def check_native(tree, columns, standard):
    read = sorted(columns_of(tree))
    values = {c: f"v{i}" for i, c in enumerate(read)}
    nulls = {c: f"n{i}" for i, c in enumerate(read)}
    source = Source(values, nulls)
    is_null, value = compile(source.null(tree), "", "eval"), compile(source.value(tree), "", "eval")
    for row, expected in enumerate(standard):
        known = {c: as_native(columns[c][row].as_py()) for c in read}
        names = {values[c]: 0 if v is None else v for c, v in known.items()}
        names |= {nulls[c]: v is None for c, v in known.items()}
        null = eval(is_null, dict(LIBRARY), names)
        assert null is (expected is None), (text_of(tree), known)
        if not null:
            assert same(eval(value, dict(LIBRARY), names), as_native(expected)), text_of(tree)


@pytest.mark.parametrize(
    ("text", "here", "there"),
    [
        ("a.n / 0", "divide by zero", None),  # Spark raises, as we do; DuckDB says null
        ("a.n % 0", "divide by zero", "Division by zero"),
        ("a.n * 9223372036854775807", "overflow", "Overflow"),
    ],
)
def test_where_duckdb_is_known_to_differ(text, here, there):
    columns = {Column("a", "n"): pa.array([2], pa.int64())}
    with pytest.raises(sw.DataError, match=here):
        evaluate(parse(text), columns, "select")
    with duckdb.connect() as base:
        base.register("ta", pa.table({"n": columns[Column("a", "n")]}))
        query = f"SELECT {sql_of(parse(text), {'a': 'ta'})} FROM ta"
        if there is None:
            [(found,)] = base.sql(query).fetchall()
            assert found is None or math.isinf(found)
        else:
            with pytest.raises(duckdb.Error, match=there):
                base.sql(query).fetchall()
