"""What a streaming query reports, as plain data: one JSON line per micro-batch.

``spark.streams.addListener(MetricsLog("metrics.jsonl"))`` logs every query of the session until
``removeListener``. It works on classic Spark and on Spark Connect, where the log is on the client.
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
from slackwater.metrics import charts
from slackwater.metrics.progress import (
    BatchLine,
    ProgressLine,
    is_balanced,
    query_dict,
    with_charts,
)
from slackwater.metrics.schema import LOCAL_TIME, SHARDS
from slackwater.query.any_query import AnyQuery
from slackwater.query.units import PER_SECOND
from slackwater.spark.metrics import NAME, read_chart_part

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )
    from pyspark.sql.streaming.query import StreamingQuery


class Lines(StreamingQueryListener):
    """Reports each event of each query as plain data.

    Spark Connect drops a listener that raises, and classic Spark fills its log: an error in
    `report` becomes a warning of the logger "slackwater". So do times that seem to be in another
    unit than the query's, compared with another stream or with the time at which they were read.

    Parameters
    ----------
    report
        Gets each line.
    query
        The query, for the lines of starts and the unit of times; to be left out where several
        queries run.
    control
        Whether that query has a control directory.
    """

    _compared: ClassVar[set[str]] = set()  # runs; one may have several listeners

    def __init__(
        self,
        report: Callable[[ProgressLine], None],
        query: AnyQuery | None = None,
        control: bool = False,
    ) -> None:
        self._report = report
        self._unit = None if query is None else query.unit
        self._query = None if query is None else query_dict(query, control)
        self._names: dict[str, str | None] = {}  # of running queries; the last event has no name
        self._all_ended = Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """A query was started."""
        self._names[str(event.runId)] = event.name
        self._all_ended.clear()
        self._guarded(
            lambda: (
                self._head("started", event) | {"timestamp": event.timestamp, "query": self._query}
            )
        )

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch is done."""
        self._guarded(lambda: self._with_clocks_compared(self.batch(event.progress)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing happened, so there is nothing to report."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """A query has ended, by itself, by `stop` or by an error."""
        self._guarded(lambda: self._head("terminated", event) | {"exception": event.exception})
        self._names.pop(str(event.runId), None)
        if not self._names:
            self._all_ended.set()

    def wait(self, timeout_s: float = 10.0) -> bool:
        """Wait until the end of every query whose start was reported.

        Spark reports an event some time after it happened: call this between the end of a query and
        ``removeListener``, or its last micro-batches may be missing.

        Parameters
        ----------
        timeout_s
            How long to wait at most.

        Returns
        -------
        bool
            Whether all of them have ended.
        """
        return self._all_ended.wait(timeout_s)

    def batch(self, progress: StreamingQueryProgress) -> ProgressLine:
        """The line of a micro-batch; `metrics` is None if no shard of Slackwater had work."""
        row = progress.observedMetrics.get(NAME)
        metrics = None
        if row is not None and row[SHARDS.name] is not None:
            metrics = with_merged_charts(plain(row))
        return BatchLine(
            id=str(progress.id),
            run_id=str(progress.runId),
            name=progress.name,
            batch=progress.batchId,
            timestamp=progress.timestamp,
            rows=progress.numInputRows,
            duration_ms=progress.durationMs.get("triggerExecution", progress.batchDuration),
            balanced=None if metrics is None else is_balanced(metrics),
            metrics=metrics,
        ).as_dict()

    def _with_clocks_compared(self, line: ProgressLine) -> ProgressLine:
        """The line; warns once in a run, as soon as all its streams have a time."""
        if self._unit is None or line["metrics"] is None or line["run_id"] in self._compared:
            return line
        streams = line["metrics"]["streams"].items()
        times = {name: stream[LOCAL_TIME.name] for name, stream in streams}
        if None not in times.values():
            self._compared.add(line["run_id"])
            read = datetime.fromisoformat(line["timestamp"]).timestamp() * PER_SECOND[self._unit]
            clocks = [Clock(f"the time of stream {name!r}", time) for name, time in times.items()]
            warn_of_units([*clocks, Clock("when it was read", read)], self._unit)
        return line

    def _head(self, kind: str, event: QueryStartedEvent | QueryTerminatedEvent) -> ProgressLine:
        run = str(event.runId)
        return {"event": kind, "id": str(event.id), "run_id": run, "name": self._names.get(run)}

    def _guarded(self, line: Callable[[], ProgressLine]) -> None:
        try:
            self._report(line())
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

    def _append(self, line: ProgressLine) -> None:
        text = json.dumps(line, ensure_ascii=False, default=str)
        with self.path.open("a", encoding="utf-8") as log:
            log.write(text + "\n")


def latest_metrics(query: StreamingQuery) -> dict[str, Any] | None:
    """Return the metrics of the last micro-batch that had any work.

    A micro-batch without data, such as the last one of a run, has none: in ``lastProgress`` they
    are all null.

    Parameters
    ----------
    query
        A query that was started; it may have ended.

    Returns
    -------
    dict or None
        Plain data under the names of docs/metrics.md; None before the first micro-batch.

    Examples
    --------
    >>> query = matches.writeStream.format("memory").queryName("m").start()  # doctest: +SKIP
    >>> latest_metrics(query)["recall"]  # doctest: +SKIP
    0.97
    """
    for progress in reversed(query.recentProgress):
        row = progress.observedMetrics.get(NAME)
        metrics = None if row is None else plain(row)
        if metrics is not None and metrics[SHARDS.name] is not None:
            return with_merged_charts(metrics)
    return None


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


def with_merged_charts(metrics: dict[str, Any]) -> dict[str, Any]:
    """Observed metrics with the charts of the query in place of the parts of its shards."""
    others = dict(metrics)
    parts = [read_chart_part(text) for text in others.pop("chart_parts", ()) if text is not None]
    commands = parts[0][1] if parts else []  # each goes to every shard
    return with_charts(others, charts.merge([part for part, _ in parts]), commands)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping) or hasattr(value, "asDict"):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
