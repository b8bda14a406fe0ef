"""One shard between two micro-batches: decode, delegate to the engine, encode. Knows no Spark.

Its state is a header and the chunks of `engine.snapshot`. A worker keeps the engine alive: if the
next header it sees is the one it wrote, there is nothing to restore. If another worker had the
shard in between, that engine makes room; most chunks are still known by their names, and only new
ones are read.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.base import AnyEngine
from slackwater.engine.checks import REASONS
from slackwater.engine.commands import Command
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import Output
from slackwater.engine.snapshot import (
    Archive,
    Chunk,
    Saved,
    check_same,
    chunk_from,
    engine_for,
    framed,
    restore_archive,
    sections,
)
from slackwater.kernels.records import BEFORE
from slackwater.spark.blobs import PIECE
from slackwater.spark.job import Job
from slackwater.spark.order import in_order
from slackwater.spark.parts import Part

ReadChunk = Callable[[str], bytes]

_MOST_SHARDS = 8  # kept alive by a worker


@dataclass
class Notes:
    """What a shard remembers beside its engine."""

    last_arrival: int = BEFORE
    behind: list[int] = field(default_factory=list)  # arrivals with a number that had passed
    state_bytes: int = 0
    chunk_sizes: dict[str, int] = field(default_factory=dict)


class Rejects(NamedTuple):
    """Rejected rows of one stream, with their reasons."""

    stream: int
    rows: pa.Table
    reasons: list[str]


class Shard:
    """The join of one shard: an engine, its archive and some notes."""

    def __init__(self, job: Job, number: int, archive: Archive, notes: Notes) -> None:
        self.job = job
        self.number = number
        self.archive = archive
        self.notes = notes
        self.told: pa.Table | None = None  # of aggregates: the last of this micro-batch

    @property
    def engine(self) -> AnyEngine:
        """The engine."""
        return self.archive.engine

    @classmethod
    def new(cls, job: Job, number: int) -> Shard:
        """A shard that has seen nothing yet."""
        engine = engine_for(
            job.query,
            job.schema_of,
            common_clock=job.partitioning.shards > 1,
            idle_after=job.idle_after,
        )
        return cls(job, number, Archive(engine), Notes(behind=[0] * len(job.schemas)))

    # ---- work

    def feed(
        self, parts: Sequence[Part], commands: Sequence[Command], at_end: bool = False
    ) -> Iterator[Output | Rejects]:
        """Take in a micro-batch: what is commanded, the rows, and the end if it is the end."""
        self.told = None
        for command in commands:
            command.obey(self.engine)
        local = [self.engine.reorder.local(s) for s in range(len(self.job.schemas))]
        batch, last, behind = in_order(self.job, parts, local, self.notes.last_arrival)
        self.notes.last_arrival = last
        self.notes.behind = [n + m for n, m in zip(self.notes.behind, behind, strict=True)]
        first = [rows.end for rows in self.engine.rows]
        with LoadMeter(self.engine):  # who takes the results is part of the load
            for output in self.engine.feed_in_pieces(batch, PIECE):
                yield self._noted(output)
                yield from self._rejects(output, batch.tables, first)
        if isinstance(self.engine, AggregateEngine):
            yield self._noted(self.engine.tick(last))
        if at_end or any(command.flush for command in commands):
            yield from self.flush()

    def flush(self) -> Iterator[Output]:
        """End of input: let everything out."""
        for output in self.engine.flush_in_pieces(PIECE):
            yield self._noted(output)

    def _noted(self, output: Output) -> Output:
        """Remember what was told last."""
        if isinstance(self.engine, AggregateEngine) and output.tables:
            self.told = output.tables[-1]
        return output

    def _rejects(
        self, output: Output, tables: Sequence[pa.Table], first: Sequence[int]
    ) -> Iterator[Rejects]:
        for rejected in output.rejected:
            for s in sorted(set(rejected.stream.tolist())):
                if self.counts(s):
                    own = rejected.stream == s
                    rows = tables[s].take(pa.array(rejected.row[own] - first[s]))
                    yield Rejects(s, rows, [REASONS[r] for r in rejected.reason[own]])
        for dropped in output.dropped:
            rows = tables[0].take(pa.array(dropped - first[0]))
            yield Rejects(0, rows, ["late"] * len(dropped))

    def counts(self, stream: int) -> bool:
        """Whether arrivals of `stream` are counted here: those of a copied one only once."""
        return self.number == 0 or not self.job.partitioning.is_copied(stream)

    # ---- state

    def save(self) -> tuple[bytes, Saved]:
        """The header, and what has to happen to the chunks."""
        saved = self.archive.save()
        sizes = self.notes.chunk_sizes
        for name in saved.gone:
            sizes.pop(name, None)
        sizes |= {name: len(data) for name, data in saved.new.items()}
        self.notes.state_bytes = sum(sizes.values()) + len(saved.header)
        said = {"job": self.job.fingerprint, "notes": vars(self.notes)}
        header = framed([json.dumps(said, sort_keys=True).encode(), saved.header])
        return header, saved

    @classmethod
    def restore(cls, job: Job, number: int, header: bytes, chunk: Callable[[str], Chunk]) -> Shard:
        """The shard that was saved."""
        first, inner = sections(header)
        said = json.loads(first)
        check_same(said["job"], job.fingerprint, "the checkpoint")
        archive = restore_archive(
            inner,
            chunk,
            job.query,
            job.schema_of,
            common_clock=job.partitioning.shards > 1,
            idle_after=job.idle_after,
        )
        return cls(job, number, archive, Notes(**said["notes"]))


# ---- what a worker keeps


@dataclass
class _Known:
    """What a worker knows of a shard: as it left it, and the chunks it was made of then."""

    digest: bytes = b""  # of the header
    shard: Shard | None = None
    chunks: dict[str, Chunk | bytes] = field(default_factory=dict)  # ready for use, or as written


class Kept:
    """The shards that are alive in this process; the least used ones make room."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], _Known] = OrderedDict()
        self.restorations = 0

    def take(self, job: Job, number: int, header: bytes, read: ReadChunk) -> Shard:
        """The shard with this header: alive, or restored."""
        known = self._of(job, number)
        shard, known.shard = known.shard, None  # who fails must not leave it behind half fed
        if shard is not None and known.digest == _digest(header):
            return shard
        del shard  # another worker had it since: make room before it is restored
        self.restorations += 1
        before, known.chunks = known.chunks, {}

        def chunk(name: str) -> Chunk:
            found = before.get(name) or read(name)
            known.chunks[name] = ready = found if isinstance(found, Chunk) else chunk_from(found)
            return ready

        return Shard.restore(job, number, header, chunk)

    def put(self, header: bytes, shard: Shard, saved: Saved) -> None:
        """Keep `shard` alive for whoever asks for its header."""
        known = self._of(shard.job, shard.number)
        known.digest, known.shard = _digest(header), shard
        known.chunks |= saved.new
        for gone in saved.gone:
            known.chunks.pop(gone, None)

    def _of(self, job: Job, number: int) -> _Known:
        """What is known of a shard; it is the last now that would make room."""
        name = job.identity, number
        known = self._known.setdefault(name, _Known())
        self._known.move_to_end(name)
        if len(self._known) > _MOST_SHARDS:
            self._known.popitem(last=False)
        return known


def _digest(header: bytes) -> bytes:
    return hashlib.blake2b(header, digest_size=16).digest()


KEPT = Kept()
