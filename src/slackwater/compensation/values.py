"""The values that aggregates over a join are computed from: counts of results, and sums.

An average is a sum divided by a count of the results that have a value; nulls are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.errors import QueryError
from slackwater.events.batch import flat, is_set
from slackwater.kernels.records import F64, I64
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.functions import Aggregate


class Value(NamedTuple):
    """A number that each event of a stream has."""

    stream: int
    column: str
    is_one: bool  # 1 where there is a value, 0 where it is null; else the value itself


class Values:
    """All values of a query; value 0 of the products counts results, these follow.

    >>> from slackwater.query.functions import avg, count
    >>> from slackwater.query.aggregate import Tumbling
    >>> from slackwater.query.goals import Deadline
    >>> from slackwater.query.join import Stream
    >>> schema = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float32()})
    >>> query = AggregateQuery(
    ...     (Stream("r", "t"), Stream("s", "t")),
    ...     "k",
    ...     {"n": count(), "a": avg("r.v")},
    ...     Tumbling(10),
    ...     Deadline(12),
    ... )
    >>> values = Values(query, [schema, schema])
    >>> values.aggregates(np.array([4.0, 20.0, 4.0]))
    [4.0, 5.0]
    """

    def __init__(self, query: AggregateQuery, schemas: Sequence[pa.Schema]) -> None:
        self._query, self._schemas = query, schemas
        self._values: list[Value] = []
        self.select: Mapping[str, Aggregate] = query.select
        self._parts = [self._part(name, how) for name, how in query.select.items()]

    def _part(self, name: str, how: Aggregate) -> tuple[int, int | None]:
        """Return the number of its value, and of the value that it is divided by."""
        if how.column is None:
            return 0, None
        s, column = self._query.place(how.column)
        schema = self._schemas[s]
        if column not in schema.names:
            msg = (
                f"{name} aggregates {how.column}, but stream {self._query.names[s]!r} has no such "
                f"column; it has {', '.join(schema.names)}"
            )
            raise QueryError(msg)
        kind = schema.field(column).type
        ones = Value(s, column, is_one=True)
        if how.function == "count":
            return self._place(ones), None
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            msg = f"{how.function}({how.column}) takes numbers, got {kind}; cast the column"
            raise QueryError(msg)
        value = self._place(Value(s, column, is_one=False))
        return value, self._place(ones) if how.function == "avg" else None

    def _place(self, value: Value) -> int:
        if value not in self._values:
            self._values.append(value)
        return 1 + self._values.index(value)

    @property
    def n(self) -> int:
        """Number of values, the count of results included."""
        return 1 + len(self._values)

    @property
    def streams(self) -> I64:
        """The stream of each value but the first."""
        return np.array([value.stream for value in self._values], np.int64)

    def aggregates(self, values: F64) -> list[float | None]:
        """Return the aggregates: [aggregate]; an average of nothing is None."""
        return [
            float(values[v]) if by is None else _ratio(float(values[v]), float(values[by]))
            for v, by in self._parts
        ]

    @cached_property
    def main(self) -> list[int]:
        """The value whose error an aggregate has: [aggregate]."""
        return [v for v, _ in self._parts]

    # ---- columns in the log

    @property
    def widths(self) -> dict[str, int]:
        """Rows of the log: one of floats for each value."""
        return {"ints": 0, "floats": len(self._values), "vectors": 0}

    def read(self, stream: int) -> list[str]:
        """Return the columns of `stream` that values come from."""
        return list(dict.fromkeys(v.column for v in self._values if v.stream == stream))

    def fill(self, stream: int, table: pa.Table, ints: I64, floats: F64, vectors: F64) -> None:  # noqa: ARG002
        """Write the values of a table of `stream`."""
        for row, value in enumerate(self._values):
            if value.stream != stream:
                continue
            column = flat(table.column(value.column))
            if value.is_one:
                floats[row] = is_set(column)
            else:
                numbers = column.cast(pa.float64(), safe=False).fill_null(0.0)
                floats[row] = numbers.to_numpy(zero_copy_only=False)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole != 0.0 else None
