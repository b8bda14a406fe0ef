"""All experiments by name."""

from __future__ import annotations

from slackwater.errors import QueryError
from slackwater_lab import goals, kinds, moving, publish, real, rivals, shards, start
from slackwater_lab.concepts import page as concept_page
from slackwater_lab.experiment import Experiment
from slackwater_lab.papers import grubjoin, icde16, icde16_readings, kim, thesis
from slackwater_lab.papers.pecj import integration
from slackwater_lab.papers.pecj import page as pecj

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for part in (
        icde16,
        icde16_readings,
        thesis,
        kim,
        grubjoin,
        pecj,
        integration,
        goals,
        rivals,
        moving,
        real,
        start,
        publish,
        shards,
        kinds,
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
