"""Commands to a running query: files dropped into its control directory.

A file holds one JSON object. Spark reads the directory as one more source, so a command is in its
offset log and a replay obeys it again.

>>> Command.parse(
...     '{"set": {"slack": "200 ms"}, "finished": ["trades"]}', ("quotes", "trades"), "ms"
... )
Command(slack=200, finished=('trades',), flush=False)
>>> Command.parse('{"slack": 5}', ("a", "b"), "ms")
Traceback (most recent call last):
slackwater.errors.DataError: a command may have flush, set and finished, got slack
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.errors import DataError, QueryError
from slackwater.units import TimeUnit, to_units


@dataclass(frozen=True)
class Command:
    """What to do before (`slack`, `finished`) and behind (`flush`) the rows of a micro-batch."""

    slack: int | None = None  # the new K, in units
    finished: tuple[str, ...] = ()  # streams of which no more will come
    flush: bool = False  # let everything out

    @classmethod
    def parse(cls, text: str, streams: Sequence[str], unit: TimeUnit) -> Command:
        """The command that `text` is, or an error that says what is wrong with it."""
        try:
            said = json.loads(text)
        except json.JSONDecodeError as error:
            msg = f"a command must be a JSON object, got {text.strip()[:60]!r}"
            raise DataError(msg) from error
        if not isinstance(said, dict):
            msg = f"a command must be a JSON object, got {text.strip()[:60]!r}"
            raise DataError(msg)
        _only(said, ("flush", "set", "finished"), "a command")
        settings = said.get("set", {})
        if not isinstance(settings, dict):
            msg = f"set must be a JSON object, got {settings!r}"
            raise DataError(msg)
        _only(settings, ("slack",), "set")
        finished = said.get("finished", [])
        unknown = [name for name in finished if name not in streams]
        if not isinstance(finished, list) or unknown:
            msg = f"finished must be a list of streams ({', '.join(streams)}), got {finished!r}"
            raise DataError(msg)
        try:
            slack = to_units(settings["slack"], unit, "slack") if "slack" in settings else None
        except QueryError as error:
            raise DataError(str(error)) from error
        return cls(slack, tuple(finished), said.get("flush") is True)


def _only(given: dict[str, object], allowed: Sequence[str], what: str) -> None:
    unknown = [name for name in given if name not in allowed]
    if unknown:
        *most, last = allowed
        listed = f"{', '.join(most)} and {last}" if most else last
        msg = f"{what} may have {listed}, got {', '.join(unknown)}"
        raise DataError(msg)
