"""The job of ``slackwater run``: a TOML file, checked before Spark is started.

Relative paths start at the directory of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, get_args

from slackwater.aggregate import Aggregate
from slackwater.aggregate_query import AggregateQuery, Sliding, Tumbling
from slackwater.cli.tables import JobFileError, Table
from slackwater.errors import QueryError
from slackwater.goal import (
    Deadline,
    DropRatio,
    ErrorBound,
    Goal,
    InputQuantile,
    Latency,
    MaxSlack,
    NoSlack,
    Recall,
    Slack,
)
from slackwater.joining import join
from slackwater.query import Query, Stream, Tuples
from slackwater.shed import Asked, Harvest, RandomDrop, Shedding, TailDrop
from slackwater.units import TimeUnit, to_units
from slackwater.window_query import AnyQuery, WindowQuery, window

AVAILABLE_NOW = "available-now"

_KINDS = ("join", "window", "aggregate")
_TABLES = ("job", *_KINDS, "stream", "sink", "spark")
_JOB = (
    "name", "checkpoint", "trigger", "at_end", "shards", "arrival", "idle_after",
    "max_future_skew", "control", "metrics",
)  # fmt: skip
_JOIN = tuple(field.name for field in fields(Query) if field.name != "streams")
_WINDOW = tuple(field.name for field in fields(WindowQuery) if field.name != "streams")
_AGGREGATES = tuple(field.name for field in fields(AggregateQuery) if field.name != "streams")
_STREAM = (
    "name", "ts", "window", "vectors", "format", "schema", "path", "options", "select", "where",
)  # fmt: skip
_SINK = ("format", "path", "options", "select", "partition_by")

_SHEDDING: dict[str, type[Shedding]] = {
    "harvest": Harvest, "random-drop": RandomDrop, "tail-drop": TailDrop,
}  # fmt: skip
_NAMED_GOALS: dict[str, Goal] = {"no-slack": NoSlack(), "max-slack": MaxSlack()}
# Goals with options: the key that says which one it is holds the value of its first field.
_GOALS: dict[str, type[Goal]] = {
    "recall": Recall,
    "input_quantile": InputQuantile,
    "latency": Latency,
    "drop_ratio": DropRatio,
    "error_bound": ErrorBound,
    "deadline": Deadline,
    "slack": Slack,
    "synchronize": NoSlack,
}
_AGGREGATE = re.compile(r"\s*(\w+)\s*\(\s*(.*?)\s*\)\s*")
_LOCAL = "a directory of this machine, local or mounted"
_PAUSE = 'a time between micro-batches such as "5 seconds"'
_FILES = ("parquet", "csv", "json", "orc", "avro")  # Spark wants to know their columns
_OWN_COLUMNS = ("kafka", "rate", "rate-micro-batch", "socket")
_ENDLESS = ("rate", "socket")
_WILD = set("*?[{")


class Source(NamedTuple):
    """Where a stream comes from."""

    name: str
    format: str
    schema: str | None
    path: str | None
    options: dict[str, str]
    select: tuple[str, ...]
    where: str | None


class Sink(NamedTuple):
    """Where the results go."""

    format: str
    path: str | None
    options: dict[str, str]
    select: tuple[str, ...]
    partition_by: tuple[str, ...]


@dataclass(frozen=True)
class JobFile:
    """A job that was read and checked, as far as that goes without Spark."""

    file: str  # as it was given
    name: str
    query: AnyQuery
    sources: tuple[Source, ...]
    sink: Sink
    checkpoint: Path
    trigger_ms: int | None  # None: take what is there now, and end
    options: dict[str, Any]  # of Query.stream
    metrics: Path | None
    cores: int | None
    settings: dict[str, str]  # of Spark


def read_job(file: Path) -> JobFile:
    """The job in `file`, or an error that says what is wrong with it."""
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}"
        raise JobFileError(msg) from error
    except ValueError as error:  # not TOML, or not even text
        msg = f"{file} is not a TOML file: {error}"
        raise JobFileError(msg) from error
    base = file.absolute().parent
    tables = Table(f"{file}:", given, _TABLES)
    job = tables.table("job", _JOB)
    kind, asked = _asked(tables)
    unit: TimeUnit = asked.choice("unit", get_args(TimeUnit), "ms")
    least = 1 if kind == "window" else 2
    streams = [
        _stream(t, base, unit, kind == "join") for t in tables.tables("stream", _STREAM, least)
    ]
    sources = tuple(source for _, source in streams)
    metrics = job.text_or("metrics", None)
    cores, settings = _spark(tables.table("spark", None, required=False))
    return JobFile(
        file=str(file),
        name=job.text_or("name", file.stem),
        query=_QUERIES[kind](asked, [stream for stream, _ in streams], unit),
        sources=sources,
        sink=_sink(tables.table("sink", _SINK), base),
        checkpoint=_directory(job, "checkpoint", base),
        trigger_ms=_trigger(job, sources),
        options=_options(job, base, unit, kind),
        metrics=None if metrics is None else Path(_located(metrics, base)),
        cores=cores,
        settings=settings,
    )


def _asked(tables: Table) -> tuple[str, Table]:
    """[join], [window] or [aggregate]."""
    kinds = [kind for kind in _KINDS if kind in tables.given] or ["join"]
    if len(kinds) > 1:
        tables.fail(f"has both [{kinds[0]}] and [{kinds[1]}]; a job is one of them")
    [kind] = kinds
    allowed = {"join": _JOIN, "window": _WINDOW, "aggregate": _AGGREGATES}
    return kind, tables.table(kind, allowed[kind])


# ---- [job] and [spark]


def _trigger(job: Table, sources: Iterable[Source]) -> int | None:
    trigger = job.text_or("trigger", AVAILABLE_NOW)
    if trigger != AVAILABLE_NOW:
        try:
            return to_units(trigger, "ms")
        except QueryError:
            job.refuse("trigger", f'"{AVAILABLE_NOW}" or {_PAUSE}')
    for source in sources:
        if source.format in _ENDLESS:
            job.fail(
                f'trigger = "{AVAILABLE_NOW}" needs streams that end, but [[stream]] {source.name} '
                f'has format "{source.format}"; give {_PAUSE}'
            )
    return None


def _options(job: Table, base: Path, unit: TimeUnit, kind: str) -> dict[str, Any]:
    """The options of `Query.stream`."""
    options: dict[str, Any] = {
        "at_end": job.choice("at_end", ("hold", "flush"), "hold"),
        "arrival": job.text_or("arrival", None),
        "shards": job.whole("shards"),
    }
    if kind == "join":
        options["idle_after"] = job.duration("idle_after", unit)
    elif "idle_after" in job.given:
        why = "the only stream of a [window]" if kind == "window" else "a stream of an [aggregate]"
        job.fail(f"idle_after is for joins: nobody waits for {why}")
    if "control" in job.given:
        options["control"] = str(_directory(job, "control", base))
    if job.given.get("max_future_skew") == "none":
        options["max_future_skew"] = None
    elif "max_future_skew" in job.given:
        options["max_future_skew"] = job.duration("max_future_skew", unit)
    return options


def _directory(job: Table, key: str, base: Path) -> Path:
    located = _located(job.text(key), base)
    if "://" in located:
        job.refuse(key, _LOCAL)
    if Path(located).exists() and not Path(located).is_dir():
        job.refuse(key, "a directory")
    return Path(located)


def _spark(table: Table) -> tuple[int | None, dict[str, str]]:
    given = {name: value for name, value in table.given.items() if name != "cores"}
    settings = table.flat(given, "")
    for name in settings:
        if not name.startswith("spark."):
            table.unknown(name, ("cores", "spark.*"))
    return table.whole("cores"), settings


# ---- [join], [window] and [[stream]]


def _query(joining: Table, streams: Sequence[Stream], unit: TimeUnit) -> Query:
    joining.duration("slide", unit)
    joining.duration("retention", unit)
    if isinstance(joining.given.get("select"), dict):
        joining.refuse("select", '"*" or "count"; aggregates are for [aggregate]')
    given = joining.given | {"goal": goal_of(joining, unit), "shed": _shed(joining, unit)}
    made: Query = joining.checked(lambda: join(*streams, **given))
    return made


def _window(asked: Table, streams: Sequence[Stream], unit: TimeUnit) -> WindowQuery:
    if len(streams) > 1:
        asked.fail(f"takes one [[stream]], got {len(streams)}")
    if "range" not in asked.given:
        asked.fail("needs range")
    given = asked.given | {
        "select": _select(asked),
        "goal": goal_of(asked, unit, default={"drop_ratio": 0.0}),
    }
    return asked.checked(lambda: window(streams[0], **given))


def _aggregates(asked: Table, streams: Sequence[Stream], unit: TimeUnit) -> AggregateQuery:
    for name in ("window", "goal"):
        if name not in asked.given:
            asked.fail(f"needs {name}")
    asked.duration("retention", unit)
    given = asked.given | {
        "select": _select(asked),
        "window": _windows(asked, unit),
        "goal": goal_of(asked, unit),
    }
    made: AggregateQuery = asked.checked(lambda: join(*streams, **given))
    return made


def _windows(asked: Table, unit: TimeUnit) -> Tumbling | Sliding:
    """``"10 ms"``, or ``{length = "10 s", slide = "1 s"}``."""
    given = asked.given["window"]
    if not isinstance(given, dict):
        asked.duration("window", unit)
        return Tumbling(given)
    table = Table(f"{asked.where} window:", given, ("length", "slide"))
    for name in ("length", "slide"):
        if name not in given:
            table.fail(f"needs {name}")
        table.duration(name, unit)
    return Sliding(**given)


def _select(asked: Table) -> dict[str, Aggregate]:
    select = asked.given.get("select")
    if not isinstance(select, dict) or not select:
        asked.refuse("select", 'a table of aggregates: {mean = "avg(price)", n = "count()"}')
    return {name: _aggregate(asked, name, how) for name, how in select.items()}


def _aggregate(asked: Table, name: str, how: Any) -> Aggregate:
    """``"avg(price)"``."""
    written = _AGGREGATE.fullmatch(how) if isinstance(how, str) else None
    if written is None:
        asked.fail(f'select.{name} must be like "avg(price)" or "count()", got {how!r}')
    function, column = written[1].lower(), written[2] or None
    return asked.checked(lambda: Aggregate(function, column))  # type: ignore[arg-type]


def goal_of(joining: Table, unit: TimeUnit, default: Any = "no-slack") -> Goal:
    """A goal by its name, or a table: ``{recall = 0.95, over = "1 minute"}``."""
    given = joining.given.get("goal", default)
    if isinstance(given, str) and given in _NAMED_GOALS:
        return _NAMED_GOALS[given]
    kinds = [kind for kind in _GOALS if kind in given] if isinstance(given, dict) else []
    if kinds == ["deadline", "slack"]:  # a deadline may have a slack
        kinds = ["deadline"]
    if len(kinds) != 1:
        listed = ", ".join(_GOALS)
        joining.refuse("goal", f'"no-slack", "max-slack" or a table with one of {listed}')
    [kind] = kinds
    goal = _GOALS[kind]
    first, *others = fields(goal)
    types = {kind: first.type} | {field.name: field.type for field in others}
    table = Table(f"{joining.where} goal:", given, tuple(types))
    for name, value in given.items():
        _check_goal_option(table, name, str(types[name]), value, unit)
    options = {name: value for name, value in given.items() if name != kind}
    made = table.checked(lambda: goal(**{first.name: given[kind]}, **options))
    if isinstance(made, Recall | InputQuantile | Latency):
        table.checked(lambda: made.check(unit))
    return made


def _shed(joining: Table, unit: TimeUnit) -> Asked:
    """``"adaptive"``, ``"off"``, or a table of settings with the name of the method."""
    given = joining.given.get("shed", "off")
    if given in ("adaptive", "off"):
        return given  # type: ignore[no-any-return]
    method = given.get("method", "harvest") if isinstance(given, dict) else None
    if method not in _SHEDDING:
        listed = ", ".join(map(repr, _SHEDDING))
        joining.refuse("shed", f"'adaptive', 'off' or a table with a method: {listed}")
    kind = _SHEDDING[method]
    types = {field.name: str(field.type) for field in fields(kind)}
    table = Table(f"{joining.where} shed:", given, ("method", *types))
    for name, value in given.items():
        _check_goal_option(table, name, types.get(name, ""), value, unit)
    return table.checked(lambda: kind(**{n: v for n, v in given.items() if n != "method"}))


def _check_goal_option(table: Table, name: str, kind: str, value: Any, unit: TimeUnit) -> None:
    """What the goal itself takes for granted: the types of its fields."""
    if kind == "bool" and not isinstance(value, bool):
        table.refuse(name, "true or false")
    if kind == "Duration":
        table.duration(name, unit)
    if kind.startswith("tuple"):
        if not isinstance(value, list) or len(value) != 2:
            table.refuse(name, "a list of two durations")
        for duration in value:
            table.checked(lambda: to_units(duration, unit, name))  # noqa: B023  called at once


_QUERIES: dict[str, Callable[[Table, Sequence[Stream], TimeUnit], AnyQuery]] = {
    "join": _query,
    "window": _window,
    "aggregate": _aggregates,
}


def _stream(table: Table, base: Path, unit: TimeUnit, joins: bool) -> tuple[Stream, Source]:
    name, ts = table.text("name"), table.text("ts")
    reach, vectors = table.given.get("window"), table.given.get("vectors", {})
    if joins and reach is None:
        table.fail("needs window")
    stream = table.checked(lambda: Stream(name, ts, reach, vectors=vectors))
    if not isinstance(stream.window, Tuples):
        table.duration("window", unit)
    form = table.text("format")
    path = _path(table, form, base)
    if path and "://" not in path and not _WILD & set(path) and not Path(path).exists():
        table.refuse("path", "a file or directory that is there")
    return stream, Source(
        name,
        form,
        _schema(table, form),
        path,
        table.settings("options"),
        table.texts("select"),
        table.text_or("where", None),
    )


def _schema(table: Table, form: str) -> str | None:
    schema = table.text_or("schema", None)
    if schema is None and form in _FILES:
        table.fail(f"needs schema: Spark does not guess the columns of a stream of {form} files")
    if schema is not None and form in _OWN_COLUMNS:
        table.fail(f"schema must be left out: {form} has its own columns, which select can change")
    return schema


# ---- [sink]


def _sink(table: Table, base: Path) -> Sink:
    form = table.text("format")
    return Sink(
        form,
        _path(table, form, base),
        table.settings("options"),
        table.texts("select"),
        table.texts("partition_by"),
    )


def _path(table: Table, form: str, base: Path) -> str | None:
    path = table.text_or("path", None)
    if path is None and form in (*_FILES, "text"):
        table.fail(f"needs path: {form} is a format of files")
    return None if path is None else _located(path, base)


def _located(path: str, base: Path) -> str:
    """An address as it is; a relative path from where the job file is."""
    return path if "://" in path else str(base / Path(path).expanduser())
