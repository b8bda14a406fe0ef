"""The examples run, finish, print what they promise, and stay short."""

import os
import runpy
import sys
from pathlib import Path

import pytest

from marks import full_but
from spark.streams import in_parts, pair, write

pytestmark = pytest.mark.skipif(
    "SLACKWATER_CONNECT" in os.environ, reason="examples take the classic session that runs"
)

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "cluster": ["batch 0: 1,000 rows,", "batch 1: 2,000 rows,"],
    "corrections": ["batch 3:", "rows were taken back", "2,000 rows; 0 differ from the exact join"],
    "three_streams_outer": [
        "order 1: paid 5000, shipped None",
        "order 2: paid 12000, shipped 30000",
        "order 5: paid None, shipped 40000",
    ],
    "change_the_slack": ["1,200 rows: K  100 ms", "4,800 rows: K 3000 ms", "% found"],
    "quotes_and_trades": ["09:30:04 ACME 10.1 -> 10.0  (late)", "rejected from quotes: null key"],
    "similar_news": ["18,000 articles, 500 stories", "by mistake: 0", "lost because of late"],
    "three_sensors": ["exact, from the files:", "streamed, waiting 1 s:", "lost by late"],
}


def test_every_example_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", full_but(("quotes_and_trades",), PRINTED))
def test_an_example_runs_to_its_end(name, spark, capsys, monkeypatch, tmp_path):
    path = EXAMPLES / f"{name}.py"
    for stream, table in pair(rows=1_000).items():  # for the one that has its data in files
        write(tmp_path / "data" / stream, in_parts(table, 2))
    folders = [str(tmp_path / folder) for folder in ("data", "state", "out")]
    monkeypatch.setattr(sys, "argv", [str(path), *folders])
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    for text in PRINTED[name]:
        assert text in printed
