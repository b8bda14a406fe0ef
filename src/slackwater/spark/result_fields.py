"""Spark's schema of results: it follows from the Arrow schema of `engine.result_schema`.

A column with values of a user's column has the Spark type and metadata of that column; a computed
column has the Spark type of its Arrow type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType, TimestampNTZType

from slackwater.engine.result_schema import RESULT_TS, result_columns
from slackwater.errors import QueryError
from slackwater.spark.job import Job
from slackwater.spark.options import WATERMARK
from slackwater.spark.unpack import REJECTED, REJECTED_FIELDS


def result_struct(job: Job, frames: Sequence[DataFrame]) -> StructType:
    """The schema of what a query gives; rejected rows have one column of their own."""
    given = {
        (name, field.name): field
        for name, frame in zip(job.query.names, frames, strict=True)
        for field in frame.schema.fields
    }
    fields = []
    for field, source in result_columns(job.query, job.schemas):
        if source is None:
            fields.append(StructField(field.name, _computed(field), field.nullable))
        else:
            own = given[source]
            fields.append(StructField(field.name, own.dataType, True, _plain(own.metadata)))
    if job.rejects:
        if any(field.name == REJECTED for field in fields):
            msg = f"with rejects=True no column of results may be called {REJECTED!r}; rename it"
            raise QueryError(msg)
        fields = [StructField(f.name, f.dataType, True, f.metadata) for f in fields]
        row = StructType([StructField(name, StringType()) for name in REJECTED_FIELDS])
        fields.append(StructField(REJECTED, row))
    return StructType(fields)


def _computed(field: pa.Field) -> DataType:
    if field.name == RESULT_TS and pa.types.is_timestamp(field.type) and field.type.tz is None:
        return TimestampNTZType()
    return from_arrow_type(field.type)


def _plain(metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Metadata without Spark's watermark: results have none until a user gives them one."""
    return {name: value for name, value in (metadata or {}).items() if name != WATERMARK}
