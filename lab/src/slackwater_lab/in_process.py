"""Shards of one query in this process, micro-batch by micro-batch, with what Spark runs on them.

Rows go through the pack stage, parts to their shards, and reports from shard to shard; only the
shuffle, the state store and the folder of the reports are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from slackwater.engine.join import JoinEngine
from slackwater.engine.output import Output
from slackwater.engine.shard_report import Reports, ShardReport
from slackwater.query.join import JoinQuery
from slackwater.spark.job import Job
from slackwater.spark.pack import Pack
from slackwater.spark.partitioning import Partitioning
from slackwater.spark.parts import Part
from slackwater.spark.shard import Shard

_ARRIVAL = "arrival"


class Shards:
    """The shards of a join.

    Parameters
    ----------
    query
        With ``slack_scope="query"`` they have one K.
    tables
        Its streams, for their schemas, with a column ``arrival``.
    n
        How many shards.
    """

    def __init__(self, query: JoinQuery, tables: Sequence[pa.Table], n: int) -> None:
        schemas = tuple(table.schema for table in tables)
        shares = n > 1 and query.shares_slack
        place = Partitioning.of(query, n)
        self._job = Job(query, schemas, place, n, _ARRIVAL, None, None, has_common_slack=shares)
        self._pack = [Pack(self._job, s) for s in range(len(tables))]
        self.shards = [Shard.new(self._job, number) for number in range(n)]
        self._reports = Reports()

    @property
    def engines(self) -> list[JoinEngine]:
        """The engine of each shard."""
        engines = [shard.engine for shard in self.shards]
        return [engine for engine in engines if isinstance(engine, JoinEngine)]

    def run(self, rows: Sequence[pa.Table], at_end: bool = False) -> list[Output]:
        """A micro-batch of the rows of each stream; what all shards put out."""
        parts: dict[int, list[Part]] = {key: [] for key in self._job.shard_keys}
        for pack, table in zip(self._pack, rows, strict=True):
            for packed in pack(iter(table.to_batches())):
                for row in packed.to_pylist():
                    part = Part.read(row["stream"], row["clock"], row["data"])
                    parts[row["shard"]].append(part)
        outputs: list[Output] = []
        reports: list[ShardReport] = []
        for shard, own in zip(self.shards, parts.values(), strict=True):
            if not own and not at_end:
                continue
            fed = shard.feed(own, [], at_end, self._reports)
            outputs += [piece for piece in fed if isinstance(piece, Output)]
            common = shard.engine.common_slack
            if common is not None and common.needs_reports:
                reports.append(ShardReport.from_bytes(common.report().to_bytes()))
        self._reports = Reports(reports) or self._reports
        return outputs


def micro_batches(tables: Sequence[pa.Table], length: int | None) -> Iterator[list[pa.Table]]:
    """The rows of each stream that arrive within `length`, time after time; None: all at once."""
    arrivals = [table[_ARRIVAL].to_numpy() for table in tables]
    last = max(int(arrival.max()) for arrival in arrivals if len(arrival))
    length = last + 1 if length is None else length
    for end in range(length, last + length + 1, length):
        cuts = [np.searchsorted(arrival, [end - length, end]) for arrival in arrivals]
        yield [t.slice(b, e - b) for t, (b, e) in zip(tables, cuts, strict=True)]
