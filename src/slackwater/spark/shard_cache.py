"""The shards that a worker keeps alive between micro-batches.

If the next header that a worker gets is the one it wrote, there is nothing to restore. If another
worker had the shard in between, that engine makes room; most chunks are still there by their names,
and only new ones are read.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from slackwater.engine.snapshot import Saved
from slackwater.engine.snapshot_format import Chunk, chunk_from
from slackwater.spark.job import Job
from slackwater.spark.shard import Shard

ReadChunk = Callable[[str], bytes]

_MOST_SHARDS = 8  # kept alive by a worker


class Taken(NamedTuple):
    """A shard for the next micro-batch."""

    shard: Shard
    restored: bool  # from its state, because it was not alive in this process


@dataclass
class _Known:
    """A shard as this worker left it, and the chunks it was made of then."""

    digest: bytes = b""  # of the header
    shard: Shard | None = None
    chunks: dict[str, Chunk | bytes] = field(default_factory=dict)  # ready for use, or as written


class ShardCache:
    """The shards that are alive in this process; the least used ones make room."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], _Known] = OrderedDict()

    def take(self, job: Job, number: int, header: bytes, read: ReadChunk) -> Taken:
        """The shard with this header: alive, or restored."""
        known = self._of(job, number)
        shard, known.shard = known.shard, None  # a batch that fails must not leave it half fed
        if shard is not None and known.digest == _digest(header):
            return Taken(shard, restored=False)
        del shard  # another worker had it since: make room before it is restored
        before, known.chunks = known.chunks, {}

        def chunk(name: str) -> Chunk:
            found = before.get(name) or read(name)
            known.chunks[name] = ready = found if isinstance(found, Chunk) else chunk_from(found)
            return ready

        return Taken(Shard.restore(job, number, header, chunk), restored=True)

    def put(self, header: bytes, shard: Shard, saved: Saved) -> None:
        """Keep `shard` alive until `take` wants the shard with this header."""
        known = self._of(shard.job, shard.number)
        known.digest, known.shard = _digest(header), shard
        known.chunks |= saved.new
        for gone in saved.gone:
            known.chunks.pop(gone, None)

    def _of(self, job: Job, number: int) -> _Known:
        """The entry of a shard, which is now the last one to make room."""
        name = job.identity, number
        known = self._known.setdefault(name, _Known())
        self._known.move_to_end(name)
        if len(self._known) > _MOST_SHARDS:
            self._known.popitem(last=False)
        return known


def _digest(header: bytes) -> bytes:
    return hashlib.blake2b(header, digest_size=16).digest()


@cache
def process_cache() -> ShardCache:
    """The cache of this process."""
    return ShardCache()
