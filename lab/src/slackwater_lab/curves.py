"""K* from the lateness of results: one pass over each dataset, then a few runs to narrow it down.

K* is the smallest fixed K that reaches a Φ, over all measurements of all seeds (decision 20). A
curve knows it to a bucket of lateness, which is 3 % wide; runs with a fixed slack find it within.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slackwater.engine.lateness_curve import LatenessCurve, lateness_curve
from slackwater.kernels.records import I64
from slackwater.query.goals import NoSlack, Slack
from slackwater.query.units import to_units
from slackwater_lab.cases import phi
from slackwater_lab.experiment import Setting
from slackwater_lab.measure import Job, data_of

FULFILMENT = 0.97  # the Φ that K* reaches
_CLOSE = 200  # K* is known to one part in so many, or to 1 ms

_HELD = {"number": "int", "measurements": "int", "slacks": "list[int]", "held": "list[int]"}


def curve_of(job: Job, folder: Path) -> LatenessCurve:
    """The curve of the data of a job; its goal is not used."""
    query, batch, true, _ = data_of(job, folder)
    over, every = (to_units(length, query.unit) for length in (job.over, job.every))
    return lateness_curve(query, batch, true, over, every)


@dataclass(frozen=True)
class Held:
    """In how many measurements each fixed slack holds each target."""

    measurements: int
    slacks: I64  # in ascending order; between two of them nothing changes
    held: I64  # by target and slack

    def at(self, slacks: I64) -> I64:
        """The same for other slacks."""
        return self.held[:, np.searchsorted(self.slacks, slacks, side="right") - 1]


def held_by_slack(
    setting: Setting, jobs: Sequence[Job], gammas: Sequence[float]
) -> dict[Job, Held]:
    """One pass over the data of each job."""
    folder = setting.sweep.folder

    def count(job: Job) -> dict[str, Any]:
        curve = curve_of(job, folder)
        slacks = curve.slacks()
        recalls = [curve.series(int(slack))["recall"].to_numpy() for slack in slacks]
        held = [int(np.sum(r >= gamma)) for gamma in gammas for r in recalls]
        return {"measurements": len(recalls[0]), "slacks": slacks.tolist(), "held": held}

    wanted = list(dict.fromkeys(jobs))
    setting.sweep.make(wanted)
    rows = setting.sweep.task_each(wanted, count, _HELD, "curves")
    return {
        wanted[row["number"]]: Held(
            row["measurements"],
            np.array(row["slacks"]),
            np.array(row["held"]).reshape(len(gammas), -1),
        )
        for row in rows
    }


def bracket(known: Sequence[Held], target: int, wanted: float = FULFILMENT) -> tuple[int, int]:
    """A slack that is not enough (-1: none is) and the next, which is, over all of `known`.

    `target` is the place of a target.
    """
    slacks = np.unique(np.concatenate([held.slacks for held in known]))
    total = sum(held.measurements for held in known)
    reached = np.sum([held.at(slacks)[target] for held in known], axis=0) >= wanted * total
    place = int(np.argmax(reached))  # the last one loses nothing
    return (int(slacks[place - 1]) if place else -1), int(slacks[place])


@dataclass
class Narrowing:
    """A search for K* between a slack that is not enough and one that is, in ms."""

    jobs: Callable[[Slack], list[Job]]
    gamma: float
    low: int
    high: int

    @property
    def is_over(self) -> bool:
        """Whether K* is known closely enough."""
        return self.high - self.low <= max(1, self.high // _CLOSE)

    @property
    def runs(self) -> list[Job]:
        """With the slack half way."""
        return self.jobs(Slack(f"{(self.low + self.high) // 2} ms"))

    def learn(self, reached: float) -> None:
        """Take in the Φ of these runs."""
        middle = (self.low + self.high) // 2
        if reached >= FULFILMENT:
            self.high = middle
        else:
            self.low = middle


def narrow_all(setting: Setting, searches: Sequence[Narrowing]) -> None:
    """Finish all searches, each round of them as one sweep."""
    while open_ones := [search for search in searches if not search.is_over]:
        setting.run([job for search in open_ones for job in search.runs])
        for search in open_ones:
            search.learn(phi(setting.run(search.runs), search.gamma))


def best_slacks(
    setting: Setting,
    data: Mapping[str, Callable[[Slack | NoSlack], list[Job]]],
    gammas: Sequence[float],
) -> tuple[dict[tuple[str, float], int], dict[str, int]]:
    """K* of each dataset and target in ms, and how many measurements each dataset has.

    `data` makes the runs of a dataset, one for each seed.
    """
    jobs = {name: make(NoSlack()) for name, make in data.items()}
    held = held_by_slack(setting, [job for group in jobs.values() for job in group], gammas)
    known = {name: [held[job] for job in group] for name, group in jobs.items()}
    searches = {
        (name, gamma): Narrowing(make, gamma, *bracket(known[name], target))
        for name, make in data.items()
        for target, gamma in enumerate(gammas)
    }
    narrow_all(setting, list(searches.values()))
    best = {key: search.high for key, search in searches.items()}
    return best, {name: sum(h.measurements for h in group) for name, group in known.items()}
