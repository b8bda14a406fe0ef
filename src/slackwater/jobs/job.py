"""Read a job, a TOML or SQL file, and check it before Spark is started.

Relative paths are relative to the directory of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from slackwater.errors import QueryError
from slackwater.jobs.goal import deadline_of, goal_of, shedding_of
from slackwater.jobs.sql_file import tables_of
from slackwater.jobs.toml_table import Findings, JobFileError, Table
from slackwater.query.aggregate import AggregateQuery, aggregate
from slackwater.query.any_query import AnyQuery
from slackwater.query.functions import Aggregate, Function
from slackwater.query.join import JoinQuery, join
from slackwater.query.stream import Stream
from slackwater.query.units import TimeUnit, to_units
from slackwater.query.window import WindowQuery, window
from slackwater.query.window_goals import DropRatio
from slackwater.query.windows import Tumbling, Tuples, Window, length_of_text, sliding_window
from slackwater.sql import sql

AVAILABLE_NOW = "available-now"

_KINDS = ("join", "window", "aggregate")
_TABLES = ("job", *_KINDS, "stream", "sink", "spark")
_JOB = (
    "name", "checkpoint", "trigger", "at_end", "shards", "arrival", "idle_after",
    "max_future_skew", "control", "metrics", "sql",
)  # fmt: skip
_JOIN = tuple(field.name for field in fields(JoinQuery) if field.name != "streams")
_WINDOW = tuple(field.name for field in fields(WindowQuery) if field.name != "streams")
_AGGREGATES = tuple(
    "deadline" if field.name == "goal" else field.name
    for field in fields(AggregateQuery)
    if field.name != "streams"
)
_STREAM = ("name", "ts", "window", "vectors", "id",
           "format", "schema", "path", "options", "select", "where")  # fmt: skip
_SINK = ("format", "path", "options", "select", "partition_by")

_AGGREGATE = re.compile(r"\s*(\w+)\s*\(\s*(.*?)\s*\)\s*")
_LOCAL = "a directory of this machine, local or mounted"
_PAUSE = 'a time between micro-batches such as "5 seconds"'
_FILES = ("parquet", "csv", "json", "orc", "avro")  # Spark needs their schema
_OWN_COLUMNS = ("kafka", "rate", "rate-micro-batch", "socket")
_ENDLESS = ("rate", "socket")
WILD = set("*?[{")
_NOT_WAITING: dict[type, str] = {WindowQuery: "a [window]", AggregateQuery: "an [aggregate]"}


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
    """A job, checked as far as possible without Spark."""

    file: str  # as it was given
    name: str
    query: AnyQuery
    sources: tuple[Source, ...]
    sink: Sink
    checkpoint: Path
    trigger_ms: int | None  # None processes the available input and ends
    options: dict[str, Any]  # of JoinQuery.stream
    metrics: Path | None
    cores: int | None
    settings: dict[str, str]  # of Spark

    def source_of(self, stream: Stream) -> Source:
        """Where a stream comes from."""
        return next(source for source in self.sources if source.name == stream.source)


def read_job(file: Path) -> JobFile:
    """Read and check a job; a `JobFileError` names the file, the table and the key."""
    try:
        text = file.read_text(encoding="utf-8")
        given = tables_of(str(file), text) if file.suffix == ".sql" else tomllib.loads(text)
    except JobFileError:
        raise
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}"
        raise JobFileError(msg) from error
    except ValueError as error:  # not TOML, or not even text
        msg = f"{file} is not a TOML file: {error}"
        raise JobFileError(msg) from error
    except RecursionError as error:
        msg = f"{file} is not a TOML file: it is nested too deeply"
        raise JobFileError(msg) from error
    base = file.absolute().parent
    tables = Table(f"{file}:", given, _TABLES)
    job = tables.table("job", _JOB)
    reading = tables.tables("stream", _STREAM, 1)
    findings = Findings()
    read_query = partial(_from_sql, job) if "sql" in job.given else _from_tables
    query = findings.of(lambda: read_query(tables, reading))
    found = [findings.of(partial(_source, table, base)) for table in reading]
    sources = tuple(source for source in found if source is not None)
    sink = findings.of(lambda: _sink(tables.table("sink", _SINK), base))
    checkpoint = findings.of(lambda: _directory(job, "checkpoint", base))
    trigger = findings.of(lambda: _trigger(job, sources))
    options = findings.of(lambda: {} if query is None else _options(job, base, query))
    metrics = findings.of(lambda: job.text_or("metrics", None))
    name = findings.of(lambda: job.text_or("name", file.stem))
    spark = findings.of(lambda: _spark(tables.table("spark", None, required=False)))
    findings.check()
    assert query and sink and checkpoint and options is not None and name and spark
    return JobFile(
        file=str(file),
        name=name,
        query=query,
        sources=sources,
        sink=sink,
        checkpoint=checkpoint,
        trigger_ms=trigger,
        options=options,
        metrics=None if metrics is None else Path(_located(metrics, base)),
        cores=spark[0],
        settings=spark[1],
    )


def _from_tables(tables: Table, reading: Sequence[Table]) -> AnyQuery:
    """The query of [join], [window] or [aggregate]."""
    kind, section = _query_section(tables)
    unit: TimeUnit = section.choice("unit", get_args(TimeUnit), "ms")
    if kind != "window" and len(reading) < 2:
        tables.fail(f"needs at least 2 tables [[stream]], got {len(reading)}")
    has_interval = "between" in section.given or section.given.get("how") == "asof"
    needs_windows = kind == "join" and not has_interval
    streams = [_stream(table, unit, needs_windows) for table in reading]
    return _QUERIES[kind](section, streams, unit)


def _from_sql(job: Table, tables: Table, reading: Sequence[Table]) -> AnyQuery:
    """The query of a SELECT, whose streams are the sources."""
    kinds = [kind for kind in _KINDS if kind in tables.given]
    if kinds:
        tables.fail(f"has both sql and [{kinds[0]}]; a job is one of them")
    for table in reading:
        for key in ("window", "vectors", "id"):
            if key in table.given:
                table.fail(f"{key} must be left out: it is in the SQL")
    given = {table.text("name"): table.text_or("ts", "") for table in reading}
    query = job.checked(lambda: sql(job.text("sql"), **given))
    missing = [stream.source for stream in query.streams if stream.source not in given]
    if missing:
        near = ", ".join(given)
        job.fail(f"sql reads {missing[0]}, which no [[stream]] is called; there are {near}")
    return query


def _query_section(tables: Table) -> tuple[str, Table]:
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


def _options(job: Table, base: Path, query: AnyQuery) -> dict[str, Any]:
    """The options of `JoinQuery.stream`."""
    unit = query.unit
    options: dict[str, Any] = {
        "at_end": job.choice("at_end", ("hold", "flush"), "hold"),
        "arrival": job.text_or("arrival", None),
        "shards": job.whole("shards"),
    }
    not_waiting = _NOT_WAITING.get(type(query))
    if not_waiting is None:
        options["idle_after"] = job.duration("idle_after", unit)
    elif "idle_after" in job.given:
        job.fail(f"idle_after is for joins: {not_waiting} does not wait for a stream")
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
    ours = [name for name in settings if not name.startswith("spark.")]
    table.check_known(ours, ("cores", "spark.*"))
    return table.whole("cores"), settings


# ---- [join], [window] and [[stream]]


def _query(joining: Table, streams: Sequence[Stream], unit: TimeUnit) -> JoinQuery:
    joining.duration("slide", unit)
    joining.duration("retention", unit)
    select = joining.given.get("select")
    if isinstance(select, dict) and any(map(_is_aggregate, select.values())):
        joining.refuse("select", '"*", "count" or columns; aggregates are for [aggregate]')
    given = joining.given | {
        "goal": goal_of(joining, unit, None),
        "shed": shedding_of(joining, unit),
    }
    return joining.checked(lambda: join(*streams, **given))


def _is_aggregate(how: Any) -> bool:
    """Whether it is like ``"sum(a.v)"``; ``"max(a.v, b.v)"`` is a column."""
    written = _AGGREGATE.fullmatch(how) if isinstance(how, str) else None
    return written is not None and written[1].lower() in get_args(Function) and "," not in how


def _window(section: Table, streams: Sequence[Stream], unit: TimeUnit) -> WindowQuery:
    if len(streams) > 1:
        section.fail(f"takes one [[stream]], got {len(streams)}")
    if section.given.get("max_jump") not in ("auto", "none"):
        section.duration("max_jump", unit)
    given = section.given | {
        "window": _windows(section, unit),
        "select": _select(section),
        "goal": goal_of(section, unit, DropRatio()),
    }
    return section.checked(lambda: window(streams[0], **given))


def _aggregates(section: Table, streams: Sequence[Stream], unit: TimeUnit) -> AggregateQuery:
    section.duration("retention", unit)
    given = section.given | {
        "select": _select(section),
        "window": _windows(section, unit),
        "deadline": deadline_of(section, unit),
    }
    return section.checked(lambda: aggregate(*streams, **{"on": None} | given))


def _windows(section: Table, unit: TimeUnit) -> Window:
    """``"10 s"``: side by side; ``"100 tuples"``; or ``{length = "30 s", slide = "10 s"}``."""
    if "window" not in section.given:
        section.fail("needs window")
    given = section.given["window"]
    if not isinstance(given, dict):
        length = _length(section, "window", unit)
        return length if isinstance(length, Tuples) else Tumbling(length)
    table = Table(f"{section.where} window:", given, ("length", "slide"))
    if "length" not in given:
        table.fail("needs length")
    slide = _length(table, "slide", unit) if "slide" in given else None
    length = _length(table, "length", unit)
    return table.checked(lambda: sliding_window(length, slide))


def _length(table: Table, name: str, unit: TimeUnit) -> Any:
    """``"10 s"``, ``"100 tuples"``, or a number of units."""
    length = length_of_text(table.given[name])
    if not isinstance(length, int | Tuples):
        table.duration(name, unit)
    return length


def _select(section: Table) -> dict[str, Aggregate]:
    select = section.given.get("select")
    if not isinstance(select, dict) or not select:
        section.refuse("select", 'a table of aggregates: {mean = "avg(price)", n = "count()"}')
    return {name: _aggregate(section, name, how) for name, how in select.items()}


def _aggregate(section: Table, name: str, how: Any) -> Aggregate:
    """``"avg(price)"``."""
    written = _AGGREGATE.fullmatch(how) if isinstance(how, str) else None
    if written is None:
        section.fail(f'select.{name} must be like "avg(price)" or "count()", got {how!r}')
    function, column = written[1].lower(), written[2] or None
    return section.checked(lambda: Aggregate(function, column))  # type: ignore[arg-type]


_QUERIES: dict[str, Callable[[Table, Sequence[Stream], TimeUnit], AnyQuery]] = {
    "join": _query,
    "window": _window,
    "aggregate": _aggregates,
}


def _stream(table: Table, unit: TimeUnit, needs_window: bool) -> Stream:
    name, ts = table.text("name"), table.text("ts")
    vectors = table.given.get("vectors", {})
    if needs_window and "window" not in table.given:
        table.fail("needs window")
    window = _length(table, "window", unit) if "window" in table.given else None
    return table.checked(lambda: Stream(name, ts, window, vectors=vectors, id=table.texts("id")))


def _source(table: Table, base: Path) -> Source:
    form = table.text("format")
    path = _path(table, form, base)
    if path and "://" not in path and not WILD & set(path) and not Path(path).exists():
        table.refuse("path", "a file or directory that exists")
    return Source(
        table.text("name"),
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
    """Return an address unchanged, and a relative path from the directory of the job file."""
    return path if "://" in path else str(base / Path(path).expanduser())
