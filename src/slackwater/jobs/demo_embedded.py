"""The demo without Spark: a generated soccer game, joined under several goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from slackwater.engine.report import Report
from slackwater.jobs.measurement import Measurement
from slackwater.query.goals import Goal, MaxSlack, NoSlack, Recall, Slack
from slackwater.query.join import join
from slackwater.query.stream import Stream

GAMMA = 0.95  # the target
OURS = f"Recall {GAMMA}"


class GoalReport(NamedTuple):
    """The results under one goal."""

    goal: str
    report: Report
    late: int

    @property
    def lost(self) -> int:
        """True results that were not produced."""
        return self.report.true - self.report.produced

    def measurements(self) -> list[Measurement]:
        """Return all numbers."""
        report = self.report
        numbers = {
            "average K": (report.average_slack, "ms"),
            "recall": (report.recall, "share"),
            f"Φ({GAMMA})": (report.phi, "share"),
            "average latency": (report.average_latency, "ms"),
            "95 % latency": (report.latency_95, "ms"),
            "late events": (self.late, "events"),
            "results lost": (self.lost, "results"),
        }
        return [
            Measurement(f"{self.goal}: {name}", round(value, 4), unit)
            for name, (value, unit) in numbers.items()
        ]


def period_s(seconds: int) -> int:
    """Return the period over which recall is measured, for a game of so many seconds."""
    return max(1, min(10, seconds // 3))


def goals(seconds: int) -> dict[str, Goal]:
    """Return the goals to compare, by name."""
    return {
        "NoSlack": NoSlack(),
        "Slack 100 ms": Slack("100 ms"),
        "Slack 1 s": Slack("1 s"),
        OURS: Recall(GAMMA, over=f"{period_s(seconds)} seconds"),
        "MaxSlack": MaxSlack(),
    }


def run_goal(name: str, goal: Goal, game: Mapping[str, Any], seconds: int) -> GoalReport:
    """Join the game under a goal."""
    query = join(
        Stream("a", ts="ts", window="5 seconds"),
        Stream("b", ts="ts", window="5 seconds"),
        where="dist(a.x, a.y, b.x, b.y) < 5",
        select="count",
        goal=goal,
    )
    run = query.replay(game, arrival="arrival")
    report = run.report(GAMMA, over=f"{period_s(seconds)} seconds")
    return GoalReport(name, report, run.metrics.late_kept + run.metrics.late_dropped)
