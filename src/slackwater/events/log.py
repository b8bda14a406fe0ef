"""Every event that may still matter, in arrival order, in arrays that grow and are trimmed.

An event keeps its number for life; ``number - base`` is its place in all arrays. `Log.records` is
what kernels get, the properties are views for Python.

>>> log = Log()
>>> log.append(ts=np.array([10, 12]), stream=np.array([0, 1]))
(0, 2)
>>> log.trim(1)
>>> log.base, log.end, log.ts.tolist()
(1, 2, [12])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.events import cache_lines
from slackwater.kernels import intake
from slackwater.kernels.records import I32, I64, KEY, STREAM, TS, U8, Arrivals, RawRows

_BY_COLUMN = ("ints", "floats")  # these have events along their second axis
_FEWEST = 1024
_NARROW = 16  # numbers that an event has anyway, about


class Log:
    """Arrivals with ``base <= number < end``.

    `keys`, `ints` and `floats` are how many key columns an event has and how many columns of
    either kind `where` reads, `vectors` is how many components all of its vectors have together,
    `marks` how many numbers say what became of it.
    """

    def __init__(
        self, keys: int = 1, ints: int = 0, floats: int = 0, vectors: int = 0, marks: int = 0
    ) -> None:
        self.base = 0
        self.end = 0
        self._arrays: dict[str, NDArray[Any]] = {
            "event": cache_lines.zeros((_FEWEST, KEY + keys), np.int64),
            "row": np.zeros(_FEWEST, np.int64),
            "arrival": np.zeros(_FEWEST, np.int64),
            "delay": np.zeros(_FEWEST, np.int64),
            "ints": np.zeros((ints, _FEWEST), np.int64),
            "floats": np.zeros((floats, _FEWEST), np.float64),
            "vectors": np.zeros((_FEWEST, vectors), np.float64),
            "marks": cache_lines.zeros((_FEWEST, marks), np.int64),
        }

    @property
    def breadth(self) -> int:
        """How many times larger than others its events are because of their vectors."""
        return 1 + int(self._arrays["vectors"].shape[1]) // _NARROW

    @property
    def size(self) -> int:
        """How many events are kept."""
        return self.end - self.base

    @property
    def bytes_per_event(self) -> int:
        """What an event takes here."""
        return sum(a.nbytes for a in self._arrays.values()) // len(self._arrays["row"])

    @property
    def ts(self) -> I64:
        """Times of the events."""
        return self._arrays["event"][: self.size, TS]

    @property
    def stream(self) -> I64:
        """Streams of the events."""
        return self._arrays["event"][: self.size, STREAM]

    @property
    def keys(self) -> I64:
        """Key codes, [event, key column]."""
        return self._arrays["event"][: self.size, KEY:]

    @property
    def row(self) -> I64:
        """Rows of the events among all rows of their streams."""
        return self._arrays["row"][: self.size]

    @property
    def arrival(self) -> I64:
        """When they arrived."""
        return self._arrays["arrival"][: self.size]

    @property
    def marks(self) -> I64:
        """What became of them, [event, mark]."""
        return self._arrays["marks"][: self.size]

    @property
    def delay(self) -> I64:
        """How far behind the local time of their streams they arrived."""
        return self._arrays["delay"][: self.size]

    def start_at(self, number: int) -> None:
        """Let the next event have this number; there are none yet."""
        self.base = self.end = number

    def records(self) -> Arrivals:
        """The arrays as kernels take them; valid until the next `append`."""
        return Arrivals(self.base, **self._arrays)

    def has_room(self, n: int) -> bool:
        """Whether `n` more events fit without growing."""
        return self.size + n <= len(self._arrays["row"])

    def append(
        self, ts: I64, stream: NDArray[Any], keys: Sequence[I32] = (), **others: NDArray[Any]
    ) -> tuple[int, int]:
        """Add events in arrival order; return their numbers as (first, end).

        Columns that are not given stay undefined: the caller does not use them.
        """
        first, new = self.end, slice(self.size, self.size + len(ts))
        if not self.has_room(len(ts)):
            self._grow(4, len(ts))
        self.end += len(ts)
        event = self._arrays["event"]
        event[new, TS] = ts
        event[new, STREAM] = stream
        for column, codes in enumerate(keys):
            event[new, KEY + column] = codes
        for name, values in others.items():
            if name in _BY_COLUMN:
                self._arrays[name][:, new] = values
            else:
                self._arrays[name][new] = values
        return first, self.end

    def take_turns(
        self, turns: U8, arrival: I64, at: I64, first_row: I64, rows: RawRows, bad: I64
    ) -> int:
        """Add the good ones of `rows` in turns; return how many were bad (see the kernel)."""
        if not self.has_room(len(turns)):
            self._grow(8, len(turns))
        records = self.records()
        size, n_bad = intake.interleave(
            self.size, turns, arrival, at, first_row, rows, records, bad
        )
        self.end = self.base + int(size)
        return int(n_bad)

    def trim(self, oldest: int) -> None:
        """Forget the events with ``number < oldest``."""
        kept = slice(oldest - self.base, self.size)
        if kept.start > 0:
            for name, array in self._arrays.items():
                if name in _BY_COLUMN:
                    array[:, : kept.stop - kept.start] = array[:, kept].copy()
                else:
                    array[: kept.stop - kept.start] = array[kept].copy()
            self.base = oldest

    def _grow(self, times: int, n: int) -> None:
        """Have room for `n` more events `times` over, so that this is rare; long vectors cost more.

        With twice the room a trim still makes place for as many events as it moves.
        """
        capacity = (times if self.breadth == 1 else 2) * (self.size + n)
        for name, array in self._arrays.items():
            if name in _BY_COLUMN:
                grown = np.zeros((len(array), capacity), array.dtype)
                grown[:, : self.size] = array[:, : self.size]
            else:
                grown = cache_lines.zeros((capacity, *array.shape[1:]), array.dtype.type)
                grown[: self.size] = array[: self.size]
            self._arrays[name] = grown
