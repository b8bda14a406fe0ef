"""Every type of Spark passes through unharmed: the values that come out are those that went in."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql import types as t

import profiles
import slackwater as sw
from marks import full_but
from slackwater.jobs.recordings import arrow_types
from slackwater.jobs.spark_text import read_csv
from text_rows import LINES, SCHEMA

WHEN = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
BIG = 2**53 + 1  # pandas would make it 2**53 beside a null

SCALARS = {
    t.ByteType(): st.integers(-(2**7), 2**7 - 1),
    t.ShortType(): st.integers(-(2**15), 2**15 - 1),
    t.IntegerType(): st.integers(-(2**31), 2**31 - 1),
    t.LongType(): st.sampled_from([BIG, -BIG, 2**63 - 1, -(2**63), 0]),
    t.FloatType(): st.sampled_from([0.5, -0.0, float("inf")]),
    t.DoubleType(): st.floats(allow_nan=False),
    t.BooleanType(): st.booleans(),
    t.StringType(): st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5),
    t.BinaryType(): st.binary(max_size=5).map(bytearray),
    t.DateType(): st.dates(dt.date(1600, 1, 1), dt.date(9999, 12, 31)),
    t.TimestampType(): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)),
    t.TimestampNTZType(): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)),
    t.DecimalType(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    t.DecimalType(10, 4): st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-4)),
    t.DayTimeIntervalType(): st.integers(-(10**15), 10**15).map(
        lambda n: dt.timedelta(microseconds=n)
    ),
}


def nested(inner):
    """Arrays, maps and structs of what there is."""
    array = inner.map(lambda kind: t.ArrayType(kind[0]))
    struct = st.lists(inner, min_size=1, max_size=3).map(
        lambda kinds: t.StructType([t.StructField(f"f{i}", k[0]) for i, k in enumerate(kinds)])
    )
    maps = inner.map(lambda kind: t.MapType(t.StringType(), kind[0]))
    return st.one_of(array, struct, maps).map(lambda kind: (kind,))


KINDS = st.recursive(st.sampled_from(list(SCALARS)).map(lambda k: (k,)), nested, max_leaves=4)


def values(kind):
    """Values of a type, nulls among them."""
    return st.none() | st.deferred(lambda: _values(kind))


def _values(kind):
    if isinstance(kind, t.ArrayType):
        return st.lists(values(kind.elementType), max_size=3)
    if isinstance(kind, t.MapType):
        return st.dictionaries(st.text("abc", max_size=2), values(kind.valueType), max_size=3)
    if isinstance(kind, t.StructType):
        return st.tuples(*(values(field.dataType) for field in kind.fields))
    return SCALARS[kind]


@st.composite
def columns(draw):
    """A few columns with three rows each."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=6))
    rows = [tuple(draw(values(kind[0])) for kind in kinds) for _ in range(3)]
    return [kind[0] for kind in kinds], rows


QUERY = sw.join(
    sw.Stream("a", ts="ts", window="10 ms"),
    sw.Stream("b", ts="ts", window="10 ms"),
    on="id",
    goal=sw.NoSlack(),
)


def frame_of(spark, kinds, rows):
    fields = [t.StructField(f"c{i}", kind) for i, kind in enumerate(kinds)]
    schema = t.StructType([t.StructField("id", t.LongType()), *fields])
    numbered = [(number, *row) for number, row in enumerate(rows)]
    return spark.createDataFrame(numbered, schema).withColumn("ts", F.lit(5))


# Hypothesis would shrink for long: a case costs a Spark job.
@settings(
    max_examples=min(12, profiles.share(0.12)),
    suppress_health_check=list(HealthCheck),
    phases=["explicit", "generate"],
)
@given(columns())
def test_values_of_any_type_come_out_as_they_went_in(spark, drawn):
    frame = frame_of(spark, *drawn)
    joined = QUERY.stream({"a": frame, "b": frame})
    assert joined.schema["a_c0"].dataType == frame.schema["c0"].dataType
    expected = {row["id"]: row[1:-1] for row in frame.collect()}
    found = joined.collect()
    assert len(found) == len(expected)
    width = len(frame.columns)
    for row in found:
        assert repr(row[2:width]) == repr(expected[row["a_id"]])
        assert repr(row[2 + width : 2 * width]) == repr(expected[row["b_id"]])


@pytest.mark.parametrize(
    "zone", full_but(("Asia/Kathmandu",), ["UTC", "Asia/Kathmandu", "America/New_York"])
)
def test_the_zone_of_the_session_changes_no_value(spark, zone):
    text = "timestamp'2024-03-10 02:30:00+00:00'"
    frame = spark.sql(
        f"select 1 id, {text} ts, {text} at, array({text}) ats, map('x', {text}) ms, "
        f"named_struct('n', {text}, 'l', timestamp_ntz'2024-03-10 02:30:00') s, "
        "parse_json('{\"a\": [1, null]}') v, cast(null as void) nothing, time'12:30:15' clock"
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        joined = QUERY.stream({"a": frame, "b": frame})
        columns = [f"a_{name}" for name in frame.columns]
        expected = frame.select(*map(as_text, frame.columns)).collect()
        assert joined.select(*map(as_text, columns)).collect() == expected
        [row] = joined.select(F.unix_micros("result_ts"), F.unix_micros("a_ts")).collect()
        assert row[0] == row[1] == 1710037800000000
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def as_text(name):
    return F.to_json(F.struct(F.col(name).alias("x")))


def test_a_type_that_spark_cannot_hand_over_is_named(spark):
    frame = spark.sql("select 1 id, 2 ts, interval '1' month gap")
    with pytest.raises(sw.DataError, match="stream 'a': .* column 'gap' of type interval month"):
        QUERY.stream({"a": frame, "b": frame})


def test_recordings_of_csv_are_read_as_spark_reads_them(spark, tmp_path):
    (tmp_path / "0.csv").write_text("".join(f"{line}\n" for line in LINES))
    there = spark.read.schema(SCHEMA).csv(str(tmp_path)).toArrow()
    here = read_csv(tmp_path / "0.csv", arrow_types(SCHEMA), {})
    for name in here.column_names:
        assert list(map(str, here[name].to_pylist())) == list(map(str, there[name].to_pylist()))
