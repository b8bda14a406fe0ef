"""Which controller serves which goal."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.goal import DropRatio, InputQuantile, Latency, MaxSlack, Model, Recall, Slack
from slackwater.goals.controller import Controller
from slackwater.goals.fixed import FixedSlack
from slackwater.goals.icde16 import BufferSizeManager
from slackwater.goals.late_degree import LateDegreeController
from slackwater.goals.late_ratio import LateRatioController
from slackwater.goals.latency import LatencyController
from slackwater.goals.pd import PdController
from slackwater.goals.quantile import QuantileController
from slackwater.goals.recall import RecallController
from slackwater.query import Query
from slackwater.units import to_units

_OF_MODEL: dict[Model, Callable[[Query, Recall], Controller]] = {
    "measured": RecallController,
    "eqsel": BufferSizeManager,
    "noneqsel": BufferSizeManager,
    "late-degree": LateDegreeController,
    "pd": PdController,
}


def controller_for(query: Query) -> Controller:
    """The controller of the query's goal."""
    goal, unit = query.goal, query.unit
    if isinstance(goal, Slack):
        return FixedSlack(to_units(goal.length, unit, "slack"))
    if isinstance(goal, Recall):
        return _OF_MODEL[goal.model](query, goal)
    if isinstance(goal, InputQuantile):
        return QuantileController(query, goal)
    if isinstance(goal, Latency):
        return LatencyController(query, goal)
    if isinstance(goal, DropRatio) and goal.is_steered:
        return LateRatioController(query, goal)
    return FixedSlack(0, follows_delay=isinstance(goal, MaxSlack | DropRatio))
