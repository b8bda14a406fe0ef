"""One input stream: its name, its time column and its window in a join.

>>> Stream("quotes", ts="time", window="5 seconds")
Stream(name='quotes', ts='time', window='5 seconds', vectors=(), source='quotes', id=())
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import Any, NoReturn

from slackwater.errors import QueryError
from slackwater.query.units import Duration, as_plain
from slackwater.query.windows import Tuples, window_from_dict, window_to_dict

MOST_STREAMS = 32

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Stream:
    """One input stream.

    Parameters
    ----------
    name
        How conditions and result columns refer to it.
    ts
        Its event-time column: a timestamp, or a number in the query's time unit.
    window
        How long an event can find partners in a join: ``"5 seconds"``, a number in the query's time
        unit, a timedelta, or ``Tuples(100)``.
    order_by
        The same as `ts`, for a column that is not a time: a number that mostly grows.
    vectors
        The lengths of the vectors that `where` compares, by column: ``{"embedding": 512}``. Lists
        of a fixed size need no entry: their type has the length.
    id
        The columns that identify an event, for `result_id` and to choose between events of one time
        in as-of joins; none: all columns.
    source
        The name of the data that it reads, if that is not its own name: two streams may read one
        source.

    Raises
    ------
    QueryError
        If the name is not an identifier, or `ts` is missing.

    Examples
    --------
    >>> Stream("services", order_by="orderID").ts
    'orderID'
    """

    name: str
    ts: str = ""
    window: Duration | Tuples | None = None
    order_by: InitVar[str | None] = None
    vectors: Mapping[str, int] | tuple[tuple[str, int], ...] = ()  # normalised to sorted pairs
    source: str = ""  # the name if left out
    id: str | tuple[str, ...] = ()  # normalised to a tuple

    def __post_init__(self, order_by: str | None) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            msg = f"a stream's name must be letters, digits and _, got {self.name!r}"
            raise QueryError(msg)
        if order_by is not None:
            if self.ts:
                msg = f"stream {self.name!r}: give ts or order_by, got both"
                raise QueryError(msg)
            object.__setattr__(self, "ts", order_by)
        if not isinstance(self.ts, str) or not self.ts:
            msg = f"stream {self.name!r}: ts must be the name of its time column, got {self.ts!r}"
            raise QueryError(msg)
        if isinstance(self.window, Tuples) and self.window.slide is not None:
            msg = f"stream {self.name!r}: the window of a join has no slide, got {self.window!r}"
            raise QueryError(msg)
        object.__setattr__(self, "vectors", self._vector_lengths())
        object.__setattr__(self, "source", self.source or self.name)
        object.__setattr__(self, "id", self._id_columns())

    def _vector_lengths(self) -> tuple[tuple[str, int], ...]:
        """Return the lengths of vectors as pairs sorted by column."""
        try:
            lengths = dict(self.vectors)
        except (TypeError, ValueError):  # neither a mapping nor pairs
            lengths = {"": 0}
        for column, length in lengths.items():
            is_whole = isinstance(length, int) and not isinstance(length, bool)
            if not (isinstance(column, str) and column and is_whole and length >= 1):
                msg = (
                    f"stream {self.name!r}: vectors must be lengths not below 1 by column, like "
                    f"{{'embedding': 512}}, got {self.vectors!r}"
                )
                raise QueryError(msg)
        return tuple(sorted(lengths.items()))

    def __getattr__(self, name: str) -> NoReturn:
        """Say how a column is written, to readers of other libraries."""
        msg = f"a Stream has no attribute {name!r}"
        if not name.startswith("_"):
            msg += f"; a column of it is sw.col({self.name!r}, {name!r})"
        raise AttributeError(msg)

    def _id_columns(self) -> tuple[str, ...]:
        columns = (self.id,) if isinstance(self.id, str) else tuple(self.id)
        if not all(isinstance(column, str) and column for column in columns):
            msg = f"stream {self.name!r}: id must be names of columns, got {self.id!r}"
            raise QueryError(msg)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold; what is not set is left out."""
        window = window_to_dict(self.window) if isinstance(self.window, Tuples) else self.window
        plain: dict[str, Any] = {"name": self.name, "ts": self.ts, "window": window}
        plain |= {"vectors": dict(self.vectors), "source": self.source, "id": list(self.id)}
        return as_plain(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Stream:
        """Return the stream that `to_dict` described."""
        given = dict(plain)
        if isinstance(given.get("window"), dict):
            given["window"] = window_from_dict(given["window"])
        return cls(**given)


def check_streams(streams: tuple[Any, ...]) -> None:
    """Raise `QueryError` if these cannot be the streams of a join."""
    for stream in streams:
        if not isinstance(stream, Stream):
            got = repr(stream) if isinstance(stream, str) else type(stream).__name__
            msg = f"a join takes Stream objects, got {got}; sw.Stream('a', ts='time', window='5 s')"
            raise QueryError(msg)
    if not 2 <= len(streams) <= MOST_STREAMS:
        msg = f"a join takes 2 to {MOST_STREAMS} streams, got {len(streams)}"
        raise QueryError(msg)
    names = [stream.name for stream in streams]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        msg = f"streams must have different names, got {', '.join(doubled)} more than once"
        raise QueryError(msg)


def by_stream(streams: tuple[Stream, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given`, which is by the name of a stream or of its source, by stream name."""
    sources = {stream.source for stream in streams} & set(given)
    named = {stream.name: given[stream.source] for stream in streams if stream.source in sources}
    return named | {name: value for name, value in given.items() if name not in sources}


def named_inputs(
    streams: tuple[Stream, ...], inputs: Any, keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs of `stream` and `replay` by stream name.

    They are given as keywords, or as one mapping; the only stream of a query also as it is.
    """
    if inputs is None:
        return dict(keywords)
    if keywords:
        names = ", ".join(keywords)
        msg = f"give the streams as keywords or as one mapping, got both: a mapping and {names}"
        raise QueryError(msg)
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if len(streams) == 1:
        return {streams[0].name: inputs}
    names = ", ".join(f"{stream.name}=…" for stream in streams)
    msg = f"give each stream by its name, {names}, got {type(inputs).__name__}"
    raise QueryError(msg)
