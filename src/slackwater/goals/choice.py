"""Which controller serves which goal."""

from __future__ import annotations

from slackwater.goal import MaxSlack, Recall, Slack
from slackwater.goals.controller import Controller
from slackwater.goals.fixed import FixedSlack
from slackwater.goals.recall import RecallController
from slackwater.query import Query
from slackwater.units import to_units


def controller_for(query: Query) -> Controller:
    """The controller of the query's goal."""
    goal, unit = query.goal, query.unit
    if isinstance(goal, Slack):
        return FixedSlack(to_units(goal.length, unit, "slack"))
    if isinstance(goal, Recall):
        return RecallController(query, goal)
    return FixedSlack(0, follows_delay=isinstance(goal, MaxSlack))
