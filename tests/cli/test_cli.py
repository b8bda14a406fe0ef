import json
import math
import subprocess
import sys

import duckdb
import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from slackwater.cli import app
from slackwater.cli.demo import chart, conclusion, table
from slackwater.cli.screen import cells, target_text
from slackwater.jobs.demo import IN_TIME_S, Scale, streams
from slackwater.jobs.demo_run import Act, DemoResult, Side
from slackwater.jobs.run import summary
from slackwater.jobs.watch import QueryWatch
from slackwater.metrics.schema import TOTALS

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
    "two-way, pairs at once",
    "pairs at once: time",
    "three-way, pairs at once",
    "three-way, pairs at once: time",
    "three-way, counted at once",
    "three-way, counted at once: time",
    "as-of",
    "as-of, Polars on sorted rows",
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


def side(name, *lines, pairs=100):
    """What one system did: micro-batches of 10 s, the second one with grown delays."""
    made = [(rows, ms, {"kept": 7, **more}) for rows, ms, more in lines]
    return Side(watched(QueryWatch(name, "ms", name), *made), true_pairs=pairs, change=1)


def test_demo_states_what_it_is_what_it_is_good_for_and_what_it_costs(capsys):
    ours = side("ours", (500, 9_000, {"pairs": 90}), (1_000, 100, {"pairs": 9, "kept": 30}))
    theirs = side("theirs", (500, 9_000, {"pairs": 90}), (1_000, 200, {"pairs": 6}))
    calm = {"alone_calm": 50, "wrong_calm": 1, "metrics": METRICS | {"slack": 400}}
    rough = {"alone_rough": 200, "wrong_rough": 2, "withdrawn_rough": 3, "metrics": METRICS}
    left = side("left", (10, 5, calm), (10, 5, rough))
    guess = side(
        "guess", (10, 5, {"alone_calm": 50}), (10, 5, {"alone_rough": 250, "wrong_rough": 50})
    )
    result = DemoResult(Act(ours, theirs), Act(left, guess))
    lines = {one.name: one.value for one in result.measurements()}
    assert (lines["Slackwater: pairs found"], lines["Spark: pairs found"]) == (0.99, 0.96)
    assert (lines["Slackwater: rows/s"], lines["Spark: rows/s"]) == (10_000, 5_000)
    assert (lines["Slackwater: wrong, rough"], lines["Spark: wrong, rough"]) == (0.01, 0.2)
    assert (lines["Slackwater: wait, calm"], lines["Slackwater: wait, rough"]) == (400, 1_000)
    assert "Spark: wait, calm" not in lines
    Console(width=80).print(table(result))
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    for row in (
        "99.0%         96.0%",
        "10,000         5,000",
        "30             7",
        "1.0%         20.0%",
    ):
        assert row in printed
    assert chart(result) == (
        "  wrong over time  Slackwater   ▂▁  0 to 2.0%\n"
        "  wrong over time  Spark's own  ▁█  0 to 20.0%"
    )
    assert conclusion(result).splitlines() == [
        "Slackwater joins streams on Spark: it gave out pairs in the same micro-batch as Spark's "
        "own join, 99.0% of them against 96.0%, at 2.0 times the rows a second.",
        "It is good where delays change: of the orders that it called unpaid, 1.0% were wrong when "
        "delays had grown (the goal allows 1%), and it took 3 of its rows back; with a fixed guess "
        "20.0% were wrong, and nothing said so.",
        "It costs time: these rows waited 1 s for late ones, where 400 ms had been enough before.",
    ]


def test_the_orders_of_the_demo_say_whether_they_are_paid():
    scale = Scale(200, seconds=60, file_s=2, changes=True)
    made = streams(scale, seed=3)
    orders, payments = made["orders"], made["payments"]
    rows = duckdb.sql(f"""
        SELECT count(*), count(p.id), count(*) FILTER (o.paid != (p.id IS NOT NULL))
        FROM orders o LEFT JOIN payments p
        ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + {1_000 * IN_TIME_S}
    """).fetchall()
    assert rows == [(12_000, payments.num_rows, 0)]
    for stream in (orders, payments):
        ts, arrival = stream["ts"].to_numpy(), stream["arrival"].to_numpy()
        assert (np.diff(arrival) >= 0).all()
        late, is_rough = arrival - ts, ts >= scale.change_ms
        assert 7 < late[is_rough].mean() / late[~is_rough].mean() < 13


def test_a_watch_leaves_other_queries_alone_and_knows_when_its_own_has_ended():
    watch = QueryWatch("mine")
    watched(watch, (10, 5, {"name": "other"}))
    assert (watch.lines, watch.ended.is_set()) == ([], True)
    assert cells(watch) == ["mine", "0", "0", "–", "–", "–", "–", "–"]
    watched(watch, (10, 5, {"metrics": METRICS}), (0, 7, {}))
    assert cells(watch) == ["mine", "2", "10", "2,000", "90", "7", "1 s", "92.0%"]
    assert target_text(watch) == "mine: recall 92.0% so far, the target is 95%"


def test_a_run_shows_why_rows_were_rejected():
    watch = QueryWatch("mine")
    counts = dict.fromkeys((m.name for m in TOTALS if m.unit != "reasons"), 0)
    rejected = {"bad_time": 3, "null_key": 0, "null_in_where": 2}
    watched(watch, (10, 5, {"metrics": METRICS | counts | {"rejected": rejected, "lost": 0}}))
    told = {line.name: line.value for line in summary(watch) if "rejected" in line.name}
    assert told == {"rejected rows": 5, "  rejected: bad time": 3, "  rejected: null in where": 2}


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
        (["demo", "--embedded", "--dashboard"], "slackwater: --dashboard is for the demonstration"),
        (["demo", "--embedded", "--keep", "x"], "slackwater: --keep is for the demonstration on"),
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
