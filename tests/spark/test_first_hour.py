"""What newcomers stumbled over, on Spark: a job of one's own, as real data has it."""

import datetime as dt
import os

import pytest

import slackwater as sw
from recorded import figures, slackwater

pytestmark = pytest.mark.skipif(
    "SLACKWATER_CONNECT" in os.environ, reason="commands take the classic session that runs"
)

JOB = """\
[job]
checkpoint = "state"
at_end = "flush"
arrival = "ts"

[join]
on = "orders.`order no` = payments.`ref.no`"
where = "orders.`my.v` < payments.`my.v`"
select = {no = "payments.`ref.no`", "a.gap" = "payments.`my.v` - orders.`my.v`"}
goal = "max-slack"

[[stream]]
name = "orders"
ts = "ts"
window = "2 seconds"
format = "csv"
schema = "ts long, `order no` string, `my.v` double"
path = "orders"

[[stream]]
name = "payments"
ts = "ts"
window = "2 seconds"
format = "csv"
schema = "ts long, `ref.no` string, `my.v` double"
path = "payments"
select = ["ts", "`ref.no`", "`my.v`"]

[sink]
format = "csv"
path = "out"
select = ["result_ts", "no", "`a.gap` as `the gap`"]
"""
ORDERS = "1000,x,1.0\n1100,,1.0\n1200,y,\n1300,z,5.0\n"
PAYMENTS = '1500,x,2.5\n1600,,2.5\n1700,"",2.5\n1800,y,9\n1900,z,4.0\n'


def test_blanks_and_columns_of_any_name_are_found_to_be_right(spark, tmp_path):
    for name, text in (("orders", ORDERS), ("payments", PAYMENTS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.csv").write_text(text)
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    ran = slackwater("run", job, "--json")
    assert ran.exit_code == 0, ran.output
    assert figures(ran, "run")["results"] == 1
    found = slackwater("verify", job, "--json")
    assert found.exit_code == 0, found.output
    told = figures(found, "verify")
    assert (told["true results"], told["results in the output"]) == (1, 1)
    assert (told["missing results"], told["extra results"]) == (0, 0)


def test_workers_of_another_python_are_refused_before_anything_runs(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "python3"))
    frame = spark.createDataFrame([(1,)], "ts long")
    query = sw.join(*(sw.Stream(name, ts="ts", window=1) for name in "ab"))
    with pytest.raises(sw.SparkError, match="PYSPARK_PYTHON"):
        query.stream(a=frame, b=frame)


def test_batch_frames_of_dates_to_come_are_joined_like_others(spark):
    days = [(dt.date(2199, 1, day), 1) for day in range(1, 11)]
    frame = spark.createDataFrame(days, "day date, k long")
    query = sw.join(
        *(sw.Stream(name, ts="day", window="1 day") for name in "ab"), on="k", goal=sw.MaxSlack()
    )
    assert query.stream(a=frame, b=frame).count() == 28
