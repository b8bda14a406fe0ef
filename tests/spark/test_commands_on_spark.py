"""`slackwater run` and `slackwater demo` over the session of these tests."""

import json
import os
import signal
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from slackwater.cli import app
from spark.streams import in_parts, pair, write

pytestmark = pytest.mark.skipif(
    "SLACKWATER_CONNECT" in os.environ, reason="commands take the classic session that runs"
)

JOB = """\
[job]
checkpoint = "state"
trigger = "{trigger}"
arrival = {arrival}
metrics = "metrics.jsonl"
control = "control"

[join]
on = "k"
goal = {{slack = "300 ms"}}

[[stream]]
name = "a"
ts = "ts"
window = "1 second"
format = "parquet"
schema = "{schema}"
path = "a"

[[stream]]
name = "b"
ts = "ts"
window = "1 second"
format = "parquet"
schema = "ts long, k long, v double, arrival long"
path = "b"
where = "v < 2"

[sink]
format = "{sink}"
path = "out"
select = ["result_ts", "{column} as k"]
"""
START = "job: join of a, b; goal: Slack(300 ms)"
USUAL = {
    "trigger": "available-now",
    "arrival": '"arrival"',
    "schema": "ts long, k long, v double, arrival long",
    "sink": "parquet",
    "column": "a_k",
}


@pytest.fixture
def folder(tmp_path):
    for name, table in pair(rows=500).items():
        write(tmp_path / name, in_parts(table, 2))
    return tmp_path


def run(folder, *options, **changes):
    file = folder / "job.toml"
    file.write_text(JOB.format(**(USUAL | changes)))
    return CliRunner().invoke(app, ["run", str(file), *options])


def names(folder):
    return {path.name for path in folder.iterdir()} - {"job.toml"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "ts long, k lnog"}, "[[stream]] a: schema: "),
        ({"schema": "ts string, k long, v double, arrival long"}, "stream 'a'"),
        ({"column": "c_k"}, "[sink] select: "),
        ({"arrival": '"arrived"'}, "arrived"),
    ],
)
def test_what_only_spark_knows_is_checked_before_the_start(spark, folder, changes, message):
    result = run(folder, **changes)
    assert result.exit_code == 2
    [error] = result.stderr.splitlines()
    assert error.startswith(f"slackwater: {folder / 'job.toml'}: ")
    assert message in error
    assert names(folder) <= {"a", "b", "control"}


def test_a_check_says_what_will_run_and_leaves_no_trace(spark, folder):
    result = run(folder, "--check")
    assert result.exit_code == 0, result.output
    assert "is ready to run: a (parquet), b (parquet) into parquet" in " ".join(
        result.stdout.split()
    )
    assert names(folder) == {"a", "b"}


def test_a_job_goes_on_with_another_goal_but_not_with_another_query(spark, folder):
    first = run(folder)
    assert first.exit_code == 0, first.output
    assert "job has taken all there was: 1 micro-batches" in first.stdout
    before = pq.read_table(sorted((folder / "out").glob("*.parquet"))).num_rows
    assert before > 0
    again = run(folder, "--json")
    assert {line["name"]: line["value"] for line in json.loads(again.stdout)["lines"]} == {
        "micro-batches": 0,
        "rows in": 0,
    }
    refused = run(folder, schema="ts long, k int, v double, arrival long")
    assert refused.exit_code == 2
    assert (
        'columns of a was "ts int64, k int64, v double, arrival int64", '
        'now "ts int64, k int32, v double, arrival int64"'
    ) in refused.stderr
    assert pq.read_table(sorted((folder / "out").glob("*.parquet"))).num_rows == before


@pytest.mark.parametrize("options", [(), ("--check",)])
@pytest.mark.parametrize("sink", ["delta", "kafka"])
def test_a_sink_that_is_not_there_is_a_bad_request(spark, folder, options, sink):
    result = run(folder, *options, sink=sink)
    assert result.exit_code == 2
    assert "[sink] " in result.stderr and "DATA_SOURCE_NOT_" in result.stderr
    assert names(folder) <= {"a", "b", "control"}


def test_a_check_finds_files_that_spark_cannot_read(spark, folder):
    for file in (folder / "a").glob("*.parquet"):
        table = pq.read_table(file)
        times = table["ts"].cast(pa.timestamp("ns", "UTC"))
        pq.write_table(table.set_column(table.column_names.index("v"), "v", times), file)
    result = run(folder, "--check", schema="ts long, k long, v timestamp, arrival long")
    assert result.exit_code == 2
    assert "[[stream]] a: " in result.stderr and "actual Parquet type INT64" in result.stderr
    assert names(folder) == {"a", "b"}


@pytest.mark.full
def test_a_query_that_fails_exits_with_1_and_says_why(spark, folder):
    table = pq.read_table(folder / "a" / "00000.parquet")
    pq.write_table(table.set_column(3, "arrival", [[None] * table.num_rows]).cast(table.schema),
                   folder / "a" / "00000.parquet")  # fmt: skip
    result = run(folder)
    assert result.exit_code == 1
    expected = "slackwater: stream 'a': arrival column 'arrival' must be set in each row, got None"
    assert result.stderr.splitlines() == [START, expected]
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["event"] == "terminated" and "must be set" in last["exception"]


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_a_query_that_has_no_end(spark, folder, number):
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    ended = threading.Event()

    def interrupt():
        log = folder / "metrics.jsonl"
        while not ended.wait(0.05):
            if log.exists() and '"event": "batch"' in log.read_text():
                os.kill(os.getpid(), number)
                return

    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        result = run(folder, trigger="100 ms")
    finally:
        ended.set()
        helper.join()
    assert result.exit_code == 0, result.output
    assert "job was stopped: " in result.stdout
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.full
def test_the_demo_runs_both_joins_beside_sparks_own(spark, tmp_path):
    keep = tmp_path / "kept"
    arguments = ["demo", "--seconds", "44", "--seed", "7", "--keep", str(keep), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    sheet = json.loads(result.stdout)
    assert (sheet["command"], sheet["seed"]) == ("demo", 7)
    values = {line["name"]: line["value"] for line in sheet["lines"]}
    assert values["Slackwater: rows in"] == values["Spark: rows in"] > 300_000
    assert values["Spark: pairs found"] <= values["Slackwater: pairs found"] <= 1
    assert values["Slackwater: pairs found"] > 0.999
    assert values["Slackwater: wrong, rough"] < 0.1 < values["Spark: wrong, rough"]
    assert values["Slackwater: wait, calm"] < values["Slackwater: wait, rough"]
    assert len(list((keep / "alone" / "orders").glob("*.parquet"))) == 44
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2
    assert "the streams need a directory that is new or empty" in again.stderr
