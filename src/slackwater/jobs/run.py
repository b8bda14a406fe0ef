"""Run a job on a Spark session: check it against its checkpoint, start it, summarise it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slackwater.jobs.checkpoint import Checkpoint
from slackwater.jobs.goal import goal_text
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.plan import Planner, known_before, settings
from slackwater.jobs.toml_table import JobFileError
from slackwater.jobs.watch import QueryWatch, follow
from slackwater.metrics.progress import MetricsView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from slackwater.jobs.job import JobFile


def start_line(job: JobFile) -> str:
    """Return what a user should know before anything runs: the query and its goal."""
    query = job.query
    return f"{job.name}: {query.kind} of {', '.join(query.names)}; goal: {goal_text(query.goal)}"


class JobRun:
    """A job with its checkpoint.

    Parameters
    ----------
    job
        The job; it must fit what the checkpoint has.

    Raises
    ------
    JobFileError
        If the checkpoint belongs to another query.
    """

    def __init__(self, job: JobFile) -> None:
        self._job = job
        self._checkpoint = Checkpoint(job.checkpoint, job.file)
        self._checkpoint.check(known_before(job))
        self.settings = settings(job, self._checkpoint.saved)  # for the session

    def check(self, spark: SparkSession) -> None:
        """Check all that Spark can check; start and write nothing."""
        planner, *_ = self._plan(spark, may_write=False)
        planner.check_files()

    def run(
        self,
        spark: SparkSession,
        watch: QueryWatch,
        receivers: Sequence[Callable[[dict[str, Any]], None]] = (),
        on_start: Callable[[], None] = lambda: None,
    ) -> bool:
        """Run the job until it ends; return whether it was stopped.

        Parameters
        ----------
        spark
            A session with `settings`.
        watch
            Collects the progress of the query.
        receivers
            Called with each progress line; each gets lines of its own.
        on_start
            Called before the query starts.
        """
        from slackwater.spark.listener import Lines

        job = self._job
        planner, joined, fingerprint = self._plan(spark, may_write=True)
        has_control = "control" in job.options and job.trigger_ms is not None
        listeners: list[StreamingQueryListener] = [
            Lines(watch.take, job.query),
            *self._metrics_log(),
            *(Lines(receive, job.query, has_control) for receive in receivers),
        ]
        self._checkpoint.claim(fingerprint)
        on_start()
        return follow(spark, lambda: planner.start(joined), watch, listeners)

    def _plan(self, spark: SparkSession, may_write: bool) -> tuple[Planner, Any, dict[str, Any]]:
        planner = Planner(self._job, spark)
        fingerprint = planner.fingerprint()
        self._checkpoint.check(fingerprint)
        planner.check_sink()
        return planner, planner.joined(may_write), fingerprint

    def _metrics_log(self) -> list[StreamingQueryListener]:
        from slackwater.spark.listener import MetricsLog

        job = self._job
        if job.metrics is None:
            return []
        try:
            return [MetricsLog(job.metrics, job.query, control="control" in job.options)]
        except OSError as error:
            msg = f"{job.file}: [job] metrics {job.metrics} cannot be written: {error.strerror}"
            raise JobFileError(msg) from error


def summary(watch: QueryWatch) -> list[Measurement]:
    """Return the numbers of this run and, from the metrics, those since the first start."""
    metrics = MetricsView(watch.metrics)
    found = [
        Measurement("micro-batches", len(watch.lines), "batches"),
        Measurement("rows in", watch.rows, "rows"),
    ]
    if watch.rows_per_s is not None:
        found.append(Measurement("speed", round(watch.rows_per_s), "rows/s"))
    if watch.metrics is None:
        return found
    found += [
        Measurement("rows since the first start", metrics.arrivals, "rows"),
        Measurement("results", metrics.produced, "results"),
        Measurement("results lost", metrics.lost, "results"),
        Measurement("late events", metrics.late_kept + metrics.late_dropped, "events"),
        Measurement("events of unknown loss", metrics.lost_unknown, "events"),
        Measurement("results lost, estimated", metrics.lost_estimated, "results"),
        Measurement("rejected rows", sum(metrics.rejected.values()), "rows"),
        *(
            Measurement(f"  rejected: {why.replace('_', ' ')}", n, "rows")
            for why, n in metrics.rejected.items()
            if n
        ),
        Measurement("events waiting", metrics.buffered, "events"),
        Measurement("K", metrics.slack, watch.unit),
    ]
    if metrics.recall is not None:
        found.append(Measurement("recall", round(metrics.recall, 4), "share"))
    if metrics.target is not None:
        found.append(Measurement("target", metrics.target, "share"))
    return found
