"""``slackwater run``: a job file on a local Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import JobArgument, Json, out, print_json, print_measurements
from slackwater.cli.dashboard_server import ShowDashboard

if TYPE_CHECKING:
    from slackwater.dashboard.control import Control
    from slackwater.jobs.job import JobFile
    from slackwater.jobs.watch import QueryWatch


def run(
    file: JobArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Check the job and its checkpoint; start nothing.")
    ] = False,
    dashboard: ShowDashboard = False,
    json: Json = False,
) -> None:
    """Run a query of your own on Spark, as a TOML or SQL file describes it."""
    from slackwater.cli.dashboard_server import beside
    from slackwater.cli.screen import Screen
    from slackwater.jobs.job import read_job
    from slackwater.jobs.local_spark import local_spark
    from slackwater.jobs.run import JobRun, start_line
    from slackwater.jobs.watch import QueryWatch

    job = read_job(file)
    job_run = JobRun(job)
    watch = QueryWatch(job.name, job.query.unit)
    with beside(dashboard and not check, *_control(job), may_stay=not json) as history:
        with Screen(quiet=json) as screen:
            screen.doing("starting Spark")
            with local_spark(job.name, job.cores, job_run.settings, may_print=not json) as spark:
                if check:
                    job_run.check(spark)
                else:

                    def show() -> None:
                        if not json:
                            typer.echo(start_line(job), err=True)
                        screen.follow(watch)
                        screen.doing("running; Ctrl-C stops it")

                    receivers = [] if history is None else [history.take]
                    stopped = job_run.run(spark, watch, receivers, show)
        if check:
            _print_check(job, json)
        else:
            _print_summary(watch, stopped, json)


def _control(job: JobFile) -> tuple[Control | None, str]:
    """Return how the page can command the job, or why it cannot."""
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


# ---- at the end


def _print_check(job: JobFile, json: bool) -> None:
    from slackwater.jobs.measurement import sheet

    if json:
        print_json(sheet("run --check", None, []))
        return
    read = ", ".join(f"{source.name} ({source.format})" for source in job.sources)
    out().print(f"{job.file} is ready to run: {read} into {job.sink.format}.", highlight=False)


def _print_summary(watch: QueryWatch, stopped: bool, json: bool) -> None:
    from slackwater.jobs.measurement import sheet
    from slackwater.jobs.run import summary

    if json:
        print_json(sheet("run", None, summary(watch)))
        return
    how = "was stopped" if stopped else "has taken all there was"
    print_measurements(f"{watch.title} {how}: {len(watch.lines)} micro-batches", summary(watch))
