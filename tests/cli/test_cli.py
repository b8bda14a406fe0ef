import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from slackwater.cli import app

GOALS = ["NoSlack", "Slack 100 ms", "Slack 1 s", "MaxSlack"]
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


@pytest.mark.parametrize("command", [[], ["demo"], ["bench"], ["bench", "core"]])
def test_help_explains_each_command(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_help_needs_neither_the_engine_nor_numba():
    code = (
        "import sys; from slackwater.cli import app; "
        "sys.exit(bool({'numba', 'numpy', 'pyarrow', 'slackwater.engine'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_demo_prints_one_figure_per_goal_and_measure():
    sheet = figures(run("demo", "--seconds", "3", "--seed", "7", "--json"))
    assert (sheet["command"], sheet["seed"]) == ("demo", 7)
    names = [line["name"] for line in sheet["lines"]]
    assert names == [f"{goal}: {measure}" for goal in GOALS for measure in MEASURES]
    values = {line["name"]: line["value"] for line in sheet["lines"]}
    assert values["NoSlack: recall"] < values["Slack 1 s: recall"] <= 1
    assert values["NoSlack: results lost"] > values["Slack 1 s: results lost"] >= 0
    assert values["Slack 100 ms: average K"] == 100


def test_demo_repeats_itself():
    first, second = (run("demo", "--seconds", "2", "--json").stdout for _ in range(2))
    assert first == second


def test_demo_explains_its_table():
    result = run("demo", "--seconds", "3")
    assert result.exit_code == 0
    assert "some positions arrive" in result.stdout
    assert "What to see: " in result.stdout
    for goal in GOALS:
        assert goal in result.stdout


def test_quick_bench_has_every_figure_and_promises_nothing():
    sheet = figures(run("bench", "core", "--quick", "--json"))
    assert sheet["command"] == "bench core --quick"
    assert [line["name"] for line in sheet["lines"]] == CORE
    assert all(line["value"] > 0 for line in sheet["lines"])
    assert not any({"floor", "ceiling"} & set(line) for line in sheet["lines"])


def test_missed_floor_exits_with_1(monkeypatch):
    from slackwater.lab import core_bench
    from slackwater.lab.figures import Line

    lines = [Line("fast", 9.0, "rows/s", floor=5.0), Line("slow", 3.0, "s", ceiling=2.0)]
    case = core_bench.Case("one", lambda setting: iter(lines))
    monkeypatch.setattr(core_bench, "CASES", (case,))
    result = run("bench", "core", "--json")
    assert result.exit_code == 1
    assert [line["ok"] for line in json.loads(result.stdout)["lines"]] == [True, False]
    assert "missed" in run("bench", "core").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--seed", "-1"], "slackwater: seed must be a number not below 0, got -1"),
        (["bench", "core", "--seed", "-1"], "slackwater: seed must be a number not below 0"),
        (["demo", "--seconds", "0"], "Invalid value for '--seconds'"),
        (["nonsense"], "No such command"),
    ],
)
def test_bad_request_exits_with_2_and_says_why(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
