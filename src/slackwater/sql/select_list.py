"""The columns of a statement: what is selected, and what groups are made by."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

from sqlglot import exp

from slackwater.query.functions import Aggregate, Function
from slackwater.sql.diagnostics import meant
from slackwater.sql.expressions import column_in, expression
from slackwater.sql.places import Places

_AGGREGATES = get_args(Function)


class SelectList:
    """Reads the columns behind SELECT and GROUP BY.

    Parameters
    ----------
    items
        What stands behind SELECT.
    names
        The names of the streams.
    places
        For errors.
    """

    def __init__(self, items: list[exp.Expr], names: list[str], places: Places) -> None:
        self._items = items
        self._names = names
        self._places = places

    def columns(self) -> Any:
        """``"*"``, ``"count"``, or columns by name."""
        items = self._items
        if len(items) == 1 and isinstance(items[0], exp.Star):
            return "*"
        if len(items) == 1 and _is_count(items[0]):
            return "count"
        named: list[tuple[str | None, str, exp.Expr]] = []
        for item in items:
            named += self._item(item)
        plain = Counter(name or _last(text) for name, text, _ in named if not text.endswith(".*"))
        select: dict[str, str] = {}
        for name, text, node in named:
            column = name or self._named(text, plain, node)
            if column in select:
                raise self._places.error_at(
                    node, f"there is more than one column {column}; name one with AS"
                )
            select[column] = text
        return select

    def _item(self, item: exp.Expr) -> list[tuple[str | None, str, exp.Expr]]:
        name = item.alias or None
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Star):
            return [(f"{stream}.*", f"{stream}.*", item) for stream in self._names]
        self.check_streams(node)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return [(f"{node.table}.*", f"{node.table}.*", item)]
        if self._aggregate_of(node) is not None and len(node.expressions) == 1:
            msg = "aggregates over a join need windows: WINDOW TUMBLING 10 SECONDS"
            raise self._places.error_at(node, msg)
        return [(name, expression(node, self._places.error_at), item)]

    def _named(self, text: str, plain: Counter[str], node: exp.Expr) -> str:
        """The name of a column that has none: its own, with its stream where that is not enough."""
        column = column_in(text)
        if column is None:
            raise self._places.error_at(node, f"name the column {text} with AS")
        return column.name if plain[column.name] == 1 else f"{column.stream}_{column.name}"

    def group(self, node: exp.Expr) -> str:
        """A column of GROUP BY."""
        if not isinstance(node, exp.Column):
            raise self._places.error_at(node, f"GROUP BY takes columns, got {node.sql()}")
        if node.table:
            self.check_streams(node)
        if len(self._names) == 1:
            return str(node.name)
        return f"{node.table}.{node.name}" if node.table else str(node.name)

    def aggregates(self, by: list[str], qualified: bool) -> dict[str, Aggregate]:
        """Aggregates by name; columns of the groups are in the results anyway."""
        select: dict[str, Aggregate] = {}
        for item in self._items:
            node = item.this if isinstance(item, exp.Alias) else item
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                if item.alias or self.group(node) not in by:
                    msg = f"{node.sql()} must be one of GROUP BY, under its own name"
                    raise self._places.error_at(item, msg)
                continue
            function = self._aggregate_of(node)
            if function is None:
                msg = f"expected aggregates ({', '.join(_AGGREGATES).upper()}), got {node.sql()}"
                raise self._places.error_at(item, msg)
            column = self._argument(node, function, qualified)
            name = item.alias or "_".join(
                [function, *([] if column is None else column.split("."))]
            )
            if name in select:
                raise self._places.error_at(
                    item, f"there is more than one column {name}; name one with AS"
                )
            span = self._places.span(item)
            select[name] = self._places.checked(lambda: Aggregate(function, column), span)  # type: ignore[arg-type]  # noqa: B023
        return select

    def _aggregate_of(self, node: exp.Expr) -> str | None:
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        return name if name in _AGGREGATES else None

    def _argument(self, node: exp.Expr, function: str, qualified: bool) -> str | None:
        arguments = node.expressions
        if function == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
            return None
        if len(arguments) != 1 or not isinstance(arguments[0], exp.Column):
            raise self._places.error_at(
                node, f"{function.upper()} takes one column, got {node.sql()}"
            )
        [column] = arguments
        if column.table or qualified:
            self.check_streams(column)
        return f"{column.table}.{column.name}" if qualified else str(column.name)

    def check_streams(self, node: exp.Expr) -> None:
        """Raise for a column that names no stream of the statement."""
        for column in node.find_all(exp.Column):
            if len(column.parts) > 2:
                raise self._places.error_at(
                    column, f"a column is stream.column, got {column.sql()}"
                )
            if not column.table:
                near = " or ".join(f"{name}.{column.name}" for name in self._names)
                raise self._places.error_at(column, f"say of which stream {column.name} is: {near}")
            if column.table not in self._names:
                listed = ", ".join(self._names)
                near = meant(column.table, self._names)
                msg = f"there is no stream {column.table}; streams are {listed}{near}"
                raise self._places.error_at(column, msg)


def _is_count(node: exp.Expr) -> bool:
    """Whether it is COUNT(*), which has a name of its own."""
    return (
        isinstance(node, exp.Anonymous)
        and node.name.upper() == "COUNT"
        and all(isinstance(argument, exp.Star) for argument in node.expressions)
    )


def _last(text: str) -> str:
    column = column_in(text)
    return text if column is None else column.name
