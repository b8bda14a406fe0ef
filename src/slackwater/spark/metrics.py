"""What a streamed query reports: `query.lastProgress.observedMetrics["slackwater"]`.

Each shard adds one row of numbers to its output, once per micro-batch. They are folded into one
observed row and removed before the sink; numbers, folds and columns follow from the table in
`metrics.schema`. Counters run since the first start of the query. Beside the numbers is the shard's
part of the charts, as text; the listener merges the parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from slackwater.engine.chart_part import chart_part
from slackwater.engine.commands import Command
from slackwater.metrics import schema
from slackwater.metrics.charts import ChartPart, aggregate_rows
from slackwater.metrics.counters import STATES, Metrics, StreamSurroundings, Surroundings
from slackwater.metrics.progress import (
    REASON_KEYS,
    query_values,
    recall_target,
    right_target,
    stream_values,
)
from slackwater.metrics.schema import Each, Metric, Share
from slackwater.spark.job import Job

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

    from slackwater.query.aggregate import AggregateQuery
    from slackwater.spark.shard import Shard

NAME = "slackwater"

_UNKNOWN = -(2**63)  # the number of a value that is not known
_ONE = 10**9  # shares are whole numbers of this

# The numbers of a shard: those of the query, those of each stream, the number of the shard.
_OF_SHARD = [metric.name for metric in schema.MEASURED]
_OF_STREAM = [
    name
    for metric in schema.STREAM
    for name in (REASON_KEYS if metric.unit == "reasons" else [metric.name])
]


def place_of(name: str, stream: int | None = None) -> int:
    """The place of a metric among the numbers of a shard.

    Parameters
    ----------
    name
        A metric; of a stream also a key of `rejected`.
    stream
        Which stream it is of; None: of the query.

    Returns
    -------
    int
        The place.
    """
    if stream is None:
        return _OF_SHARD.index(name)
    return len(_OF_SHARD) + stream * len(_OF_STREAM) + _OF_STREAM.index(name)


PRODUCED = place_of(schema.PRODUCED.name)


def numbers(shard: Shard, restored: bool, refused: int) -> list[int]:
    """The metrics of one shard, in the order that `observed` reads."""
    metrics = shard.engine.metrics()
    around = _surroundings(shard, metrics, restored, refused)
    values = query_values(metrics, around)
    own = [_encoded(metric, values[metric.name]) for metric in schema.MEASURED]
    for s, of_stream in enumerate(stream_values(metrics, around)):
        is_counted = shard.counts(s)
        for metric in schema.STREAM:
            value = of_stream[metric.name]
            each = list(value.values()) if metric.unit == "reasons" else [_encoded(metric, value)]
            own += each if is_counted or metric.fold != "sum" else [0] * len(each)
    return [*own, shard.number]


def _surroundings(shard: Shard, metrics: Metrics, restored: bool, refused: int) -> Surroundings:
    streams = enumerate(metrics.streams.values())
    return Surroundings(
        target=recall_target(shard.engine.query.goal),
        right_target=right_target(shard.engine.query),
        copies=sum(stream.arrivals for s, stream in streams if not shard.counts(s)),
        state_bytes=shard.notes.state_bytes,
        restored=int(restored),
        refused_commands=refused,
        streams=[StreamSurroundings(behind) for behind in shard.notes.behind],
    )


def _encoded(metric: Metric, value: Any) -> int:
    """A value as a whole number; `_decoded` is the way back."""
    if value is None:
        return _UNKNOWN
    if metric.unit == "state":
        return STATES.index(value)
    number = value**2 if metric.fold == "norm" else value
    return int(round(_ONE * number if metric.unit == "share" else number))


# ---- the observed row


def observed(job: Job) -> list[Column]:
    """The expressions that fold the numbers of all shards into one row."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    own = {metric.name: _folded(metric, metric.name) for metric in schema.MEASURED}
    streams = [
        {metric.name: _of_stream(metric, s) for metric in schema.STREAM}
        for s in range(len(job.schemas))
    ]
    columns = {
        **{metric.name: _total(metric, len(job.schemas)) for metric in schema.TOTALS},
        **{metric.name: _of_query(metric, own, job) for metric in schema.QUERY},
        "chart_parts": F.array(*map(_chart_part_of, range(job.partitioning.shards))),
        "streams": _struct(
            {name: _struct(own) for name, own in zip(job.query.names, streams, strict=True)}
        ),
    }
    return [column.alias(name) for name, column in columns.items()]


def _of_query(metric: Metric, own: Mapping[str, Column], job: Job) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if isinstance(metric.fold, Each):
        shards = range(job.partitioning.shards)
        return F.array(*(_in_shard(metric, metric.fold.name, shard) for shard in shards))
    if isinstance(metric.fold, Share):
        total = reduce(add, [own[name] for name in metric.fold.of])
        part = own[metric.fold.part]
        if metric.fold.less is not None:
            part = F.greatest(F.lit(0), part - own[metric.fold.less])
        is_known = job.query.has_recall or not metric.fold.needs_recall
        return F.when(F.lit(is_known) & (total > 0), part / total)
    return _decoded(metric, own[metric.name])


def _of_stream(metric: Metric, stream: int) -> Column:
    if metric.unit == "reasons":
        return _struct({key: _folded(metric, key, stream) for key in REASON_KEYS})
    return _decoded(metric, _folded(metric, metric.name, stream))


def _total(metric: Metric, streams: int) -> Column:
    """A metric that is counted by stream, added up."""

    def added(name: str) -> Column:
        return reduce(add, [_folded(metric, name, s) for s in range(streams)])

    if metric.unit == "reasons":
        return _struct({key: added(key) for key in REASON_KEYS})
    return added(metric.name)


def _folded(metric: Metric, name: str, stream: int | None = None) -> Column:
    """One number of all shards, as one; `_decoded` makes the value of it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    folds = {"sum": F.sum, "norm": F.sum, "max": F.max, "known": F.max, "min": F.min}
    folds["least"] = F.min  # what is not known is smaller than any number
    assert isinstance(metric.fold, str)
    return folds[metric.fold](F.col("numbers")[place_of(name, stream)])


def _decoded(metric: Metric, number: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if metric.unit == "state":
        return F.element_at(F.array(*map(F.lit, STATES)), number.cast("int") + 1)
    value = F.sqrt(number) if metric.fold == "norm" else number
    value = value / _ONE if metric.unit == "share" else value
    if metric.fold not in ("known", "least"):
        return value
    return F.when(number > F.lit(_UNKNOWN), value)


def _in_shard(metric: Metric, name: str, shard: int) -> Column:
    """The value of a number in one shard; null if it had no work."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.max(F.when(_is_of(shard), _decoded(metric, F.col("numbers")[place_of(name)])))


def _chart_part_of(shard: int) -> Column:
    """What one shard adds to the charts; null if it had no work."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.max(F.when(_is_of(shard), F.col("data").cast("string")))


def _is_of(shard: int) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.element_at(F.col("numbers"), -1) == shard


def _struct(columns: Mapping[str, Column]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.struct(*(column.alias(name) for name, column in columns.items()))


# ---- charts


def chart_bytes(shard: Shard, results: pa.Table | None, commands: Sequence[Command]) -> bytes:
    """What a shard adds to the charts, and the commands that it obeyed in this micro-batch.

    `results` are the last ones of the micro-batch, for queries whose charts show any.
    """
    counted = [shard.counts(s) for s in range(len(shard.job.schemas))]
    part = chart_part(shard.engine, results, counted)
    return _written(part, [command.as_dict() for command in commands])


def with_aggregates(data: bytes, query: AggregateQuery, results: pa.Table) -> bytes:
    """The part of a shard with rows that all shards have made together."""
    part, commands = read_chart_part(data)
    return _written(part._replace(aggregates=aggregate_rows(query, results)), commands)


def _written(part: ChartPart, commands: Sequence[Mapping[str, Any]]) -> bytes:
    fields = part._asdict() | {"commands": commands}
    return json.dumps(fields, separators=(",", ":")).encode()


def read_chart_part(data: str | bytes) -> tuple[ChartPart, list[dict[str, Any]]]:
    """The part of a shard, and the commands that it obeyed."""
    fields = json.loads(data)
    commands = fields.pop("commands")
    return ChartPart(**fields), commands
