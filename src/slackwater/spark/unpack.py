"""Behind the operator: blobs become rows again (`mapInArrow`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from slackwater.spark.blobs import REJECTS, RESULTS, from_ipc

REJECTED = "rejected"  # the column with rejected rows, null for results
REJECTED_FIELDS = ("stream", "reason", "row")


@dataclass(frozen=True)
class Unpack:
    """The unpack stage; `schema` is that of its output, with `rejected` last if it is wanted.

    Results fill the result columns, rejected rows that column.
    """

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of blobs in, rows out."""
        for batch in batches:
            kinds, blobs = (column.to_pylist() for column in batch.columns)
            for kind, data in zip(kinds, blobs, strict=True):
                if kind in (RESULTS, REJECTS):
                    table = from_ipc(data)
                    known = _rejected(table) if kind == REJECTS else table
                    yield from self._rows(known).to_batches()

    def _rows(self, table: pa.Table) -> pa.Table:
        """Known columns as they are, the others null."""
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _rejected(table: pa.Table) -> pa.Table:
    """Rejected rows as one column of structs."""
    parts = [table.column(name).combine_chunks() for name in REJECTED_FIELDS]
    return pa.table({REJECTED: pa.StructArray.from_arrays(parts, REJECTED_FIELDS)})
