"""The progress of queries so far, in bounded memory.

Every line keeps its numbers, as columns; the larger drawings of a line (in `charts`) are kept for a
bounded number of lines, spread over the run, and for the last one.

>>> history = History()
>>> for n in range(3):
...     metrics = {"slack": 10 * n, "charts": {"recall": 0.9, "curve": [[0, 0.9, 5.0]]}}
...     history.take({"event": "batch", "id": "q1", "name": "m", "batch": n, "metrics": metrics})
>>> history.known()["queries"][0]["columns"]["slack"]
[0, 10, 20]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from threading import Condition, Event
from typing import Any

from slackwater.metrics.progress import ProgressLine
from slackwater.metrics.schema import AGGREGATES, DRAWINGS

MOST_LINES = 7_200  # of a query; beyond it every other line of the older half goes
MOST_DRAWINGS = 240  # of a query; beyond it every other one goes
MOST_WINDOWS = 2_000  # of an aggregate, the newest
MOST_RECENT = 600  # whole lines, for pages that lost their connection for a while

_DRAWINGS = tuple(metric.name for metric in DRAWINGS)
_NOT_COLUMNS = ("event", "id", "run_id", "name", "timestamp", "metrics", "charts", "commands")


class QueryHistory:
    """One query: its lines as columns, and what does not fit into columns."""

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.name = name
        self.started: ProgressLine | None = None
        self.ended: ProgressLine | None = None
        self.last: ProgressLine | None = None  # the last line of a micro-batch, whole
        self._numbers: list[int] = []
        self._columns: dict[str, list[Any]] = {}
        self._drawings: dict[int, Any] = {}
        self._commands: list[tuple[int, Any]] = []
        self._windows: deque[tuple[int, Any]] = deque(maxlen=MOST_WINDOWS)
        self._stride = 1  # every so many-th line keeps its drawings
        self._lines = 0

    def take(self, number: int, line: ProgressLine) -> None:
        """Add a line; `number` grows from line to line."""
        kind = line.get("event")
        if kind == "started":
            self.started, self.ended = line, None
        elif kind == "terminated":
            self.ended = line
        elif kind == "batch":
            self.last = line
            self._batch(number, line)

    def _batch(self, number: int, line: ProgressLine) -> None:
        metrics = line.get("metrics") or {}
        values = row_of(line)
        for path in values:
            if path not in self._columns:
                self._columns[path] = [None] * len(self._numbers)
        for path, column in self._columns.items():
            column.append(values.get(path))
        self._numbers.append(number)
        self._commands += [(number, command) for command in metrics.get("commands") or ()]
        charts = metrics.get("charts") or {}
        self._windows.extend((number, row) for row in charts.get(AGGREGATES.name) or ())
        drawn = {name: charts[name] for name in _DRAWINGS if charts.get(name) is not None}
        if drawn:
            self._keep_drawings(number, drawn)
        self._lines += 1
        if len(self._numbers) > MOST_LINES:
            self._thin()

    def _keep_drawings(self, number: int, drawn: Mapping[str, Any]) -> None:
        newest = next(reversed(self._drawings), None)
        if newest is not None and self._is_passing(newest):
            del self._drawings[newest]  # it was kept only as the last one
        self._drawings[number] = (self._lines, drawn)
        if len(self._drawings) > MOST_DRAWINGS:
            self._stride *= 2
            self._drawings = {
                n: kept
                for n, kept in self._drawings.items()
                if n == number or not self._is_passing(n)
            }

    def _is_passing(self, number: int) -> bool:
        return bool(self._drawings[number][0] % self._stride)

    def _thin(self) -> None:
        half = len(self._numbers) // 2
        self._numbers[:half] = self._numbers[:half:2]
        for column in self._columns.values():
            column[:half] = column[:half:2]

    def known(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "key": self.key,
            "name": self.name,
            "started": self.started,
            "ended": self.ended,
            "numbers": list(self._numbers),
            "columns": {path: list(column) for path, column in self._columns.items()},
            "drawings": {str(number): drawn for number, (_, drawn) in self._drawings.items()},
            "commands": list(self._commands),
            "windows": list(self._windows),
        }


class History:
    """The progress of all queries; lines may come from any thread."""

    def __init__(self) -> None:
        self._queries: dict[str, QueryHistory] = {}
        self._recent: deque[tuple[int, ProgressLine]] = deque(maxlen=MOST_RECENT)
        self._last = 0
        self._changed = Condition()

    def take(self, line: ProgressLine) -> None:
        """Add a line of `slackwater.spark.listener.Lines`; it must not be changed later."""
        key = str(line.get("id") or line.get("name") or "query")
        with self._changed:
            self._last += 1
            if key not in self._queries:
                self._queries[key] = QueryHistory(key, str(line.get("name") or key))
            self._queries[key].take(self._last, line)
            self._recent.append((self._last, line))
            self._changed.notify_all()

    def known(self) -> dict[str, Any]:
        """Return everything so far, and the number of its last line."""
        with self._changed:
            queries = [query.known() for query in self._queries.values()]
            return {"last": self._last, "queries": queries}

    def latest(self) -> dict[str, ProgressLine]:
        """Return the last micro-batch of each query, by name."""
        with self._changed:
            queries = self._queries.values()
            return {query.name: query.last for query in queries if query.last is not None}

    def after(
        self, number: int, timeout_s: float, over: Event | None = None
    ) -> list[tuple[int, ProgressLine]] | None:
        """Return the lines after `number`; None if some of them are no longer kept.

        Without new lines it waits up to `timeout_s`, unless `over` is set.
        """
        with self._changed:
            if self._last == number and not (over is not None and over.is_set()):
                self._changed.wait(timeout_s)
            oldest = self._recent[0][0] if self._recent else 1
            if number + 1 < oldest or number > self._last:
                return None
            return [(n, line) for n, line in self._recent if n > number]

    def wake(self) -> None:
        """Wake all threads that wait for lines."""
        with self._changed:
            self._changed.notify_all()


def row_of(line: ProgressLine) -> dict[str, Any]:
    """Return the numbers and texts of a line by their path, without the lists.

    >>> row_of({"batch": 3, "metrics": {"slack": 5, "streams": {"a": {"arrivals": 7}}}})
    {'batch': 3, 'slack': 5, 'streams.a.arrivals': 7}
    >>> row_of({"timestamp": "1970-01-01T00:00:02.500Z", "metrics": {"charts": {"now": 4}}})
    {'time': 2500, 'charts.now': 4}
    """
    metrics = line.get("metrics") or {}
    row = {name: value for name, value in line.items() if name not in _NOT_COLUMNS}
    row |= {name: value for name, value in metrics.items() if name not in _NOT_COLUMNS}
    if (ms := _milliseconds(line.get("timestamp"))) is not None:
        row = {"time": ms, **row}
    row["charts"] = metrics.get("charts")
    return dict(_flat(row, ""))


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, float):
            yield prefix + name, float(f"{value:.7g}")  # as exact as a page shows
        elif isinstance(value, bool | int | str):
            yield prefix + name, value


def _milliseconds(timestamp: Any) -> int | None:
    try:
        return round(1000 * datetime.fromisoformat(timestamp).timestamp())
    except (TypeError, ValueError):
        return None
