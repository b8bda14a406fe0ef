"""The one table of metrics: each metric is a line here.

The columns that Spark observes (`spark.metrics`), the metrics lines (`metrics.progress`), the text
for Prometheus (`metrics.prometheus`), the columns of the dashboard and docs/metrics.md are made of
it. A new metric is a line in the table, beside the field or counter that holds its value
(`metrics.counters`).

>>> [metric.name for metric in METRICS if metric.unit == "bytes"]
['state_bytes']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Scope = Literal["stream", "query", "line", "charts"]
"""Where a metric is in a metrics line.

``"stream"``: in ``metrics.streams`` for each stream; what is summed is in ``metrics`` too, added up
over all streams. ``"query"``: in ``metrics``. ``"line"``: in the line itself, of the micro-batch.
``"charts"``: in ``metrics.charts``, the state at the end of the micro-batch.
"""

Unit = Literal[
    "rows", "events", "results", "shards", "bytes", "files", "number", "flag",
    "share",  # of 1
    "time",  # in the unit of the query; Prometheus has seconds
    "milliseconds",
    "state",  # one of `counters.STATES`
    "reasons",  # rows by `counters.REASONS`
    "times",  # a time for each stream
    "histogram",  # counts of delays, for each stream
    "text",
    "drawing",  # lists, only for charts
    "table",  # rows, only for charts
]  # fmt: skip


@dataclass(frozen=True)
class Share:
    """What a metric is of the sum of several; null while that is 0, or without a recall.

    `less` is taken away from it first.
    """

    part: str
    of: tuple[str, ...]
    less: str | None = None
    needs_recall: bool = True


@dataclass(frozen=True)
class Each:
    """The value of another metric in each shard, as a list."""

    name: str


Fold = Literal["sum", "max", "min", "known", "least", "norm", "once"] | Share | Each
"""How the values of all shards become one.

``"known"`` is the largest of those that are known, ``"least"`` the smallest if all are known,
``"norm"`` the square root of the sum of squares (for standard errors). ``"once"`` is not folded:
whoever writes the line has it.
"""


@dataclass(frozen=True)
class Metric:
    """A figure that a running query reports.

    Parameters
    ----------
    name
        Its key in metrics lines and in Spark's observed metrics.
    scope
        Where it is in a line.
    fold
        How the values of all shards become one.
    unit
        What is counted or measured.
    prometheus
        Its name in Prometheus behind ``slackwater_``; ``_total`` at the end makes it a counter.
        None: it is not there.
    help
        What it means; sentences.
    """

    name: str
    scope: Scope
    fold: Fold
    unit: Unit
    prometheus: str | None
    help: str

    @property
    def path(self) -> str:
        """Where it is among the columns of the dashboard; ``*`` is each stream.

        >>> METRICS[0].path
        'streams.*.arrivals'
        """
        prefix = {"stream": "streams.*.", "charts": "charts."}.get(self.scope, "")
        return prefix + self.name + (".*" if self.unit == "times" else "")


METRICS = (
    # ---- rows: each arrival is counted in exactly one of the six metrics behind `arrivals`
    Metric("arrivals", "stream", "sum", "rows", "arrivals_total",
           "Rows that arrived; each is counted in exactly one of the next six metrics."),
    Metric("in_order", "stream", "sum", "events", "in_order_total",
           "Events that went through in time."),
    Metric("late_kept", "stream", "sum", "events", "late_kept_total",
           "Late events that were stored: they can be part of results to come."),
    Metric("late_dropped", "stream", "sum", "events", "late_dropped_total",
           "Late events that were too old to be stored."),
    Metric("buffered", "stream", "sum", "events", "buffered",
           "Events that wait to be put in order."),
    Metric("shed", "stream", "sum", "events", "shed_total",
           "Events refused for lack of CPU (load shedding)."),
    Metric("rejected", "stream", "sum", "reasons", "rejected_total",
           "Rows that could not take part, by reason."),
    Metric("behind", "stream", "sum", "rows", "behind_total",
           "Rows whose arrival had passed already; taken as arriving now."),
    Metric("local_time", "stream", "known", "time", "local_time_seconds",
           "Largest event time that the stream has delivered."),
    Metric("state", "stream", "max", "state", "stream_state",
           "State of the stream: active; slow when the others wait for it; idle when it sent no "
           "rows for `idle_after`, so that it no longer holds back the join; finished when a "
           "command ended it."),
    # ---- results
    Metric("produced", "query", "sum", "results", "results_total",
           "Results in time."),
    Metric("lost", "query", "sum", "results", "results_lost_total",
           'Results lost because of late events; with `late = "emit"` they are emitted, '
           "marked."),
    Metric("lost_unknown", "query", "sum", "events", "lost_unknown_total",
           "Late events for which `lost` is only a lower bound: events were not kept long enough "
           "to count (`retention`)."),
    Metric("lost_estimated", "query", "sum", "results", "results_lost_estimated",
           "Results lost with those events beyond what `lost` counts, estimated from a sample of "
           "the events that is kept longer; right on average. Of results at once: as if late "
           "events had as many partners as others."),
    Metric("lost_estimated_error", "query", "norm", "results", "results_lost_estimated_error",
           "Two standard errors of `lost_estimated`. While the sample has found nothing, 3 divided "
           "by the share of it: with 95 % confidence, that much was not found."),
    Metric("lost_not_estimated", "query", "sum", "events", "lost_not_estimated_total",
           "Events of `lost_unknown` that are later than the sample reaches too, or for which "
           "there is no sample: what they lost beyond `lost` is in no metric."),
    Metric("unmatched_rows", "query", "sum", "results", "unmatched_rows_total",
           "Rows without partner of outer and anti joins, and all rows of as-of joins, that were "
           "in time."),
    Metric("unmatched_rows_late", "query", "sum", "results", "unmatched_rows_late_total",
           "Such rows whose event came when their turn had passed."),
    Metric("withdrawn_rows", "query", "sum", "results", "withdrawn_rows_total",
           "Rows without partner for which a partner came later, and corrections of as-of rows."),
    Metric("right_rows", "query",
           Share("unmatched_rows", ("unmatched_rows",), "withdrawn_rows", needs_recall=False),
           "share", "right_rows_ratio",
           "Share of `unmatched_rows` that were right, as far as is known by now; never too high "
           "for that: corrections of late rows and second ones of as-of rows count too. Null "
           "before the first."),
    Metric("right_target", "query", "known", "share", "right_rows_target_ratio",
           "Present target of `right_rows`; null if the goal has none."),
    Metric("missed", "query", "sum", "results", "results_missed",
           "Results that load shedding skipped, estimated from a sample."),
    Metric("missed_error", "query", "norm", "results", "results_missed_error",
           "Two standard errors of `missed`."),
    Metric("recall", "query",
           Share("produced", ("produced", "lost", "lost_estimated", "missed")), "share",
           "recall_ratio",
           "Recall since the first start: the share of true results that were in time. Too high "
           "if `lost_not_estimated` is not 0; null before the first result, and for anti and as-of "
           "joins, windows and aggregates."),
    Metric("target", "query", "known", "share", "recall_target_ratio",
           "Present recall target; null if the goal is another."),
    # ---- time
    Metric("slack", "query", "max", "time", "slack_seconds",
           "K now, the largest of all shards."),
    Metric("complete_through", "query", "least", "time", "complete_through_seconds",
           "The largest time that no later result in time can have: those of the micro-batches to "
           "come are above it. With one K for all shards (`slack_scope`) those of this one are not "
           "above it by more than one unit. Null while nothing is complete, and for windows and "
           "aggregates."),
    Metric("max_delay", "query", "max", "time", "max_delay_seconds",
           "Largest delay of an event behind its own stream."),
    Metric("max_lateness", "query", "max", "time", "max_lateness_seconds",
           "Largest lateness of an event behind the join."),
    # ---- resources
    Metric("stored", "query", "sum", "events", "stored",
           "Events in the windows."),
    Metric("sampled", "query", "sum", "events", "sampled",
           "Events in the sample that is kept longer; see `lost_estimated`."),
    Metric("state_bytes", "query", "sum", "bytes", "state_bytes",
           "Size of the state; 0 where nothing is saved."),
    Metric("copies", "query", "sum", "events", "copies_total",
           "Events copied to more than one shard."),
    Metric("evicted", "query", "sum", "events", "evicted_total",
           "Events that left the windows early, for lack of memory."),
    Metric("throttle", "query", "min", "share", "throttle_ratio",
           "Share of the join's work that is done by the busiest shard; 1: nothing is shed."),
    Metric("throttles", "query", Each("throttle"), "share", None,
           "The same by each shard; null for a shard without work."),
    Metric("backlog", "query", "max", "time", "backlog_seconds",
           "How long the waiting work will take, in the busiest shard; only known with load "
           "shedding."),
    Metric("shards", "query", "sum", "shards", "shards",
           "Shards that had work."),
    Metric("restored", "query", "sum", "shards", "restored_shards",
           "Shards loaded from the checkpoint in this micro-batch, not kept by a running worker."),
    Metric("refused_commands", "query", "max", "files", "refused_commands",
           "Files in the control directory that were not commands, in this micro-batch."),
    # ---- the micro-batch
    Metric("batch", "line", "once", "number", "batch",
           "Number of the last micro-batch."),
    Metric("rows", "line", "once", "rows", "batch_rows",
           "Rows of the last micro-batch."),
    Metric("duration_ms", "line", "once", "milliseconds", "batch_duration_seconds",
           "Time that the last micro-batch took."),
    Metric("balanced", "line", "once", "flag", "balanced",
           "Whether `arrivals` is the sum of the six metrics behind it, in each stream; 1 in "
           "Prometheus if so."),
    # ---- charts
    Metric("unit", "charts", "once", "text", None,
           'Of all times: "ms" or "us".'),
    Metric("now", "charts", "once", "time", None,
           "Largest event time so far."),
    Metric("recall", "charts", "once", "share", "recall_recent_ratio",
           "Recall over the last period of result time, the `over` of a goal `recall`; null with "
           "other goals. Results that load shedding skips count as lost."),
    Metric("leads", "charts", "once", "times", "lead_seconds",
           "How far the local time of each stream is ahead of the slowest one's."),
    Metric("latency", "charts", "once", "time", "latency_seconds",
           "Expected latency of a result: K plus the lead of the fastest stream, on average "
           "where the goal learns it; null for aggregates, which have a deadline."),
    Metric("delays", "charts", "once", "histogram", "delay_seconds",
           "Recent delays of each stream: `counts` of delays that begin at `edges`, 0, 1, 2, 4, "
           "8, … In Prometheus counts also fall, and the sum is an estimate."),
    Metric("curve", "charts", "once", "drawing", None,
           "`[K, recall, latency]`: the values of each K, up to 40 points. For a goal `recall` the "
           "recall is measured: the share of the last results that were not later than K. For "
           "others it is that of a model."),
    Metric("chosen", "charts", "once", "drawing", None,
           "The point of the curve where K is now. It is above the target by what keeps the "
           "promise in bad periods too."),
    Metric("slack_reason", "charts", "once", "drawing", None,
           "Why K is what it is, in words; of the shard with the largest K. Only of a goal "
           "`recall` with its default model."),
    Metric("harvest", "charts", "once", "drawing", None,
           "With `shed = \"adaptive\"`: which share of each direction's events searches each "
           "basic window, newest first; of the shard that sheds most."),
    Metric("aggregates", "charts", "once", "table", None,
           "For aggregates: the last result rows of this micro-batch, at most 20."),
)  # fmt: skip


def of_scope(scope: Scope) -> tuple[Metric, ...]:
    """The metrics of a scope, in the order of the table."""
    return tuple(metric for metric in METRICS if metric.scope == scope)


def _named(scope: Scope, names: Iterable[str]) -> tuple[Metric, ...]:
    by_name = {metric.name: metric for metric in of_scope(scope)}
    return tuple(by_name[name] for name in names)


STREAM = of_scope("stream")
QUERY = of_scope("query")
CHARTS = of_scope("charts")
DRAWINGS = tuple(metric for metric in CHARTS if metric.unit in ("drawing", "histogram"))
(AGGREGATES,) = (metric for metric in CHARTS if metric.unit == "table")

TOTALS = tuple(metric for metric in STREAM if metric.fold == "sum")
"""What a line has by stream and, added up, for the query."""

MEASURED = tuple(metric for metric in QUERY if not isinstance(metric.fold, Share | Each))
"""What each shard measures itself."""

DERIVED = tuple(metric for metric in QUERY if metric not in MEASURED)
"""What follows from it."""

ARRIVALS, LOCAL_TIME = _named("stream", ["arrivals", "local_time"])
PRODUCED, SHARDS = _named("query", ["produced", "shards"])

FATES = _named("stream", ["in_order", "late_kept", "late_dropped", "buffered", "shed", "rejected"])
"""The accounting partition: each arrival is in exactly one of these."""
