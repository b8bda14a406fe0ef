import json
import math
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from slackwater.cli import app
from slackwater.cli.demo import chart, conclusion, table
from slackwater.cli.screen import cells, target_text
from slackwater.jobs.demo_run import DemoResult
from slackwater.jobs.watch import NativeWatch, QueryWatch

GOALS = ["NoSlack", "Slack 100 ms", "Slack 1 s", "Recall 0.95", "MaxSlack"]
MEASURES = [
    "average K",
    "recall",
    "Φ(0.95)",
    "average latency",
    "95 % latency",
    "late events",
    "results lost",
]
CORE = [  # names never change, or figures cannot be compared across versions
    "two-way materialising",
    "two-way counting",
    "three-way counting",
    "D×3, K = 1 s: time",
    "D×3, K = 1 s: results",
    "D×3, K = 0: time",
    "D×3, K = 0: results",
    "two-way dist() < 5",
    "all bookkeeping of a goal: time",
    "metrics lines: time",
    "metrics lines: size",
    "adaptation step, m = 4",
    "sliding MAX over 30 s",
    "slack buffer of 1,000: time of an event",
    "slack buffer of 10,000: time of an event",
    "slack buffer, slowest by fastest",
    "shedding at z = 1, materialising: time",
    "shedding at z = 1, counting: time",
    "shedding at z = 1, an ε-join of three: time",
    "shedding at z = 1, the same without index: time",
    "harvest fractions, m = 3, n = 10",
    "harvest fractions, m = 5, n = 20",
    *(
        f"aggregates of {length} ms{what}"
        for length in (10, 100)
        for what in (
            "",
            ", AEMA: time",
            ", mlp: telling",
            ", mlp: a window",
            ", delays: a window",
        )  # fmt: skip
    ),
    "cold start",
    "ten times the window, counting: time",
    "ten times the window, counting: results",
    "ten times the window, materialising: time",
    "ten times the window, materialising: results",
]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def figures(result):
    assert result.exit_code == 0, result.output
    sheet = json.loads(result.stdout)
    assert list(sheet) == ["command", "seed", "machine", "lines"]
    assert set(sheet["machine"]) == {"python", "system", "architecture", "cpus"}
    for line in sheet["lines"]:
        assert {"name", "value", "unit", "ok"} <= set(line)
        assert set(line) <= {"name", "value", "unit", "floor", "ceiling", "ok"}
    return sheet


@pytest.mark.parametrize(
    "command", [[], ["demo"], ["run"], ["advise"], ["dashboard"], ["bench"], ["bench", "core"]]
)
def test_help_explains_each_command(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_help_needs_neither_the_engine_nor_numba():
    code = (
        "import sys; from slackwater.cli import app; "
        "sys.exit(bool({'numba', 'numpy', 'pyspark', 'slackwater.engine'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_embedded_demo_prints_one_figure_per_goal_and_measure():
    sheet = figures(run("demo", "--embedded", "--seconds", "3", "--seed", "7", "--json"))
    assert (sheet["command"], sheet["seed"]) == ("demo --embedded", 7)
    names = [line["name"] for line in sheet["lines"]]
    assert names == [f"{goal}: {measure}" for goal in GOALS for measure in MEASURES]
    values = {line["name"]: line["value"] for line in sheet["lines"]}
    assert values["NoSlack: recall"] < values["Slack 1 s: recall"] <= 1
    assert values["NoSlack: results lost"] > values["Slack 1 s: results lost"] >= 0
    assert values["Slack 100 ms: average K"] == 100


def test_embedded_demo_repeats_itself():
    command = ("demo", "--embedded", "--seconds", "2", "--json")
    first, second = (run(*command).stdout for _ in range(2))
    assert first == second


def test_embedded_demo_explains_its_table():
    result = run("demo", "--embedded", "--seconds", "3")
    assert result.exit_code == 0
    assert "some positions arrive" in result.stdout
    assert "of the results were lost" in " ".join(result.stdout.split())
    for goal in GOALS:
        assert goal in result.stdout


def watched(watch, *batches):
    """A watch that got some micro-batches: (rows, ms, other figures)."""
    for rows, ms, more in batches:
        line = {"event": "batch", "name": watch.name, "rows": rows, "duration_ms": ms}
        watch.take(line | {"metrics": None} | more)
    watch.take({"event": "terminated", "name": watch.name})
    return watch


METRICS = {
    "arrivals": 1_500,
    "produced": 90,
    "lost": 8,
    "late_kept": 5,
    "late_dropped": 2,
    "slack": 1_000,
    "recall": 0.92,
    "target": 0.95,
}


def test_demo_shows_both_joins_beside_the_truth(capsys):
    ours = watched(
        QueryWatch("ours", "ms", "Slackwater"),
        (500, 9_000, {"metrics": METRICS | {"slack": 500, "charts": {"recall": 0.9}}}),
        (1_000, 100, {"metrics": METRICS | {"charts": {"recall": 1.0}}}),
    )
    native = {"results": 48, "dropped": 3}
    theirs = watched(
        NativeWatch("theirs", "ms", "Spark's own join"), (500, 9_000, native), (1_000, 200, native)
    )
    result = DemoResult(ours, theirs, METRICS, 1_000, 100)
    lines = {one.name: one.value for one in result.measurements()}
    assert lines["true results"] == 100
    assert (lines["Slackwater: recall"], lines["Spark: recall"]) == (0.98, 0.96)
    assert (lines["Slackwater: rows/s"], lines["Spark: rows/s"]) == (10_000, 5_000)
    assert (lines["Slackwater: target"], lines["Slackwater: recall in time"]) == (0.95, 0.9)
    assert "Spark: recall in time" not in lines
    Console(width=80).print(table(result))
    assert "98.00%" in capsys.readouterr().out
    assert chart(result) == (
        "  recall over 10 seconds  ▁█  90.0% to 100.0%\n  K                       ▅█  0 to 1 s"
    )
    text = conclusion(result)
    assert "Slackwater found 90.0% of the results in time (target 95%)" in text
    assert "processed 2.0 times as many rows" in text
    changed = result._replace(metrics=METRICS | {"target": 0.99})
    assert "(target 95%, then 99%)" in conclusion(changed)


def test_a_watch_leaves_other_queries_alone_and_knows_when_its_own_has_ended():
    watch = QueryWatch("mine")
    watched(watch, (10, 5, {"name": "other"}))
    assert (watch.lines, watch.ended.is_set()) == ([], True)
    assert cells(watch) == ["mine", "0", "0", "–", "–", "–", "–", "–"]
    watched(watch, (10, 5, {"metrics": METRICS}), (0, 7, {}))
    assert cells(watch) == ["mine", "2", "10", "2,000", "90", "7", "1 s", "92.0%"]
    assert target_text(watch) == "mine: recall 92.0% so far, the target is 95%"


@pytest.mark.full
def test_quick_bench_has_every_figure_and_promises_nothing():
    sheet = figures(run("bench", "core", "--quick", "--json"))
    assert sheet["command"] == "bench core --quick"
    assert [line["name"] for line in sheet["lines"]] == CORE
    differences = [line for line in sheet["lines"] if line["name"].endswith(": a window")]
    assert all(line["value"] > 0 for line in sheet["lines"] if line not in differences)
    assert all(math.isfinite(line["value"]) for line in differences)  # noise may win, in no time
    assert not any({"floor", "ceiling"} & set(line) for line in sheet["lines"])


def test_missed_floor_exits_with_1(monkeypatch):
    from slackwater.jobs.measurement import Measurement
    from slackwater_lab.benches import core as core_bench

    lines = [
        Measurement("fast", 9.0, "rows/s", floor=5.0),
        Measurement("slow", 3.0, "s", ceiling=2.0),
    ]
    case = core_bench.CoreBenchmark("one", lambda options: iter(lines))
    monkeypatch.setattr(core_bench, "CASES", (case,))
    result = run("bench", "core", "--json")
    assert result.exit_code == 1
    assert [line["ok"] for line in json.loads(result.stdout)["lines"]] == [True, False]
    assert "missed" in run("bench", "core").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["demo", "--embedded", "--seed", "-1"],
            "slackwater: seed must be a number not below 0, got -1",
        ),
        (["bench", "core", "--seed", "-1"], "slackwater: seed must be a number not below 0"),
        (["demo", "--seconds", "0"], "Invalid value for '--seconds'"),
        (["dashboard", "nothing.jsonl"], "slackwater: nothing.jsonl cannot be read: No such file"),
        (["nonsense"], "No such command"),
    ],
)
def test_bad_request_exits_with_2_and_says_why(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
