"""`slackwater replay`: jobs and files through the engine in this process."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from recorded import figures, slackwater, tables, write_job
from slackwater.cli.goal_option import given_goal
from slackwater.jobs.toml_table import JobFileError


def pair(**options):
    a, b = (sw.Stream(name, ts="ts", window="1 second") for name in "ab")
    return sw.join(a, b, on="k", **{"goal": sw.NoSlack()} | options)


@pytest.fixture
def files(tmp_path):
    for name, table in tables().items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    more = ("--on", "k", "--window", "1 second", "--arrival", "arrival")
    return [tmp_path / "a.parquet", tmp_path / "b.parquet", *more]


def test_figures_are_those_of_the_report(tmp_path):
    told = figures(slackwater("replay", write_job(tmp_path), "--json"), "replay")
    run = pair(goal=sw.Slack("300 ms")).replay(tables(), arrival="arrival")
    report = run.report(over="1 second")
    assert told["results"] == report.produced == run.results.num_rows
    assert told["true results"] == report.true
    assert told["recall"] == pytest.approx(report.recall, abs=1e-6)
    assert told["Φ(0.95) over 1 second"] == pytest.approx(report.phi, abs=1e-6)
    assert (told["average K"], told["results lost"]) == (300, run.metrics.lost)
    assert told["rows in"] == 4_000
    fates = [value for name, value in told.items() if name.startswith("  ")]
    assert sum(fates) == told["rows in"] and told["rows without a fate"] == 0


def test_files_and_a_job_give_the_same(tmp_path, files):
    by_job = figures(slackwater("replay", write_job(tmp_path), "--json"), "replay")
    assert figures(slackwater("replay", *files, "--slack", "300 ms", "--json"), "replay") == by_job


def test_a_folder_has_files_of_one_format_by_their_suffix(tmp_path, files):
    first, second, *options = files
    folders = [tmp_path / "csv" / file.stem for file in (first, second)]
    for file, folder in zip((first, second), folders, strict=True):
        folder.mkdir(parents=True)
        pyarrow.csv.write_csv(pq.read_table(file), folder / "1.csv")
    by_file, by_folder = (
        figures(slackwater("replay", *paths, *options, "--json"), "replay")
        for paths in ((first, second), folders)
    )
    assert by_folder == by_file
    (folders[0] / "2.txt").touch()
    refused = slackwater("replay", *folders, *options)
    assert refused.exit_code == 2
    assert "must be a job (.toml, .sql) or files of parquet, csv or json, got .txt, csv" in (
        refused.stderr
    )


def test_another_goal_can_be_asked_for(tmp_path):
    job = write_job(tmp_path)
    ways = (["--recall", "0.9"], ["--goal", "recall=0.9, over=2 s"], ["--slack", "1 s"])
    told = [figures(slackwater("replay", job, *way, "--json"), "replay") for way in ways]
    assert "Φ(0.9) over 2 s" in told[1]
    assert not any("Φ" in name for name in told[0])  # a minute is longer than the recording
    assert told[2]["average K"] == 1_000
    assert told[2]["recall"] > told[0]["recall"]
    over = slackwater("replay", job, "--recall", "0.9", "--over", "3 s", "--json")
    assert "Φ(0.9) over 3 s" in figures(over, "replay")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--recall", "95"], "recall must be above 0 and at most 1, got 95"),
        (["--recall", "0.9", "--slack", "1 s"], "give one of --goal, --recall and --slack"),
        (["--goal", "speed=3"], 'goal must be "no-slack", "max-slack" or a table with one of'),
        (["--goal", "error_bound=0.02"], "an error bound is for windows of one stream"),
        (["--slack", "soon"], "must be like '5 seconds'"),
        (["--out", "results.xls"], "--out must be a file that ends in .parquet, .csv, .json"),
        (["--window", "1 s"], "a job has its own window"),
    ],
)
def test_a_bad_request_exits_with_2_and_says_why(tmp_path, options, message):
    result = slackwater("replay", write_job(tmp_path), *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_goals_are_those_of_a_job_file():
    assert given_goal("latency=200 ms, every=500", None, None) == {
        "latency": "200 ms",
        "every": 500,
    }
    assert given_goal("synchronize=false", None, None) == {"synchronize": False}
    assert given_goal(None, None, "250") == {"slack": 250}
    assert given_goal(None, None, None) is None
    with pytest.raises(JobFileError, match="got several"):
        given_goal("max-slack", 0.9, None)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json", "jsonl"])
def test_results_are_written_by_suffix(tmp_path, suffix):
    target = tmp_path / "new" / f"results.{suffix}"
    result = slackwater("replay", write_job(tmp_path), "--out", target)
    assert result.exit_code == 0, result.output
    assert f"written: {target}" in result.stderr
    expected = pair(goal=sw.Slack("300 ms")).replay(tables(), arrival="arrival").results
    if suffix == "parquet":
        found = pq.read_table(target)
    elif suffix == "csv":
        found = pyarrow.csv.read_csv(target)
    else:
        found = pa.Table.from_pylist(list(map(json.loads, target.read_text().splitlines())))
    assert found.to_pylist() == expected.to_pylist()


def test_windows_are_compared_with_all_windows(tmp_path):
    told = figures(slackwater("replay", write_job(tmp_path, "window"), "--json"), "replay")
    assert told["missing windows"] >= 0 and told["extra windows"] == told["doubled windows"] == 0
    assert told["windows that differ"] > 0  # 100 ms of slack do not do
    assert told["  late, dropped"] > 0
    whole = slackwater("replay", tmp_path / "job.toml", "--goal", "slack=1 min", "--json")
    assert figures(whole, "replay")["windows that differ"] == 0


def test_aggregates_are_compared_with_the_whole_join(tmp_path):
    told = figures(slackwater("replay", write_job(tmp_path, "aggregate"), "--json"), "replay")
    assert told["true windows"] == told["windows in the output"] == 10
    assert told["early answers"] > 0
    assert 0 < told["error of early answers"] < 0.5
    assert told["extra windows"] == told["doubled windows"] == 0


def test_the_table_fits_80_columns_and_says_what_was_asked(tmp_path):
    result = slackwater("replay", write_job(tmp_path), "--goal", "recall=0.9, over=2 s")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("job, Recall(0.9, over=2 s)")
    assert "late, kept" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_replay_can_be_logged_for_the_dashboard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path)
    result = slackwater("replay", "job.toml", "--metrics", "log/lines.jsonl", "--json")
    assert result.exit_code == 0, result.output
    lines = [json.loads(text) for text in Path("log/lines.jsonl").read_text().splitlines()]
    assert [line["event"] for line in (lines[0], lines[1], lines[-1])] == [
        "started", "batch", "terminated",
    ]  # fmt: skip
    told = {line["name"]: line["value"] for line in json.loads(result.stdout)["lines"]}
    assert lines[-2]["metrics"]["arrivals"] == told["rows in"]
    assert lines[-2]["metrics"]["produced"] == told["results"]


@pytest.mark.parametrize(
    ("how", "more", "asked"),
    [
        ("full", 'emit = "eager"', "right rows without partner"),
        ("anti", "", "right rows without partner"),
        ("asof", 'tolerance = "60 ms"', "right at once"),
        ("semi", "", "recall in time"),
        ("inner", 'emit = "eager"', "recall"),
    ],
)
def test_joins_of_other_kinds_are_measured_against_what_was_asked(tmp_path, how, more, asked):
    goal = 'goal = {recall = 0.9, over = "2 s"}'
    job = write_job(tmp_path, asked=f'[join]\non = "k"\nhow = "{how}"\n{more}\n{goal}')
    window = "" if how == "asof" else 'window = "60 ms"'
    text = job.read_text(encoding="utf-8").replace('window = "1 second"', window)
    job.write_text(text, encoding="utf-8")
    told = figures(slackwater("replay", job, "--json"), "replay")
    assert 0.7 <= told[asked] <= 1  # it learns at first
    assert told["rows without a fate"] == 0
    assert told["average K" if how != "inner" else "average time that events are kept"] > 0
    if how != "inner":
        assert told["extra results" if how in ("asof", "semi") else "extra pairs"] == 0
