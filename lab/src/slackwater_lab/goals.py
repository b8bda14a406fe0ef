"""Our own questions: how far from the best fixed slack, after a step, against the p95 watermark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from slackwater.query.goals import Goal, InputQuantile
from slackwater_lab.cases import PHI, PHI_99, RECALL, SLACK, Case, mean, phi, vary
from slackwater_lab.curves import FULFILMENT, best_slacks
from slackwater_lab.datasets import dataset
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.measure import Job
from slackwater_lab.plots import Panel, panels, wrapped

_DATA = ("dx2", "dx3", "dx4")
_DRIFTS = ("dx3-step", "dx3-ramp", "dx3-burst", "dx3-lag", "dx3-keyed")
_BAD_PHASES = ("dx3-step", "dx3-ramp", "dx3-burst")  # that cover at least a fifth of the run
_GAMMAS = (0.8, 0.9, 0.95, 0.99, 0.999)
_HARDEST = 0.999  # the loss of a period is then a few events
_HARDEST_PHI, _HARDEST_TIMES = 0.95, 1.5
_SEEDS = 5
_TIMES, _GRANULARITY_MS = 1.15, 10


# ---- the frontier


def _frontier(setting: Setting) -> Findings:
    """Our controller against the best fixed slack."""
    groups = {"stationary": setting.some(_DATA), "drifting": setting.some(_DRIFTS)}
    found = Findings([])
    for group, data in groups.items():
        table, curves = _against_best(setting, f"Frontier, {group} disorder", data)
        found.tables.append(table)
        ticks = [f"{gamma:g}" for gamma in setting.some(_GAMMAS)]
        diagrams = [
            Panel(name, "average K [ms]", lines, log=True) for name, lines in curves.items()
        ]
        found.figures[f"-{group}"] = panels(table.title, "Γ", wrapped(diagrams), ticks)
    found.words = [
        f"K* is the smallest fixed slack with Φ(Γ) of at least {FULFILMENT}, over the same seeds; "
        f"it is known only in hindsight. The aim is Φ(Γ) >= {FULFILMENT} with an average K of at "
        f"most {_TIMES} K* + {_GRANULARITY_MS} ms; for Γ = {_HARDEST} it is {_HARDEST_PHI} with "
        f"{_HARDEST_TIMES} K*. Where bad phases cover at least a fifth of the run (step, ramp, "
        "burst) K is to be at most K* itself, because K* is then larger than the good phases need."
    ]
    return found


Curves = dict[str, dict[str, tuple[list[float], list[float]]]]


def _against_best(setting: Setting, title: str, data: Sequence[str]) -> tuple[Table, Curves]:
    gammas = setting.some(_GAMMAS)
    makers = {name: partial(_jobs, setting, name) for name in data}
    jobs = {(name, g): make(setting.recall(g)) for name, make in makers.items() for g in gammas}
    setting.run([job for group in jobs.values() for job in group])
    best, _ = best_slacks(setting, makers, gammas)
    judged = not setting.quick
    columns = (
        Column("Φ(Γ)", "share", floor="aim of Φ(Γ)" if judged else None),
        Column("Φ(.99Γ)", "share"),
        Column("average K", "ms", ceiling="aim" if judged else None),
        Column("K*", "ms"),
        Column("K / K*", "times"),
        Column("aim of Φ(Γ)", "share", title="Φ(Γ) ≥"),
        Column("aim", "ms", title="K ≤"),
    )
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    curves: Curves = {}
    for (name, gamma), group in jobs.items():
        runs, least = setting.run(group), best[name, gamma]
        k = mean("average_slack")(runs, gamma)
        cells: list[Cell] = [phi(runs, gamma), phi(runs, 0.99 * gamma), k, least]
        cells += [k / least if least else None, *_aims(name, gamma, least)]
        rows.append(((dataset(name).title, f"{gamma:g}"), cells))
        lines = curves.setdefault(dataset(name).title, {"ours": ([], []), "K*": ([], [])})
        for line, y in (("ours", k), ("K*", least)):
            lines[line][0].append(gammas.index(gamma))
            lines[line][1].append(max(y, 1.0))
    return Table(title, ("data", "Γ"), columns, rows), curves


def _jobs(setting: Setting, name: str, goal: Goal) -> list[Job]:
    return [setting.job(name, goal, seed) for seed in setting.seeds(_SEEDS)]


def _aims(name: str, gamma: float, best: int) -> tuple[float, float]:
    """The Φ(Γ) to reach, and the K that may be used for it."""
    wanted = FULFILMENT if gamma < _HARDEST else _HARDEST_PHI
    if name in _BAD_PHASES:
        return wanted, float(best)
    return wanted, _TIMES * best + _GRANULARITY_MS if gamma < _HARDEST else _HARDEST_TIMES * best


# ---- after a step


def _step(setting: Setting) -> Findings:
    """Recall of each interval around a sudden change."""
    name, gammas = "dx3-step", setting.some((0.9, 0.95, 0.99))
    seeds = setting.seeds(_SEEDS)
    jobs = {
        gamma: [setting.job(name, setting.recall(gamma), seed, over="1 second") for seed in seeds]
        for gamma in gammas
    }
    setting.run([job for group in jobs.values() for job in group])
    half = 30_000 * jobs[gammas[0]][0].minutes + 20_000  # event time of the change
    spans = ((-30, 0), (0, 5), (5, 15), (15, 60))  # seconds around it
    columns = tuple(Column(f"{a} to {b} s", "share") for a, b in spans)
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    grid = []
    for gamma, group in jobs.items():
        runs = setting.run(group)
        cells: list[Cell] = []
        for begin, end in spans:
            inside = [
                (made, true)
                for o in runs
                for ts, made, true in zip(o.ts, o.produced, o.true, strict=True)
                if half + 1000 * begin < ts <= half + 1000 * end
            ]
            true = sum(t for _, t in inside)
            cells.append(sum(m for m, _ in inside) / true if true else None)
        rows.append(((f"{gamma:g}",), cells))
        o = runs[0]
        near = [i for i, ts in enumerate(o.ts) if abs(ts - half) <= 60_000]
        x = [(o.ts[i] - half) / 1000 for i in near]
        grid.append([
            Panel(
                f"Γ = {gamma:g}", "recall of 1 s", {"ours": (x, [o.recalls[i] for i in near])},
                level=(gamma, "Γ"), marks={0.0: "the step"}, y_range=(None, 1.01),
            ),
            Panel(
                "", "K [ms]", {"ours": (x, [max(1, o.slacks[i]) for i in near])},
                log=True, marks={0.0: "the step"},
            ),
        ])  # fmt: skip
    figure = panels("A step in disorder (D×3)", "seconds after the step", grid)
    words = [
        "The table has the recall of the results of a span of result time, pooled over the seeds. "
        "The goal is a recall over a minute, so other seconds can compensate for a few bad ones. "
        "The figure shows the first seed."
    ]
    table = Table("Recall around a step", ("Γ",), columns, rows)
    return Findings([table], words, {"": figure})


# ---- the p95 watermark


def _gap(setting: Setting) -> Findings:
    """What a quantile of delays gives, and what a goal of recall gives."""
    target = 0.95
    cases = []
    for goal in (setting.recall(target), InputQuantile(target)):
        line = "ours" if not isinstance(goal, InputQuantile) else "InputQuantile"
        for name in _DATA:
            jobs = tuple(setting.job(name, goal, seed) for seed in setting.seeds(3))
            m = len(dataset(name).query.names)
            cases.append(Case("0.95", line, f"m = {m}", jobs, target))
    table, figure = vary(
        setting,
        "A recall of 0.95 against the 0.95 quantile of delays",
        ("target", "goal", "streams"),
        cases,
        (RECALL, PHI, PHI_99, SLACK),
    )
    words = [
        "InputQuantile(0.95) waits until 95 % of the events have arrived, like the usual p95 "
        "watermark. It gives no guarantee about results: a result of m events is complete only if "
        "all of them are in time, and a late event loses only the results that it would have "
        "completed. The measured recall can be above or below 0.95, and depends on m and on the "
        "data."
    ]
    return Findings([table], words, {"": figure})


EXPERIMENTS = (
    Experiment("frontier", "ours", "our controller against the best fixed slack", _frontier),
    Experiment("step", "ours", "recall around a sudden change of disorder", _step),
    Experiment("gap", "ours", "Recall(0.95) against InputQuantile(0.95)", _gap),
)
