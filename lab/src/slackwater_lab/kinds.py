"""Rows that need a decision: whether the requested quality is reached, and at what wait.

Rows without partner, as-of rows and pairs that are given out at once, on streams of the lab and on
recorded ones. Beside each goal: the best fixed wait, which is known only in hindsight, and what a
fixed watermark at a quantile of the delays would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from slackwater.engine.factory import join_engine
from slackwater.engine.replay import recorded, schemas_of
from slackwater.errors import DataError
from slackwater.jobs.advise_kinds import KindAdvisor
from slackwater.query.goals import Slack
from slackwater.query.join import JoinQuery, join
from slackwater.query.join_options import How
from slackwater.query.stream import Stream
from slackwater_lab.datasets import dataset, get
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.plots import Panel, panels
from slackwater_lab.recorded_streams import Recording, folder_of, recordings_in

HOLDS = 0.95  # of the periods: the bar, and what the best fixed wait reaches
# The wait is at most so many times the best fixed one, and so much more.
TIMES, MORE_MS = 1.25, 10.0
ENOUGH = 100  # measurements; with fewer, the share of periods says little
_SEEDS = 1
_LOOKS = 300
_RESULT = {
    "number": "int", "n": "int", "rows": "int", "reached": "float", "phi": "float",
    "wait": "float", "best": "float", "state": "float", "best_state": "float",
    "p95": "float", "phi_95": "float", "share_95": "float",
    "p99": "float", "phi_99": "float", "share_99": "float",
}  # fmt: skip

MOVING = ("steady", "tide-2", "walk", "regimes")
REAL = ("mbta-stop", "sysmon-files", "nezha-trace", "binance-spot", "covenant", "nezha", "mbta")
CHOSEN_ON = ("tide-2", "covenant", "nezha", "mbta")  # constants of the other ones are only tested


@dataclass(frozen=True)
class Quality:
    """A quality that is requested for one kind of rows."""

    name: str
    how: How
    part: str  # of `KindAdvisor`
    target: float


QUALITIES = (
    Quality("no match .95", "left", "alone", 0.95),
    Quality("no match .99", "left", "alone", 0.99),
    Quality("as-of .99", "asof", "rows", 0.99),
    Quality("eager .99", "inner", "pairs", 0.99),
)


@dataclass(frozen=True)
class Data:
    """Streams: made with a seed, or recorded ones in a folder."""

    name: str
    seed: int
    minutes: float
    folder: str
    is_recorded: bool

    def load(self) -> tuple[dict[str, Any], str, str, str]:
        """Return the tables, the key, the window, and the period."""
        if self.is_recorded:
            found = recordings_in(Path(self.folder))[self.name]
            return found.tables(Path(self.folder)), "key", found.window, found.over
        made = get(f"moving-{self.name}", self.seed, self.minutes, Path(self.folder))
        return made.tables(), "k", "200 ms", "1 minute"


def query_of(how: How, names: Sequence[str], key: str, window: str) -> JoinQuery:
    """The join of that kind; in eager emission, so that a wait is one for a decision alone."""
    is_asof = how == "asof"
    streams = [Stream(name, "ts", None if is_asof else window) for name in names]
    tolerance = window if is_asof else None
    return join(*streams, on=key, how=how, emit="eager", tolerance=tolerance)


@lru_cache(maxsize=1)  # the next one is often about the same rows
def _advisor(
    data: Data, how: How, over: str | None
) -> tuple[KindAdvisor, JoinQuery, dict[str, Any]]:
    tables, key, window, period = data.load()
    query = query_of(how, list(tables), key, window)
    return KindAdvisor(query, tables, "arrival", over=over or period), query, tables


def measured(data: Data, quality: Quality, over: str | None = None) -> dict[str, Any]:
    """Run the goal on the data, and find the fixed waits beside it."""
    advisor, query, tables = _advisor(data, quality.how, over)
    result, curve = advisor.result(quality.part, quality.target), advisor.parts[quality.part].curve
    found: dict[str, Any] = {
        "n": len(result.recalls),
        "rows": curve.n_true,
        "reached": result.recall,
        "phi": result.phi(quality.target),
        "wait": result.average_slack,
        "best": float(curve.smallest_slack(quality.target, HOLDS)),
        "state": 0.0,
        "best_state": 0.0,
    }
    if quality.part == "pairs":  # what is chosen there costs memory, not time
        fixed = Slack(round(found["best"]))
        wanted = advisor.goal(quality.part, quality.target)
        found["state"] = state_of(replace(query, goal=wanted), tables)
        found["best_state"] = state_of(replace(query, goal=fixed), tables)
    for q, wait in advisor.delay_quantiles.items():
        name = f"{100 * q:.0f}"
        found[f"p{name}"] = float(wait)
        found[f"phi_{name}"] = curve.phi(wait, quality.target)
        found[f"share_{name}"] = curve.recall(wait)
    return found


def _recordings(setting: Setting) -> tuple[Path, dict[str, Recording]]:
    """The folder of recorded streams, and what is in it; nothing if there is none."""
    try:
        folder = folder_of(setting.recordings)
    except DataError:
        if setting.recordings is not None:
            raise
        return Path(), {}
    return folder, recordings_in(folder)


def state_of(query: JoinQuery, tables: dict[str, Any]) -> float:
    """Return how many events are kept on average; looked at behind each of `_LOOKS` parts."""
    batch, _ = recorded(query, tables, "arrival")
    engine, kept = join_engine(query, schemas_of(query, batch)), []
    for part in batch.slices(-(-len(batch.stream) // _LOOKS)):
        engine.feed(part)
        kept.append(engine.stored_events())
    return float(np.mean(kept))


def _kinds(setting: Setting) -> Findings:
    folder, known = _recordings(setting)
    minutes = 2.0 if setting.quick else dataset("moving-steady").minutes
    made = [
        Data(name, seed, minutes, str(setting.sweep.folder), is_recorded=False)
        for name in setting.some(MOVING)
        for seed in setting.seeds(_SEEDS)
    ]
    real = [
        Data(name, 0, 0.0, str(folder), is_recorded=True)
        for name in setting.some(REAL)
        if name in known
    ]
    items = [(data, quality) for data in [*made, *real] for quality in QUALITIES]
    over = str(setting.over) if setting.quick else None

    def work(item: tuple[Data, Quality]) -> dict[str, Any]:
        return measured(*item, over)

    rows = setting.sweep.task_each(items, work, _RESULT, "kinds")
    by_case: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        data, quality = items[row["number"]]
        by_case.setdefault((quality.name, data.name), []).append(row)
    names = [quality.name for quality in QUALITIES]
    by_case = dict(sorted(by_case.items(), key=lambda case: names.index(case[0][0])))
    table = _table(setting, by_case, {name: found.resolution_ms for name, found in known.items()})
    found = Findings([table, _state(setting, by_case), _fixed(by_case)])
    found.words = [_WORDS]
    found.figures[""] = _figure(by_case)
    return found


def _mean(rows: Sequence[dict[str, Any]], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def _table(
    setting: Setting, by_case: dict[tuple[str, str], list[dict[str, Any]]], steps: dict[str, int]
) -> Table:
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for (quality, name), runs in by_case.items():
        n, best, wait = sum(run["n"] for run in runs), _mean(runs, "best"), _mean(runs, "wait")
        is_judged = n >= ENOUGH and not setting.quick
        cells: list[Cell] = [
            n,
            _mean(runs, "reached"),
            _mean(runs, "phi"),
            wait,
            best,
            HOLDS if is_judged else None,
            _longest(best, steps.get(name, 0)) if is_judged and _waits(quality) else None,
            "yes" if name in CHOSEN_ON else "no",
        ]
        rows.append(((quality, name), cells))
    columns = (
        Column("measurements", "", title="n"),
        Column("share", "share"),
        Column("periods that hold", "share", floor="aim"),
        Column("wait", "ms", ceiling="aim of the wait"),
        Column("best fixed", "ms"),
        Column("aim", "share"),
        Column("aim of the wait", "ms", title="wait ≤"),
        Column("constants chosen on it", title="chosen on"),
    )
    return Table("What was requested, and what it took", ("quality", "streams"), columns, rows)


def _waits(quality: str) -> bool:
    """Whether rows of this quality wait: pairs at once do not."""
    return next(of.part != "pairs" for of in QUALITIES if of.name == quality)


def _longest(best: float, resolution: int) -> float:
    """Return how long rows may wait where the best fixed wait is this."""
    return TIMES * best + max(MORE_MS, resolution)


def _state(setting: Setting, by_case: dict[tuple[str, str], list[dict[str, Any]]]) -> Table:
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for (quality, name), runs in by_case.items():
        if _waits(quality):
            continue
        state, best = _mean(runs, "state"), _mean(runs, "best_state")
        is_judged = sum(run["n"] for run in runs) >= ENOUGH and not setting.quick
        rows.append(((quality, name), [state, best, TIMES * best if is_judged else None]))
    columns = (
        Column("events kept", "events", ceiling="most events"),
        Column("with the best fixed time", "events"),
        Column("most events", "events", title="events kept ≤"),
    )
    return Table("What pairs at once keep", ("quality", "streams"), columns, rows)


def _fixed(by_case: dict[tuple[str, str], list[dict[str, Any]]]) -> Table:
    names = ("p95", "share_95", "phi_95", "p99", "share_99", "phi_99")
    rows: list[tuple[tuple[str, ...], list[Cell]]] = [
        (labels, [_mean(runs, name) for name in names]) for labels, runs in by_case.items()
    ]
    columns = (
        Column("p95 of the delays", "ms"),
        Column("its share", "share"),
        Column("its periods", "share"),
        Column("p99 of the delays", "ms"),
        Column("its share of p99", "share", title="its share"),
        Column("its periods of p99", "share", title="its periods"),
    )
    return Table("A fixed watermark instead", ("quality", "streams"), columns, rows)


def _figure(by_case: dict[tuple[str, str], list[dict[str, Any]]]) -> Any:
    ticks = list(dict.fromkeys(name for _, name in by_case))
    grid: list[list[Panel]] = [[], []]
    for quality in dict.fromkeys(quality for quality, _ in by_case):
        own = {name: runs for (of, name), runs in by_case.items() if of == quality}
        x = [float(ticks.index(name)) for name in own]
        held = {
            "fixed p99": (x, [_mean(runs, "phi_99") for runs in own.values()]),
            "fixed p95": (x, [_mean(runs, "phi_95") for runs in own.values()]),
            "goal": (x, [_mean(runs, "phi") for runs in own.values()]),
        }
        waits = {
            "fixed p99": (x, [max(1.0, _mean(runs, "p99")) for runs in own.values()]),
            "best fixed": (x, [max(1.0, _mean(runs, "best")) for runs in own.values()]),
            "goal": (x, [max(1.0, _mean(runs, "wait")) for runs in own.values()]),
        }
        level = (HOLDS, "aim")
        grid[0].append(
            Panel(quality, "periods that hold", held, level=level, y_range=(-0.03, 1.03), dots=True)
        )
        grid[1].append(Panel("", "wait [ms]", waits, log=True, dots=True))
    return panels("Requested quality, and what it took", "", grid, ticks)


_WORDS = (
    "Two streams are joined, rows are given out as soon as they are decided. *No match*: rows of a "
    "left outer join that say that an event has no partner; the share is that of right ones. "
    "*As-of*: rows that are right at once. *Eager*: pairs that are found; the wait is how long "
    "events are kept beyond their windows. Shares are measured each second over the last period (a "
    "minute; of recordings their own), and a period holds if its share is not below the target. "
    "The best fixed wait is the smallest one with which 95 % of the periods hold, known only in "
    "hindsight."
)

EXPERIMENTS = (
    Experiment("kinds", "ours", "rows without partner, as-of rows, eager pairs: target and result",
               _kinds),
)  # fmt: skip
