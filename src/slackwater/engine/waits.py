"""Who chooses how long rows wait, and how long events are kept, where a goal asks for quality."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slackwater.controllers.controller import Controller, Interval
from slackwater.controllers.factory import controller_for
from slackwater.joins.at_once import JoinAtOnce
from slackwater.joins.matcher import Matcher
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS
from slackwater.query.units import to_units
from slackwater.stats.corrections import CorrectionReach
from slackwater.stats.needed import NeededWaits


class Waits:
    """A controller, and the statistics of `matcher` that it goes by."""

    def __init__(
        self, controller: Controller, matcher: Matcher | JoinAtOnce, what: str, right: float
    ) -> None:
        self.controller = controller
        self._needed = NeededWaits(matcher.record, what, right)

    def of(self, interval: Interval) -> Interval:
        """`interval`, which ends, with the waits that rows needed in it."""
        return replace(interval, lateness=self._needed.close())

    def next_length(self, interval: Interval) -> int:
        """How long from here on."""
        return self.controller.next_slack(self.of(interval))

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {"controller": self.controller.state(), "needed": self._needed.state()}

    def resume(self, state: dict[str, Any], same_goal: bool) -> None:
        """Go on from `state`; what was learnt for another goal is left out."""
        self._needed.resume(state["needed"])
        if same_goal:
            self.controller.resume(state["controller"])


def row_waits(query: JoinQuery, matcher: Matcher | JoinAtOnce) -> Waits | None:
    """Who chooses K by what rows need: those without partner, as-of and semi rows.

    In eager emission of pairs without other rows, K is how long events are kept.
    """
    if not isinstance(query.goal, Recall):
        return None
    what: str = query.how if query.how in ("asof", "semi") else "alone"
    if query.emit == "eager" and not any(query.preserved):
        what = "kept"
    right = query.goal.target
    if what == "alone":
        right = query.goal.unmatched or right
    return Waits(_controller(query, right), matcher, what, right)


def correction_reach(query: JoinQuery, matcher: Matcher | JoinAtOnce) -> CorrectionReach | None:
    """Who chooses how long events are kept so that wrong rows are found out, if a goal asks."""
    goal = query.goal
    if not isinstance(goal, Recall) or query.retained is not None:
        return None
    is_asof_or_semi = query.how in ("asof", "semi")
    if query.emit == "eager" and not any(query.preserved):
        return None  # nothing is decided: K is how long events are kept
    right = goal.target if is_asof_or_semi else goal.unmatched or goal.target
    every = _controller(query, right).every
    assert every is not None
    shares = keep_waits(query, matcher) is not None
    over = to_units(goal.over, query.unit, "over")
    return CorrectionReach(matcher.record, 1.0 - right, every, over, shares)


def keep_waits(query: JoinQuery, matcher: Matcher | JoinAtOnce) -> Waits | None:
    """Who chooses how long events are kept, where K is something else."""
    has_pairs = query.emit == "eager" and query.how in WITH_PAIRS and any(query.preserved)
    if not has_pairs or not isinstance(query.goal, Recall):
        return None
    return Waits(_controller(query, query.goal.target), matcher, "kept", 1.0)


def _controller(query: JoinQuery, target: float) -> Controller:
    assert isinstance(query.goal, Recall)
    return controller_for(replace(query, goal=replace(query.goal, target=target)))
