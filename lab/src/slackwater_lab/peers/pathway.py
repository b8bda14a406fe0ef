"""Pathway's interval join: a script for the Python of Pathway; see `job`.

Rows come some at a time, as from a connector that commits. Behind the cutoff rows are ignored and
forgotten; results are not delayed, so nothing is paid for waiting.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import pathway as pw
from pathway.internals.parse_graph import G


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The seconds of each run, and the results of the last."""
    counts: list[int] = []
    seconds = []
    for folder in job["runs"]:
        G.clear()
        joined = _joined(job, folder)
        if job["count"]:
            _count(joined, counts)
        else:
            pw.io.null.write(joined)
        seconds.append(_seconds())
    if not job["count"]:
        G.clear()
        _count(_joined(job, job["runs"][-1]), counts)
        _seconds()
    return {"seconds": seconds, "results": counts[-1]}


def _joined(job: dict[str, Any], folder: str) -> Any:
    """A chain of interval joins."""
    window = job["window_ms"]
    near = pw.temporal.interval(-window, window)
    behavior = pw.temporal.common_behavior(delay=None, cutoff=job["slack_ms"], keep_results=True)
    tables = [_table(Path(folder) / name, job["rows_per_commit"]) for name in job["streams"]]
    names = {f"{name}_{c}": c for name in job["streams"] for c in ("ts", "v")}
    first, *others = job["streams"]
    joined = tables[0].select(pw.this.k, **{f"{first}_{c}": pw.this[c] for c in ("ts", "v")})
    for n, (other, table) in enumerate(zip(others, tables[1:], strict=True)):
        before = [name for name in names if name.split("_")[0] in (first, *others[:n])]
        joined = joined.interval_join(
            table, joined[f"{first}_ts"], table.ts, near, joined.k == table.k, behavior=behavior
        ).select(
            pw.left.k,
            **{name: pw.left[name] for name in before},
            **{f"{other}_{c}": pw.right[c] for c in ("ts", "v")},
        )
        for s in others[:n]:
            apart = pw.this[f"{other}_ts"] - pw.this[f"{s}_ts"]
            joined = joined.filter((apart <= window) & (apart >= -window))
    return joined


def _table(folder: Path, rows_per_commit: int) -> Any:
    frame = pd.concat(
        [pd.read_csv(file, names=["ts", "k", "v"]) for file in sorted(folder.iterdir())],
        ignore_index=True,
    )
    frame["__time__"] = 2 * (frame.index // rows_per_commit) + 2  # commits have even numbers
    return pw.debug.table_from_pandas(frame)


def _count(joined: Any, counts: list[int]) -> None:
    def keep(key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if is_addition:
            counts.append(row["n"])

    pw.io.subscribe(joined.reduce(n=pw.reducers.count()), keep)


def _seconds() -> float:
    start = perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return perf_counter() - start


if __name__ == "__main__":
    measured = measure(json.loads(sys.argv[1]))
    sys.stdout.write(json.dumps(measured) + "\n")
