"""The parts of `slackwater bench peers` that need no other engine than DuckDB and Polars."""

import ast
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from slackwater.jobs.measurement import Measurement
from slackwater_lab.benches.spark import SparkOptions
from slackwater_lab.peers import job as peer_job
from slackwater_lab.peers.bench import skipped
from slackwater_lab.peers.job import Job, PeerError, run
from slackwater_lab.peers.load import Load

SCRIPTS = Path(peer_job.__file__).parent


def load(tmp_path, streams="ab", window_ms=300):
    data = SparkOptions(1, True, tmp_path).files("data", streams, 400, 100, 100, 3)
    return Load("data", data, tuple(streams), window_ms, 1_000, count=True)


def true_count(data, rows, window_ms):
    """By the definition, row by row."""
    found = [()]
    for stream in data.streams:
        files = sorted((data.data / stream).iterdir())
        own = [r for file in files for r in pq.read_table(file).to_pylist()][:rows]
        found = [
            (*some, row)
            for some in found
            for row in own
            if all(
                r["k"] == row["k"]
                and abs((r["ts"] - row["ts"]).total_seconds()) * 1000 <= window_ms + 1e-6
                for r in some
            )
        ]
    return len(found)


@pytest.mark.parametrize("streams", ["ab", "abc"])
@pytest.mark.parametrize("peer", ["duckdb", "polars"])
def test_batch_engines_count_what_the_definition_says(peer, streams, tmp_path):
    data = load(tmp_path, streams)
    told = run(data.job(peer, (50, 120)))
    assert told.results == true_count(data, 120, data.window_ms) > 0
    assert len(told.seconds) == 2


def test_rows_are_dealt_out_in_order_and_none_is_lost(tmp_path):
    data = load(tmp_path)
    rows = {}
    for parts in (1, 2):
        files = sorted((data.first(250, "csv", parts) / "a").iterdir())
        rows[parts] = [file.read_text().splitlines() for file in files]
    assert rows[2] == [rows[1][0][0::2], rows[1][0][1::2]]
    first = pq.read_table(data.data / "a" / "00000.parquet").slice(0, 1).to_pylist()[0]
    expected = [str(round(first["ts"].timestamp() * 1000)), str(first["k"])]
    assert rows[1][0][0].split(",")[:2] == expected


def test_what_is_not_installed_is_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv(peer_job.FOLDER, str(tmp_path))
    assert skipped() == [
        "flink: skipped, not installed; try: make peers",
        "pathway: skipped, not installed; try: make peers",
    ]


def test_a_run_that_fails_tells_why(tmp_path):
    with pytest.raises(PeerError, match=r"the run of duckdb failed:\n(.|\n)*No files found"):
        run(Job("duckdb", (str(tmp_path),), ("a", "b"), 1, 1))


@pytest.mark.parametrize("name", ["flink", "pathway", "batch"])
def test_scripts_for_other_environments_import_nothing_of_ours(name):
    tree = ast.parse((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert imported
    assert not [module for module in imported if module.startswith("slackwater")]


def test_the_chart_shows_what_is_there():
    from slackwater_lab.peers.chart import draw

    lines = [
        Measurement("two-way: slackwater", 1000.0, "rows/s"),
        Measurement("two-way: flink", 10.0, "rows/s"),
        Measurement("three-way: slackwater", 2000.0, "rows/s"),
        Measurement("three-way: flink", 20.0, "rows/s"),
        Measurement("recall: delay that is set", 2200, "ms"),
        Measurement("recall: flink", 0.5, "share"),
        Measurement("recall: slackwater, 0.95 asked for", 0.97, "share"),
        Measurement("recall: mean delay it chose", 4100, "ms"),
    ]
    two, three, recall = draw(lines).axes
    shown = [[text.get_text() for text in ax.texts] for ax in (two, three, recall)]
    assert shown == [["1,000", "10"], ["2,000", "20"], ["50.0%", "97.0%"]]
    names = [label.get_text() for label in two.get_yticklabels()]
    assert names == ["Slackwater on Spark", "Flink SQL interval join"]
    assert "later than the delay of 2.2 s" in recall.get_title(loc="left")
    assert "it chose 4.1 s" in recall.get_yticklabels()[1].get_text()
