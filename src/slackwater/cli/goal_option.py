"""A goal on the command line: ``--goal "recall=0.95, over=30 s"``, as in a job file.

>>> parsed("recall=0.95, over=30 s")
{'recall': 0.95, 'over': '30 s'}
>>> parsed("max-slack")
'max-slack'
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slackwater.jobs.toml_table import JobFileError

GoalText = Annotated[
    str | None,
    typer.Option(
        "--goal",
        help='As in a job: "recall=0.95, over=30 s", "slack=1 s", "max-slack", …; '
        "that of the job if left out.",
        show_default=False,
    ),
]
RecallShort = Annotated[
    float | None, typer.Option("--recall", help='Short for --goal "recall=…".', show_default=False)
]
SlackShort = Annotated[
    str | None, typer.Option("--slack", help='Short for --goal "slack=…".', show_default=False)
]


def given_goal(goal: str | None, recall: float | None, slack: str | None) -> Any:
    """Return the goal as a job file has it; None if no option was given."""
    given = [
        *([] if goal is None else [parsed(goal)]),
        *([] if recall is None else [{"recall": recall}]),
        *([] if slack is None else [parsed(f"slack={slack}")]),
    ]
    if len(given) > 1:
        msg = "give one of --goal, --recall and --slack, got several"
        raise JobFileError(msg)
    return given[0] if given else None


def parsed(text: str) -> Any:
    """Parse a goal into the value that a job file has."""
    if "=" not in text:
        return text.strip()
    pairs = [part.partition("=") for part in text.split(",")]
    return {name.strip(): _value(value.strip()) for name, _, value in pairs}


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)
