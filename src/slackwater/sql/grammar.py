"""The words of the settings: which goals there are, and what else may follow WITH.

One table, from which texts are read and queries are written.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

from slackwater.query.goals import Goal, InputQuantile, Latency, MaxSlack, NoSlack, Recall, Slack
from slackwater.query.shedding import Harvest, RandomDrop, Shedding, TailDrop
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound


class GoalWords(NamedTuple):
    """How a goal is written: ``RECALL 0.95 OVER 1 MINUTE (model 'eqsel')``."""

    words: tuple[str, ...]
    kind: type[Goal]
    first: str | None = None  # the field that stands behind the words
    second: tuple[str, str] | None = None  # a word, and the field that stands behind it


GOALS = (
    GoalWords(("RECALL",), Recall, "target", ("OVER", "over")),
    GoalWords(("LATENCY",), Latency, "limit"),
    GoalWords(("INPUT", "QUANTILE"), InputQuantile, "target"),
    GoalWords(("DROP", "RATIO"), DropRatio, "ratio"),
    GoalWords(("ERROR", "BOUND"), ErrorBound, "bound"),
    GoalWords(("DEADLINE",), Deadline, "limit", ("AFTER", "after")),
    GoalWords(("MAX", "SLACK"), MaxSlack),
    GoalWords(("NO", "SLACK"), NoSlack),
    GoalWords(("SLACK",), Slack, "length"),
)
SHEDDING: tuple[tuple[tuple[str, ...], type[Shedding]], ...] = (
    (("HARVEST",), Harvest),
    (("RANDOM", "DROP"), RandomDrop),
    (("TAIL", "DROP"), TailDrop),
)
# Words, the option of the query, and what may follow: words with their values, or a kind of value.
CHOICES: tuple[tuple[tuple[str, ...], str, dict[tuple[str, ...], Any]], ...] = (
    (("LATE", "PROBE"), "late_probe", {("WINDOW", "END"): "window-end", ("NONE",): "none"}),
    (("LATE",), "late", {("EMIT",): "emit", ("COUNT",): "count", ("DROP",): "drop"}),
    (("PIPELINE",), "pipeline", {("CLOCKED",): "clocked", ("ICDE16",): "icde16"}),
    (("SLACK", "SCOPE"), "slack_scope", {("QUERY",): "query", ("SHARD",): "shard"}),
    (("OVERDUE",), "overdue", {("NOW",): "now", ("ADVANCE",): "advance"}),
    (("UNIT",), "unit", {("MS",): "ms", ("US",): "us"}),
    (("STRICT",), "strict", {(): True}),
    (("EMIT",), "emit", {("EAGER",): "eager", ("ORDERED",): "ordered"}),
    (("RESULT_ID",), "result_id", {(): True}),
)
VALUES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("RETENTION",), "retention"),
    (("CONFIDENCE",), "confidence"),
    (("BOUNDS",), "bounds"),
    (("MAX", "JUMP"), "max_jump"),
)
COMPENSATION = ("delays", "aema", "svi", "mlp", "mlp-elbo")

KINDS = ("left", "right", "full", "semi", "anti", "asof")  # of joins, besides inner ones
DIRECTIONS = ("backward", "forward", "nearest")

CLAUSES = ("WHERE", "GROUP BY", "SLIDE", "WINDOW", "WITH")
SETTINGS = (
    *(" ".join(goal.words) for goal in GOALS),
    *(" ".join(words) for words, *_ in CHOICES),
    *(" ".join(words) for words, _ in VALUES),
    "COMPENSATE",
    "SHED",
)
# A stream is not called so without AS.
RESERVED = frozenset(
    word for phrase in (*CLAUSES, *SETTINGS, "KEEP", "JOIN", "INNER", "USING", "ON", "AS", "OUTER",
                  "TOLERANCE", *KINDS, *DIRECTIONS)
    for word in phrase.upper().split()
)  # fmt: skip


def options_of(kind: type[Any], words: GoalWords | None = None) -> tuple[str, ...]:
    """The fields that are written in parentheses behind a goal or a way of shedding."""
    named = () if words is None else (words.first, words.second and words.second[1])
    return tuple(f.name for f in fields(kind) if f.name not in named)
