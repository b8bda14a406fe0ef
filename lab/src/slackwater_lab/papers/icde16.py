"""The experiments of ICDE16, VI, with the paper's numbers where it prints them."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.query.goals import Goal, MaxSlack, Model, NoSlack
from slackwater_lab.cases import PHI, PHI_99, SLACK, Case, Measure, mean, vary
from slackwater_lab.datasets import dataset
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.plots import Panel, panels

_DATA = ("dx2", "dx3", "dx4")
_GAMMAS = (0.8, 0.9, 0.95, 0.99, 0.999)
_MODELS: tuple[Model, ...] = ("measured", "noneqsel", "eqsel")
_PERIODS = ("10 s", "30 s", "1 min", "2 min", "5 min")
_INTERVALS = ("0.1 s", "0.5 s", "1 s", "2 s", "5 s", "10 s")
_STEPS = ("1 ms", "10 ms", "100 ms", "1000 ms")

_OTHER_SOCCER = (
    "D×2 is not the paper's recording but a game that imitates its disorder (docs/lab.md); if you "
    "have the original file, `slackwater_lab.debs.read_debs` reads it."
)
_STEP = (
    "D×3 and D×4 are drawn as the paper describes, with delays in steps of 10 ms. The paper does "
    "not print its step; `slackwater lab run resolution` suggests that it was larger."
)


def _title(name: str) -> str:
    return dataset(name).title


# ---- the baselines


def _fig6(setting: Setting) -> Findings:
    """Recall of No-K-slack over time."""
    runs = setting.run([setting.job(name, NoSlack()) for name in _DATA])
    paper = {"dx2": "about 0.5", "dx3": "below that of D×4", "dx4": "about 0.8"}
    columns = (
        Column("average γ(P)", "share"),
        Column("lowest", "share"),
        Column("highest", "share"),
        Column("paper, most of the time"),
    )
    rows: list[tuple[tuple[str, ...], list[Cell]]] = [
        (
            (_title(name),),
            [o.average_recall, min(o.recalls), max(o.recalls), paper[name]],
        )
        for name, o in zip(_DATA, runs, strict=True)
    ]
    curves = {
        _title(name): ([ts / 60_000 for ts in o.ts], o.recalls)
        for name, o in zip(_DATA, runs, strict=True)
    }
    panel = Panel("", "recall γ(P)", curves, y_range=(0, 1.02))
    figure = panels("Recall of No-K-slack", "event time [min]", [[panel]])
    words = [
        "As in the paper, the Synchronizer alone is not enough on any dataset.",
        "D×2 has a higher recall than the paper's 0.5: 70 % of its events are in order, as the "
        "Thesis prints for the same stadium, and a result is lost only if its last event is late. "
        "A stream that leads is also partly sorted while it waits for the other.",
        _OTHER_SOCCER,
        _STEP,
    ]
    return Findings([Table("Recall of No-K-slack", ("data",), columns, rows)], words, {"": figure})


def _table2(setting: Setting) -> Findings:
    """Max-K-slack: average K and recall."""
    runs = setting.run([setting.job(name, MaxSlack()) for name in _DATA])
    paper = {"dx2": ("19.96 s", "1.0"), "dx3": ("19.72 s", "0.999"), "dx4": ("13.88 s", "0.999")}
    columns = (
        Column("average K", "ms"),
        Column("paper's K"),
        Column("average γ(P)", "share"),
        Column("paper's γ(P)"),
        Column("largest delay", "ms"),
    )
    rows: list[tuple[tuple[str, ...], list[Cell]]] = [
        (
            (_title(name),),
            [o.average_slack, paper[name][0], o.average_recall, paper[name][1], o.largest_delay],
        )
        for name, o in zip(_DATA, runs, strict=True)
    ]
    curves = {
        _title(name): ([ts / 60_000 for ts in o.ts], [k / 1000 for k in o.slacks])
        for name, o in zip(_DATA, runs, strict=True)
    }
    figure = panels(
        "K of Max-K-slack", "event time [min]", [[Panel("", "K [s]", curves, y_range=(0, None))]]
    )
    words = [
        "Average K depends on when the largest delays come, as the paper also states: on D×2 ours "
        "come in the first minutes. Recall is slightly above the printed 0.999.",
        _OTHER_SOCCER,
        _STEP,
    ]
    return Findings([Table("Max-K-slack", ("data",), columns, rows)], words, {"": figure})


def _resolution(setting: Setting) -> Findings:
    """The resolution of delays that gives the paper's baselines."""
    paper = {"dx3": ("below D×4's", "19.72 s"), "dx4": ("about 0.8", "13.88 s")}
    steps = {"10 ms": "", "20 ms": "-20ms", "50 ms": "-50ms"}
    seeds = setting.seeds(3)
    columns = (
        Column("recall of No-K-slack", "share"),
        Column("paper's recall"),
        Column("average K of Max-K-slack", "ms"),
        Column("paper's K"),
    )
    jobs = {
        (name, step): [
            [setting.job(name + end, goal, seed) for seed in seeds]
            for goal in (NoSlack(), MaxSlack())
        ]
        for name in paper
        for step, end in steps.items()
    }
    setting.run([job for groups in jobs.values() for group in groups for job in group])
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for (name, step), (none, most) in jobs.items():
        recall = mean("average_recall")(setting.run(none), 0)
        slack = mean("average_slack")(setting.run(most), 0)
        rows.append(((_title(name), step), [recall, paper[name][0], slack, paper[name][1]]))
    words = [
        "The paper draws delays from [0, 20] s by a Zipf distribution and does not print the step. "
        "A delay of one step of 10 ms does not change the order of events, because they are 10 ms "
        "apart. The figures are means over three seeds.",
        "The printed K of D×4 lies between those of 20 and 50 ms, that of D×3 next to 50 ms; the "
        "recall on D×4 stays above the printed 0.8 with each. So the paper's step was probably "
        "larger than 10 ms. This is concluded from its results (1, 100 and 1000 ms were tried too, "
        "on one seed), so it is a guess, and all other experiments keep 10 ms.",
    ]
    return Findings([Table("Baselines by delay step", ("data", "step"), columns, rows)], words)


# ---- one thing varied


def _case(setting: Setting, name: str, line: str, goal: Goal, gamma: float) -> Case:
    return Case(_title(name), line, f"{gamma:g}", (setting.job(name, goal),), gamma)


def _fig7(setting: Setting) -> Findings:
    """Γ varied, for each model."""
    cases = [
        _case(setting, name, model, setting.recall(gamma, model=model), gamma)
        for name in _DATA
        for model in _MODELS
        for gamma in setting.some(_GAMMAS)
    ] + [
        _case(setting, name, "MaxSlack", MaxSlack(), gamma)
        for name in _DATA
        for gamma in setting.some(_GAMMAS)
    ]
    labels = ("data", "goal", "Γ")
    table, figure = vary(
        setting,
        "Slack and fulfilment by the requirement Γ",
        labels,
        cases,
        (SLACK, PHI, PHI_99),
    )
    words = [
        "The paper prints: NonEqSel has Φ(.99Γ) of at least 0.97 everywhere; its average K is "
        "more than 95 % below Max-K-slack on D×2 for Γ = 0.99 (so below 1 s), 35 % below for "
        "0.999 (about 13 s), and Max-K-slack's own on D×3 and D×4 for 0.999.",
        "Our EqSel and NonEqSel need more in some cases: late events get the largest productivity "
        "of the last interval, and with skewed values that is above their own, so Γ′ rises "
        "(docs/papers.md). `measured`, our default, counts the results that late events lost "
        "instead.",
        _OTHER_SOCCER,
    ]
    return Findings([table], words, {"": figure})


def _varied(
    setting: Setting,
    title: str,
    x_name: str,
    values: Sequence[str],
    option: str,
    measures: Sequence[Measure],
    data: Sequence[str] = ("dx2", "dx3"),
    gammas: Sequence[float] = (0.95, 0.99),
) -> Findings:
    """NonEqSel and ours with another `option`, as in Fig. 8 to 11."""
    cases = []
    for name in data:
        for gamma in gammas:
            for model in _MODELS[:2]:
                for value in setting.some(values):
                    goal = setting.recall(gamma, **{"model": model, option: value})
                    job = setting.job(name, goal, over=goal.over, every=goal.every or "1 second")
                    panel = f"{_title(name)}, Γ = {gamma:g}"
                    cases.append(Case(panel, model, value, (job,), gamma))
    table, figure = vary(setting, title, ("data", "goal", x_name), cases, measures)
    return Findings([table], [], {"": figure})


def _fig8(setting: Setting) -> Findings:
    """P varied."""
    values = ("5 s", "20 s") if setting.quick else _PERIODS
    found = _varied(
        setting, "Slack and fulfilment by the period P", "P", values, "over", (SLACK, PHI, PHI_99)
    )
    found.words = [
        "The paper prints: Φ(.99Γ) above 0.90 for all P; short periods are harder, because other "
        "seconds cannot compensate for a bad one. It does not print which P it tried.",
        _OTHER_SOCCER,
    ]
    return found


def _fig9(setting: Setting) -> Findings:
    """L varied."""
    found = _varied(
        setting,
        "Slack and fulfilment by the adaptation interval L",
        "L",
        _INTERVALS,
        "every",
        (SLACK, PHI, PHI_99),
    )
    found.words = [
        "The paper prints: average K grows noticeably with L (0.1 to 10 s), because the largest "
        "productivity of a longer interval is larger; `measured` does not use such a maximum.",
        _OTHER_SOCCER,
    ]
    return found


def _fig10(setting: Setting) -> Findings:
    """Granularity g varied."""
    found = _varied(
        setting,
        "Slack and fulfilment by the granularity g",
        "g",
        _STEPS,
        "granularity",
        (SLACK, PHI, PHI_99),
    )
    found.words = [
        "The paper prints: on D×2, where a small K is enough, average K grows with g (1 to 1000 "
        "ms); on D×3, where its K is large, it hardly changes.",
        _OTHER_SOCCER,
    ]
    return found


_STEP_TIME = Measure("time of a step", "ms", mean("step_ms"), log=False)


def _fig11(setting: Setting) -> Findings:
    """Time of an adaptation step."""
    found = _varied(
        setting, "Time to choose K", "g", _STEPS, "granularity", (_STEP_TIME,), _DATA, (0.9, 0.999)
    )
    found.words = [
        "The paper prints: below 5 ms for g >= 10 ms at the highest Γ, below 1 ms for lower Γ, on "
        "its 2.9 GHz workstation. Our controller searches prefix sums by bisection instead of "
        "computing the sum for each K. The time is wall-clock time, with two runs at once."
    ]
    return found


EXPERIMENTS = (
    Experiment("fig6", "ICDE16, Fig. 6", "recall of No-K-slack over time", _fig6),
    Experiment("table2", "ICDE16, Table II", "Max-K-slack: average K and recall", _table2),
    Experiment("resolution", "ICDE16, VI", "the baselines by the step of delays", _resolution),
    Experiment("fig7", "ICDE16, Fig. 7", "the requirement Γ varied, for each model", _fig7),
    Experiment("fig8", "ICDE16, Fig. 8", "the measurement period P varied", _fig8),
    Experiment("fig9", "ICDE16, Fig. 9", "the adaptation interval L varied", _fig9),
    Experiment("fig10", "ICDE16, Fig. 10", "the granularity g varied", _fig10),
    Experiment("fig11", "ICDE16, Fig. 11", "time needed to choose K", _fig11),
)
