"""The table of metrics is the one place that names them; what is made of it is complete."""

import ast
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import metrics_page
import slackwater as sw
from slackwater.engine.replay_lines import lines
from slackwater.metrics.progress import BatchLine, MetricsView, is_balanced
from slackwater.metrics.schema import (
    CHARTS,
    DRAWINGS,
    FATES,
    METRICS,
    QUERY,
    STREAM,
    TOTALS,
    Each,
    Share,
    of_scope,
)

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "slackwater"
PAGE = SOURCE / "dashboard" / "page"
SCHEMA = SOURCE / "metrics" / "schema.py"

# Names that also mean something else: options of queries and goals, columns of tables, keys of a
# saved state. They may be in the code, but not where metrics are written or read.
ALSO_WORDS = {
    "aggregates", "backlog", "behind", "buffered", "delays", "harvest", "latency", "lost",
    "max_delay", "now", "produced", "recall", "rejected", "shards", "shed", "slack", "state",
    "target", "throttle", "unit",
}  # fmt: skip
METRIC_FILES = [
    *(SOURCE / "metrics").glob("*.py"),
    SOURCE / "engine" / "chart_part.py",
    SOURCE / "spark" / "metrics.py",
    SOURCE / "spark" / "listener.py",
    SOURCE / "dashboard" / "history.py",
]
OTHER_MEANINGS = {  # (file, name): what it means there
    ("metrics.py", "state"): "the unit",
    ("prometheus.py", "state"): "the unit, and the label",
    ("prometheus.py", "unit"): "that of the query's times",
    ("progress.py", "unit"): "that of the query's times",
}


def names_in(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    names = {metric.name for metric in METRICS if metric.scope != "line"}
    return {s for s in strings if isinstance(s, str)} & names


def test_one_module_names_each_metric():
    found = {
        str(file.relative_to(SOURCE)): names_in(file) - ALSO_WORDS
        for file in SOURCE.rglob("*.py")
        if file != SCHEMA
    }
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize("file", METRIC_FILES, ids=lambda file: file.name)
def test_metrics_are_written_and_read_by_the_table(file):
    if file != SCHEMA:
        assert {n for n in names_in(file) if (file.name, n) not in OTHER_MEANINGS} == set()


def test_names_are_unique_and_helps_are_sentences():
    assert len({(metric.scope, metric.name) for metric in METRICS}) == len(METRICS)
    known = [metric.prometheus for metric in METRICS if metric.prometheus is not None]
    assert len(set(known)) == len(known)
    for metric in METRICS:
        assert metric.help.endswith(".") and "\n" not in metric.help, metric.name
        if metric.prometheus is not None:
            in_seconds = metric.unit in ("time", "times", "milliseconds", "histogram")
            assert metric.prometheus.endswith("_seconds") == in_seconds, metric.name
            assert metric.prometheus.endswith("_ratio") == (metric.unit == "share"), metric.name


def test_what_follows_from_other_metrics_names_metrics():
    names = {metric.name for metric in QUERY}
    for metric in QUERY:
        if isinstance(metric.fold, Share):
            assert {metric.fold.part, *metric.fold.of} <= names
        if isinstance(metric.fold, Each):
            assert metric.fold.name in names


def batches(query):
    rng = np.random.default_rng(1)
    ts = np.arange(500) * 4
    table = pa.table({"ts": ts, "k": rng.integers(0, 5, 500), "arrival": ts + 20})
    found = lines(query, dict.fromkeys(query.names, table), "arrival", "500 ms")
    return [line for line in found if line["event"] == "batch"]


A, B = (sw.Stream(name, "ts", "500 ms") for name in "ab")
AGGREGATE = sw.aggregate(
    sw.Stream("a", "ts"), sw.Stream("b", "ts"), on="k", select={"n": sw.count()},
    window=sw.Tumbling("1 s"), deadline="1 s",
)  # fmt: skip
WINDOW = sw.window(sw.Stream("a", "ts"), window=sw.Sliding("1 s"), select={"n": sw.count()})
QUERIES = {"join": sw.join(A, B, on="k", goal=sw.Recall(0.9)), "window": WINDOW, "agg": AGGREGATE}


@pytest.mark.parametrize("kind", QUERIES)
def test_lines_have_exactly_the_metrics_of_the_table(kind):
    for line in batches(QUERIES[kind]):
        assert {metric.name for metric in of_scope("line")} <= set(line)
        assert set(line) == {"event", *BatchLine._fields}
        metrics = line["metrics"]
        own = {metric.name for metric in (*TOTALS, *QUERY)}
        assert set(metrics) == own | {"streams", "charts", "commands"}
        for stream in metrics["streams"].values():
            assert set(stream) == {metric.name for metric in STREAM}
        assert set(metrics["charts"]) == {metric.name for metric in CHARTS}
        assert is_balanced(metrics)


def test_fates_are_the_metrics_behind_arrivals():
    names = [metric.name for metric in STREAM]
    assert [fate.name for fate in FATES] == names[1:7]


def test_a_view_knows_the_names_of_the_table():
    view = MetricsView(batches(QUERIES["join"])[-1]["metrics"])
    for metric in (*TOTALS, *QUERY):
        getattr(view, metric.name)
    for metric in CHARTS:
        getattr(view.charts, metric.name)
    assert view.arrivals == 1_000
    assert MetricsView(None).charts.recall is None
    with pytest.raises(AttributeError, match="there is no metric 'late'"):
        view.late  # noqa: B018


def test_the_page_of_the_dashboard_reads_metrics_of_the_table():
    scripts = "\n".join(file.read_text(encoding="utf-8") for file in PAGE.glob("*.js"))
    read = re.findall(r"\b(?:column|last|at|scaled|rate)\([`']([\w.${}]+)[`']", scripts)
    paths = {re.sub(r"\$\{\w+\}", "*", path) for path in read}
    paths -= {"time", "streams.*.*"}  # of the timestamp; and those of FATES
    assert len(paths) > 20
    totals = {metric.name for metric in TOTALS}
    assert paths <= {metric.path for metric in METRICS} | totals
    [fates] = re.findall(r"const FATES = \[\n(.*?)\n\];", scripts, re.DOTALL)
    assert re.findall(r"\['(\w+)'", fates) == [fate.name for fate in FATES]
    [drawn] = re.findall(r"const DRAWN = \[(.*)\];", scripts)
    assert re.findall(r"'(\w+)'", drawn) == [metric.name for metric in DRAWINGS]


def test_the_page_in_the_docs_is_current():
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.page(), (
        "docs/metrics.md is old: run .venv/bin/python tools/metrics_page.py"
    )


def test_every_metric_is_on_the_page_in_the_docs():
    page = metrics_page.page()
    for metric in METRICS:
        assert f"| `{metric.name}` |" in page
        assert metric.prometheus is None or f"| `{metric.prometheus}` |" in page
        assert metric.help in page
