"""A job in words: what runs, where, what waits, what is kept, what may change; without Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from slackwater.jobs.checkpoint import Checkpoint
from slackwater.jobs.explain_aggregate import AggregateText
from slackwater.jobs.explain_join import JoinText
from slackwater.jobs.explain_window import WindowText
from slackwater.jobs.job import JobFile
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.plan import PARTITIONS, known_before, settings
from slackwater.jobs.query_text import QueryText, listed
from slackwater.jobs.state_estimate import STATE_BY_ROW, StreamState, estimate_state, rates
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.fingerprint import MAY_CHANGE
from slackwater.query.goals import Goal, InputQuantile, Latency, MaxSlack, Recall, Slack
from slackwater.query.join import JoinQuery
from slackwater.query.stream import Stream
from slackwater.query.units import TimeUnit, to_units
from slackwater.query.window import WindowQuery
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound
from slackwater.spark.partitioning import Partitioning

Section = tuple[str, list[str]]

_TEXTS: dict[type, Any] = {
    JoinQuery: JoinText,
    WindowQuery: WindowText,
    AggregateQuery: AggregateText,
}


class Explanation(NamedTuple):
    """A job in words and in numbers."""

    sections: list[Section]  # titles and sentences
    plan: dict[str, Any]  # the same facts for programs
    measurements: list[Measurement]  # what is kept, as far as rates are known


def explain(job: JobFile, rate: str | None = None, delay: str | None = None) -> Explanation:
    """Explain a job.

    Parameters
    ----------
    job
        The job.
    rate
        Rows per second of the streams, ``"a=1000/s, b=30/min"``: what is kept gets a size.
    delay
        The largest expected delay of an event, ``"10 s"``.

    Returns
    -------
    Explanation
        Sentences, facts and sizes.

    Raises
    ------
    SlackwaterError
        If `rate` or `delay` cannot be read, or the checkpoint belongs to another program.
    """
    query = job.query
    text = text_of(query)
    partitioning = _partitioning(job)
    copied = [partitioning.is_copied(s) for s in range(len(query.streams))]
    per_s = {} if rate is None else rates(rate, query.names)
    late = None if delay is None else to_units(delay, query.unit, "--delay")
    copies = [partitioning.shards if is_copied else 1 for is_copied in copied]
    estimate = estimate_state(job, copies, per_s, late)
    sections = [
        ("What runs", [text.summary(), *_how_it_runs(job)]),
        ("Streams", [_stream(job, text, stream) for stream in query.streams]),
        ("Condition", text.condition()),
        *([("When rows come", text.rows())] if text.rows() else []),
        ("Windows and indexes", text.indexes()),
        ("Shards", _shards(query, text, partitioning)),
        ("Goal", [*(text.goal() or [_slack_policy(query.goal, query.unit)]), *text.goal_details()]),
        ("What is kept", [text.state(), *_sizes(estimate)]),
        ("Late and bad rows", [*text.late_rows(), *_bad_rows(job, text)]),
        ("Over a restart", _restart(job)),
    ]
    plan = {
        "kind": text.kind,
        "streams": list(query.names),
        "partitioning": str(partitioning),
        "copied": [name for name, is_copied in zip(query.names, copied, strict=True) if is_copied],
        "may_change": _may_change(query),
        "words": dict(sections),
    }
    return Explanation(sections, plan, [one for of in estimate for one in of.measurements()])


def text_of(query: AnyQuery) -> QueryText:
    """Return the sentences for this kind of query."""
    text: QueryText = _TEXTS[type(query)](query)
    return text


def _partitioning(job: JobFile) -> Partitioning:
    """Return the partitioning of the checkpoint, or of a new one on this machine."""
    saved = Checkpoint(job.checkpoint, job.file).saved
    partitions = settings(job, saved).get(PARTITIONS) or job.cores or os.cpu_count() or 1
    shards = 1 if job.query.single_shard else job.options["shards"] or int(partitions)
    return Partitioning.of(job.query, shards)


# ---- what runs


def _how_it_runs(job: JobFile) -> list[str]:
    trigger = (
        "processes the available input, and ends"
        if job.trigger_ms is None
        else f"runs on, with a micro-batch each {job.trigger_ms} ms"
    )
    end = (
        "events that wait at the end come out (at_end = flush)"
        if job.options["at_end"] == "flush"
        else "events that wait at the end are held for the next run (at_end = hold)"
    )
    into = job.sink.format + (f" in {_near(job.sink.path)}" if job.sink.path else "")
    return [f"It {trigger}; {end}.", f"Results go to {into}."]


def _stream(job: JobFile, text: QueryText, stream: Stream) -> str:
    source = job.source_of(stream)
    where = f" {_near(source.path)}" if source.path else ""
    more = [what for what in ("select", "where") if getattr(source, what)]
    sql = f"; after the SQL of its {' and '.join(more)}" if more else ""
    window = text.window_of(stream)
    return f"{stream.name}: {source.format}{where}, event time {stream.ts}{window}{sql}."


def _shards(query: AnyQuery, text: QueryText, partitioning: Partitioning) -> list[str]:
    if partitioning.shards == 1:
        given = "the job sets it, or there is one core"
        reason = text.one_shard_reason if query.single_shard else given
        return [f"1 shard: {reason}.", *text.sharding(1)]
    sentences = [f"{partitioning}."]
    copied = [n for s, n in enumerate(query.names) if partitioning.is_copied(s)]
    if not any(partitioning.columns):
        sentences.append(
            f"No equality ties the streams: {query.names[0]} is split by its rows, so the fastest "
            "stream should come first."
        )
    elif copied:
        sentences.append(
            "The key that ties most streams splits them; streams without it are copied to all."
        )
    else:
        sentences.append("Equal keys meet on one shard, so every result is made there, once.")
    if copied:
        times = partitioning.shards
        sentences.append(f"Each event of {listed(copied)} is kept {times} times, once per shard.")
    return sentences + text.sharding(partitioning.shards)


def _slack_policy(goal: Goal, unit: TimeUnit) -> str:
    """Describe what sets K."""
    match goal:
        case Recall():
            every = goal.every or f"{goal.interval(unit)} {unit}"
            return (
                f"At least {goal.target:.6g} of the true results over any {goal.over}, in "
                f"{goal.confidence:.0%} of the measurements. K is set by the controller "
                f"{goal.model!r}, each {every} of event time."
            )
        case Slack():
            return f"K is {goal.length}, fixed, whatever the delays are."
        case MaxSlack():
            return "K is the largest delay so far; it never shrinks."
        case InputQuantile():
            return f"K covers {goal.target:.6g} of the delays; set each {goal.every}."
        case Latency():
            return f"K is the largest with which results are at most {goal.limit} late on average."
        case DropRatio() if goal.ratio:
            return f"At most {goal.ratio:.6g} of all events are late; K is the smallest for that."
        case DropRatio():
            return "Best effort: K is the largest delay so far."
        case ErrorBound():
            return (
                f"Aggregates wrong by at most {goal.bound:.6g} in {goal.confidence:.0%} of the "
                "windows; the controller measures errors and sets how much may be dropped."
            )
        case Deadline():
            held = f", after a slack of {goal.slack}" if goal.slack is not None else ""
            return (
                f"Each window is emitted {goal.limit} after its {goal.after}, in arrival "
                f"time{held}."
            )
    return "K is 0: nothing is held back, and events out of order in their stream are late."


# ---- what is kept


def _sizes(estimate: Sequence[StreamState]) -> list[str]:
    sentences = []
    for of in estimate:
        size = "columns unknown" if of.row_bytes is None else f"{of.row_bytes} bytes a row"
        how_long = "as long as delays last" if of.seconds is None else f"{of.seconds:g} s"
        copies = f", {of.copies} copies" if of.copies > 1 else ""
        line = f"{of.stream}: {how_long}; {size} and {of.bookkeeping} beside it{copies}"
        if of.rows is not None:
            line += f"; {of.rows:,.0f} rows"
        if of.memory is not None and of.state is not None:
            line += f", {_bytes(of.memory)} of memory at least, {_bytes(of.state)} of state"
        sentences.append(line + ".")
    if any(of.memory is not None for of in estimate):
        return [
            *sentences,
            f"State takes {STATE_BY_ROW:g} of a row, as measured with rows of four numbers; text "
            "of unknown length counts 20 bytes.",
        ]
    return [*sentences, "--rate and --delay turn this into bytes."]


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} GB"


# ---- what happens to rows, and over a restart


def _bad_rows(job: JobFile, text: QueryText) -> list[str]:
    query = job.query
    keys = " or key" if any(any(key.columns.values()) for key in query.keys) else ""
    fate = "stops the query (strict)" if query.strict else "is rejected and counted by its reason"
    sentences = [f"A row without a usable time{keys} {fate}."]
    skew = job.options.get("max_future_skew", "1 hour")
    if skew is not None:
        sentences.append(f"A time more than {skew} ahead of its arrival is rejected.")
    return sentences + text.silent_streams(job.options.get("idle_after"))


def _may_change(query: AnyQuery) -> list[str]:
    """Return the options of the query that a next run may change."""
    return sorted(MAY_CHANGE & {field.name for field in fields(query)})


def _restart(job: JobFile) -> list[str]:
    fixed = [name for name in known_before(job) if name not in ("times", "windows", "sources")]
    return [
        f"State is in {_near(str(job.checkpoint))}.",
        f"May change: {', '.join(_may_change(job.query))}, limits, trigger, metrics, cores, sink.",
        f"Must not: {', '.join([*fixed, 'time columns', 'windows', 'sources, their columns'])}, "
        "shards.",
    ]


def _near(path: str) -> str:
    """Shorten a path below the current directory."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
