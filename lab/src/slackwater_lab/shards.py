"""Whether shards that share K keep what one shard keeps, however rows are cut into micro-batches.

K of several shards is chosen once for each micro-batch, from what all learnt before it. So unlike
that of one shard it depends on the cuts; what the goal promises must not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.report import columns, recall_series
from slackwater.kernels.records import I64
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater_lab.datasets import get
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.in_process import Shards, micro_batches

_DATA = ("moving-steady", "moving-tide-2", "moving-regimes", "moving-keyed")
_GAMMAS = (0.9, 0.95, 0.99)
_MINUTES, _QUICK_MINUTES = 10.0, 0.75
_SEEDS = 2
_SHARDS = 4
_CUTS: dict[str, int | None] = {"1 s": 1_000, "10 s": 10_000, "60 s": 60_000, "one": None}
_ONE_SHARD = "one shard"
_WITHIN = 0.02  # of Φ of one shard, pooled over all data
_COLUMNS = {"number": "int", "recalls": "list[float]", "slack": "float", "late": "int"}


@dataclass(frozen=True)
class _Run:
    """One goal over one dataset, on one shard or on several with these micro-batches."""

    data: str
    seed: int
    minutes: float
    goal: Recall
    cut: str

    def measure(self, folder: Path) -> dict[str, Any]:
        """γ(P) each second behind the first P, mean K behind micro-batches, and broken promises."""
        query, tables, true = _read(self.data, self.seed, self.minutes, folder)
        shards = Shards(
            replace(query, goal=self.goal), tables, 1 if self.cut == _ONE_SHARD else _SHARDS
        )
        made, slacks, too_early = [], [], 0
        length = 1_000 if self.cut == _ONE_SHARD else _CUTS[self.cut]
        for rows in _and_the_end(tables, length):
            complete = max(engine.reorder.sync_time for engine in shards.engines)
            outputs = shards.run(rows, at_end=not any(map(len, rows)))
            new = [part for output in outputs for part in output.made]
            too_early += sum(int((part.n * (part.ts < complete)).sum()) for part in new)
            made += new
            slacks.append(max(engine.reorder.slack for engine in shards.engines))
        ts, n, _ = columns(made)
        order = np.argsort(ts, kind="stable")
        begin, end = (f(int(f(t["ts"].to_numpy())) for t in tables) for f in (min, max))
        over, every = to_units(self.goal.over, "ms"), 1_000
        series = recall_series(ts[order], n[order], *true, begin + over, end, over, every)
        return {
            "recalls": series["recall"].to_pylist(),
            "slack": float(np.mean(slacks)),
            "late": too_early,
        }


def _and_the_end(tables: list[pa.Table], length: int | None) -> Iterator[list[pa.Table]]:
    yield from (rows for rows in micro_batches(tables, length) if any(map(len, rows)))
    yield [table.slice(0, 0) for table in tables]


@lru_cache(maxsize=2)
def _read(
    name: str, seed: int, minutes: float, folder: Path
) -> tuple[JoinQuery, list[pa.Table], tuple[I64, I64]]:
    found = get(name, seed, minutes, folder)
    return found.dataset.query, list(found.tables().values()), found.truth()


def _shards(setting: Setting) -> Findings:
    """Φ of one shard, and of several with short and long micro-batches."""
    minutes = _QUICK_MINUTES if setting.quick else _MINUTES
    gammas, cuts = setting.some(_GAMMAS), [_ONE_SHARD, *_CUTS]
    runs = [
        _Run(data, seed, minutes, setting.recall(gamma), cut)
        for data in setting.some(_DATA)
        for seed in setting.seeds(_SEEDS)
        for gamma in gammas
        for cut in cuts
    ]
    folder = setting.sweep.folder
    rows = setting.sweep.task_each(runs, lambda run: run.measure(folder), _COLUMNS, "runs")
    found = {runs[row["number"]]: row for row in rows}
    pooled: list[tuple[tuple[str, ...], list[Cell]]] = []
    each: list[tuple[tuple[str, ...], list[Cell]]] = []
    for gamma in gammas:
        own = {
            cut: [run for run in runs if (run.goal.target, run.cut) == (gamma, cut)] for cut in cuts
        }
        phis = {cut: _phi([found[run] for run in own[cut]], gamma) for cut in cuts}
        for cut in cuts:
            slack = float(np.mean([found[run]["slack"] for run in own[cut]]))
            early = float(sum(found[run]["late"] for run in own[cut]))
            aim = None if cut == _ONE_SHARD else phis[_ONE_SHARD] - _WITHIN
            known = None if cut == "one" else slack  # at the end of all nothing is left of it
            pooled.append(((f"{gamma:g}", cut), [phis[cut], aim, known, early]))
        for data in setting.some(_DATA):
            cells: list[Cell] = [
                _phi([found[run] for run in own[cut] if run.data == data], gamma) for cut in cuts
            ]
            each.append(((data.removeprefix("moving-"), f"{gamma:g}"), cells))
    return Findings([_pooled_table(pooled, setting), _each_table(each)], [_words(minutes)])


def _phi(rows: list[dict[str, Any]], gamma: float) -> float:
    recalls = np.concatenate([row["recalls"] for row in rows])
    return float(np.mean(recalls >= gamma)) if len(recalls) else 1.0


def _pooled_table(rows: list[tuple[tuple[str, ...], list[Cell]]], setting: Setting) -> Table:
    columns = (
        Column("Φ(Γ)", "share", floor=None if setting.quick else "aim"),
        Column("aim", "share"),
        Column("K behind micro-batches", "ms"),
        Column("below what was complete", "results", ceiling=0.0),
    )
    return Table("All data together", ("Γ", "micro-batches"), columns, rows)


def _each_table(rows: list[tuple[tuple[str, ...], list[Cell]]]) -> Table:
    columns = tuple(Column(f"Φ(Γ), {cut}", "share") for cut in (_ONE_SHARD, *_CUTS))
    return Table("Each family", ("data", "Γ"), columns, rows)


def _words(minutes: float) -> str:
    return (
        f"{_SHARDS} shards with one K, {minutes:g} minutes of each family for {_SEEDS} seeds, cut "
        "into micro-batches by arrival. They run in one process with what Spark runs on them: the "
        "pack stage, the shards and their reports. One shard gives the same for any cuts. A result "
        "in time is below what was complete if its time is below S behind an earlier micro-batch; "
        "there must be none."
    )


EXPERIMENTS = (
    Experiment(
        "shards", "ours", "several shards with one K against one, for all micro-batches", _shards
    ),
)
