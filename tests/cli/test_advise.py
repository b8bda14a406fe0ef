"""`slackwater advise`: on small recordings, from files and from a job."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli import app
from slackwater.errors import DataError, QueryError
from slackwater.jobs.advise import TARGETS, Advisor, frontier_of
from slackwater.jobs.recordings import arrow_types
from slackwater.testing.workloads import uniform_keys

JOB = """\
[job]
checkpoint = "state"
{arrival}

[join]
on = "k"
goal = {goal}

[[stream]]
name = "a"
ts = "ts"
window = "1 second"
format = "{format}"
schema = "ts long, k long, v double, arrival long"
path = "a"
{more}

[[stream]]
name = "b"
ts = "ts"
window = "1 second"
format = "parquet"
schema = "ts long, k long, v double, arrival long"
path = "b.parquet"

[sink]
format = "noop"
"""
USUAL = {"arrival": 'arrival = "arrival"', "goal": '"no-slack"', "format": "parquet", "more": ""}


def tables(rows=4_000):
    """Twenty seconds of two streams, a third of it up to some 2 s late."""
    return {n: uniform_keys(rows, i, rate_per_s=200, keys=20) for i, n in enumerate("ab", 1)}


def pair(**options):
    a, b = (sw.Stream(name, ts="ts", window="1 second") for name in "ab")
    return sw.join(a, b, on="k", **{"goal": sw.NoSlack()} | options)


@pytest.fixture
def folder(tmp_path):
    own = tables()
    pq.write_table(own["b"], tmp_path / "b.parquet")
    pq.write_table(own["a"], tmp_path / "a.parquet")
    (tmp_path / "a").mkdir()
    for number in range(2):  # the first half has the larger name: Spark goes by the time
        file = tmp_path / "a" / f"{9 - number}.parquet"
        pq.write_table(own["a"].slice(2_000 * number, 2_000), file)
        os.utime(file, (1_000_000_000 + number,) * 2)
    (tmp_path / "a" / "_SUCCESS").touch()
    return tmp_path


def advise(*arguments):
    return CliRunner().invoke(app, ["advise", *map(str, arguments)])


def of_job(folder, *options, **changes):
    file = folder / "job.toml"
    file.write_text(JOB.format(**(USUAL | changes)), encoding="utf-8")
    return advise(file, *options)


def of_files(folder, *options):
    more = ("--on", "k", "--window", "1 second", "--arrival", "arrival", *options)
    return advise(folder / "a.parquet", folder / "b.parquet", *more)


def values(result):
    assert result.exit_code == 0, result.output
    sheet = json.loads(result.stdout)
    assert (list(sheet), sheet["command"]) == (["command", "seed", "machine", "lines"], "advise")
    return {line["name"]: line["value"] for line in sheet["lines"]}


# ---- what is computed


@pytest.fixture(scope="module")
def advisor():
    advisor = Advisor(pair(), tables(), "arrival", over="2 seconds")
    for _, step in advisor.steps():
        step()
    return advisor


def reported(goal, **options):
    run = pair(goal=goal, select="count", **options).replay(tables(), arrival="arrival")
    return run.report(0.9, over="2 seconds")


def same(outcome, report):
    assert outcome.recall == report.recall
    assert outcome.phi(0.9) == report.phi
    assert outcome.average_slack == report.average_slack
    assert outcome.recalls.tolist() == report.measurements["recall"].to_pylist()


def test_an_outcome_is_what_replay_reports(advisor):
    for goal in (sw.NoSlack(), advisor.recall_goal(0.9), sw.MaxSlack()):
        report, outcome = reported(goal), advisor.result(goal)
        same(outcome, report)
        assert (advisor.true, outcome.average_latency) == (report.true, report.average_latency)


def test_fixed_slacks_are_what_replay_reports_without_a_replay(advisor, monkeypatch):
    monkeypatch.setattr(Advisor, "_replayed", None)
    for slack in (0, 50, 2047, 10_000):  # each the largest lateness of its bucket, or beyond all
        report, outcome = reported(sw.Slack(slack)), advisor.result(sw.Slack(slack))
        same(outcome, report)
        assert outcome.average_latency == pytest.approx(report.average_latency, rel=0.05)
    between = advisor.result(sw.Slack(200)).recall
    assert reported(sw.Slack(194)).recall <= between <= reported(sw.Slack(200)).recall


def test_the_papers_pipeline_is_replayed_with_each_slack():
    advisor = Advisor(pair(pipeline="icde16"), tables(), "arrival", over="2 seconds")
    assert advisor.curve is None
    assert "Slack(200 ms)" in [title for title, _ in advisor.steps()]
    report, outcome = reported(sw.Slack(200), pipeline="icde16"), advisor.result(sw.Slack(200))
    same(outcome, report)
    assert outcome.average_latency == report.average_latency
    wanted = advisor.result(advisor.recall_goal(0.95)).phi(0.95)
    assert advisor.result(sw.Slack(advisor.best_slack(0.95))).phi(0.95) >= wanted


def test_fixed_slacks_go_from_nothing_to_everything(advisor):
    outcomes = [advisor.result(sw.Slack(slack)) for slack in advisor.slacks]
    assert advisor.slacks[:5] == [0, 10, 20, 50, 100]
    assert advisor.slacks[-1] >= advisor.largest_delay > advisor.slacks[-2]
    recalls = [outcome.recall for outcome in outcomes]
    assert recalls == sorted(recalls)
    assert outcomes[0].recall == advisor.result(sw.NoSlack()).recall
    assert recalls[-1] == 1


def test_the_frontier_is_the_smallest_fixed_slack_that_does(advisor):
    for target in TARGETS:
        wanted = advisor.result(advisor.recall_goal(target)).phi(target)
        best = advisor.best_slack(target)
        assert advisor.result(sw.Slack(best)).phi(target) >= wanted
        less = best - max(10, best // 20) - 10
        assert less < 0 or advisor.result(sw.Slack(less)).phi(target) < wanted
    marked = [target for targets in frontier_of(advisor).values() for target in targets]
    assert sorted(marked) == sorted(TARGETS)


def test_the_period_fits_the_recording():
    minutes = {n: uniform_keys(4_000, i, rate_per_s=10, keys=5) for i, n in enumerate("ab")}
    assert Advisor(pair(), minutes, "arrival").over == "1 minute"
    assert Advisor(pair(), tables(), "arrival").over == "1 second"
    with pytest.raises(
        DataError, match="over must be shorter than the recording, which has 19995 "
    ):
        Advisor(pair(), tables(), "arrival", over="1 minute")


def test_what_cannot_be_advised_on_is_said():
    with pytest.raises(QueryError, match="recall must be above 0 and at most 1, got 95"):
        Advisor(pair(), tables(), "arrival", target=95)
    counted = sw.join(
        sw.Stream("a", "ts", sw.Tuples(9)), sw.Stream("b", "ts", "1 s"), on="k", goal=sw.NoSlack()
    )
    with pytest.raises(QueryError, match="advice needs time windows on all streams"):
        Advisor(counted, tables(), "arrival")
    apart = tables() | {"b": tables()["b"].set_column(1, "k", pa.array(np.full(4_000, 99)))}
    with pytest.raises(DataError, match="the recording has no results"):
        Advisor(pair(), apart, "arrival")


# ---- the command


def test_files_and_a_job_of_the_same_rows_get_the_same_advice(folder):
    by_files = values(of_files(folder, "--over", "2 seconds", "--json"))
    by_job = values(of_job(folder, "--over", "2 seconds", "--json"))
    assert by_files == by_job
    assert by_files["rows"] == 8_000
    assert by_files["NoSlack(): recall"] < by_files["Recall(0.95): recall"] <= 1
    assert by_files["Slack(100 ms): average K"] == 100
    measures = ("recall", "Φ(0.95)", "average K", "average latency")
    assert all(f"InputQuantile(0.95): {measure}" in by_files for measure in measures)
    assert {f"K*({target:g})" for target in TARGETS} < set(by_files)


def test_the_goal_of_a_job_is_the_one_in_question(folder):
    goal = '{recall = 0.85, over = "3 seconds"}'
    result = of_job(folder, goal=goal)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "job: 8,000 rows" in said
    assert "the recall over the last 3 seconds was not below" in said
    assert "Recall(0.85) gives" in said and "InputQuantile(0.85), a watermark" in said
    again = of_job(folder, "--target", "0.7", "--json", goal=goal)
    assert "Recall(0.7): Φ(0.7)" in values(again)
    in_units = of_job(folder, "--json", goal="{recall = 0.85, over = 3000}")
    assert "Recall(0.85): Φ(0.85)" in values(in_units)
    refused = of_job(folder, "--target", "0", goal=goal)
    assert "recall must be above 0 and at most 1, got 0" in refused.stderr


def test_without_an_arrival_rows_come_in_the_order_of_the_files(folder):
    over = ("--over", "2 s", "--json")
    in_order = values(of_job(folder, *over, arrival='arrival = "ts"'))
    assert in_order["NoSlack(): recall"] == 1
    as_written = values(of_job(folder, *over, arrival=""))
    assert as_written["NoSlack(): recall"] < 1
    assert as_written["largest delay"] == values(of_job(folder, *over))["largest delay"]


@pytest.mark.parametrize("header", [True, False])
def test_csv_and_json_files_say_the_same(folder, header):
    expected = values(of_job(folder, "--over", "2 s", "--json"))
    for file in (folder / "a").iterdir():
        file.unlink()
    options = pyarrow.csv.WriteOptions(include_header=header)
    pyarrow.csv.write_csv(tables()["a"], folder / "a" / "a.csv", options)
    more = "options = {header = true}" if header else ""
    assert values(of_job(folder, "--over", "2 s", "--json", format="csv", more=more)) == expected
    (folder / "a" / "a.csv").unlink()
    lines = [json.dumps(row) for row in tables()["a"].to_pylist()]
    (folder / "a" / "a.json").write_text("\n".join(lines))
    assert values(of_job(folder, "--over", "2 s", "--json", format="json")) == expected


@pytest.mark.parametrize("zone", ["", "Z"])
def test_times_in_text_files_may_have_a_zone(folder, zone):
    expected = values(of_job(folder, "--over", "2 s", "--json"))
    times = [
        str(ts).replace("T", " ") + zone for ts in tables()["a"]["ts"].to_numpy().astype("M8[ms]")
    ]
    for file in (folder / "a").iterdir():
        file.unlink()
    text = tables()["a"].set_column(0, "ts", pa.array(times))
    job = JOB.replace("ts long", "ts timestamp", 1)
    for form in ("csv", "json"):
        file = folder / "a" / f"a.{form}"
        if form == "csv":
            options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
            pyarrow.csv.write_csv(text, file, options)
        else:
            file.write_text("\n".join(map(json.dumps, text.to_pylist())))
        (folder / "job.toml").write_text(job.format(**USUAL | {"format": form}), encoding="utf-8")
        assert values(advise(folder / "job.toml", "--over", "2 s", "--json")) == expected
        file.unlink()


def test_a_figure_is_written(folder):
    figure = folder / "new" / "advice.png"
    result = of_files(folder, "--over", "2 seconds", "--plot", figure)
    assert result.exit_code == 0, result.output
    assert figure.read_bytes()[:4] == b"\x89PNG"
    assert f"written: {figure}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.parquet", "b.parquet", "--on", "k"], "files need --window"),
        (
            ["a.parquet", "c.parquet", "--window", "1 s"],
            "c.parquet must be a job (.toml, .sql) or files",
        ),
        (
            ["a.parquet", "job.txt", "--window", "1 s"],
            "job.txt must be a job (.toml, .sql) or files of ",
        ),
        (["a.parquet", "--window", "1 s"], "a join takes 2 to 32 streams, got 1"),
        (["a.parquet", "b.parquet", "--window", "1 s", "--on", "x"], "x"),
        (["a.parquet", "b.parquet", "--window", "1 s", "--plot", "x.gif"], "--plot must be a file"),
        (["a.parquet", "b.parquet", "--window", "1 s", "--target", "2"], "recall must be above 0"),
    ],
)
def test_a_bad_request_exits_with_2_and_says_why(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    result = advise(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": 'where = "v < 1"'}, "[[stream]] a: the files are read without Spark"),
        ({"more": 'select = ["ts", "k + 1 as k"]'}, "which is needed for the SQL of select"),
        ({"format": "orc"}, "[[stream]] a: without Spark only parquet, csv or json on"),
        ({"arrival": 'arrival = "arrived"'}, "arrived"),
    ],
)
def test_a_job_that_needs_spark_to_be_read_is_refused(folder, changes, message):
    result = of_job(folder, **changes)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_a_job_has_its_own_window(folder):
    result = of_job(folder, "--window", "1 s")
    assert result.exit_code == 2
    assert "a job has its own window, on, where and arrival" in result.stderr


def test_types_of_a_schema_that_arrow_does_not_read_are_left_to_the_file():
    assert arrow_types("a map<string, int>, b decimal(10, 2) , `c` INT")["c"] == pa.int32()
    assert list(arrow_types("a map<string, int>, b decimal(10, 2) , `c` INT")) == ["a", "b", "c"]
