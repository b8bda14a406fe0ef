"""A job as one SQL file: settings, where streams come from, and where results go.

It becomes the same tables as a TOML file, so that the same code checks both.
"""

from __future__ import annotations

from typing import Any

from slackwater.errors import QueryError
from slackwater.jobs.toml_table import JobFileError

_SPARK = "spark."


def tables_of(file: str, text: str) -> dict[str, Any]:
    """Parse a job in SQL into the tables of a TOML file."""
    from slackwater.sql.parser import parse
    from slackwater.sql.statement import SetStatement, Sink, Source

    try:
        statements = parse(text)
    except QueryError as error:
        msg = f"{file}: {error}"
        raise JobFileError(msg) from error
    job: dict[str, Any] = {}
    spark: dict[str, Any] = {}
    streams: list[dict[str, Any]] = []
    sinks: list[Sink] = []
    for statement in statements:
        if isinstance(statement, SetStatement):
            is_spark = statement.name.startswith(_SPARK) or statement.name == "cores"
            (spark if is_spark else job)[statement.name] = statement.value
        elif isinstance(statement, Source):
            streams.append(_place(statement) | {"name": statement.name})
        elif isinstance(statement, Sink):
            sinks.append(statement)
        else:
            msg = (
                f"{file}: a file must name its output: INSERT INTO PARQUET 'out' SELECT …, "
                "got a SELECT alone"
            )
            raise JobFileError(msg)
    if len(sinks) != 1:
        msg = f"{file}: a file has one INSERT INTO … SELECT …, got {len(sinks)}"
        raise JobFileError(msg)
    [sink] = sinks
    start, end = sink.statement.span
    job["sql"] = text[start:end]
    tables = {"job": job, "stream": streams, "sink": _place(sink)}
    return tables | ({"spark": spark} if spark else {})


def _place(statement: Any) -> dict[str, Any]:
    """Return where rows are read or written, with our own keys apart from Spark's options."""
    ours = {"select", "where", "partition_by"}
    options = {name: value for name, value in statement.options.items() if name not in ours}
    own = {name: value for name, value in statement.options.items() if name in ours}
    lists = {
        name: list(value) if isinstance(value, tuple) else value for name, value in own.items()
    }
    given = {
        "format": statement.format,
        "path": statement.path,
        "schema": getattr(statement, "schema", None),
        "options": options or None,
        **lists,
    }
    return {name: value for name, value in given.items() if value is not None}
