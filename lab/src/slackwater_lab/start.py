"""How a query begins: Φ of the first periods against the later ones, over many seeds."""

from __future__ import annotations

import numpy as np

from slackwater.query.units import to_units
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table

_DATA = ("moving-steady", "moving-tide-5", "moving-heavy", "dx3")
_GAMMAS = (0.9, 0.95, 0.99)
_SEEDS = 50
_MINUTES = 8.0
_FIRST = 3  # periods; the first of them is not measured
_CLOSE = 0.02  # Φ of the first periods may be below that of the others by this


def _start(setting: Setting) -> Findings:
    """Recall from the second period on."""
    seeds, over = setting.seeds(_SEEDS), to_units(setting.over, "ms")
    options = {} if setting.quick else {"minutes": _MINUTES}
    jobs = {
        (data, gamma): [setting.job(data, setting.recall(gamma), seed, **options) for seed in seeds]
        for data in setting.some(_DATA)
        for gamma in setting.some(_GAMMAS)
    }
    setting.run([job for group in jobs.values() for job in group])
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for (data, gamma), group in jobs.items():
        first: list[bool] = []
        later: list[bool] = []
        for run in setting.run(group):
            begin = run.ts[0] - over if run.ts else 0
            for ts, recall in zip(run.ts, run.recalls, strict=True):
                (first if ts <= begin + _FIRST * over else later).append(recall >= gamma)
        begins, goes_on = float(np.mean(first)), float(np.mean(later)) if later else None
        least = None if goes_on is None else goes_on - _CLOSE
        rows.append(((data, f"{gamma:g}"), [begins, goes_on, least]))
    columns = (
        Column("Φ(Γ), second and third period", "share", floor=None if setting.quick else "aim"),
        Column("Φ(Γ), later", "share"),
        Column("aim", "share"),
    )
    words = [
        f"Over {len(seeds)} seeds of {_MINUTES:g} minutes each. At the start nothing is known of "
        "the disorder: K is the largest lateness or delay seen until half a period is over, and "
        "has a reserve that is halved with each period."
    ]
    return Findings([Table("How a query begins", ("data", "Γ"), columns, rows)], words)


EXPERIMENTS = (
    Experiment("start", "ours", "Φ of the first periods against the later ones", _start),
)
