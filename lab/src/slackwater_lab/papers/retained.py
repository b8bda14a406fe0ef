"""What is retained when load is shed: by cost of results, by imposed fractions, by events found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from slackwater.query.goals import NoSlack
from slackwater.query.join import join
from slackwater.query.shedding import Harvest, RandomDrop, SheddingOption
from slackwater.query.stream import Stream
from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.papers.overload import Workload, query_of, run

Rows = list[tuple[tuple[str, ...], list[Cell]]]

_PLENTY = 1e15
_COSTS = (0.0, 10.0, 30.0, 100.0)  # comparisons per result
_ROUNDS = 6
_SHED = (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def result_cost(
    budget: float,
    ours: Callable[..., Harvest],
    printed: Callable[..., Harvest],
    seeds: Sequence[int],
    quick: bool,
) -> Table:
    """Charge results as well: the budget for comparisons is what they leave."""
    work = Workload(rates=(500.0,))
    tables = [(work.brief() if quick else work).tables(seed) for seed in seeds[:1]]

    def output(way: Callable[[float], SheddingOption], cost: float) -> float:
        """The output at which results and comparisons together are the budget."""
        low, high = 0.02, 1.0
        made = 0.0
        for _ in range(_ROUNDS if cost else 1):
            share = 1.0 if not cost else (low + high) / 2
            query = query_of(3, way(share * budget))
            made = float(np.mean([run(query, table).output() for table in tables]))
            if share * budget + cost * made > budget:
                high = share
            else:
                low = share
        return made

    ways: dict[str, Callable[[float], SheddingOption]] = {
        "ours": lambda b: ours(budget=b),
        "printed": lambda b: printed(budget=b),
        "RandomDrop": lambda b: RandomDrop(budget=b),
    }
    rows: Rows = []
    for cost in _COSTS[:2] if quick else _COSTS:
        made = [output(way, cost) for way in ways.values()]
        gains: list[Cell] = [100.0 * (one / made[2] - 1.0) for one in made[:2]]
        rows.append(((f"{cost:g}",), [*made, *gains, "150 %"]))
    columns = (
        *(Column(name, "/s") for name in ways), Column("ours gains", "%"),
        Column("printed gains", "%"), Column("paper"),
    )  # fmt: skip
    title = "Cost of results, in comparisons (500 events per second, nonaligned)"
    return Table(title, ("a result costs",), columns, rows)


def imposed(seeds: Sequence[int], quick: bool) -> Table:
    """Fig. 17: two joins with like correlations, the first with a larger window."""
    rows: Rows = []
    windows = {"first, 40 seconds": "40 seconds", "second, 20 seconds": "20 seconds"}
    work = Workload(m=2, rates=(100.0,), seconds=30 if quick else 120)
    tables = [work.tables(seed) for seed in seeds]
    fractions = _SHED[::5] if quick else _SHED
    for name, window in windows.items():
        cells: list[Cell] = []
        whole = [run(query_of(2, "off", window), table).output(40) for table in tables]
        for shed in fractions:
            way = Harvest(budget=_PLENTY, index="none", fraction=max(1.0 - shed, 0.01))
            found = [run(query_of(2, way, window), table).output(40) for table in tables]
            cells.append(float(np.mean(np.divide(found, np.maximum(whole, 1e-9)))))
        rows.append(((name,), cells))
    columns = tuple(Column(f"{100 * shed:g} % shed", "share") for shed in fractions)
    return Table("Output retained by the load that is shed (Fig. 17)", ("join",), columns, rows)


# ---- events of two video streams

_DIM = 16  # of features
_STORIES = 60
_SHOTS = 3  # of a story, in each stream
_SECONDS = 600
_NEAR = 0.9


def video(seed: int) -> dict[str, pa.Table]:
    """Two annotated streams: shots of common stories within seconds, and shots of anything else."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(_STORIES, _DIM))
    at = np.sort(rng.uniform(20, _SECONDS - 20, _STORIES))
    tables = {}
    for name in ("cnn", "abc"):
        story = np.repeat(np.arange(_STORIES), _SHOTS)
        shots = centre[story] + 0.15 * rng.normal(size=(len(story), _DIM))
        other = rng.normal(size=(4 * _SECONDS, _DIM))
        time = np.concatenate([
            at[story] + rng.uniform(0, 10, len(story)), rng.uniform(0, _SECONDS, len(other))
        ])  # fmt: skip
        which = np.concatenate([story, np.full(len(other), -1)])
        order = np.argsort(time, kind="stable")
        features = np.concatenate([shots, other])[order]
        tables[name] = pa.table({
            "ts": (1000 * time[order]).astype(np.int64), "story": which[order],
            "w": pa.array(list(features), pa.list_(pa.float64())),
        })  # fmt: skip
    return tables


def stories_found(tables: dict[str, pa.Table], shed: SheddingOption) -> set[int]:
    """The stories of which some pair of shots is a result."""
    streams = (Stream(name, "ts", "100 seconds", vectors={"w": _DIM}) for name in tables)
    query = join(*streams, where=f"cosine(cnn.w, abc.w) > {_NEAR}", goal=NoSlack(), shed=shed)
    found = query.replay(tables).results
    pairs = zip(found["cnn_story"].to_pylist(), found["abc_story"].to_pylist(), strict=True)
    return {a for a, b in pairs if a == b and a >= 0}


def missed(seeds: Sequence[int], quick: bool) -> Table:
    """Section VII, video joins: events of the ground truth that are not in the output."""
    rows: Rows = []
    for fraction in (0.2,) if quick else (0.5, 0.3, 0.2, 0.1):
        cells: list[Cell] = []
        for way in (Harvest, RandomDrop):
            shares = []
            for seed in seeds:
                tables = video(seed)
                true = stories_found(tables, "off")
                shed = way(budget=_PLENTY, fraction=fraction)
                shares.append(100.0 * (1.0 - len(stories_found(tables, shed) & true) / len(true)))
            cells.append(float(np.mean(shares)))
        rows.append(((f"{fraction:g}",), [*cells, "0 and 15 %"]))
    columns = (Column("harvest misses", "%"), Column("RandomDrop misses", "%"), Column("paper"))
    title = "Correlated events missed (VII, video join: cosine similarity, aligned streams)"
    return Table(title, ("share of the work",), columns, rows)
