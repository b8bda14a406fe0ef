"""One shard between two micro-batches: decode, delegate to the engine, encode. Knows no Spark.

Its state is a header and the chunks of `engine.snapshot`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from slackwater.engine.base import AnyEngine
from slackwater.engine.checks import REASONS
from slackwater.engine.commands import Command
from slackwater.engine.factory import engine_for
from slackwater.engine.load import LoadMeter
from slackwater.engine.output import Output
from slackwater.engine.shard_report import Reports
from slackwater.engine.snapshot import Archive, Saved, restore_archive
from slackwater.engine.snapshot_format import Chunk, framed, sections
from slackwater.kernels.records import BEFORE
from slackwater.query.fingerprint import check_same
from slackwater.spark.job import Job
from slackwater.spark.order import clocks_of, in_order
from slackwater.spark.parts import Part

_NO_REPORTS = Reports()


@dataclass
class Notes:
    """The state of a shard beside that of its engine."""

    last_arrival: int = BEFORE
    behind: list[int] = field(default_factory=list)  # arrivals with a number that had passed
    last_report: int | None = None  # the micro-batch of it
    state_bytes: int = 0
    chunk_sizes: dict[str, int] = field(default_factory=dict)


class Rejects(NamedTuple):
    """Rejected rows of one stream, with their reasons."""

    stream: int
    rows: pa.Table
    reasons: list[str]


# What a micro-batch gives: pieces of output one after the other, and at the end the latest rows of
# aggregates, which dashboards show (None: there are none).
Pieces = Generator[Output | Rejects, None, pa.Table | None]


class Shard:
    """One shard of a query: an engine, its archive and some notes."""

    def __init__(self, job: Job, number: int, archive: Archive[AnyEngine], notes: Notes) -> None:
        self.job = job
        self.number = number
        self.archive = archive
        self.notes = notes

    @property
    def engine(self) -> AnyEngine:
        """The engine."""
        return self.archive.engine

    @classmethod
    def new(cls, job: Job, number: int) -> Shard:
        """A shard without any arrivals yet."""
        return cls(job, number, Archive(_engine(job)), Notes(behind=[0] * len(job.schemas)))

    # ---- work

    def feed(
        self,
        parts: Sequence[Part],
        commands: Sequence[Command],
        at_end: bool = False,
        reports: Reports = _NO_REPORTS,
    ) -> Pieces:
        """Take in a micro-batch: commands, rows, and the end of the input if it is the end.

        `reports` are those of all shards behind the micro-batch before, if they have one K.
        """
        engine, latest = self.engine, None
        common = engine.common_slack
        if common is not None:
            common.learn(reports)
        for command in commands:
            command.obey(engine)
        if common is not None:
            common.begin(clocks_of(self.job, parts, self.notes.last_arrival))
        local = [engine.reorder.local(s) for s in range(len(self.job.schemas))]
        batch, last, behind = in_order(self.job, parts, local, self.notes.last_arrival)
        self.notes.last_arrival = last
        self.notes.behind = [n + m for n, m in zip(self.notes.behind, behind, strict=True)]
        first = [rows.end for rows in engine.rows]
        with LoadMeter(engine):  # the time that the reader of the results takes is part of the load
            for output in engine.feed_in_pieces(batch, self.job.piece_bytes):
                latest = _newest(engine.latest_rows(output), latest)
                yield output
                yield from self._rejects(output, batch.tables, first)
        for output in () if common is None else common.end(self.job.piece_bytes):
            yield output
        due = engine.tick(last)
        latest = _newest(engine.latest_rows(due), latest)
        yield due
        if at_end or any(command.flush for command in commands):
            latest = _newest((yield from self.flush()), latest)
        return latest

    def flush(self) -> Pieces:
        """End of input: let everything out."""
        latest = None
        for output in self.engine.flush_in_pieces(self.job.piece_bytes):
            latest = _newest(self.engine.latest_rows(output), latest)
            yield output
        return latest

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
        state = {"job": self.job.fingerprint, "notes": vars(self.notes)}
        header = framed([json.dumps(state, sort_keys=True).encode(), saved.header])
        return header, saved

    @classmethod
    def restore(cls, job: Job, number: int, header: bytes, chunk: Callable[[str], Chunk]) -> Shard:
        """The shard that was saved."""
        first, inner = sections(header)
        state = json.loads(first)
        check_same(state["job"], job.fingerprint, "the checkpoint")
        return cls(
            job, number, restore_archive(inner, chunk, _engine(job)), Notes(**state["notes"])
        )


def _newest(rows: pa.Table | None, before: pa.Table | None) -> pa.Table | None:
    return before if rows is None else rows


def _engine(job: Job) -> AnyEngine:
    return engine_for(
        job.query,
        job.schema_of,
        common_clock=job.partitioning.shards > 1,
        idle_after=job.idle_after,
        sharing=job.partitioning.shards if job.has_common_slack else 1,
    )
