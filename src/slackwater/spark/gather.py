"""Behind the shards: their tallies of a window are added up in one place, and compensated there.

All shards have the same clock, so their tallies of an instant come in the same micro-batch. Rejects
and metrics pass through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from slackwater.compensation.compensator import Compensator
from slackwater.compensation.tally import Tally, added_up
from slackwater.compensation.tally_codec import TallyCodec
from slackwater.compensation.values import Values
from slackwater.engine.aggregate import Partial, codec_for, rows_table
from slackwater.engine.result_schema import result_schema
from slackwater.engine.snapshot_format import framed, sections
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.fingerprint import check_same
from slackwater.spark.blobs import METRICS, PARTIALS, RESULTS, Blob, blob_frame, from_ipc, to_ipc
from slackwater.spark.job import Job
from slackwater.spark.metrics import PRODUCED, with_aggregates

Place = tuple[int, bool, int]  # instant, early and not closed, start


def partials_bytes(job: Job, partials: Sequence[Partial]) -> bytes:
    """The tallies of a shard."""
    _, _, codec = _parts(job)
    return to_ipc(
        pa.table(
            {
                "instant": [partial.instant for partial in partials],
                "is_early": [not partial.is_closed for partial in partials],
                "start": [partial.start for partial in partials],
                "tally": [json.dumps(codec.encode(partial.tally)) for partial in partials],
            }
        )  # fmt: skip
    )


class Gathered:
    """The compensator of a job, and how many results there were."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._query, values, self._codec = _parts(job)
        self._compensator = Compensator(self._query, values, self._codec)
        self._produced = 0

    def blobs(self, rows: Iterable[dict[str, Any]]) -> Iterator[Blob]:
        """Blobs of all shards in, blobs of results out."""
        by_place: dict[Place, list[str]] = {}
        metrics: list[tuple[bytes, list[int]]] = []
        for row in rows:
            if row["kind"] == PARTIALS:
                _read(bytes(row["data"]), by_place)
            elif row["kind"] == METRICS:
                metrics.append((bytes(row["data"]), [int(number) for number in row["numbers"]]))
            else:
                yield int(row["kind"]), bytes(row["data"]), None
        found = []
        for place in sorted(by_place):
            _, is_early, start = place
            tally = self._added_up(by_place[place])
            compensate = self._compensator.report_early if is_early else self._compensator.close
            found += compensate(start, tally)
        self._produced += len(found)
        schema = result_schema(self._query, self._job.schema_of)
        table = rows_table(found, self._query, schema)
        if found:
            yield RESULTS, to_ipc(table), None
        for number, (charts, numbers) in enumerate(metrics):
            numbers[PRODUCED] = self._produced if number == 0 else 0
            if number == 0:  # the rows are made here, by no shard alone
                yield METRICS, with_aggregates(charts, self._query, table), numbers
            else:
                yield METRICS, charts, numbers

    def _added_up(self, texts: Iterable[str]) -> Tally:
        """The tallies of all shards as one, whichever came first: floats mind the order."""
        return added_up([self._codec.decode(json.loads(text)) for text in sorted(texts)])

    def save(self) -> bytes:
        """The state."""
        state = {"compensator": self._compensator.state(), "produced": self._produced}
        about = json.dumps(self._job.fingerprint, sort_keys=True)
        return framed([about.encode(), json.dumps(state, sort_keys=True).encode()])

    def restore(self, data: bytes) -> None:
        """Continue from a saved state."""
        about, state = map(json.loads, sections(data))
        check_same(about, self._job.fingerprint, "the checkpoint")
        self._compensator.resume(state["compensator"])
        self._produced = state["produced"]


class Gathering:
    """The same on Spark: the state is a value."""

    def __init__(self, job: Job, state: Any) -> None:
        self._job, self._state = job, state

    def batch(self, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """A micro-batch."""
        gathered = Gathered(self._job)
        saved = self._state.get()
        if saved is not None:
            gathered.restore(bytes(saved[0]))
        rows: Iterator[Any] = (row for frame in frames for row in frame.to_dict("records"))
        yield from map(blob_frame, gathered.blobs(rows))
        self._state.update((gathered.save(),))


def gather_batch(job: Job, rows: Iterable[dict[str, Any]]) -> Iterator[Blob]:
    """A batch query: everything at once."""
    return Gathered(job).blobs(rows)


def _read(data: bytes, by_place: dict[Place, list[str]]) -> None:
    table = from_ipc(data)
    columns = [table.column(name).to_pylist() for name in ("instant", "is_early", "start", "tally")]
    for instant, is_early, start, tally in zip(*columns, strict=True):
        by_place.setdefault((instant, is_early, start), []).append(tally)


def _parts(job: Job) -> tuple[AggregateQuery, Values, TallyCodec]:
    """The parts of a compensator."""
    query = cast(AggregateQuery, job.query)  # only these are gathered, see `Job.is_gathered`
    values = Values(query, job.schemas)
    return query, values, codec_for(query, job.schemas, values)
