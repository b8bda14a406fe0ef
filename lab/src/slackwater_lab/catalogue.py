"""All experiments by name."""

from __future__ import annotations

from slackwater.errors import QueryError
from slackwater_lab import goals, moving, real, rivals, start
from slackwater_lab.concepts import page as concept_page
from slackwater_lab.experiment import Experiment
from slackwater_lab.papers import grubjoin, icde16, kim, thesis
from slackwater_lab.papers.pecj import page as pecj

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for part in (
        icde16,
        thesis,
        kim,
        grubjoin,
        pecj,
        goals,
        rivals,
        moving,
        real,
        start,
        concept_page,
    )
    for experiment in part.EXPERIMENTS
}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        msg = f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}"
        raise QueryError(msg)
    return EXPERIMENTS[name]
