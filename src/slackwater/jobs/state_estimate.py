"""How much state a job keeps: rows from rate and time, bytes from their columns.

>>> rates("a=1000/s, b=30/min", ["a", "b"])
{'a': 1000.0, 'b': 0.5}
>>> rates("200/s", ["a", "b"])
{'a': 200.0, 'b': 200.0}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import pyarrow as pa

from slackwater.events.log import Log
from slackwater.jobs.job import JobFile, Source
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.recordings import arrow_types
from slackwater.jobs.toml_table import JobFileError
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.expression.names import unquoted
from slackwater.query.goals import Slack
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.query.window import WindowQuery
from slackwater.query.windows import Tuples

STATE_BY_ROW = 0.37  # bytes in RocksDB by the size of a row: `bench spark`, rows of four numbers
_TEXT = 20  # bytes of a value of unknown type: 16 letters and their offset
_ENTRY = 16  # bytes of an event in the run of a key
_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_RATE = re.compile(r"\s*(?:(?P<name>\w+)\s*=)?\s*(?P<n>\d+(?:\.\d+)?)\s*(?:/\s*(?P<per>\w+))?\s*")


class StreamState(NamedTuple):
    """What is kept of one stream; None where it depends on data that is not known yet."""

    stream: str
    seconds: float | None  # how long an event is kept, on all shards that have it
    rows: float | None
    row_bytes: int | None
    bookkeeping: int  # bytes beside the row
    copies: int

    @property
    def memory(self) -> float | None:
        """Bytes in the memory of all shards."""
        if self.rows is None or self.row_bytes is None:
            return None
        return self.rows * self.copies * (self.row_bytes + self.bookkeeping)

    @property
    def state(self) -> float | None:
        """Bytes in the state of all shards, and so in the checkpoint."""
        if self.rows is None or self.row_bytes is None:
            return None
        return self.rows * self.copies * self.row_bytes * STATE_BY_ROW

    def measurements(self) -> list[Measurement]:
        """Return the numbers that are known."""
        numbers = {
            ("kept for", "s"): self.seconds,
            ("rows kept", "rows"): self.rows,
            ("row", "bytes"): self.row_bytes,
            ("beside the row", "bytes"): self.bookkeeping,
            ("memory", "bytes"): self.memory,
            ("state", "bytes"): self.state,
        }
        return [
            Measurement(f"{self.stream}: {name}", round(value, 3), unit)
            for (name, unit), value in numbers.items()
            if value is not None
        ]


def rates(text: str, names: Sequence[str]) -> dict[str, float]:
    """Return rows per second by stream: ``a=1000/s, b=30/min``, or one rate for all."""
    found = {}
    for part in text.split(","):
        match = _RATE.fullmatch(part)
        per = match and _SECONDS.get((match["per"] or "s").lower())
        if not match or not per or (match["name"] or names[0]) not in names:
            msg = f'--rate must be like "{names[0]}=1000/s" for streams {", ".join(names)}, got '
            raise JobFileError(msg + repr(part.strip()))
        for name in [match["name"]] if match["name"] else names:
            found[name] = float(match["n"]) / per
    return found


def estimate_state(
    job: JobFile, copies: Sequence[int], per_s: dict[str, float], delay: int | None
) -> list[StreamState]:
    """Estimate what is kept of each stream, if events are at most `delay` late."""
    return [
        _stream_state(job, s, copies[s], per_s.get(name), delay)
        for s, name in enumerate(job.query.names)
    ]


def _stream_state(
    job: JobFile, s: int, copies: int, rate: float | None, delay: int | None
) -> StreamState:
    query, stream = job.query, job.query.streams[s]
    per_second = 1000 if query.unit == "ms" else 1_000_000
    window, beyond = _lengths(query, s, delay)
    seconds = None
    if window is not None and beyond is not None:
        seconds = (window + beyond) / per_second
    rows = None if rate is None or seconds is None else rate * seconds
    if isinstance(stream.window, Tuples):
        rows = float(stream.window.count)
    width = row_bytes(job.source_of(stream))
    return StreamState(stream.name, seconds, rows, width, _bookkeeping(query, s), copies)


# ---- by kind of query


@singledispatch
def _lengths(query: AnyQuery, s: int, delay: int | None) -> tuple[int | None, int | None]:
    """Return the window of a stream, and how long its events are kept beside that."""
    raise NotImplementedError(type(query))


@_lengths.register
def _(query: WindowQuery, s: int, delay: int | None) -> tuple[int | None, int | None]:
    length = query.length
    held = to_units(query.goal.length, query.unit) if isinstance(query.goal, Slack) else delay
    return (None if isinstance(length, Tuples) else length), held


@_lengths.register
def _(query: AggregateQuery, s: int, delay: int | None) -> tuple[int | None, int | None]:
    return query.length, (query.retained if query.retained is not None else delay)


@_lengths.register
def _(query: JoinQuery, s: int, delay: int | None) -> tuple[int | None, int | None]:
    beyond = query.retained if query.retained is not None else delay
    waiting = query.slack if isinstance(query.goal, Slack) else delay
    both = None if beyond is None or waiting is None else beyond + waiting
    return query.lengths[s], both


@singledispatch
def _condition_columns(query: AnyQuery, s: int) -> tuple[int, int]:
    """Return how many numbers of an event the condition reads, and how many from vectors."""
    return 0, 0


@_condition_columns.register
def _(query: JoinQuery, s: int) -> tuple[int, int]:
    lengths, name = dict(query.streams[s].vectors), query.names[s]
    columns = () if query.condition is None else query.condition.columns
    read = [column for stream, column in columns if stream == name]
    vectors = sum(lengths.get(column, 0) for column in read)
    return sum(column not in lengths for column in read), vectors


def _bookkeeping(query: AnyQuery, s: int) -> int:
    """Return the bytes of an event beside its row, in the log and in the window store."""
    keys = sum(s in key.columns for key in query.keys)
    numbers, vectors = _condition_columns(query, s)
    return Log(max(1, keys), 0, numbers, vectors).bytes_per_event + _ENTRY * max(1, keys)


def row_bytes(source: Source) -> int | None:
    """Return the bytes of a row by its schema; None if only the source knows its columns."""
    if source.schema is None:
        return None
    types = arrow_types(source.schema)
    selected = list(map(unquoted, source.select))
    computed = [text for text in selected if text not in types]
    names = [n for n in selected if n in types] if selected else list(types)
    return sum(_width(types[name]) for name in names) + _TEXT * len(computed)


def _width(kind: pa.DataType | None) -> int:
    try:
        return _TEXT if kind is None else max(1, int(kind.bit_width) // 8)
    except ValueError:  # a text has no width
        return _TEXT
