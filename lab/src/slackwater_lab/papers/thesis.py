"""The experiments of the Thesis, chapter 6, with its numbers where it prints them.

Its query joins every pair within windows of 2 and 3 seconds (``KEEP``, slide 10 ms), by its own
join logic: an overdue event leaves K-slack at once, the window waits until it can slide, and a late
event joins partners at the window end. Quality is tracked second by second. QCR is Φ with P = L;
ABS is the average K and the lead that the Synchronizer holds back.
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
_MOST_LATE = "1 second"  # Λ_max, which is not printed: the quality track duration
_MOST_LATES = ("500 ms", _MOST_LATE, "3 seconds", "30 seconds")
_MADE_UP = (
    "The data imitate the Thesis' recordings (docs/lab.md): the share in order, the delays and the "
    "skew of its Fig. 6.1 and 6.2. So compare shapes and orders of magnitude, not exact numbers."
)


def _goal(target: float, model: Model, **options: object) -> Recall:
    given = {"over": _TRACK, "every": _TRACK, "model": model} | options
    if model == "late-degree":
        given = {"most_late": _MOST_LATE} | given
    return Recall(target, **given)  # type: ignore[arg-type]


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
        "The Thesis prints: about 70 % of the tuples are in order, most others are late by at most "
        "40 ms, neither stream is always ahead, and the skew is mostly within 50 ms. Its streams "
        "have 328,597 and 324,006 tuples (16 min), 342,690 and 429,100 (23 min); ours have the "
        "same rate on both sides."
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
    found.tables += [_calm(setting, False), _calm(setting, True), _most_late(setting)]
    found.words = [
        "The Thesis prints, per second, from target 0.8 to 0.98: its approach QCR 0.932 to 0.901 "
        "(16 min) and 0.944 to 0.872 (23 min), the PD controller 0.792 to 0.644 and 0.890 to "
        "0.643, with 10 to 24 % more buffer than PD, and QCR/ABS 3.49 for both at 0.8 (23 min). "
        "Overall: QCR at least 0.932 with less buffer than PD in most cases; PD ends at 0.9788 for "
        "0.98.",
        "**Per second**, late-degree's QCR and QCR / ABS are above PD's at every target, as "
        "printed, and QCR / ABS at 0.8 is 3.29 on Soccer-23min. But its QCR is 10 to 32 points "
        "below the printed one: 0.830 to 0.581 (16 min), 0.834 to 0.612 (23 min); PD's is at most "
        "9 points below: 0.799 to 0.579 and 0.800 to 0.603. The third table shows why. Our made-up "
        "game has bursts, in which a third of the players are badly received for up to 1.5 s; a "
        "second with a burst is bad, and no estimate over the past can see it come. Without bursts "
        "late-degree has 0.926 and 0.929 at 0.98, and PD 0.490 and 0.478. With bursts its buffer "
        "is 27 % below PD's at 0.8 and about equal from 0.95 on, without them 19 to 23 % above at "
        "0.98.",
        "**Overall**, late-degree's QCR is at least 0.934, as printed, and PD's falls with the "
        "target and ends at 0.979 for 0.98. For that Nr_original must be estimated from data "
        "rates, as the Thesis does: losses that are counted when late events come make the overall "
        "quality look better than it is. Its buffer is larger than PD's, other than printed: PD "
        "saves what it misses (QCR 0.187 at 0.9). Printed is also a smaller buffer than for each "
        "second: so it is without bursts at 0.9 and 0.95, with them only at 0.8.",
        "Λ_max is not printed; 1 s is the quality track duration. The last table shows others: the "
        "next second must compensate for all losses so far, and if it cannot, K goes to Λ_max. "
        "With 30 s, which is no limit here, K oscillates between 0 and 20 s.",
        "Gains of the PD controller, 200 ms each, were tuned at 0.95 on Soccer-23min "
        "(`slackwater/controllers/pd.py` describes how).",
        "`measured`, ours in this pipeline, aims at 97 % of the seconds, the Thesis' approach at "
        "the estimated mean, so compare QCR and ABS together. `measured` has no overall target; "
        "there it is the same run, evaluated by the overall recall.",
        _MADE_UP,
    ]
    return found


def _calm(setting: Setting, overall: bool) -> Table:
    """The same games without bursts: what makes a second bad."""
    cases = [
        _case(setting, f"{name}-calm", model, target, _goal(target, model, overall=overall))
        for name in _DATA
        for model in _MODELS[:2]
        for target in setting.some(_TARGETS)
    ]
    qcr = _QCR_OVERALL if overall else _QCR
    title = f"{'Overall quality' if overall else 'Quality of each second'}, without bursts"
    labels = ("data", "goal", "target")
    return vary(setting, title, labels, cases, (_ABS, qcr, _per_delay(qcr)))[0]


def _most_late(setting: Setting) -> Table:
    """Λ_max varied, where it matters."""
    cases = [
        _case(
            setting, name, most, target,
            _goal(target, "late-degree", overall=True, most_late=most),
        )
        for name in _DATA
        for most in setting.some(_MOST_LATES)
        for target in setting.some(_TARGETS)
    ]  # fmt: skip
    title = "Overall quality of late-degree, by its last late degree"
    return vary(setting, title, ("data", "Λ_max", "target"), cases, (_ABS, _QCR_OVERALL))[0]


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
        "0.9788, below its target, because late in a run a small error changes K only a little. So "
        "it is here: PD ends at 0.979.",
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
    data = (*_DATA, *(f"{name}-calm" for name in _DATA))
    for option, (title, values) in varied.items():
        cases = []
        for name in data:
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
        "and target 0.98, 16 min); smaller granularity is better in most cases; decay 0.7 costs 6 "
        "to 12 % at 0.98, otherwise it is within 2 %. Our time unit is the millisecond, so we use "
        "2 ms instead of its 2.5 ms.",
        "**Track (6.10)**: without bursts as printed: within 2 % up to 0.95, at 0.98 0.5 s costs 6 "
        "% and 2 s gains 4 %. With bursts a shorter track is better at 0.98 (14 %), since K is "
        "small again sooner. **Granularity (6.11)**: the smaller the better up to 0.95, by 2 to 11 "
        "%, as printed. **Decay (6.12)**: within 8 %. The loss of 6 to 12 % with 0.7 at 0.98 is "
        "not shown: without bursts the delays of our game do not change from second to second "
        "(within 1 %), and with bursts a shorter memory is as good.",
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
        "Both use the same sorted data, five runs each in turns, in one process. The Thesis' times "
        "are close to the length of its recording (1,437 s), so it was perhaps replayed in real "
        "time; ours runs as fast as possible, and counts results instead of building them. So the "
        "difference is the choice of K, once for each of 1,437 seconds: about 0.3 ms each, or 0.03 "
        "% of the duration of the game."
    ]
    return Findings([Table("Time of a run (Table 6.3)", ("with",), columns, rows)], words)


EXPERIMENTS = (
    Experiment("thesis-data", "Thesis, Fig. 6.1 and 6.2", "disorder of the data", _disorder),
    Experiment("thesis-quality", "Thesis, Fig. 6.3 to 6.8", "ABS and QCR by target", _quality),
    Experiment("thesis-time", "Thesis, Fig. 6.9", "quality over time", _time),
    Experiment("thesis-options", "Thesis, Fig. 6.10 to 6.12", "influence of options", _parameters),
    Experiment("thesis-overhead", "Thesis, Table 6.3", "cost of disorder handling", _overhead),
)
