"""The columns of results: derived here once, in Arrow, for every kind of query.

Engines fill these columns, Spark's schema follows from them, and oracles compare in them. A column
with unchanged values of a user's column names its source: on Spark it has the type of that column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.errors import DataError, QueryError
from slackwater.joins.projection import Projection
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import ONE_SIDED
from slackwater.query.window import WindowQuery
from slackwater.windows.slots import SlotPlan

RESULT_TS = "result_ts"
LATE = "late"
CHANGE = "change"
RESULT_ID = "result_id"

_KEEP_VALUES = ("first", "last", "min", "max")  # aggregates that give a value of their column


class ResultColumn(NamedTuple):
    """A column of results."""

    field: pa.Field
    source: tuple[str, str] | None = None  # stream and column whose values it has; None: computed


def result_schema(query: AnyQuery, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The Arrow schema of the results of `query` over streams with these schemas.

    Parameters
    ----------
    query
        A query of any kind.
    schemas
        The Arrow schema of each stream, by name.

    Raises
    ------
    QueryError
        If the query names columns that the streams do not have, or results would have two columns
        of one name.
    """
    return schema_of(result_columns(query, [check_schema(schemas, name) for name in query.names]))


def result_columns(query: AnyQuery, schemas: Sequence[pa.Schema]) -> list[ResultColumn]:
    """The columns of results and where they come from; `schemas` are in stream order."""
    return _COLUMNS[type(query)](query, schemas)


def schema_of(columns: Sequence[ResultColumn]) -> pa.Schema:
    """The schema of these columns."""
    return pa.schema([column.field for column in columns])


def check_schema(schemas: Mapping[str, pa.Schema], name: str) -> pa.Schema:
    """The schema of the stream `name`."""
    if name not in schemas:
        msg = f"there is no data for stream {name!r}; got {', '.join(schemas) or 'none'}"
        raise DataError(msg)
    return schemas[name].remove_metadata()


def time_type(query: AnyQuery, schemas: Sequence[pa.Schema]) -> pa.DataType:
    """A timestamp where all streams have one, else a number."""
    types = [
        schema.field(stream.ts).type
        for stream, schema in zip(query.streams, schemas, strict=True)
        if stream.ts in schema.names
    ]
    if types and all(pa.types.is_timestamp(kind) for kind in types):
        return pa.timestamp(query.unit, types[0].tz)
    return pa.int64()


# ---- joins


def projection_of(query: JoinQuery, schemas: Sequence[pa.Schema]) -> Projection | None:
    """The listed columns; None: all columns of all streams, or counts."""
    return Projection(query, schemas) if query.listed else None


def join_columns(
    query: JoinQuery, schemas: Sequence[pa.Schema], projection: Projection | None
) -> list[ResultColumn]:
    """Result time first, then what is selected.

    ``"*"`` is every column of every stream as ``<stream>_<column>``.
    """
    columns = [ResultColumn(pa.field(RESULT_TS, time_type(query, schemas), nullable=False))]
    if query.select == "count":
        return [*columns, ResultColumn(pa.field("n", pa.int64(), nullable=False))]
    if projection is not None:
        pairs = zip(projection.fields, projection.items, strict=True)
        columns += [ResultColumn(field, item.column) for field, item in pairs]
    else:
        for s, (name, schema) in enumerate(zip(query.names, schemas, strict=True)):
            for field in schema if query.shows(s) else ():
                named = field.with_name(f"{name}_{field.name}")
                columns.append(ResultColumn(named, (name, field.name)))
    columns = [columns[0], *(_nullable(query, column) for column in columns[1:])]
    if query.result_id:
        columns.append(ResultColumn(pa.field(RESULT_ID, pa.binary(), nullable=False)))
    if query.late == "emit":
        columns.append(ResultColumn(pa.field(LATE, pa.bool_(), nullable=False)))
        if any(query.preserved):
            columns.append(ResultColumn(pa.field(CHANGE, pa.string(), nullable=False)))
    names = [column.field.name for column in columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        how = "they are named <stream>_<column>" if projection is None else "result_ts is one"
        msg = (
            f"results would have more than one column {', '.join(doubled)} "
            f"({how}); rename {'a stream' if projection is None else 'one'}"
        )
        raise QueryError(msg)
    return columns


def _nullable(query: JoinQuery, column: ResultColumn) -> ResultColumn:
    """`column`, which is null in rows without a member of its stream."""
    if not any(query.preserved) or query.how in ONE_SIDED:
        return column
    if column.source is not None and not query.preserved[1 - query.names.index(column.source[0])]:
        return column
    return column._replace(field=column.field.with_nullable(True))


def _join(query: JoinQuery, schemas: Sequence[pa.Schema]) -> list[ResultColumn]:
    return join_columns(query, schemas, projection_of(query, schemas))


# ---- windows of one stream


def window_columns(query: WindowQuery, schema: pa.Schema, plan: SlotPlan) -> list[ResultColumn]:
    """The end of the window, the group, the aggregates."""
    [stream] = query.names
    for name in query.by:
        if name not in schema.names:
            msg = (
                f"by names {name!r}, but stream {stream!r} has no such column; "
                f"it has {', '.join(schema.names)}"
            )
            raise QueryError(msg)
    columns = [ResultColumn(pa.field(RESULT_TS, time_type(query, [schema]), nullable=False))]
    for name in query.by:
        columns.append(ResultColumn(pa.field(name, schema.field(name).type), (stream, name)))
    for column in plan.columns:
        how = column.aggregate
        keeps = how.function in _KEEP_VALUES and how.column is not None
        source = (stream, str(how.column)) if keeps else None
        columns.append(ResultColumn(pa.field(column.name, column.type), source))
    return columns


def _window(query: WindowQuery, schemas: Sequence[pa.Schema]) -> list[ResultColumn]:
    [schema] = schemas
    return window_columns(query, schema, SlotPlan(query.select, schema, query.names[0]))


# ---- aggregates of joined windows


def group_types(query: AggregateQuery, schemas: Sequence[pa.Schema]) -> list[pa.DataType]:
    """The types of the columns that make groups."""
    types = []
    for name in query.group_columns:
        assert query.group_stream is not None
        schema = schemas[query.group_stream]
        if name not in schema.names:
            stream = query.names[query.group_stream]
            msg = (
                f"by names {stream}.{name}, but stream {stream!r} has no such column; "
                f"it has {', '.join(schema.names)}"
            )
            raise QueryError(msg)
        types.append(schema.field(name).type)
    return types


def _aggregate(query: AggregateQuery, schemas: Sequence[pa.Schema]) -> list[ResultColumn]:
    """The window, the group, the aggregates, how complete they are."""
    time = time_type(query, schemas)
    fields = [pa.field(name, time, nullable=False) for name in ("window_start", "window_end")]
    types = group_types(query, schemas)
    fields += [pa.field(n, kind) for n, kind in zip(query.group_columns, types, strict=True)]
    for name, how in query.select.items():
        whole = pa.int64() if how.function == "count" else pa.float64()
        fields += [pa.field(name, pa.float64()), pa.field(f"{name}_observed", whole)]
        fields += [pa.field(f"{name}_{end}", pa.float64()) for end in ("low", "high")]
    fields += [
        pa.field("completeness", pa.float64()),
        pa.field("exact", pa.bool_(), nullable=False),
    ]
    return [ResultColumn(field) for field in fields]


_COLUMNS: dict[type[Any], Callable[[Any, Sequence[pa.Schema]], list[ResultColumn]]] = {
    JoinQuery: _join,
    WindowQuery: _window,
    AggregateQuery: _aggregate,
}
