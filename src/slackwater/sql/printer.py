"""From a query to its SQL; `slackwater.sql.sql` reads it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.base import QueryKind
from slackwater.query.expression import Column
from slackwater.query.functions import Aggregate
from slackwater.query.goals import Goal
from slackwater.query.join import JoinQuery
from slackwater.query.keys import tied_columns
from slackwater.query.stream import Stream
from slackwater.query.window import WindowQuery, natural_bounds
from slackwater.query.windows import Sliding, Tumbling, Tuples, Window
from slackwater.sql import grammar
from slackwater.sql.expressions import column_in, to_sql
from slackwater.sql.intervals import interval_text
from slackwater.sql.literals import identifier, value


def printed(query: AnyQuery) -> str:
    """The SQL of a query, a clause a line."""
    return "\n".join(filter(None, _CLAUSES[query.kind](query)))


# ---- the three kinds


def _join(query: JoinQuery) -> Iterator[str]:
    yield f"SELECT {_columns(query)}"
    yield f"FROM {_streams(query) if query.how == 'inner' else _kind(query)}"
    yield "" if query.slide is None else f"SLIDE {value(query.slide)}"
    interval = interval_text(query)
    yield _where(query.on, query.where, interval) if query.how == "inner" else ""
    shed = () if query.shed == "off" else (f"SHED {_shed(query.shed)}",)
    yield _with(query, shed, ("retention", "bounds"))


def _window(query: WindowQuery) -> Iterator[str]:
    [stream] = query.streams
    parts = list(_range(query.window))
    yield f"SELECT {_aggregate_list(query.select, query.by, ())}"
    yield f"FROM {_stream(stream, parts)}"
    yield _group(query.by, ())
    is_natural = query.bounds == natural_bounds(query.length, query.step)
    valued = ("max_jump",) if is_natural else ("bounds", "max_jump")
    yield _with(query, (), valued, always=("bounds",))


def _aggregates(query: AggregateQuery) -> Iterator[str]:
    window = query.window
    how = f"TUMBLING {value(window.length)}"
    if isinstance(window, Sliding):
        how = f"SLIDING {value(window.length)} EVERY {value(window.slide)}"
    yield f"SELECT {_aggregate_list(query.select, query.by, query.names)}"
    yield f"FROM {_streams(query)}"
    yield _where(query.on, None)
    yield _group(query.by, query.names)
    yield f"WINDOW {how}"
    compensate = query.compensate
    estimates = "COMPENSATE" if compensate is True else f"COMPENSATE {value(compensate)}"
    yield _with(query, () if compensate is None else (estimates,), ("confidence", "retention"))


_CLAUSES: dict[QueryKind, Callable[[Any], Iterator[str]]] = {
    "join": _join,
    "window": _window,
    "aggregate": _aggregates,
}


# ---- clauses


def _columns(query: JoinQuery) -> str:
    if not query.listed:
        return "*" if query.select == "*" else "COUNT(*)"
    columns = [column_in(text) for _, text in query.listed if not text.endswith(".*")]
    last = Counter(column.name for column in columns if column is not None)
    return ", ".join(_column(name, text, last[name] == 1) for name, text in query.listed)


def _column(name: str, text: str, is_alone: bool) -> str:
    """A column, under its own name if no other column of a stream is called so."""
    if text.endswith(".*"):
        return f"{identifier(text.removesuffix('.*'))}.*"
    written = to_sql(text, as_condition=False)
    column = column_in(text)
    if is_alone and column is not None and column.name == name:
        return written
    return f"{written} AS {identifier(name)}"


def _aggregate_list(select: Any, by: tuple[str, ...], streams: tuple[str, ...]) -> str:
    columns = [_qualified(column, streams) for column in by]
    return ", ".join([*columns, *(_aggregate(name, how, streams) for name, how in select.items())])


def _aggregate(name: str, how: Aggregate, streams: tuple[str, ...]) -> str:
    column = "*" if how.column is None else _qualified(how.column, streams)
    return f"{how.function.upper()}({column}) AS {identifier(name)}"


def _qualified(column: str, streams: tuple[str, ...]) -> str:
    """``stream.column``, or a column alone, which may have a dot in its name."""
    stream, dot, name = column.partition(".")
    return (
        f"{identifier(stream)}.{identifier(name)}"
        if stream in streams and dot
        else identifier(column)
    )


def _group(by: tuple[str, ...], streams: tuple[str, ...]) -> str:
    return f"GROUP BY {', '.join(_qualified(column, streams) for column in by)}" if by else ""


def _streams(query: JoinQuery | AggregateQuery) -> str:
    """The streams; columns that all share are behind USING."""
    parts, using = _joined(query)
    if not using:
        return ",\n     ".join(parts)
    return parts[0] + "".join(f"\n     JOIN {part}{using}" for part in parts[1:])


def _kind(query: JoinQuery) -> str:
    """The two streams of a join that is not an inner one, with its conditions."""
    (left, right), using = _joined(query)
    conditions = _conditions(query.on, query.where)
    on = f" ON {conditions}" if conditions else ""
    reach = "" if query.tolerance is None else f" TOLERANCE {value(query.tolerance)}"
    way = "" if query.direction == "backward" else f" {query.direction.upper()}"
    return f"{left}\n     {query.how.upper()} JOIN {right}{using}{on}{reach}{way}"


def _joined(query: JoinQuery | AggregateQuery) -> tuple[list[str], str]:
    """The streams, and USING with the columns that all share."""
    on = (query.on,) if isinstance(query.on, str) else query.on or ()
    shared = [identifier(tie) for tie in map(tied_columns, on) if isinstance(tie, str)]
    parts = [
        _stream(stream, [] if stream.window is None else [f"RANGE {value(stream.window)}"])
        for stream in query.streams
    ]
    return parts, f" USING ({', '.join(shared)})" if shared else ""


def _stream(stream: Stream, parts: list[str]) -> str:
    parts = parts + ([] if stream.ts == "ts" else [f"WATTR {identifier(stream.ts)}"])
    parts += [
        f"VECTOR {identifier(name)} {length}" for name, length in dict(stream.vectors).items()
    ]
    parts += [f"ID {identifier(name)}" for name in stream.id]
    text = identifier(stream.source) + (f" [{', '.join(parts)}]" if parts else "")
    return text if stream.name == stream.source else f"{text} AS {identifier(stream.name)}"


def _where(on: Any, where: Any, interval: str | None = None) -> str:
    conditions = _conditions(on, where, interval)
    return f"WHERE {conditions}" if conditions else ""


def _conditions(on: Any, where: Any, interval: str | None = None) -> str:
    ties = map(tied_columns, (on,) if isinstance(on, str) else on or ())
    conditions = [_equality(tie) for tie in ties if not isinstance(tie, str)]
    if interval is not None:
        conditions.append(interval)
    if callable(where):
        conditions.append(f"<the function {getattr(where, '__name__', where)}>")
    elif where is not None:
        conditions.append(to_sql(where))
    return " AND ".join(conditions)


def _equality(sides: tuple[Column, Column]) -> str:
    return " = ".join(f"{identifier(c.stream)}.{identifier(c.name)}" for c in sides)


def _with(
    query: AnyQuery, own: tuple[str, ...], valued: tuple[str, ...], always: tuple[str, ...] = ()
) -> str:
    """The goal, settings that only this kind of query has, and options that are not the default."""
    usual = {f.name: f.default for f in fields(query)}
    settings = [_goal(query.goal), *own]
    for words, option, choices in grammar.CHOICES:
        if option in usual and (chosen := getattr(query, option)) != usual[option]:
            [spelled] = [" ".join(w) for w, meaning in choices.items() if meaning == chosen]
            settings.append(" ".join(filter(None, (*words, spelled))))
    for words, option in grammar.VALUES:
        if option in valued and (option in always or getattr(query, option) != usual[option]):
            settings.append(f"{' '.join(words)} {value(getattr(query, option))}")
    return f"WITH {', '.join(settings)}"


def _goal(goal: Goal) -> str:
    [words] = [words for words in grammar.GOALS if words.kind is type(goal)]
    usual = {f.name: f.default for f in fields(goal)}
    parts = list(words.words)
    if words.first is not None:
        parts.append(value(getattr(goal, words.first)))
    if words.second is not None:
        word, name = words.second
        if getattr(goal, name) != usual[name] or word == "OVER":
            given = getattr(goal, name)
            parts += [word, given.upper() if word == "AFTER" else value(given)]
    options = grammar.options_of(type(goal), words)
    return " ".join(parts) + _options(goal, options)


def _shed(shed: Any) -> str:
    if isinstance(shed, str):
        return shed.upper()
    [words] = [words for words, kind in grammar.SHEDDING if kind is type(shed)]
    return " ".join(words) + _options(shed, grammar.options_of(type(shed)))


def _options(made: Any, names: tuple[str, ...]) -> str:
    usual = {f.name: f.default for f in fields(made)}
    given = {name: getattr(made, name) for name in names if getattr(made, name) != usual[name]}
    written = ", ".join(f"{name} {value(option)}" for name, option in given.items())
    return f" ({written})" if written else ""


def _range(window: Window) -> Iterator[str]:
    """The window of one stream: RANGE, and SLIDE if there is one."""
    if isinstance(window, Tuples):
        yield f"RANGE {window.count} TUPLES"
        if window.slide is not None:
            yield f"SLIDE {window.slide} TUPLES"
        return
    yield f"RANGE {value(window.length)}"
    slide = window.length if isinstance(window, Tumbling) else window.slide
    if slide is not None:
        yield f"SLIDE {value(slide)}"
