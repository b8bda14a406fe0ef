"""A part of the suite on Spark Connect; `make trust` runs all of it there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SMOKE = (
    "test_batch.py::test_with_arrival_and_one_shard_the_result_is_that_of_the_engine",
    "test_stream.py::test_commands_reach_every_shard",
    "test_errors.py::test_the_session_is_checked",
)


@pytest.mark.full
@pytest.mark.skipif("SLACKWATER_CONNECT" in os.environ, reason="this is Spark Connect already")
def test_spark_connect_gives_the_same():
    chosen = [str(HERE / name) for name in SMOKE]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        env=os.environ | {"SLACKWATER_CONNECT": "1"},
        cwd=HERE.parent.parent,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(SMOKE)} passed" in done.stdout
