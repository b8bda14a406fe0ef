"""User columns of the rows that may still be part of a result.

Rows are appended in batches and taken by number. When there are many batches, those of similar
length are merged, so that there are never too many and a row is copied a logarithmic number of
times.

>>> rows = Rows(pa.schema({"x": pa.int64()}))
>>> rows.append(pa.table({"x": [10, 11, 12]}))
>>> rows.forget(1)
>>> rows.append(pa.table({"x": [13]}))
>>> rows.take(np.array([3, 1])).column("x").to_pylist()
[13, 11]
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.events.batch import row_bytes
from slackwater.kernels.records import I64

_FEW = 8  # batches are kept as they are up to this number


class Rows:
    """Rows ``first <= number < end`` of one stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.end = 0
        self._firsts: list[int] = []
        self._tables: list[pa.Table] = []
        self._sizes: dict[int, I64] = {}  # bytes of each row of a table, by its first row

    def append(self, table: pa.Table) -> None:
        """Add rows at the end."""
        if table.num_rows == 0:
            return
        self._firsts.append(self.end)
        self._tables.append(table)
        self.end += table.num_rows
        while (
            len(self._tables) > _FEW and self._tables[-1].num_rows >= self._tables[-2].num_rows // 2
        ):
            merged = pa.concat_tables(self._tables[-2:]).combine_chunks()
            self._tables[-2:] = [merged]
            self._sizes.pop(self._firsts.pop(), None)
            self._sizes.pop(self._firsts[-1], None)

    def start_at(self, number: int) -> None:
        """Let the next row have this number; there are none yet."""
        self.end = number

    def forget(self, oldest: int) -> None:
        """Drop the rows with ``number < oldest``; frees memory in whole batches."""
        while self._firsts and self._firsts[0] + self._tables[0].num_rows <= oldest:
            self._sizes.pop(self._firsts.pop(0), None)
            self._tables.pop(0)
        if self._firsts and 2 * (oldest - self._firsts[0]) > self._tables[0].num_rows:
            left = self._tables[0].slice(oldest - self._firsts[0])
            self._tables[0] = left.take(np.arange(left.num_rows))  # a copy, so that memory is freed
            self._sizes.pop(self._firsts[0], None)
            self._firsts[0] = oldest

    def sizes(self, numbers: I64) -> I64:
        """How many bytes the rows with these numbers have."""
        if all(pa.types.is_primitive(kind) for kind in self.schema.types):
            width = sum(max(1, kind.bit_width // 8) for kind in self.schema.types)
            return np.full(len(numbers), width)
        if not self._tables:
            return np.zeros(len(numbers), np.int64)
        for first, table in zip(self._firsts, self._tables, strict=True):
            if first not in self._sizes:
                self._sizes[first] = row_bytes(table)
        sizes = np.concatenate([self._sizes[first] for first in self._firsts])
        return sizes[numbers - self._firsts[0]]

    def take(self, numbers: I64, columns: list[str] | None = None) -> pa.Table:
        """The rows with these numbers, in this order; of some columns, or of all.

        A number below 0 is no row: its values are null.
        """
        none = numbers < 0
        begin, end = self._holding(numbers[~none] if none.any() else numbers)
        tables = self._tables[begin:end] or [self.schema.empty_table()]
        if columns is not None:
            tables = [table.select(columns) for table in tables]
        if len(numbers) == 0:
            return tables[0]
        first = self._firsts[begin] if begin < end else 0
        places = pa.array(numbers - first, mask=none if none.any() else None)
        return pc.take(pa.concat_tables(tables), places, boundscheck=False)

    def _holding(self, numbers: I64) -> tuple[int, int]:
        """The tables that these rows are in: Arrow would copy all it is given."""
        if len(numbers) == 0:
            return 0, 0
        low, high = int(numbers.min()), int(numbers.max())
        return bisect_right(self._firsts, low) - 1, bisect_right(self._firsts, high)
