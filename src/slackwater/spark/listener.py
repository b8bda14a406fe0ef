"""What a streaming query tells about itself, as plain data: one JSON line per micro-batch.

``spark.streams.addListener(MetricsLog("metrics.jsonl"))`` logs every query of the session until
``removeListener``. It works on classic Spark and on Spark Connect, where the log is on the client.

>>> told = {"in_order": 7, "late_kept": 1, "late_dropped": 1, "buffered": 1, "shed": 0}
>>> told |= {"arrivals": 12, "rejected": {"bad_time": 2, "null_key": 0}, "streams": {}}
>>> is_balanced(told)
True
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.streaming.listener import StreamingQueryListener

from slackwater.engine.scale import Clock, warn_of_units
from slackwater.metrics.picture import merged
from slackwater.metrics.progress import asked
from slackwater.query.any_query import AnyQuery
from slackwater.query.units import PER_SECOND
from slackwater.spark.metrics import NAME

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

Line = dict[str, Any]

_FATES = ("in_order", "late_kept", "late_dropped", "buffered", "shed")


class Lines(StreamingQueryListener):
    """Tells each event of each query as plain data.

    Spark Connect drops a listener that raises, and classic Spark fills its log: whatever goes wrong
    in `tell` becomes a warning of the logger "slackwater". So do times that seem to be in another
    unit than the query's, going by another stream or by when they were read.

    Parameters
    ----------
    tell
        Gets each line.
    query
        What was asked, for the lines of starts and the unit of times; to be left out where several
        queries run.
    control
        Whether that query has a control directory.
    """

    _compared: ClassVar[set[str]] = set()  # runs; one may have several listeners

    def __init__(
        self,
        tell: Callable[[Line], None],
        query: AnyQuery | None = None,
        control: bool = False,
    ) -> None:
        self._tell = tell
        self._unit = None if query is None else query.unit
        self._asked = None if query is None else asked(query, control)
        self._names: dict[str, str | None] = {}  # of running queries; the last event has no name
        self._all_ended = Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """A query was started."""
        self._names[str(event.runId)] = event.name
        self._all_ended.clear()
        self._guarded(
            lambda: (
                self._head("started", event) | {"timestamp": event.timestamp, "query": self._asked}
            )
        )

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch is done."""
        self._guarded(lambda: self._with_clocks_compared(self.batch(event.progress)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing happened, so there is nothing to tell."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """A query has ended, by itself, by `stop` or by an error."""
        self._guarded(lambda: self._head("terminated", event) | {"exception": event.exception})
        self._names.pop(str(event.runId), None)
        if not self._names:
            self._all_ended.set()

    def wait(self, timeout_s: float = 10.0) -> bool:
        """Wait until every query that was seen to start was also seen to end; whether that is so.

        Spark tells what happened some time after it did: call this between the end of a query and
        ``removeListener``, or its last micro-batches may be missing.
        """
        return self._all_ended.wait(timeout_s)

    def batch(self, progress: StreamingQueryProgress) -> Line:
        """The line of a micro-batch; `metrics` is None if no shard of Slackwater had work."""
        row = progress.observedMetrics.get(NAME)
        metrics = None if row is None or row["shards"] is None else with_picture(plain(row))
        return {
            "event": "batch",
            "id": str(progress.id),
            "run_id": str(progress.runId),
            "name": progress.name,
            "batch": progress.batchId,
            "timestamp": progress.timestamp,
            "rows": progress.numInputRows,
            "duration_ms": progress.durationMs.get("triggerExecution", progress.batchDuration),
            "balanced": None if metrics is None else is_balanced(metrics),
            "metrics": metrics,
        }

    def _with_clocks_compared(self, line: Line) -> Line:
        """The line; warns once in a run, when all its streams have told a time."""
        if self._unit is None or line["metrics"] is None or line["run_id"] in self._compared:
            return line
        times = {name: told["local_time"] for name, told in line["metrics"]["streams"].items()}
        if None not in times.values():
            self._compared.add(line["run_id"])
            read = datetime.fromisoformat(line["timestamp"]).timestamp() * PER_SECOND[self._unit]
            clocks = [Clock(f"the time of stream {name!r}", time) for name, time in times.items()]
            warn_of_units([*clocks, Clock("when it was read", read)], self._unit)
        return line

    def _head(self, kind: str, event: QueryStartedEvent | QueryTerminatedEvent) -> Line:
        run = str(event.runId)
        return {"event": kind, "id": str(event.id), "run_id": run, "name": self._names.get(run)}

    def _guarded(self, line: Callable[[], Line]) -> None:
        try:
            self._tell(line())
        except Exception:  # whatever it is: the query must go on
            logging.getLogger(NAME).warning("an event was not logged", exc_info=True)


class MetricsLog(Lines):
    """A listener that appends one JSON line per micro-batch, start and end to a file.

    Each line is written at once and in one piece, so that it can be followed with ``tail -f``.

    Parameters
    ----------
    path
        The file; made with its directory if need be, and appended to if it is there.
    query, control
        See `Lines`.
    """

    def __init__(
        self, path: str | Path, query: AnyQuery | None = None, control: bool = False
    ) -> None:
        super().__init__(self._append, query, control)
        self.path = Path(path).absolute()  # whatever the working directory will be
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.open("a").close()  # an error about the path belongs here, not into the query

    def _append(self, line: Line) -> None:
        text = json.dumps(line, ensure_ascii=False, default=str)
        with self.path.open("a", encoding="utf-8") as log:
            log.write(text + "\n")


def plain(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    """An observed row as nested dicts; in `recentProgress` of Connect it is values and a schema.

    >>> plain({"values": [1], "schema": {"fields": [{"name": "shards"}]}})
    {'shards': 1}
    """
    fields: Mapping[str, Any] = row if isinstance(row, Mapping) else row.asDict()
    if set(fields) == {"values", "schema"}:
        names = [field["name"] for field in fields["schema"]["fields"]]
        fields = dict(zip(names, fields["values"], strict=True))
    return {name: _plain(value) for name, value in fields.items()}


def with_picture(metrics: dict[str, Any]) -> dict[str, Any]:
    """Observed metrics with one picture in place of the sketches of all shards."""
    sketches = [json.loads(text) for text in metrics.get("sketches", ()) if text is not None]
    return {name: value for name, value in metrics.items() if name != "sketches"} | {
        "picture": merged(sketches),
        "commands": sketches[0]["commands"] if sketches else [],  # each goes to every shard
    }


def is_balanced(metrics: Mapping[str, Any]) -> bool:
    """Whether each arrival has exactly one fate, over all and in each stream."""
    counted = sum(metrics[fate] for fate in _FATES) + sum(metrics["rejected"].values())
    streams = metrics.get("streams", {}).values()
    return bool(metrics["arrivals"] == counted) and all(map(is_balanced, streams))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping) or hasattr(value, "asDict"):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
