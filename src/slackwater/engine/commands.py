"""Commands to a running query: on Spark, files dropped into its control directory.

A file holds one JSON object. Spark reads the directory as one more source, so a command is in its
offset log and a replay obeys it again.

>>> import slackwater as sw
>>> streams = sw.Stream("quotes", "ts", "1 s"), sw.Stream("trades", "ts", "1 s")
>>> query = sw.join(*streams, on="symbol", goal=sw.Recall(0.95))
>>> Command.parse('{"set": {"slack": "200 ms"}, "finished": ["trades"]}', query)
Command(slack=200, recall=None, finished=('trades',), flush=False)
>>> Command.parse('{"set": {"recall": 0.99}}', query)
Command(slack=None, recall=0.99, finished=(), flush=False)
>>> Command.parse('{"set": {"recall": 99}}', query)
Traceback (most recent call last):
slackwater.errors.DataError: recall must be above 0 and at most 1, got 99
>>> Command.parse('{"set": {"recall": 0.99}}', sw.join(*streams, goal=sw.Slack("1 s")))
Traceback (most recent call last):
slackwater.errors.DataError: recall can be set only where it is the goal, got Slack(length='1 s')
>>> Command.parse('{"slack": 5}', query)
Traceback (most recent call last):
slackwater.errors.DataError: a command may have flush, set and finished, got slack
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from slackwater.engine.base import AnyEngine
from slackwater.errors import DataError, QueryError
from slackwater.query.any_query import AnyQuery
from slackwater.query.goals import Recall
from slackwater.query.units import to_units


@dataclass(frozen=True)
class Command:
    """What to do before the rows of a micro-batch and, `flush`, behind them."""

    slack: int | None = None  # the new K, in units
    recall: float | None = None  # the new target of a query whose goal is a recall
    finished: tuple[str, ...] = ()  # streams of which no more will come
    flush: bool = False  # let everything out

    @classmethod
    def parse(cls, text: str, query: AnyQuery) -> Command:
        """The command to `query` that `text` is; an error if it is none."""
        try:
            payload = json.loads(text)
        except json.JSONDecodeError as error:
            msg = f"a command must be a JSON object, got {text.strip()[:60]!r}"
            raise DataError(msg) from error
        if not isinstance(payload, dict):
            msg = f"a command must be a JSON object, got {text.strip()[:60]!r}"
            raise DataError(msg)
        return cls.read(payload, query)

    @classmethod
    def read(cls, payload: dict[str, Any], query: AnyQuery) -> Command:
        """The same for a command that is parsed already."""
        _only(payload, ("flush", "set", "finished"), "a command")
        settings = payload.get("set", {})
        if not isinstance(settings, dict):
            msg = f"set must be a JSON object, got {settings!r}"
            raise DataError(msg)
        _only(settings, ("slack", "recall"), "set")
        finished = payload.get("finished", [])
        unknown = [name for name in finished if name not in query.names]
        if not isinstance(finished, list) or unknown:
            msg = f"finished must be a list of streams ({', '.join(query.names)}), got {finished!r}"
            raise DataError(msg)
        try:
            slack, recall = _slack(settings, query), _recall(settings, query)
        except QueryError as error:
            raise DataError(str(error)) from error
        return cls(slack, recall, tuple(finished), payload.get("flush") is True)

    def obey(self, engine: AnyEngine) -> None:
        """Let `engine` do what is commanded, but for `flush`, which comes behind the rows."""
        for name in self.finished:
            engine.finish(engine.query.names.index(name))
        if self.slack is not None:
            engine.set_slack(self.slack)
        goal = engine.query.goal
        if self.recall is not None and isinstance(goal, Recall):
            engine.set_goal(replace(goal, target=self.recall))

    def as_dict(self) -> dict[str, Any]:
        """What is commanded as plain data, without what is not.

        >>> Command(slack=0, finished=("a",)).as_dict()
        {'slack': 0, 'finished': ['a']}
        """
        plain: dict[str, Any] = {"slack": self.slack, "recall": self.recall}
        plain |= {"finished": list(self.finished) or None, "flush": self.flush or None}
        return {name: value for name, value in plain.items() if value is not None}


def _slack(settings: dict[str, Any], query: AnyQuery) -> int | None:
    if "slack" not in settings:
        return None
    if not query.has_slack:
        msg = f"slack cannot be set where the goal is {query.goal}"
        raise DataError(msg)
    return to_units(settings["slack"], query.unit, "slack")


def _recall(settings: dict[str, Any], query: AnyQuery) -> float | None:
    if "recall" not in settings:
        return None
    if not isinstance(query.goal, Recall):
        msg = f"recall can be set only where it is the goal, got {query.goal}"
        raise DataError(msg)
    return replace(query.goal, target=settings["recall"]).target


def _only(given: dict[str, object], allowed: Sequence[str], what: str) -> None:
    unknown = [name for name in given if name not in allowed]
    if unknown:
        *most, last = allowed
        listed = f"{', '.join(most)} and {last}" if most else last
        msg = f"{what} may have {listed}, got {', '.join(unknown)}"
        raise DataError(msg)
