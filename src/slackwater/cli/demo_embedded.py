"""``slackwater demo --embedded``: what waiting costs and gains, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slackwater.cli.console import duration, out, print_json, progress

if TYPE_CHECKING:
    from slackwater.jobs.demo_embedded import GoalReport

_INTRO = (
    "Two soccer teams send the positions of their players, and some positions arrive late. "
    "The query finds opponents that came within 5 m of each other within 5 s; "
    "slack (K) is how long the join waits for late positions before it emits results."
)


def embedded_demo(seconds: int, seed: int, json: bool) -> None:
    """Join a generated soccer game under several goals, and compare."""
    from slackwater.jobs.demo_embedded import goals, run_goal
    from slackwater.jobs.measurement import sheet
    from slackwater.testing.workloads import soccer

    game = soccer(seconds, seed)
    if not json:
        out().print(_INTRO + "\n", highlight=False)
    named = [(name, (name, goal)) for name, goal in goals(seconds).items()]
    runs = progress(named, "demo", quiet=json)
    reports = [run_goal(name, goal, game, seconds) for name, goal in runs]
    if json:
        measured = [one for report in reports for one in report.measurements()]
        print_json(sheet("demo --embedded", seed, measured))
    else:
        _print_table(reports, seconds)


def _print_table(reports: Sequence[GoalReport], seconds: int) -> None:
    from rich import box
    from rich.table import Table

    from slackwater.jobs.demo_embedded import GAMMA, period_s

    true = reports[0].report.true
    table = Table(
        caption=(
            f"{seconds} s of play, {true:,} true results. Recall: share of them that was found. "
            f"Φ({GAMMA}): how often recall over the last {period_s(seconds)} s was {GAMMA:.0%} or "
            "more. Latency: how far event time had moved on when a result came out."
        ),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),  # fits 80 columns
    )
    table.add_column("\ngoal", no_wrap=True)
    for name in (
        "average\nK", "\nrecall", f"\nΦ({GAMMA})", "average\nlatency", "95 %\nlatency",
        "late\nevents", "results\nlost",
    ):  # fmt: skip
        table.add_column(name, justify="right", overflow="fold")
    for one in reports:
        report = one.report
        table.add_row(
            one.goal,
            duration(report.average_slack),
            f"{report.recall:.2%}",
            f"{report.phi:.0%}",
            duration(report.average_latency),
            duration(report.latency_95),
            f"{one.late:,}",
            f"{one.lost:,}",
        )
    console = out()
    console.print(table)
    console.print("\n" + _conclusion(reports), highlight=False)


def _conclusion(reports: Sequence[GoalReport]) -> str:
    from slackwater.jobs.demo_embedded import GAMMA, OURS

    by_goal = {one.goal: one.report for one in reports}
    least, ours, most = by_goal["NoSlack"], by_goal[OURS], by_goal["MaxSlack"]
    return (
        f"Without slack {1 - least.recall:.0%} of the results were lost; with the largest slack "
        f"{most.recall:.2%} were found, {duration(most.average_latency)} late on average; with a "
        f"recall target of {GAMMA:.0%} the join found {ours.recall:.1%}, "
        f"{duration(ours.average_latency)} late on average."
    )
