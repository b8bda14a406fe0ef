"""Which controller serves which goal."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.controllers.controller import Controller
from slackwater.controllers.fixed import FixedSlack
from slackwater.controllers.icde16 import BufferSizeManager
from slackwater.controllers.late_degree import LateDegreeController
from slackwater.controllers.late_ratio import LateRatioController
from slackwater.controllers.latency import LatencyController
from slackwater.controllers.lateness import LatenessController
from slackwater.controllers.measured import MeasuredLossController
from slackwater.controllers.pd import PdController
from slackwater.controllers.quantile import QuantileController
from slackwater.query.goals import InputQuantile, Latency, MaxSlack, Model, Recall, Slack
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.query.window_goals import DropRatio

_OF_MODEL: dict[Model, Callable[[JoinQuery, Recall], Controller]] = {
    "lateness": LatenessController,
    "measured": MeasuredLossController,
    "eqsel": BufferSizeManager,
    "noneqsel": BufferSizeManager,
    "late-degree": LateDegreeController,
    "pd": PdController,
}


def controller_for(query: JoinQuery) -> Controller:
    """The controller of the query's goal."""
    goal, unit = query.goal, query.unit
    if isinstance(goal, Slack):
        return FixedSlack(to_units(goal.length, unit, "slack"))
    if isinstance(goal, Recall):
        is_measurable = query.is_clocked or goal.model != "lateness"
        return _OF_MODEL[goal.model if is_measurable else "measured"](query, goal)
    if isinstance(goal, InputQuantile):
        return QuantileController(query, goal)
    if isinstance(goal, Latency):
        return LatencyController(query, goal)
    if isinstance(goal, DropRatio) and goal.is_steered:
        return LateRatioController(query, goal)
    return FixedSlack(0, follows_delay=isinstance(goal, MaxSlack | DropRatio))
