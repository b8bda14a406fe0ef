"""Streams whose disorder moves: our controller, K* and the other goals, family by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from slackwater.query.goals import Goal, InputQuantile, MaxSlack, Model
from slackwater.query.units import Duration
from slackwater_lab.cases import mean, phi
from slackwater_lab.curves import best_slacks
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.measure import GoalRun, Job
from slackwater_lab.moving_streams import FAMILIES
from slackwater_lab.plots import Panel, panels

GAMMAS = (0.9, 0.95, 0.99)
OURS = "ours"
_SEEDS = 5
_MODELS_AT = 0.95  # the other models are run for this target only
_MODELS: tuple[Model, ...] = ("measured", "eqsel", "noneqsel", "pd", "late-degree")
_NEW = ("retries", "pauses", "failover")  # no constant was chosen on them

Rows = list[tuple[tuple[str, ...], list[Cell]]]


@dataclass(frozen=True)
class Bar:
    """What our controller has to reach: a Φ(Γ) with a K of at most `times` K* and `more` ms."""

    phi: float
    times: float
    more: float = 0.0
    phi_99: float | None = None  # of .99 Γ


_FOLLOWED = Bar(0.97, 0.85, phi_99=0.995)  # disorder that a controller can follow
_BARS = {
    **dict.fromkeys(("tide-5", "tide-2", "walk", "steps", "ramps", "regimes"), _FOLLOWED),
    **dict.fromkeys(("off-line", "keyed"), Bar(0.93, 1.0)),
    "heavy": Bar(0.97, 1.25),
    "steady": Bar(0.97, 1.15, more=10.0),
    **dict.fromkeys(("stalls", "queue"), Bar(0.93, 1.0)),
    **dict.fromkeys(("batches", "apart", "mixed"), Bar(0.97, 1.0)),
    **dict.fromkeys(("retries", "pauses", "failover"), Bar(0.97, 1.0)),
}

_TEXT = {
    "steady": "delays of 100 ms on average",
    "tide-5": "the average goes from 40 to 360 ms and back in 5 minutes",
    "tide-2": "from 40 to 360 ms and back in 2 minutes",
    "walk": "the average is a random walk around 200 ms",
    "regimes": "50, 200 or 1,000 ms, each for a minute and a half on average",
    "steps": "another average between 40 and 800 ms every 3 to 6 minutes",
    "ramps": "from 50 up to 500 ms in 3 to 5 minutes, then at once back",
    "off-line": "each key is off line a tenth of the time, for 2 to 20 s",
    "keyed": "one key in ten is 1 s late, for 2 minutes; then others are",
    "heavy": "delays with a heavy tail (Pareto, exponent 1.5), up to a minute",
    "stalls": "each stream stops about every 2 minutes, for 0.5 to 8 s",
    "queue": "each stream waits in a queue whose load is .5 to .97, by the minute",
    "batches": "each key sends every 0.2 to 3 s; every 4 minutes in another rhythm",
    "apart": "each stream has a random walk of its own",
    "mixed": "0 to 20 % are 2 s late, another share every 2 to 5 minutes",
    "retries": "0 to 10 % fail and are sent again after 1, 3, 7, ... s",
    "pauses": "both streams stop together every 20 s or so, for half a second or several",
    "failover": "one of 8 partitions of the keys is 3 s behind for a minute or two",
}


def rivals(
    setting: Setting,
    gamma: float,
    over: Duration | None = None,
    models: Sequence[Model] = _MODELS,
) -> dict[str, tuple[Goal, dict[str, Any]]]:
    """Ours and the other goals for two streams, each with the options of its runs."""
    recall = partial(setting.recall, gamma, over=over or setting.over)
    goals: dict[str, tuple[Goal, dict[str, Any]]] = {
        OURS: (recall(), {}),
        "0.1": (recall(model="measured"), {"pipeline": "icde16"}),
        "InputQuantile": (InputQuantile(gamma), {}),
        "MaxSlack": (MaxSlack(), {}),
    }
    for model in models:
        goals[model] = (recall(model=model), {})
    return goals


def _goals(setting: Setting, gamma: float) -> dict[str, tuple[Goal, dict[str, Any]]]:
    is_shown = gamma == _MODELS_AT or setting.quick
    return rivals(setting, gamma, models=_MODELS if is_shown else ())


def _jobs(setting: Setting, family: str, goal: Goal, **options: Any) -> list[Job]:
    return [
        setting.job(f"moving-{family}", goal, seed, **options) for seed in setting.seeds(_SEEDS)
    ]


def _moving(setting: Setting) -> Findings:
    """All families."""
    families, gammas = setting.some(tuple(FAMILIES)), setting.some(GAMMAS)
    jobs = {
        (family, gamma, name): _jobs(setting, family, goal, **options)
        for family in families
        for gamma in gammas
        for name, (goal, options) in _goals(setting, gamma).items()
    }
    setting.run([job for group in jobs.values() for job in group])
    runs = {key: setting.run(group) for key, group in jobs.items()}
    best, _ = best_slacks(setting, {f: partial(_jobs, setting, f) for f in families}, gammas)
    ours: Rows = []
    others: Rows = []
    for family in families:
        for gamma in gammas:
            least = best[family, gamma]
            own = runs[family, gamma, OURS]
            ours.append(((family, f"{gamma:g}"), _our_cells(family, gamma, own, least)))
            for name in _goals(setting, gamma):
                cells = rival_cells(runs[family, gamma, name], gamma, least)
                others.append(((family, f"{gamma:g}", name), cells))
    found = Findings([_our_table(setting, ours), rival_table(("family", "Γ", "goal"), others)])
    found.words = [_what_is_shown(setting, families)]
    for family in families:
        shown = {
            g: {n: runs[family, g, n][0] for n in (OURS, "InputQuantile")} for g in gammas[-2:]
        }
        title = f"{family}: {_TEXT[family]}"
        found.figures[f"-{family}"] = over_time(title, shown, {g: best[family, g] for g in shown})
    return found


def _our_cells(family: str, gamma: float, runs: Sequence[GoalRun], best: int) -> list[Cell]:
    bar, k = _BARS[family], mean("average_slack")(runs, gamma)
    return [
        phi(runs, gamma),
        phi(runs, 0.99 * gamma),
        k,
        float(best),
        k / best if best else None,
        bar.phi,
        bar.phi_99,
        bar.times * best + bar.more,
        "no" if family in _NEW else "yes",
    ]


def _our_table(setting: Setting, rows: Rows) -> Table:
    judged = not setting.quick
    columns = (
        Column("Φ(Γ)", "share", floor="aim of Φ(Γ)" if judged else None),
        Column("Φ(.99Γ)", "share", floor="aim of Φ(.99Γ)" if judged else None),
        Column("average K", "ms", ceiling="aim of K" if judged else None, title="K"),
        Column("K*", "ms"),
        Column("K / K*", "times"),
        Column("aim of Φ(Γ)", "share", title="Φ(Γ) ≥"),
        Column("aim of Φ(.99Γ)", "share", title="Φ(.99Γ) ≥"),
        Column("aim of K", "ms", title="K ≤"),
        Column("constants chosen on it", title="chosen on"),
    )
    return Table("Ours against the best fixed slack", ("family", "Γ"), columns, rows)


def rival_cells(runs: Sequence[GoalRun], gamma: float, best: int) -> list[Cell]:
    """Of one goal."""
    k = mean("average_slack")(runs, gamma)
    return [phi(runs, gamma), phi(runs, 0.99 * gamma), k, k / best if best else None]


def rival_table(labels: tuple[str, ...], rows: Rows) -> Table:
    """All goals on the same data."""
    columns = (
        Column("Φ(Γ)", "share"),
        Column("Φ(.99Γ)", "share"),
        Column("average K", "ms"),
        Column("K / K*", "times"),
    )
    return Table("All goals", labels, columns, rows)


def _what_is_shown(setting: Setting, families: Sequence[str]) -> str:
    laws = "; ".join(f"*{family}*, {_TEXT[family]}" for family in families)
    return (
        f"Two streams of 100 events per second are joined over 2 s; recall is over {setting.over}. "
        f"What moves is the delay: {laws}. K* is the smallest fixed slack with Φ(Γ) of at least "
        "0.97, known only in hindsight; all figures are over all seeds. `0.1` is the default of "
        "version 0.1 in the papers' pipeline. The constants of our controller were chosen on some "
        "families with other seeds, and not on the others (decision 26). The models of the "
        f"papers and `measured` are shown for Γ = {_MODELS_AT}. Figures show the first seed."
    )


def over_time(
    title: str, runs: dict[float, dict[str, GoalRun]], best: dict[float, int], over: str = ""
) -> Figure:
    """Recall above, K below, for each Γ: goals by name, and K*."""
    above, below = [], []
    for gamma, by_name in runs.items():
        recalls, slacks, minutes = {}, {}, list[float]()
        for name, run in reversed(by_name.items()):  # ours is on top
            minutes = [ts / 60_000 for ts in run.ts]
            recalls[name] = (minutes, run.recalls)
            slacks[name] = (minutes, [max(1.0, k) for k in run.slacks])
        slacks["K*"] = (minutes, [max(1.0, best[gamma])] * len(minutes))
        lowest = min((min(run.recalls) for run in by_name.values() if run.recalls), default=gamma)
        margin = 0.06 * (1 - min(lowest, gamma))
        above.append(
            Panel(
                f"Γ = {gamma:g}", f"recall{over}", recalls, level=(gamma, "Γ"),
                y_range=(min(lowest, gamma) - margin, 1 + margin),
            )
        )  # fmt: skip
        below.append(Panel("", "K [ms]", slacks, log=True))
    return panels(title, "event time [min]", [above, below])


EXPERIMENTS = (
    Experiment("moving", "ours", "disorder that moves: ours against K* and other goals", _moving),
)
