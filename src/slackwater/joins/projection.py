"""The columns of results that a query selects by name: columns of streams, and expressions.

Evaluated on whole columns of Arrow, so that results are the same with and without Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from slackwater.errors import QueryError
from slackwater.events.batch import flat
from slackwater.joins.arrow_values import Values, evaluate
from slackwater.query.expression import Column, Node, columns_of, parse
from slackwater.query.join import JoinQuery


class Item(NamedTuple):
    """A column of the results."""

    name: str
    tree: Node

    @property
    def column(self) -> Column | None:
        """The column of a stream that it is, if it is one."""
        return self.tree if isinstance(self.tree, Column) else None

    @property
    def reads(self) -> frozenset[Column]:
        """The columns of streams that it needs."""
        return columns_of(self.tree)


class Projection:
    """The columns that `query.select` lists; ``stream.*`` stands for all of a stream."""

    def __init__(self, query: JoinQuery, schemas: Sequence[pa.Schema]) -> None:
        pairs = enumerate(zip(query.names, schemas, strict=True))
        self._schemas = {name: schema for s, (name, schema) in pairs if query.shows(s)}
        self._how = query.how
        self.items = [item for name, text in query.listed for item in self._items(name, text)]
        empty = {
            Column(stream, field.name): pa.array([], field.type)
            for stream, schema in self._schemas.items()
            for field in schema
        }
        columns = self.evaluate(empty)
        self.fields = [self._field(*pair) for pair in zip(self.items, columns, strict=True)]

    def _items(self, name: str, text: str) -> list[Item]:
        stream, _, column = text.partition(".")
        if column == "*":
            self._check_shown(stream)
            own = self._schemas[stream].names
            return [Item(f"{stream}_{name}", Column(stream, name)) for name in own]
        item = Item(name, parse(text, "select"))
        for read in sorted(item.reads):
            self._check_shown(read.stream)
            if read.name not in self._schemas[read.stream].names:
                listed = ", ".join(self._schemas[read.stream].names)
                msg = (
                    f"select reads {read}, but stream {read.stream!r} has no column "
                    f"{read.name!r}; it has {listed}"
                )
                raise QueryError(msg)
        return [item]

    def _check_shown(self, stream: str) -> None:
        if stream not in self._schemas:
            [shown] = self._schemas
            msg = f"how={self._how!r} has columns of stream {shown!r} only, select reads {stream!r}"
            raise QueryError(msg)

    def _field(self, item: Item, column: pa.Array) -> pa.Field:
        if item.column is not None:
            stream, name = item.column
            return self._schemas[stream].field(name).with_name(item.name)
        return pa.field(item.name, column.type)

    def read(self, stream: str) -> list[str]:
        """The columns of `stream` that results need; none if they show none of it."""
        if stream not in self._schemas:
            return []
        needed = {column for item in self.items for column in item.reads}
        return [c for c in self._schemas[stream].names if (stream, c) in needed]

    def of_members(self, tables: Sequence[pa.Table]) -> list[pa.Array]:
        """The columns of results, from their members, stream by stream."""
        return self.evaluate(
            {
                Column(stream, name): flat(table.column(name))
                for stream, table in zip(self._schemas, tables, strict=True)
                for name in table.column_names
            }
        )

    def evaluate(self, columns: Values) -> list[pa.Array]:
        """The columns of results, from those of their members."""
        return [
            columns[item.column] if item.column else evaluate(item.tree, columns, "select")
            for item in self.items
        ]
