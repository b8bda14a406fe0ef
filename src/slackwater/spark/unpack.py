"""Behind the operator: blobs become rows again (`mapInArrow`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from slackwater.spark.blobs import REJECTS, RESULTS, from_ipc

KIND = "kind"
TAGS = (KIND, "stream", "reason", "row")


@dataclass(frozen=True)
class Unpack:
    """The unpack stage; `schema` is that of its output, with tags in front if rejects are wanted.

    Results fill the result columns, rejected rows the tags.
    """

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of blobs in, rows out."""
        for batch in batches:
            kinds, blobs = (column.to_pylist() for column in batch.columns)
            for kind, data in zip(kinds, blobs, strict=True):
                if kind in (RESULTS, REJECTS):
                    yield from self._rows(kind, from_ipc(data)).to_batches()

    def _rows(self, kind: int, table: pa.Table) -> pa.Table:
        """Known columns as they are, the others null."""
        n = table.num_rows
        columns = []
        for field in self.schema:
            if field.name in table.column_names:
                columns.append(table.column(field.name).cast(field.type))
            elif field.name == KIND:
                columns.append(pa.repeat("result" if kind == RESULTS else "reject", n))
            else:
                columns.append(pa.nulls(n, field.type))
        return pa.Table.from_arrays(columns, schema=self.schema)
