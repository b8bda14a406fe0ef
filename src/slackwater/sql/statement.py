"""What a text says, clause by clause, before it is a query; each part knows where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlglot import exp

from slackwater.query.windows import Tuples

Length = str | int | Tuples  # "5 seconds", a bare number of units, or tuples


class Span(NamedTuple):
    """A part of the text, by its first character and the one behind its last."""

    start: int
    end: int


@dataclass
class Clause:
    """A setting: its value, and its place in the text."""

    value: Any
    span: Span


@dataclass
class StreamClause:
    """``SensorOne [RANGE 5 SECONDS, WATTR ts] AS S KEEP 3 SECOND``."""

    source: str
    name: str
    span: Span
    range: Clause | None = None
    slide: Clause | None = None
    wattr: str | None = None
    dratio: Clause | None = None
    vectors: dict[str, int] = field(default_factory=dict)
    id: list[str] = field(default_factory=list)
    using: list[str] | None = None  # of JOIN … USING
    on: exp.Expr | None = None  # of JOIN … ON
    how: Clause | None = None  # the kind of join, if it is not an inner one
    tolerance: Clause | None = None  # of ASOF JOIN
    direction: Clause | None = None


@dataclass
class Statement:
    """``SELECT … FROM … …``."""

    items: list[exp.Expr]
    streams: list[StreamClause]
    span: Span
    where: exp.Expr | None = None
    group: list[exp.Expr] = field(default_factory=list)
    slide: Clause | None = None
    window: Clause | None = None  # a Tumbling or a Sliding
    settings: dict[str, Clause] = field(default_factory=dict)  # by the name of the option


@dataclass
class SetStatement:
    """``SET name = value``, of a file."""

    name: str
    value: Any
    span: Span


@dataclass
class Source:
    """``CREATE STREAM name (columns) FROM format 'path' OPTIONS (…)``, of a file."""

    name: str
    schema: str | None
    format: str
    path: str | None
    options: dict[str, Any]
    span: Span


@dataclass
class Sink:
    """``INSERT INTO format 'path' OPTIONS (…) SELECT …``, of a file."""

    format: str
    path: str | None
    options: dict[str, Any]
    statement: Statement
    span: Span
