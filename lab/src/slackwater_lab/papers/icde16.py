"""The experiments of ICDE16, VI, with the paper's numbers where it prints them.

All run the paper's pipeline; `icde16_readings` has what its text leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slackwater.controllers.icde16 import BufferSizeManager
from slackwater.query.goals import Goal, MaxSlack, NoSlack
from slackwater.stats.results import Results
from slackwater_lab.cases import PHI, PHI_99, SLACK, Case, Measure, mean, vary
from slackwater_lab.datasets import dataset
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.measure import GoalRun, Job
from slackwater_lab.plots import Panel, panels

_DATA = ("dx2", "dx3", "dx4")
_OTHER_STEPS = ("dx3-20ms", "dx3-50ms", "dx4-20ms", "dx4-50ms")  # of delays; not in D×2
_GAMMAS = (0.8, 0.9, 0.95, 0.99, 0.999)
_PERIODS = ("10 s", "30 s", "1 min", "2 min", "5 min")
_INTERVALS = ("0.1 s", "0.5 s", "1 s", "2 s", "5 s", "10 s")
_STEPS = ("1 ms", "10 ms", "100 ms", "1000 ms")

_OTHER_SOCCER = (
    "D×2 is not the paper's recording but a game that imitates its disorder (docs/lab.md); if you "
    "have the original file, `slackwater_lab.debs.read_debs` reads it."
)
_STEP = (
    "D×3 and D×4 are drawn as the paper describes, with delays in steps of 10 ms, and again of 20 "
    "and 50 ms: the paper does not print its step, and `slackwater lab run resolution` suggests "
    "that it was larger. The delays of D×2 are not drawn in steps."
)


def _title(name: str) -> str:
    return dataset(name).title


def job(setting: Setting, name: str, goal: Goal, **options: Any) -> Job:
    """A run of the paper's pipeline."""
    return setting.job(name, goal, **{"pipeline": "icde16"} | options)


# ---- the baselines


def _fig6(setting: Setting) -> Findings:
    """Recall of No-K-slack over time."""
    data = _DATA + _OTHER_STEPS
    runs = setting.run([job(setting, name, NoSlack()) for name in data])
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
            [o.average_recall, min(o.recalls), max(o.recalls), paper[name[:3]]],
        )
        for name, o in zip(data, runs, strict=True)
    ]
    curves = {
        _title(name): ([ts / 60_000 for ts in o.ts], o.recalls)
        for name, o in zip(data, runs, strict=True)
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
    data = _DATA + _OTHER_STEPS
    runs = setting.run([job(setting, name, MaxSlack()) for name in data])
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
            [o.average_slack, *_between(o, paper[name[:3]]), o.largest_delay],
        )
        for name, o in zip(data, runs, strict=True)
    ]
    curves = {
        _title(name): ([ts / 60_000 for ts in o.ts], [k / 1000 for k in o.slacks])
        for name, o in zip(data, runs, strict=True)
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


def _between(run: GoalRun, paper: tuple[str, str]) -> list[Cell]:
    return [paper[0], run.average_recall, paper[1]]


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
            [job(setting, name + end, goal, seed=seed) for seed in seeds]
            for goal in (NoSlack(), MaxSlack())
        ]
        for name in paper
        for step, end in steps.items()
    }
    setting.run([one for groups in jobs.values() for group in groups for one in group])
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
        "on one seed), so it is a guess; Fig. 6 to 8 and Table II have all three.",
    ]
    return Findings([Table("Baselines by delay step", ("data", "step"), columns, rows)], words)


# ---- one thing varied

PRINTED, ALONE, EQUAL_ALONE = "noneqsel", "noneqsel, Γ′ = Γ", "eqsel, Γ′ = Γ"
_LINES: dict[str, dict[str, Any]] = {  # the models of Fig. 7 to 11
    "measured": {"model": "measured"},
    PRINTED: {"model": "noneqsel"},
    ALONE: {"model": "noneqsel", "calibrate": False},
}
_EQSEL: dict[str, dict[str, Any]] = {
    "eqsel": {"model": "eqsel"},
    EQUAL_ALONE: {"model": "eqsel", "calibrate": False},
}
_SHOWN = (SLACK, PHI, PHI_99)


class ExactLosses(BufferSizeManager):
    """Eq. (7) with the losses that the join counted, in place of the largest productivity."""

    def lost_between(self, results: Results, begin: int, end: int) -> dict[int, float]:
        """What was lost in these intervals, by number: as far as it is known."""
        lost = results.between(begin * self.every, end * self.every)[1]
        return dict(enumerate(lost.tolist(), max(begin, results.first)))


def _fig7(setting: Setting) -> Findings:
    """Γ varied, for each model, and what keeps K large."""
    labels = ("data", "goal", "Γ")
    lines = _LINES | _EQSEL | {"MaxSlack": None}
    found = Findings([])
    for data, what, end in (
        (_DATA, "", ""),
        (_OTHER_STEPS, ", other steps of delays", "-steps"),
    ):
        cases = [
            _case(
                setting,
                name,
                line,
                MaxSlack() if of is None else setting.recall(gamma, **of),
                gamma,
            )
            for name in data
            for line, of in lines.items()
            for gamma in setting.some(_GAMMAS)
        ]
        title = f"Slack and fulfilment by the requirement Γ{what}"
        table, figure = vary(setting, title, labels, cases, _SHOWN)
        found.tables.append(table)
        found.figures[end] = figure
    found.tables.insert(1, _ablation(setting))
    found.words = _FIG7
    return found


def _case(setting: Setting, name: str, line: str, goal: Goal, gamma: float, **options: Any) -> Case:
    one = job(setting, name, goal, **options)
    return Case(_title(name), line, f"{gamma:g}", (one,), gamma)


def _ablation(setting: Setting) -> Table:
    """NonEqSel as printed, with exact losses, and without Eq. (7)."""
    cases = []
    for name in _DATA:
        for gamma in setting.some(_GAMMAS[1:]):
            goal = setting.recall(gamma, model="noneqsel")
            alone = setting.recall(gamma, **_LINES[ALONE])
            cases += [
                _case(setting, name, "as printed", goal, gamma),
                _case(setting, name, "exact losses", goal, gamma, controller=ExactLosses),
                _case(setting, name, "Γ′ = Γ", alone, gamma),
            ]
    title = "What keeps K large: NonEqSel, three readings of Eq. (7)"
    return vary(setting, title, ("data", "Γ′", "Γ"), cases, _SHOWN)[0]


_FIG7 = [
    "The paper prints: NonEqSel has Φ(.99Γ) of at least 0.97 everywhere, and a bit more K than "
    "EqSel; its average K is more than 95 % below Max-K-slack on D×2 for Γ = 0.99 (so below 1 s), "
    "35 % below for 0.999 (about 13 s), and Max-K-slack's own on D×3 and D×4 for 0.999.",
    "**As printed**, NonEqSel and EqSel keep nearly every target, but with K at seconds for all of "
    "them: 13.8 s on D×2 for 0.8, where 10 ms are enough. Only for 0.999 does that agree with the "
    "paper. EqSel and NonEqSel are reversed: EqSel has the larger K.",
    "**The reason is Eq. (7).** Its feedback comes K later; until then Γ′ asks for more and more, "
    "reaches 1 and stays there. The second table tests it. With the losses that the join counted "
    "in place of the largest productivity, K stays above a second in 10 of 12 cases, and the "
    "targets are missed more often. With Γ′ = Γ (`calibrate=False`) the model decides alone: then "
    "K is below a second in 7 of 12 cases, and the paper's order returns: NonEqSel is above EqSel "
    "in K everywhere, and in Φ(Γ) for every Γ but 0.999. Its Φ(.99Γ) is at least 0.974 on D×2 and "
    "D×3, on D×4 too but for 0.999 (0.898).",
    "**What still differs**: D×2 needs 9.5 s for 0.99. Eq. (6) counts each late event with the "
    "largest productivity, in both maps; EqSel, which has no maps, needs 607 ms. For the same "
    "reason K depends on the draw of values: on D×3 at 0.95 NonEqSel needs 818, 120 and 2,008 ms "
    "with seeds 1, 2 and 3, EqSel 30 ms each time.",
    "`measured` counts the results that late events lost. It is our default in this pipeline; the "
    "default pipeline has a better one (`slackwater lab run rivals`).",
    "With delays in steps of 20 and 50 ms all of this is the same at a larger K.",
    _OTHER_SOCCER,
]


def _varied(
    setting: Setting,
    title: str,
    x_name: str,
    values: Sequence[str],
    option: str,
    measures: Sequence[Measure] = _SHOWN,
    data: Sequence[str] = ("dx2", "dx3"),
    gammas: Sequence[float] = (0.95, 0.99),
    lines: Mapping[str, dict[str, Any]] = _LINES,
) -> Findings:
    """NonEqSel, as printed and by the model alone, and ours with another `option`."""
    cases = []
    for name in data:
        for gamma in gammas:
            for line, of in lines.items():
                for value in setting.some(values):
                    goal = setting.recall(gamma, **of, **{option: value})
                    every = goal.every or "1 second"
                    one = job(setting, name, goal, over=goal.over, every=every)
                    panel = f"{_title(name)}, Γ = {gamma:g}"
                    cases.append(Case(panel, line, value, (one,), gamma))
    table, figure = vary(setting, title, ("data", "goal", x_name), cases, measures)
    return Findings([table], [], {"": figure})


def _fig8(setting: Setting) -> Findings:
    """P varied."""
    values = ("5 s", "20 s") if setting.quick else _PERIODS
    title = "Slack and fulfilment by the period P"
    found = _varied(setting, title, "P", values, "over")
    others = ("dx3-20ms", "dx3-50ms", "dx4")
    more = _varied(setting, f"{title}, other data", "P", values, "over", data=others)
    found.tables += more.tables
    found.figures["-more"] = more.figures[""]
    found.words = _FIG8
    return found


_FIG8 = [
    "The paper prints: Φ(.99Γ) above 0.90 for all P; short periods are harder, because other "
    "seconds cannot compensate for a bad one. It does not print which P it tried. Both hold here "
    "in every case, as printed and with Γ′ = Γ: the lowest Φ(.99Γ) is 0.907.",
    _OTHER_SOCCER,
]


def _fig9(setting: Setting) -> Findings:
    """L varied."""
    title = "Slack and fulfilment by the adaptation interval L"
    lines = _LINES | {EQUAL_ALONE: _EQSEL[EQUAL_ALONE]}
    found = _varied(setting, title, "L", _INTERVALS, "every", lines=lines)
    found.words = _FIG9
    return found


_FIG9 = [
    "The paper prints: average K grows noticeably with L (0.1 to 10 s), because the largest "
    "productivity of a longer interval is larger.",
    "**Not shown here.** As printed K is near the largest delay whatever L is. With Γ′ = Γ it "
    "falls with L, and all of that is due to Eq. (6): EqSel, which has no maps, keeps its K within "
    "15 % over the whole range (D×2, 0.95: 128, 122 and 112 ms for 0.1, 1 and 10 s; D×3: 30 ms). "
    "The maps are those of one interval. A short one has few events of each delay, and where the "
    "late ones are among the most productive the ratio is far below 1; K then goes to their delay. "
    "In a longer interval they are a small part of all.",
    _OTHER_SOCCER,
]


def _fig10(setting: Setting) -> Findings:
    """Granularity g varied."""
    title = "Slack and fulfilment by the granularity g"
    found = _varied(setting, title, "g", _STEPS, "granularity")
    found.words = _FIG10
    return found


_FIG10 = [
    "The paper prints: on D×2, where a small K is enough, average K grows with g (1 to 1000 ms); "
    "on D×3, where its K is large, it hardly changes. So it is here: on D×2 from 14.9 to 20.3 s as "
    "printed and from 2.7 to 3.7 s with Γ′ = Γ at 0.95, on D×3 within 5 % as printed.",
    "g is that of the column for delays of up to 4,096 g (4.1 s for 1 ms); longer ones have a "
    "resolution of 1/32, so a K of 15 s is one of steps of about 0.5 s at g = 1 ms, too.",
    _OTHER_SOCCER,
]
_STEP_TIME = Measure("time of a step", "ms", mean("step_ms"), log=False)


def _fig11(setting: Setting) -> Findings:
    """Time of an adaptation step."""
    found = _varied(
        setting, "Time to choose K", "g", _STEPS, "granularity", (_STEP_TIME,), _DATA, (0.9, 0.999)
    )
    found.words = [
        "The paper prints: below 5 ms for g >= 10 ms at the highest Γ, below 1 ms for lower Γ, on "
        "its 2.9 GHz workstation. Our controller searches prefix sums by bisection instead of "
        "computing the sum for each K. Up to 4,096 steps of g have a bucket each, so a finer g "
        "costs little more. The time is that of a processor."
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
