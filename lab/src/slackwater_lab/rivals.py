"""Our controller against every other goal that works online."""

from __future__ import annotations

from slackwater.query.goals import Goal, InputQuantile, MaxSlack, Model, NoSlack
from slackwater_lab.cases import PHI, SLACK, Case, vary
from slackwater_lab.datasets import dataset
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table

_DATA = ("dx2", "dx3", "dx4")
_GAMMAS = (0.8, 0.9, 0.95, 0.99, 0.999)
_SEEDS = 5
_SAME_K, _SAME_PHI = 10.0, 0.01  # differences that do not count: ms (g), share


_MODELS: tuple[Model, ...] = ("measured", "noneqsel", "eqsel", "pd", "late-degree")


def _goals(setting: Setting, data: str, gamma: float) -> dict[str, Goal]:
    pair = len(dataset(data).query.names) == 2  # noqa: PLR2004
    models = _MODELS if pair else _MODELS[:-1]  # late degrees are about two streams
    return {
        "ours": setting.recall(gamma),
        **{model: setting.recall(gamma, model=model) for model in models},
        "InputQuantile": InputQuantile(gamma),
        "MaxSlack": MaxSlack(),
        "NoSlack": NoSlack(),
    }


def is_ahead(rival: tuple[float, float], ours: tuple[float, float]) -> bool:
    """Whether a (K, Φ) is better than ours in one by more than counts, and not worse in the other.

    >>> is_ahead((80.0, 0.98), (100.0, 0.98)), is_ahead((80.0, 0.97), (100.0, 0.98))
    (True, False)
    """
    (k, phi), (our_k, our_phi) = rival, ours
    less_slack = k < our_k - _SAME_K and phi >= our_phi
    more_often = phi > our_phi + _SAME_PHI and k <= our_k
    return less_slack or more_often


def _rivals(setting: Setting) -> Findings:
    """All goals on the same data."""
    cases = []
    for name in setting.some(_DATA):
        for gamma in setting.some(_GAMMAS):
            for line, goal in _goals(setting, name, gamma).items():
                jobs = tuple(setting.job(name, goal, seed) for seed in setting.seeds(_SEEDS))
                cases.append(Case(dataset(name).title, line, f"{gamma:g}", jobs, gamma))
    labels = ("data", "goal", "Γ")
    table, figure = vary(setting, "All goals that work online", labels, cases, (SLACK, PHI))
    found: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for (data, line, x), (k, phi) in table.rows:
        assert isinstance(k, float)
        assert isinstance(phi, float)
        found.setdefault((data, x), {})[line] = (k, phi)
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for key, points in found.items():
        ahead = [line for line, point in points.items() if is_ahead(point, points["ours"])]
        rows.append((key, [len(ahead), 0, ", ".join(ahead) or "none"]))
    most = None if setting.quick else "aim"
    columns = (
        Column("ahead of ours", "goals", ceiling=most),
        Column("aim", "goals"),
        Column("which"),
    )
    words = [
        "Every goal has the target Γ and sees only the past; `InputQuantile` uses Γ as the share "
        "of events that are in time. A goal is ahead of `ours`, the default, if its average K "
        "is lower by more than 10 ms with a Φ(Γ) that is not lower, or its Φ(Γ) is higher by more "
        "than 0.01 with a K that is not higher. A low K with a low Φ is not better: that goal has "
        "not reached Γ. `late-degree` (violet) is for two streams only."
    ]
    summary = Table("Goals ahead of ours", ("data", "Γ"), columns, rows)
    return Findings([summary, table], words, {"": figure})


EXPERIMENTS = (
    Experiment(
        "rivals", "ours", "our controller against all other goals that work online", _rivals
    ),
)
