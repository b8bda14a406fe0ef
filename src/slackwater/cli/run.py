"""``slackwater run``: a job file on a local Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import JobArgument, Json, out, print_figures, print_json
from slackwater.cli.dashboard_server import ShowDashboard

if TYPE_CHECKING:
    from slackwater.cli.watch import Watch
    from slackwater.dashboard.control import Control
    from slackwater.jobs.job import JobFile
    from slackwater.jobs.measurement import Measurement
    from slackwater.spark.listener import MetricsLog


def run(
    file: JobArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Check the job and its checkpoint; start nothing.")
    ] = False,
    dashboard: ShowDashboard = False,
    json: Json = False,
) -> None:
    """Run a join of your own on Spark, as a TOML file describes it."""
    from slackwater.cli.dashboard_server import beside
    from slackwater.cli.watch import Screen, Watch, follow
    from slackwater.jobs.checkpoint import Checkpoint
    from slackwater.jobs.job import read_job
    from slackwater.jobs.local_spark import local_spark
    from slackwater.jobs.plan import Planner, known_before, settings
    from slackwater.spark.listener import Lines

    job = read_job(file)
    checkpoint = Checkpoint(job.checkpoint, job.file)
    checkpoint.check(known_before(job))
    chosen = settings(job, checkpoint.saved)
    control = _control(job)
    with beside(dashboard and not check, *control, may_stay=not json) as history:
        with Screen(quiet=json) as screen:
            screen.doing("starting Spark")
            with local_spark(job.name, job.cores, chosen, may_print=not json) as spark:
                planner = Planner(job, spark)
                fingerprint = planner.fingerprint()
                checkpoint.check(fingerprint)
                joined = planner.joined(may_write=not check)
                if not check:
                    watch = Watch(job.name, job.query.unit)
                    # each has lines of its own: the watch takes them apart
                    can_be_told = control[0] is not None
                    shown = [Lines(history.take, job.query, can_be_told)] if history else []
                    listeners = [Lines(watch.take, job.query), *_metrics_log(job), *shown]
                    checkpoint.claim(fingerprint)
                    screen.follow(watch)
                    screen.doing("running; Ctrl-C stops it")
                    stopped = follow(spark, lambda: planner.start(joined), watch, listeners)
        if check:
            _print_check(job, json)
        else:
            _print_summary(watch, stopped, json)


def _control(job: JobFile) -> tuple[Control | None, str]:
    """How the job can be commanded, or why it cannot."""
    from slackwater.dashboard.control import CommandFiles, Control

    directory = job.options.get("control")
    if directory is None:
        return None, "To change the target here, give the job a control directory: [job] control."
    if job.trigger_ms is None:
        return None, (
            "This job takes what was there when it started, and no commands. To change the target "
            'here, give it a trigger such as "5 seconds".'
        )
    return Control(CommandFiles(directory).set, job.name), ""


def _metrics_log(job: JobFile) -> list[MetricsLog]:
    from slackwater.jobs.toml_table import JobFileError
    from slackwater.spark.listener import MetricsLog

    if job.metrics is None:
        return []
    try:
        return [MetricsLog(job.metrics, job.query, control="control" in job.options)]
    except OSError as error:
        msg = f"{job.file}: [job] metrics {job.metrics} cannot be written: {error.strerror}"
        raise JobFileError(msg) from error


# ---- what is told at the end


def _print_check(job: JobFile, json: bool) -> None:
    from slackwater.jobs.measurement import sheet

    if json:
        print_json(sheet("run --check", None, []))
        return
    read = ", ".join(f"{source.name} ({source.format})" for source in job.sources)
    out().print(f"{job.file} is ready to run: {read} into {job.sink.format}.", highlight=False)


def _print_summary(watch: Watch, stopped: bool, json: bool) -> None:
    from slackwater.jobs.measurement import sheet

    lines = _figures(watch)
    if json:
        print_json(sheet("run", None, lines))
        return
    how = "was stopped" if stopped else "has taken all there was"
    print_figures(f"{watch.title} {how}: {len(watch.lines)} micro-batches", lines)


def _figures(watch: Watch) -> list[Measurement]:
    """The figures of this run and, from the metrics, those since the first start."""
    from slackwater.jobs.measurement import Measurement

    told = watch.metrics
    lines = [
        Measurement("micro-batches", len(watch.lines), "batches"),
        Measurement("rows in", watch.rows, "rows"),
    ]
    if watch.rows_per_s is not None:
        lines.append(Measurement("speed", round(watch.rows_per_s), "rows/s"))
    if told is None:
        return lines
    lines += [
        Measurement("rows since the first start", told["arrivals"], "rows"),
        Measurement("results", told["produced"], "results"),
        Measurement("results lost", told["lost"], "results"),
        Measurement("late events", told["late_kept"] + told["late_dropped"], "events"),
        Measurement("events of unknown loss", told["lost_unknown"], "events"),
        Measurement("rejected rows", sum(told["rejected"].values()), "rows"),
        Measurement("events waiting", told["buffered"], "events"),
        Measurement("K", told["slack"], watch.unit),
    ]
    if told["recall"] is not None:
        lines.append(Measurement("recall", round(told["recall"], 4), "share"))
    if told["target"] is not None:
        lines.append(Measurement("target", told["target"], "share"))
    return lines
