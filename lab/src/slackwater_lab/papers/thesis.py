"""The experiments of the Thesis, chapter 6, with its numbers where it prints them.

Its query joins every pair within windows of 2 and 3 seconds (``KEEP``, slide 10 ms); quality is
tracked second by second. QCR is Φ with P = L; ABS is the average K and the lead that the
Synchronizer holds back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.query.goals import Goal, Model, NoSlack, Recall, Slack
from slackwater_lab.cases import Case, GoalRuns, Measure, mean, phi, vary
from slackwater_lab.datasets import dataset, delays, local_times
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.measure import measure
from slackwater_lab.plots import Panel, panels

_DATA = ("soccer16", "soccer23")
_TARGETS = (0.8, 0.9, 0.95, 0.98)
_MODELS: tuple[Model, ...] = ("late-degree", "pd", "measured")
_TRACK = "1 second"
_MADE_UP = (
    "The data imitate the Thesis' recordings (docs/lab.md): the share in order, the delays and "
    "the skew of its Fig. 6.1 and 6.2; so compare shapes and orders of magnitude, not digits."
)


def _goal(target: float, model: Model, **options: object) -> Recall:
    return Recall(target, **{"over": _TRACK, "every": _TRACK, "model": model} | options)  # type: ignore[arg-type]


# ---- the data


def _disorder(setting: Setting) -> Findings:
    """Late degrees and skew."""
    columns = (
        Column("events", "events"),
        Column("in order", "share"),
        Column("late, at most 40 ms", "share"),
        Column("late, more", "share"),
        Column("largest delay", "ms"),
    )
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    late: list[Panel] = []
    skews: list[Panel] = []
    for data in _DATA:
        title = dataset(data).title
        tables = setting.recorded(data).tables()
        curves = {}
        for name, table in tables.items():
            late_by = delays(table)
            shares = [np.mean(late_by == 0), np.mean((late_by > 0) & (late_by <= 40))]
            shares.append(1 - sum(shares))
            cells: list[Cell] = [len(late_by), *map(float, shares), float(late_by.max())]
            rows.append(((title, f"stream {name}"), cells))
            x = np.arange(0, 201, 5)
            curves[f"stream {name}"] = (x.tolist(), [float(np.mean(late_by <= d)) for d in x])
        late.append(Panel(title, "share with at most this delay", curves, y_range=(0.6, 1.005)))
        local = local_times(tables)
        ahead = (local[0] - local[1])[:: max(1, local.shape[1] // 5_000)]
        number = np.linspace(0, local.shape[1] / 1000, len(ahead))
        curve = {"skew": (number.tolist(), ahead.tolist())}
        skews.append(Panel(title, "a ahead of b [ms]", curve, y_range=(-150, 150), dots=True))
    figures = {
        "-late": panels("Late degrees (Fig. 6.1)", "delay [ms]", [late]),
        "-skew": panels("Out-of-sync spectrum (Fig. 6.2)", "thousand arrivals", [skews]),
    }
    words = [
        "The Thesis prints: about 70 % of the tuples in order, most others late by at most 40 ms, "
        "neither stream always ahead, the skew mostly within 50 ms. Its streams have 328,597 and "
        "324,006 tuples (16 min), 342,690 and 429,100 (23 min); ours have the same rate on both "
        "sides."
    ]
    title = "Disorder of the soccer-like data"
    return Findings([Table(title, ("data", "stream"), columns, rows)], words, figures)


# ---- quality and buffers


def _qcr_overall(runs: GoalRuns, gamma: float) -> float:
    """Share of the periods at whose end the recall from the start on is not below the target."""
    good = [np.cumsum(run.produced) / np.cumsum(run.true) >= gamma for run in runs]
    return float(np.mean(np.concatenate(good)))


_ABS = Measure("ABS", "ms", mean("average_buffer"), log=True)
_QCR = Measure("QCR", "share", phi)
_QCR_OVERALL = Measure("QCR", "share", _qcr_overall)


def _per_delay(qcr: Measure) -> Measure:
    """QCR in % for each ms of buffer."""

    def of(runs: GoalRuns, gamma: float) -> float:
        return 100 * qcr.of(runs, gamma) / max(_ABS.of(runs, gamma), 1.0)

    return Measure("QCR / ABS", "%/ms", of)


def _quality(setting: Setting) -> Findings:
    """Per period and overall: Fig. 6.3 to 6.8."""
    found = Findings([])
    baselines = {name: _baselines(setting, name) for name in _DATA}
    for overall, figures in ((False, "6.3 to 6.5"), (True, "6.6 to 6.8")):
        cases = [
            _case(setting, name, model, target, _goal(target, model, overall=overall))
            for name in _DATA
            for model in _MODELS
            for target in setting.some(_TARGETS)
        ]
        cases += [
            _case(setting, name, line, target, goal)
            for name in _DATA
            for line, goal in baselines[name].items()
            for target in setting.some(_TARGETS)
        ]
        qcr = _QCR_OVERALL if overall else _QCR
        title = f"{'Overall quality' if overall else 'Quality of each second'} (Fig. {figures})"
        labels = ("data", "goal", "target")
        table, figure = vary(setting, title, labels, cases, (_ABS, qcr, _per_delay(qcr)))
        found.tables.append(table)
        found.figures["-overall" if overall else "-each"] = figure
    found.words = [
        "The Thesis prints, per second, from target 0.8 to 0.98: its approach QCR 0.932 to 0.901 "
        "(16 min) and 0.944 to 0.872 (23 min), the PD controller 0.792 to 0.644 and 0.890 to "
        "0.643, with 10 to 24 % more buffer than PD, and QCR/ABS 3.49 for both at 0.8 (23 min). "
        "Overall: QCR at least 0.932 with less buffer than PD, which ends at 0.9788 for 0.98.",
        "Second by second late-degree's QCR is above PD's at every target, as in the Thesis; so "
        "is its QCR / ABS, but for 0.98 on Soccer-16min, where it is 2 % below.",
        "Gains of the PD controller, 200 ms each, were tuned at 0.95 on Soccer-23min (the recipe "
        "is in `slackwater/goals/pd.py`). With 1 s instead K swings: QCR 0.73 at 0.95, above "
        "late-degree's, for two and a half times its buffer.",
        "Our overall reading asks the next second to make up for all that is missing so far. Half "
        "of the time something is, and then only the largest delay is enough: QCR stays above "
        "PD's, as in the Thesis, but the buffer is far larger, so QCR / ABS does not reproduce. "
        "The Thesis does not print how it makes up; over ten seconds instead of one, late-degree "
        "would end within 0.0002 of its target with a K like PD's, but mostly from below.",
        "`measured`, our default, is asked for 97 % of the seconds, the Thesis' approach for the "
        "estimated mean: compare QCR and ABS together. `measured` knows no overall target; there "
        "it is the same run, only judged by the overall recall.",
        _MADE_UP,
    ]
    return found


def _baselines(setting: Setting, data: str) -> dict[str, Goal]:
    """6.2.3: no K-slack; so much that nothing is lost; and no Synchronizer either."""
    most = setting.recorded(data).facts().largest_delay
    return {
        "Baseline1": NoSlack(),
        "Baseline2": Slack(f"{most} ms"),
        "Baseline3": NoSlack(synchronize=False),
    }


def _case(setting: Setting, name: str, line: str, target: float, goal: Goal, x: str = "") -> Case:
    job = setting.job(name, goal, over=_TRACK, every=_TRACK)
    return Case(dataset(name).title, line, x or f"{target:g}", (job,), target)


def _time(setting: Setting) -> Findings:
    """Quality over time at target 0.98: Fig. 6.9."""
    name, target = "soccer23", 0.98
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    grid = []
    for overall in (False, True):
        goals = {str(m): _goal(target, m, overall=overall) for m in _MODELS[:2]}
        jobs = [setting.job(name, goal, over=_TRACK, every=_TRACK) for goal in goals.values()]
        curves = {}
        for model, run in zip(goals, setting.run(jobs), strict=True):
            made, true = np.array(run.produced), np.array(run.true)
            quality = np.cumsum(made) / np.cumsum(true) if overall else made / true
            curves[model] = ([ts / 60_000 for ts in run.ts], quality.tolist())
            end = float(made.sum() / true.sum())
            kind = "overall" if overall else "each second"
            rows.append(((kind, model), [float(quality.min()), end, run.average_buffer]))
        title = "Overall quality" if overall else "Quality of each second"
        panel = Panel(title, "recall", curves, level=(target, "target"), y_range=(None, 1.005))
        grid.append([panel])
    columns = (Column("lowest", "share"), Column("of all results", "share"), Column("ABS", "ms"))
    figure = panels("Quality over time (Fig. 6.9)", "event time [min]", grid)
    words = [
        "The Thesis prints: both are smoother when the overall quality is controlled; PD ends at "
        "0.9788, below its target, because late in a run a small error moves K only a little.",
        _MADE_UP,
    ]
    table = Table("Soccer-23min, target 0.98", ("quality", "goal"), columns, rows)
    return Findings([table], words, {"": figure})


# ---- parameters


def _parameters(setting: Setting) -> Findings:
    """Track duration, granularity, decay: Fig. 6.10 to 6.12."""
    found = Findings([])
    varied: dict[str, tuple[str, Sequence[object]]] = {
        "track": ("quality track duration (Fig. 6.10)", ("500 ms", "1000 ms", "2000 ms")),
        "granularity": ("K granularity (Fig. 6.11)", ("2 ms", "5 ms", "10 ms")),
        "decay": ("decay factor (Fig. 6.12)", (0.7, 0.8, 0.9)),
    }
    for option, (title, values) in varied.items():
        cases = []
        for name in _DATA:
            for value in setting.some(values):
                for target in setting.some(_TARGETS):
                    track = value if option == "track" else _TRACK
                    given = {"over": value, "every": value} if option == "track" else {}
                    given |= {} if option == "track" else {option: value}
                    goal = _goal(target, "late-degree", **given)
                    job = setting.job(name, goal, over=track, every=track)
                    title_of = dataset(name).title
                    cases.append(Case(title_of, str(value), f"{target:g}", (job,), target))
        measures = (_ABS, _QCR, _per_delay(_QCR))
        labels = ("data", option, "target")
        table, figure = vary(setting, f"Influence of {title}", labels, cases, measures)
        found.tables.append(table)
        found.figures[f"-{option}"] = figure
    found.words = [
        "The Thesis prints: QCR/ABS within 3 % for tracks of 0.5 to 2 s (but 23 % less at 0.5 s "
        "and target 0.98, 16 min); smaller granularity is better in most cases; decay 0.7 costs "
        "6 to 12 % at 0.98, else within 2 %. Our time unit is the millisecond, so 2 ms stands "
        "for its 2.5 ms.",
        _MADE_UP,
    ]
    return found


# ---- overhead


def _overhead(setting: Setting) -> Findings:
    """Time with and without disorder handling, on sorted data: Table 6.3."""
    goals: dict[str, Goal] = {
        "late-degree": _goal(0.98, "late-degree"),
        "measured": _goal(0.98, "measured"),
        "without (K = 0)": NoSlack(),
    }
    setting.recorded("soccer23")
    jobs = {name: setting.job("soccer23", goal, in_order=True) for name, goal in goals.items()}
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for n in range(2 if setting.quick else 6):  # in turns; the first round compiles
        for name, job in jobs.items():
            seconds = measure(job, setting.sweep.folder).seconds
            if n:
                times[name].append(seconds)
    columns = (Column("average", "s"), Column("standard error", "s"), Column("paper"))
    paper = {"late-degree": "1,369.13 ± 13.34 s", "without (K = 0)": "1,369.31 ± 15.98 s"}
    rows: list[tuple[tuple[str, ...], list[Cell]]] = [
        (
            (name,),
            [float(np.mean(seconds)), float(np.std(seconds)), paper.get(name, "–")],
        )
        for name, seconds in times.items()
    ]
    words = [
        "The same sorted data, five runs each in turns, in one process. The Thesis' times are "
        "close to the length of its recording (1,437 s), so it was perhaps replayed in real time; "
        "ours runs as fast as it can, and counts results instead of making them. So what is left "
        "to see is the choice of K, once for each of 1,437 seconds: about 0.3 ms each, or 0.03 % "
        "of the time that the game takes."
    ]
    return Findings([Table("Time of a run (Table 6.3)", ("with",), columns, rows)], words)


EXPERIMENTS = (
    Experiment("thesis-data", "Thesis, Fig. 6.1 and 6.2", "disorder of the data", _disorder),
    Experiment("thesis-quality", "Thesis, Fig. 6.3 to 6.8", "ABS and QCR by target", _quality),
    Experiment("thesis-time", "Thesis, Fig. 6.9", "quality over time", _time),
    Experiment("thesis-options", "Thesis, Fig. 6.10 to 6.12", "influence of options", _parameters),
    Experiment("thesis-overhead", "Thesis, Table 6.3", "cost of disorder handling", _overhead),
)
