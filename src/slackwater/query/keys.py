"""Which streams are tied by which keys.

``on=`` names the columns that must be equal. Columns that must equal each other form one *key*; the
streams and keys then form a graph, which must be a tree so that results can be counted by products
and walked without guessing. Streams that no key reaches are tied by a key without columns: every
event has the same value there, which makes a windowed cross join.

>>> keys = keys_of("k", ("a", "b", "c"))
>>> [key.columns for key in keys]
[{0: ('k',), 1: ('k',), 2: ('k',)}]
>>> [key.columns for key in keys_of(["a.x = b.x", "b.y = c.z"], ("a", "b", "c"))]
[{0: ('x',), 1: ('x',)}, {1: ('y',), 2: ('z',)}]
>>> [key.columns for key in keys_of(None, ("a", "b"))]
[{0: (), 1: ()}]

A shared column is written as it is called. In an equality, and where it has ``=`` in its name, a
name that is not of letters, digits and _ stands in backticks.

>>> [key.columns for key in keys_of("a.`bid price` = b.price", ("a", "b"))]
[{0: ('bid price',), 1: ('price',)}]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slackwater.errors import QueryError
from slackwater.query.expression.names import QUOTED, in_backticks, unquoted
from slackwater.query.expression.nodes import And, Column, Compare
from slackwater.query.expression.operators import Expression

On = str | Expression | Sequence[str | Expression] | None
Place = tuple[int, str]  # (stream number, column)

_ALLOWED = "on must be a column name or equalities like 'a.x = b.y'"
_COLUMN = rf"(\w+)\.(\w+|{QUOTED.pattern})"
_EQUALITY = re.compile(rf"\s*{_COLUMN}\s*=\s*=?\s*{_COLUMN}\s*")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Key:
    """Columns that must be equal, by stream number; several per stream make a composite key."""

    columns: dict[int, tuple[str, ...]]

    @property
    def streams(self) -> tuple[int, ...]:
        """The streams it ties, ascending."""
        return tuple(self.columns)


def on_texts(on: Any) -> str | tuple[str, ...] | None:
    """``on=`` as text: one shared column, or several ties.

    >>> from slackwater.query.expression import col
    >>> on_texts(col("a.x") == col("b.y"))
    ('a.x = b.y',)
    """
    if on is None or isinstance(on, str):
        return on
    if isinstance(on, Expression):
        return tuple(_equalities(on))
    if isinstance(on, list | tuple) and all(isinstance(tie, str | Expression) for tie in on):
        ties = ((tie,) if isinstance(tie, str) else _equalities(tie) for tie in on)
        return tuple(text for tie in ties for text in tie)
    given = "a Spark column, which belongs to a DataFrame" if is_spark_column(on) else repr(on)
    msg = f"{_ALLOWED}, or the same as sw.col('a.x') == sw.col('b.y'), got {given}"
    raise QueryError(msg)


def _equalities(on: Expression) -> list[str]:
    """The equalities of two columns that an expression is."""
    tree = on.tree
    found = []
    for part in tree.operands if isinstance(tree, And) else (tree,):
        match part:
            case Compare((Column() as left, Column() as right), ("==",)):
                found.append(equality_text(left, right))
            case _:
                msg = f"{_ALLOWED}, got {on!r}; other conditions are for where="
                raise QueryError(msg)
    return found


def is_spark_column(value: object) -> bool:
    """Whether it is a column of PySpark, which this package does not import."""
    return any(
        kind.__module__.startswith("pyspark.") and kind.__name__ == "Column"
        for kind in type(value).__mro__
    )


def tied_columns(condition: str) -> str | tuple[Column, Column]:
    """The column that all streams share, or the two that must be equal.

    >>> tied_columns("symbol"), tied_columns("`a = b`")
    ('symbol', 'a = b')
    >>> tied_columns("a.x = b.y")
    (Column(stream='a', name='x'), Column(stream='b', name='y'))
    """
    if not isinstance(condition, str) or not condition.strip():
        msg = f"{_ALLOWED}, got {condition!r}"
        raise QueryError(msg)
    shared = condition.strip()
    if "=" not in shared or QUOTED.fullmatch(shared):
        return unquoted(shared)
    match = _EQUALITY.fullmatch(condition)
    if match is None:
        msg = f"{_ALLOWED}, got {condition!r}"
        raise QueryError(msg)
    return Column(match[1], unquoted(match[2])), Column(match[3], unquoted(match[4]))


def shared_text(column: str) -> str:
    """A column that all streams share, as `on` has it."""
    is_clear = column == column.strip() and not set(column) & set("=`")
    return column if is_clear else in_backticks(column)


def equality_text(left: Column, right: Column) -> str:
    """Two columns that must be equal, as `on` has it."""
    names = (n if _WORD.fullmatch(n) else in_backticks(n) for n in (left.name, right.name))
    return " = ".join(f"{c.stream}.{n}" for c, n in zip((left, right), names, strict=True))


def keys_of(on: str | Sequence[str] | None, names: Sequence[str]) -> list[Key]:
    """Turn ``on=`` into the keys of a connected, acyclic join graph."""
    keys = _merge_same_streams(_equal_columns(on, names))
    components = _components(keys, names)
    if len(components) > 1:
        keys.append(Key({min(streams): () for streams in components}))
    return keys


def _equal_columns(on: str | Sequence[str] | None, names: Sequence[str]) -> list[dict[int, str]]:
    """Groups of columns that must be equal, each with one column per stream."""
    conditions = [on] if isinstance(on, str) else list(on or [])
    groups: list[set[Place]] = []
    for condition in conditions:
        group = _group(condition, names)
        for known in [known for known in groups if known & group]:
            group |= known
            groups.remove(known)
        groups.append(group)
    for group in groups:
        _check_one_column_per_stream(group, names)
    return [dict(sorted(group)) for group in groups]


def _group(condition: str, names: Sequence[str]) -> set[Place]:
    sides = tied_columns(condition)
    if isinstance(sides, str):
        return {(stream, sides) for stream in range(len(names))}
    for stream, _ in sides:
        if stream not in names:
            known = ", ".join(names)
            msg = f"on names an unknown stream {stream!r} in {condition!r}; streams are {known}"
            raise QueryError(msg)
    if sides[0][0] == sides[1][0]:
        msg = f"on must tie two different streams, got {condition!r}"
        raise QueryError(msg)
    return {(names.index(stream), column) for stream, column in sides}


def _check_one_column_per_stream(group: set[Place], names: Sequence[str]) -> None:
    streams = [stream for stream, _ in group]
    for stream in set(streams):
        if streams.count(stream) > 1:
            columns = sorted(column for other, column in group if other == stream)
            msg = (
                f"on makes {' and '.join(columns)} of stream {names[stream]!r} equal; "
                "filter the stream instead, or move one equality to where="
            )
            raise QueryError(msg)


def _merge_same_streams(groups: list[dict[int, str]]) -> list[Key]:
    """Groups over the same streams are one composite key."""
    merged: dict[tuple[int, ...], dict[int, tuple[str, ...]]] = {}
    for group in groups:
        columns = merged.setdefault(tuple(group), dict.fromkeys(group, ()))
        for stream, column in group.items():
            columns[stream] += (column,)
    return [Key(columns) for columns in merged.values()]


def _components(keys: list[Key], names: Sequence[str]) -> list[set[int]]:
    """Streams that hang together; raises when two ways lead from one stream to another."""
    components = [{stream} for stream in range(len(names))]
    for key in keys:
        touched = [streams for streams in components if streams & set(key.streams)]
        if len(touched) < len(key.streams):
            tied = ", ".join(names[stream] for stream in key.streams)
            msg = (
                f"on forms a cycle: {tied} are tied in two ways; "
                "the join graph must be acyclic, so move one of the equalities to where="
            )
            raise QueryError(msg)
        components = [streams for streams in components if streams not in touched]
        components.append(set().union(*touched))
    return sorted(components, key=min)
