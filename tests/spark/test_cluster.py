"""A job on a standalone cluster gives every result once, whichever of its processes die."""

import os
import runpy
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

import profiles
from patience import PROGRAM_S
from spark.standalone import Standalone, executor_of, kill, wait_until
from spark.streams import all_rows, pair, replayed, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster.py"
FILES = 8  # with the tenth micro-batch Spark would rewrite the log of its sink

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        profiles.PROFILE != "trust", reason="`make trust` starts a cluster: some minutes"
    ),
]


def written(folder):
    """Two streams in files, cut at the same arrivals."""
    streams = pair(rows=12_000)
    last = max(pc.max(table["arrival"]).as_py() for table in streams.values())
    edges = np.linspace(0, last + 1, FILES + 1).astype(int).tolist()
    for name, table in streams.items():
        cuts = np.searchsorted(table["arrival"].to_numpy(), edges)
        parts = [table.slice(a, b - a) for a, b in zip(cuts, cuts[1:], strict=False)]
        write(folder / name, parts)
    return streams


def test_every_result_comes_once_though_driver_executor_and_worker_die(tmp_path):
    streams = written(tmp_path / "data")
    folders = [tmp_path / name for name in ("data", "state", "out")]
    commits = tmp_path / "state" / "commits"
    with Standalone(tmp_path) as cluster:
        compiled = cluster.kernels()

        def go_on_to(batch):
            done = commits / str(batch)
            wait_until(lambda: done.exists() or job.poll() is not None, f"batch {batch}")
            assert job.poll() is None, cluster.log(name)[-3000:]

        name = "first"
        job = cluster.submit(name, EXAMPLE, *folders)
        go_on_to(1)
        kill(job)

        name = "second"
        job = cluster.submit(name, EXAMPLE, *folders)
        go_on_to(3)
        os.kill(executor_of(cluster.workers[0]), signal.SIGKILL)
        go_on_to(5)
        os.kill(cluster.workers[1].pid, signal.SIGKILL)
        assert job.wait(PROGRAM_S) == 0, cluster.log(name)[-3000:]
        assert f"batch {FILES - 1}: 24,000 rows" in cluster.log(name)
        assert cluster.kernels() == compiled  # found by all executors, wherever the zip was
    wait_until(lambda: not cluster.left(), "everything to end")

    query = runpy.run_path(str(EXAMPLE))["QUERY"]
    assert without_late(all_rows(tmp_path)) == without_late(replayed(query, streams))


def without_late(rows):
    """Two shards learn each for itself how long to wait, so what is late may differ."""
    return Counter(row[:-1] for row in rows.elements())
