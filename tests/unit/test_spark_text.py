"""CSV and JSON as Spark reads them: `spark/test_types.py` asks Spark about the same rows."""

import pyarrow as pa
import pytest

from slackwater.jobs.recordings import arrow_types
from slackwater.jobs.spark_text import as_spark_reads, read_csv, read_json
from slackwater.jobs.toml_table import JobFileError
from text_rows import LINES, SCHEMA, VALUES


def read(tmp_path, lines, schema=SCHEMA, **options):
    file = tmp_path / "a.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    return read_csv(file, arrow_types(schema), options)


def test_each_text_becomes_what_spark_makes_of_it(tmp_path):
    assert [list(map(str, row.values())) for row in read(tmp_path, LINES).to_pylist()] == VALUES


def test_a_header_is_passed_over_and_columns_go_by_their_place(tmp_path):
    rows = read(tmp_path, ["i,s", "x,6"], "s string, i int", header="TRUE")
    assert rows.to_pylist() == [{"s": "x", "i": 6}]


def test_a_null_value_of_ones_own_and_another_separator(tmp_path):
    rows = read(tmp_path, ["-;1", ";-"], "s string, i int", sep=";", nullValue="-")
    assert rows.to_pylist() == [{"s": None, "i": 1}, {"s": None, "i": None}]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (['"a""b",1'], {}, "quotes inside of quotes"),
        (['a"b,1'], {}, "quotes inside of quotes"),
        (['"a\\"b",1'], {}, "backslashes beside quotes"),
        (['"a', 'b",1'], {}, "line breaks"),
        (["a,1"], {"mode": "FAILFAST"}, "the option mode = 'FAILFAST' changes how Spark reads"),
        (["a,1"], {"timestampFormat": "dd"}, "the option timestampformat = 'dd' changes"),
        (["a,1"], {"sep": "||"}, "sep must be one character, got '||'"),
    ],
)
def test_what_spark_may_read_in_another_way_is_refused(tmp_path, lines, options, message):
    with pytest.raises(JobFileError, match="(?s)" + message.replace("|", "\\|")):
        read(tmp_path, lines, "s string, i int", **options)


def test_a_time_of_another_form_is_refused_and_a_word_is_null(tmp_path):
    assert read(tmp_path, ["soon"], "t timestamp")["t"].to_pylist() == [None]
    with pytest.raises(JobFileError, match="column t: Spark may read '3.1.2026' as a time"):
        read(tmp_path, ["3.1.2026"], "t timestamp")
    with pytest.raises(JobFileError, match="column t: columns of type map, array or struct"):
        read(tmp_path, ["x"], "t array<string>")


def test_times_without_a_zone_are_those_of_the_session():
    texts = pa.array(["2026-01-01 00:00:00", "2026-01-01T00:00:00Z"])
    there = as_spark_reads(texts, pa.timestamp("us", "UTC"), "America/New_York")
    assert [t.hour for t in there.to_pylist()] == [5, 0]
    naive = as_spark_reads(texts[:1], pa.timestamp("us"), "America/New_York")
    assert naive[0].as_py().hour == 0


def test_json_has_the_columns_of_the_schema_and_no_others(tmp_path):
    file = tmp_path / "a.json"
    types = arrow_types(
        "k string, t timestamp not null, `my.v` long, `a,b` map<string, int>, p decimal(4, 1)"
    )
    file.write_text('{"k": "", "t": "2026-01-01 00:00:00", "more": 1}\n{"my.v": 2}\n')
    rows = read_json(file, types, {"maxFilesPerTrigger": "1"}).to_pylist()
    assert [row["k"] for row in rows] == ["", None]
    assert [row["my.v"] for row in rows] == [None, 2]
    assert list(rows[0]) == ["k", "t", "my.v", "a,b", "p"]
    assert [row["p"] for row in rows] == [None, None]
    assert rows[0]["t"].isoformat() == "2026-01-01T00:00:00+00:00"
