"""A job in words: what will run, where, who waits for whom, what is kept, what may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from slackwater.engine.snapshot import MAY_CHANGE
from slackwater.jobs.job import JobFile, Source
from slackwater.jobs.plan import known_before
from slackwater.query.aggregate import AggregateQuery, Tumbling
from slackwater.query.goals import (
    Deadline,
    DropRatio,
    ErrorBound,
    Goal,
    InputQuantile,
    Latency,
    MaxSlack,
    Recall,
    Slack,
)
from slackwater.query.join import JoinQuery, Stream, Tuples
from slackwater.query.shedding import Harvest
from slackwater.query.window import AnyQuery, WindowQuery
from slackwater.spark.partitioning import Partitioning

Section = tuple[str, list[str]]


def kind_of(query: AnyQuery) -> str:
    """The table of the job file."""
    if isinstance(query, WindowQuery):
        return "window"
    return "aggregate" if isinstance(query, AggregateQuery) else "join"


def sections(job: JobFile, partitioning: Partitioning) -> list[Section]:
    """All that is told but what is kept, which depends on rates."""
    query = job.query
    return [
        ("What runs", [_what(query), *_how_it_runs(job)]),
        ("Streams", [_stream(query, stream, job.source_of(stream)) for stream in query.streams]),
        ("Condition", _condition(query)),
        ("Windows and indexes", _indexes(query)),
        ("Shards", _shards(query, partitioning)),
        ("Goal", _goal(query)),
        ("Late and bad rows", [*_late(query), *_bad(job)]),
        ("Over a restart", _restart(job)),
    ]


# ---- what is asked


def _what(query: AnyQuery) -> str:
    named = ", ".join(query.names)
    if isinstance(query, WindowQuery):
        by = f", for each {_listed(query.by)}" if query.by else ""
        return f"Aggregates over windows of the stream {named}{by}: {_selected(query)}."
    if isinstance(query, AggregateQuery):
        by = f", for each {_listed(query.by)}" if query.by else ""
        return f"Aggregates over the join of {named} in each window{by}: {_selected(query)}."
    what = "how many there are by result time" if query.select == "count" else "all columns of all"
    if query.listed:
        what = f"the columns {_listed([name for name, _ in query.listed])}"
    return f"A join of {len(query.streams)} streams, {named}; results have {what}."


def _selected(query: WindowQuery | AggregateQuery) -> str:
    return ", ".join(f"{n} = {a.function}({a.column or ''})" for n, a in query.select.items())


def _how_it_runs(job: JobFile) -> list[str]:
    trigger = (
        "takes what is there, and ends"
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


def _stream(query: AnyQuery, stream: Stream, source: Source) -> str:
    where = f" {_near(source.path)}" if source.path else ""
    reach = ""
    if isinstance(query, JoinQuery):
        reach = f"; an event finds partners for {_length(stream.window)}"
    more = [what for what in ("select", "where") if getattr(source, what)]
    sql = f"; behind the SQL of its {' and '.join(more)}" if more else ""
    return f"{stream.name}: {source.format}{where}, in time by {stream.ts}{reach}{sql}."


def _length(window: Any) -> str:
    return f"{window.count} tuples" if isinstance(window, Tuples) else str(window)


def _condition(query: AnyQuery) -> list[str]:
    if isinstance(query, WindowQuery):
        return ["None: every row with a usable time takes part."]
    told = []
    for key in query.keys[:1] if isinstance(query, AggregateQuery) else query.keys:
        streams = [query.names[s] for s in key.streams]
        if not any(key.columns.values()):
            told.append(f"No key ties {_listed(streams)}: all events in the windows are partners.")
            continue
        columns = {", ".join(c) for c in key.columns.values()}
        equal = (
            f"{_listed(streams)} by {next(iter(columns))}"
            if len(columns) == 1
            else " = ".join(f"{query.names[s]}.{'+'.join(c)}" for s, c in key.columns.items())
        )
        told.append(f"Equal keys: {equal}.")
    if isinstance(query, AggregateQuery):
        return [*told, "Nothing is walked: events are counted by key and the counts multiplied."]
    return [*told, *_where(query)]


def _where(query: JoinQuery) -> list[str]:
    if query.where is None:
        counts = query.select == "count"
        return ["No further condition: results are counted, not visited."] if counts else []
    if query.condition is None:
        return ["where is a function; it is compiled to native code."]
    told = ["where is compiled to native code; a part is tried as soon as its streams are there:"]
    for part in query.condition.parts:
        streams = sorted(part.streams, key=query.names.index)
        told.append(f"  {part.source} ({_listed(streams)})")
    return told


def _indexes(query: AnyQuery) -> list[str]:
    if isinstance(query, WindowQuery):
        ends = "at each event" if query.step is None else f"each {_length(query.slide)}"
        ring = "A ring of its events, as two stacks: an event is moved once, no window is scanned."
        return [f"{_length(query.range)} long, ending {ends}, bounds {query.bounds}.", ring]
    if isinstance(query, AggregateQuery):
        kind = (
            "side by side" if isinstance(query.window, Tumbling) else f"each {query.window.slide}"
        )
        return [f"{query.window.length} long, {kind}; events lie in panes of the common measure."]
    told = []
    for s, stream in enumerate(query.streams):
        keys = [", ".join(key.columns[s]) for key in query.keys if any(key.columns.get(s, ()))]
        if keys:
            by = " and ".join(f"key ({key})" for key in keys)
            index = f"a hash table by {by}, in it events by time"
        elif _band_of(query, stream.name):
            index = f"basic windows sorted by {_band_of(query, stream.name)}: partners by bisection"
        else:
            index = "one run by time: every event in the window is looked at"
        if isinstance(stream.window, Tuples):
            index += ", and a timeline of all its events to count tuples"
        told.append(f"{stream.name}: {_length(stream.window)}, bounds {query.bounds}; {index}.")
    if query.slide is not None:
        told.append(f"Members lie in windows that end at a common multiple of {query.slide}.")
    return told


def _band_of(query: JoinQuery, stream: str) -> str | None:
    """The column by which a stream is sorted, if the query has such an index."""
    harvest = query.shedding
    keyless = len(query.keys) == 1 and not any(query.keys[0].columns.values())
    if not isinstance(harvest, Harvest) or harvest.index != "sorted" or not keyless:
        return None
    parts = query.condition.parts if query.condition else ()
    ends = [end for part in parts if part.band for end in (part.band.left, part.band.right)]
    return next((column for name, column in ends if name == stream), None)


def _shards(query: AnyQuery, partitioning: Partitioning) -> list[str]:
    if partitioning.shards == 1:
        why = "that is what the job asks for, or all the cores there are"
        if query.single_shard:
            why = (
                "tuples are counted over all events"
                if isinstance(query, JoinQuery)
                else "there are no groups to tell events apart by"
            )
        return [f"1 shard: {why}."]
    told = [f"{partitioning}."]
    copied = [n for s, n in enumerate(query.names) if partitioning.is_copied(s)]
    if not any(partitioning.columns):
        told.append(
            f"No equality ties the streams: {query.names[0]} is split by its rows, so the fastest "
            "stream should come first."
        )
    elif copied:
        told.append(
            "The key that ties most streams splits them; streams without it meet all of them."
        )
    else:
        told.append("Equal keys meet on one shard, so every result is made there, once.")
    if copied:
        times = partitioning.shards
        told.append(f"Each event of {_listed(copied)} is kept {times} times, once on each shard.")
    if isinstance(query, AggregateQuery):
        told.append("Each shard counts its keys; one place adds up what they tell.")
    return told


def _goal(query: AnyQuery) -> list[str]:
    goal = query.goal
    told = [_who_sets_k(goal)]
    if isinstance(query, AggregateQuery) and query.compensate:
        by = "ours" if query.compensate is True else str(query.compensate)
        told.append(
            f"What has not arrived by then is guessed ({by}), between low and high in "
            f"{query.confidence:.0%} of the windows."
        )
    if isinstance(query, JoinQuery) and query.shedding is not None:
        told.append(
            f"When the CPU is short, {type(query.shedding).__name__} leaves out work, and counts "
            "what that costs."
        )
    return told


def _who_sets_k(goal: Goal) -> str:
    match goal:
        case Recall():
            return (
                f"At least {goal.target:.6g} of the true results over any {goal.over}, in "
                f"{goal.confidence:.0%} of the measurements. K is set by the controller "
                f"{goal.model!r}, each {goal.every} of event time, in steps of {goal.granularity}."
            )
        case Slack():
            return f"K is {goal.length}, whatever the delays are: you have set it."
        case MaxSlack():
            return "K is the largest delay so far; it never shrinks."
        case InputQuantile():
            return f"K covers {goal.target:.6g} of the delays; set each {goal.every}."
        case Latency():
            return f"K is the largest with which results are at most {goal.limit} late on average."
        case DropRatio() if goal.ratio:
            return (
                f"At most {goal.ratio:.6g} of all events is late; K is the smallest that does it."
            )
        case DropRatio():
            return "Best effort: K is the largest delay so far."
        case ErrorBound():
            return (
                f"Aggregates wrong by at most {goal.bound:.6g} in {goal.confidence:.0%} of the "
                "windows; the controller measures errors and sets how much may be dropped."
            )
        case Deadline():
            held = f", behind a slack of {goal.slack}" if goal.slack is not None else ""
            return f"Each window is told {goal.limit} after its {goal.after}, by arrival{held}."
    return "K is 0: nothing is held back, and what comes late in its stream is late."


# ---- what becomes of rows


def _late(query: AnyQuery) -> list[str]:
    if isinstance(query, WindowQuery):
        return ["Late events are dropped and counted; rejects=True in a program has them."]
    if isinstance(query, AggregateQuery):
        exact = "the exact value follows when it is complete"
        follows = exact if query.late == "emit" else "the answer stays as it was told"
        return [f"Of events after the deadline of a window, {follows}."]
    return {
        "count": ["The results that late events cost are counted (lost), not emitted."],
        "emit": ["Late results are emitted too, marked in the column late."],
        "drop": ["Late events are dropped without a look: what they cost is not known."],
    }[query.late]


def _bad(job: JobFile) -> list[str]:
    query = job.query
    keys = " or key" if any(any(key.columns.values()) for key in query.keys) else ""
    fate = "stops the query (strict)" if query.strict else "is rejected and counted by its reason"
    told = [f"A row without a usable time{keys} {fate}."]
    skew = job.options.get("max_future_skew", "1 hour")
    if skew is not None:
        told.append(f"A time more than {skew} ahead of its arrival is rejected.")
    idle = job.options.get("idle_after")
    if isinstance(query, JoinQuery):
        told.append(
            "A silent stream is waited for without end (idle_after is not set)."
            if idle is None
            else f"A stream that is silent for {idle} of the others' time is not waited for."
        )
    return told


def may_change(query: AnyQuery) -> list[str]:
    """Options of the query that a next run may change."""
    return sorted(MAY_CHANGE & {field.name for field in fields(query)})


def _restart(job: JobFile) -> list[str]:
    fixed = [name for name in known_before(job) if name not in ("times", "windows", "sources")]
    return [
        f"State is in {_near(str(job.checkpoint))}.",
        f"May change: {', '.join(may_change(job.query))}, limits, trigger, metrics, cores, sink.",
        f"Must not: {', '.join([*fixed, 'time columns', 'windows', 'sources, their columns'])}, "
        "shards.",
    ]


def _near(path: str) -> str:
    """A path below where we are, from there."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
