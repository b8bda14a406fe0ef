"""``slackwater demo --embedded``: what waiting costs and what it buys, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from slackwater.cli.console import duration, out, print_json, progress

if TYPE_CHECKING:
    from slackwater.engine.report import Report
    from slackwater.jobs.measurement import Measurement
    from slackwater.query.goals import Goal

_GAMMA = 0.95
_OURS = f"Recall {_GAMMA}"

_INTRO = (
    "Two soccer teams send the positions of their players, and some positions arrive late. "
    "The query asks which opponents came within 5 m of each other within 5 s; "
    "slack (K) is how long the join waits for late positions before it answers."
)


class Outcome(NamedTuple):
    """What came of one goal."""

    goal: str
    report: Report
    late: int

    @property
    def lost(self) -> int:
        """True results that were not produced."""
        return self.report.true - self.report.produced

    def lines(self) -> list[Measurement]:
        """The figures of the table."""
        from slackwater.jobs.measurement import Measurement

        figures = {
            "average K": (self.report.average_slack, "ms"),
            "recall": (self.report.recall, "share"),
            f"Φ({_GAMMA})": (self.report.phi, "share"),
            "average latency": (self.report.average_latency, "ms"),
            "95 % latency": (self.report.latency_95, "ms"),
            "late events": (self.late, "events"),
            "results lost": (self.lost, "results"),
        }
        return [
            Measurement(f"{self.goal}: {name}", round(value, 4), unit)
            for name, (value, unit) in figures.items()
        ]


def embedded_demo(seconds: int, seed: int, json: bool) -> None:
    """Join a made-up soccer game under several goals, and compare."""
    from slackwater.jobs.measurement import sheet
    from slackwater.query.goals import MaxSlack, NoSlack, Recall, Slack
    from slackwater.testing.workloads import soccer

    period_s = max(1, min(10, seconds // 3))
    goals: dict[str, Goal] = {
        "NoSlack": NoSlack(),
        "Slack 100 ms": Slack("100 ms"),
        "Slack 1 s": Slack("1 s"),
        _OURS: Recall(_GAMMA, over=f"{period_s} seconds"),
        "MaxSlack": MaxSlack(),
    }
    game = soccer(seconds, seed)
    if not json:
        out().print(_INTRO + "\n", highlight=False)
    runs = progress([(name, (name, goal)) for name, goal in goals.items()], "demo", quiet=json)
    outcomes = [_run(name, goal, game, period_s) for name, goal in runs]
    if json:
        lines = [line for outcome in outcomes for line in outcome.lines()]
        print_json(sheet("demo --embedded", seed, lines))
    else:
        _print_table(outcomes, seconds, period_s)


def _run(name: str, goal: Goal, game: Mapping[str, Any], period_s: int) -> Outcome:
    from slackwater.query.join import Stream
    from slackwater.query.joining import join

    query = join(
        Stream("a", ts="ts", window="5 seconds"),
        Stream("b", ts="ts", window="5 seconds"),
        where="dist(a.x, a.y, b.x, b.y) < 5",
        select="count",
        goal=goal,
    )
    run = query.replay(game, arrival="arrival")
    report = run.report(_GAMMA, period=f"{period_s} seconds")
    return Outcome(name, report, run.metrics.late_kept + run.metrics.late_dropped)


def _print_table(outcomes: Sequence[Outcome], seconds: int, period_s: int) -> None:
    from rich import box
    from rich.table import Table

    true = outcomes[0].report.true
    table = Table(
        caption=(
            f"{seconds} s of play, {true:,} true results. Recall: share of them that was found. "
            f"Φ({_GAMMA}): how often recall over the last {period_s} s was {_GAMMA:.0%} or more. "
            "Latency: how far event time had moved on when a result came out."
        ),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),  # fits 80 columns
    )
    table.add_column("\ngoal", no_wrap=True)
    for name in (
        "average\nK", "\nrecall", f"\nΦ({_GAMMA})", "average\nlatency", "95 %\nlatency",
        "late\nevents", "results\nlost",
    ):  # fmt: skip
        table.add_column(name, justify="right", overflow="fold")
    for outcome in outcomes:
        report = outcome.report
        table.add_row(
            outcome.goal,
            duration(report.average_slack),
            f"{report.recall:.2%}",
            f"{report.phi:.0%}",
            duration(report.average_latency),
            duration(report.latency_95),
            f"{outcome.late:,}",
            f"{outcome.lost:,}",
        )
    console = out()
    console.print(table)
    console.print("\n" + _moral(outcomes), highlight=False)


def _moral(outcomes: Sequence[Outcome]) -> str:
    by_goal = {outcome.goal: outcome.report for outcome in outcomes}
    least, ours, most = by_goal["NoSlack"], by_goal[_OURS], by_goal["MaxSlack"]
    return (
        f"What to see: without waiting, answers come at once but {1 - least.recall:.0%} of them "
        f"are lost; waiting for the slowest position finds {most.recall:.2%} of them, but "
        f"{duration(most.average_latency)} later on average; a fixed slack in between is a guess, "
        f"good only while the delays stay as they are. Asked for a recall of {_GAMMA:.0%}, the "
        f"join finds its own slack: {ours.recall:.1%}, {duration(ours.average_latency)} later."
    )
