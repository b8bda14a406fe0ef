"""Which rows go to which shard, so that every result is made on exactly one of them.

Streams that share a key are split by it. The others are copied to every shard. Without any equality
the first stream is split by its rows and the others are copied ("fragment and replicate"), so the
fastest stream should come first; of an outer join it is the stream whose rows are kept.

>>> from slackwater.query.join import join
>>> from slackwater.query.stream import Stream
>>> a, b, c = (Stream(name, ts="t", window=5) for name in "abc")
>>> print(Partitioning.of(join(a, b, c, on="k"), shards=4))
4 shards: a, b, c by k
>>> print(Partitioning.of(join(a, b, c, on=["a.x = b.x", "b.y = c.y"]), shards=4))
4 shards: a, b by x; c copied to each
>>> print(Partitioning.of(join(a, b, where="a.p < b.p"), shards=2))
2 shards: a by row; b copied to each
>>> print(Partitioning.of(join(a, b, where="a.p < b.p", how="right"), shards=2))
2 shards: b by row; a copied to each
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slackwater.events.batch import flat
from slackwater.events.hashing import hash_rows
from slackwater.joins.keys import common_type
from slackwater.kernels.records import I64
from slackwater.query.any_query import AnyQuery


@dataclass(frozen=True)
class Partitioning:
    """`columns` has, of each stream, those that choose the shard; (): the row; None: all shards."""

    shards: int
    names: tuple[str, ...]
    columns: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def of(cls, query: AnyQuery, shards: int) -> Partitioning:
        """How the streams of `query` are best split over so many shards."""
        streams = range(len(query.streams))
        if shards == 1:
            return cls(1, query.names, ((),) * len(streams))
        key = max(query.keys, key=lambda key: (len(key.streams), -key.streams[0]))
        if not any(key.columns.values()):  # the constant key of a cross join
            # rows without partner are decided where all events of the other stream are
            split = query.preserved.index(True) if any(query.preserved) else 0
            return cls(shards, query.names, tuple(() if s == split else None for s in streams))
        return cls(shards, query.names, tuple(key.columns.get(s) for s in streams))

    def is_copied(self, stream: int) -> bool:
        """Whether each shard gets all of `stream`."""
        return self.columns[stream] is None

    def key_types(self, schemas: Sequence[pa.Schema]) -> list[pa.DataType]:
        """The types in which the key columns of all streams are hashed."""
        owners = [(s, columns) for s, columns in enumerate(self.columns) if columns]
        by_column = zip(
            *([schemas[s].field(c).type for c in columns] for s, columns in owners), strict=True
        )
        return [common_type(types) for types in by_column]

    def shard_of(self, stream: int, table: pa.Table, types: Sequence[pa.DataType]) -> I64:
        """The shard of each row of a stream that is not copied."""
        columns = self.columns[stream]
        if columns is None or self.shards == 1:
            return np.zeros(table.num_rows, np.int64)
        if columns:
            values = [
                flat(table.column(name)).cast(kind)
                for name, kind in zip(columns, types, strict=True)
            ]
        else:
            values = table.columns
        # the upper half: the lower one would tie the shard to the slots of hash tables
        return (hash_rows(values) >> np.uint64(32)).astype(np.int64) % self.shards

    def __str__(self) -> str:
        if self.shards == 1:
            return "1 shard"
        split = [n for n, c in zip(self.names, self.columns, strict=True) if c is not None]
        copied = [n for n, c in zip(self.names, self.columns, strict=True) if c is None]
        by = next((", ".join(columns) for columns in self.columns if columns), "row")
        also = f"; {', '.join(copied)} copied to each" if copied else ""
        return f"{self.shards} shards: {', '.join(split)} by {by}{also}"


# ---- Spark's shuffle


def shard_keys(shards: int, partitions: int) -> list[int]:
    """For each shard a grouping key, such that shards spread evenly over the shuffle partitions.

    >>> [partition_of(key, 4) for key in shard_keys(6, 4)]
    [0, 1, 2, 3, 0, 1]
    """
    keys, candidate = [], 0
    for shard in range(shards):
        while partition_of(candidate, partitions) != shard % partitions:
            candidate += 1
        keys.append(candidate)
        candidate += 1
    return keys


def partition_of(key: int, partitions: int) -> int:
    """Where Spark's hash partitioning sends a group with this int key (Murmur3, seed 42)."""
    mask = 0xFFFFFFFF
    k = key * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = 42 ^ k * 0x1B873593 & mask
    h = (h << 13 | h >> 19) & mask
    h = h * 5 + 0xE6546B64 & mask
    h ^= 4  # bytes
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    signed = h - 2**32 if h >= 2**31 else h
    return signed % partitions
