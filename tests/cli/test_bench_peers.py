"""`slackwater bench peers` with what every developer has: Spark, DuckDB, Polars."""

import json

import pytest

from recorded import slackwater
from slackwater_lab.peers import bench
from slackwater_lab.peers.job import FOLDER

ENGINES = ["slackwater", "spark native", "duckdb", "polars"]


@pytest.mark.full
@pytest.mark.spark
def test_quick_peers_find_the_same_and_the_missing_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "nothing"))
    monkeypatch.setattr(bench, "CASES", bench.CASES[:1])  # the others start six more Sparks
    result = slackwater("bench", "peers", "--quick", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    for peer in ("flink", "pathway"):
        assert f"{peer}: skipped, not installed; try: make peers" in result.stderr
    sheet = json.loads(result.stdout)
    assert sheet["command"] == "bench peers --quick"
    lines = {line["name"]: line for line in sheet["lines"]}
    names = [f"two-way: {engine}" for engine in ENGINES]
    assert list(lines) == [own for name in names for own in (name, f"{name}, results found")]
    assert all(lines[name]["value"] > 0 for name in names)
    assert {lines[f"{name}, results found"]["value"] for name in names} == {1.0}
    assert not any({"floor", "ceiling"} & set(line) for line in lines.values())
    assert (tmp_path / "peers.png").stat().st_size > 10_000
