"""Commands from the page to a running query, as files in its control directory.

>>> settings_of(b'{"recall": 0.99}')
{'recall': 0.99}
>>> settings_of(b'{"recall": 99}')
Traceback (most recent call last):
slackwater.errors.DataError: recall must be a number above 0 and at most 1, got 99
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from slackwater.errors import DataError, QueryError
from slackwater.query.units import to_units

Settings = dict[str, Any]

_NUMBERED = re.compile(r"page-(\d+)\.json")


@dataclass(frozen=True)
class Control:
    """How to send commands to a query.

    `send` gets ``{"recall": 0.99}`` or ``{"slack": "1 s"}``, and raises a `SlackwaterError` if the
    query cannot take it. `query` is the name of the query; None means the one that is shown.
    """

    send: Callable[[Settings], None]
    query: str | None = None


def settings_of(body: bytes) -> Settings:
    """Parse and check the setting in the body of a request."""
    try:
        given = json.loads(body)
    except ValueError as error:
        msg = "the request must be a JSON object, got something else"
        raise DataError(msg) from error
    if not isinstance(given, dict) or len(given) != 1 or not given.keys() <= {"recall", "slack"}:
        msg = (
            f'the request must be like {{"recall": 0.99}} or {{"slack": "1 s"}}, got {given!r:.60}'
        )
        raise DataError(msg)
    return _recall(given["recall"]) if "recall" in given else _slack(given["slack"])


def _recall(value: Any) -> Settings:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 < value <= 1:
        msg = f"recall must be a number above 0 and at most 1, got {value!r:.60}"
        raise DataError(msg)
    return {"recall": value}


def _slack(value: Any) -> Settings:
    try:
        to_units(value, "us", "slack")
    except QueryError as error:
        raise DataError(str(error)) from error
    return {"slack": value}


class CommandFiles:
    """Writes commands into the control directory of a query that runs on Spark.

    Spark reads files in the order of their names, and must never read half of one: each is written
    under a hidden name first. Numbers continue after those of existing files.

    Parameters
    ----------
    directory
        The control directory; created where needed.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._lock = Lock()

    def created(self) -> Path:
        """Create the directory if it does not exist, and return it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return self.directory

    def set(self, settings: Settings) -> None:
        """Change a setting of the query."""
        self.write({"set": settings})

    def write(self, command: dict[str, Any]) -> Path:
        """Write a command and return its file."""
        try:
            with self._lock:
                return self._write_file(json.dumps(command))
        except OSError as error:
            msg = f"the command cannot be written into {self.directory}: {error.strerror}"
            raise DataError(msg) from error

    def _write_file(self, text: str) -> Path:
        self.created()
        found = [_NUMBERED.fullmatch(name) for name in os.listdir(self.directory)]
        number = 1 + max((int(match[1]) for match in found if match), default=0)
        file = self.directory / f"page-{number:08}.json"
        hidden = self.directory / f".{file.name}.{os.getpid()}"
        hidden.write_text(text + "\n", encoding="utf-8")
        hidden.rename(file)
        return file
