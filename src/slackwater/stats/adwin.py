"""ADWIN: how far back the recent past reaches (Bifet and Gavalda, SDM 2007).

A window over a sequence of numbers in [0, 1] that grows as long as they look alike, and is cut when
its older part has another mean than its newer part. It is kept as an exponential histogram, so a
window of n takes a logarithmic number of buckets. Here a bucket starts as a *chunk* of numbers (an
adaptation interval) that are known by their count, mean and spread, and carries a payload along:
the delay histogram. What ADWIN forgets, the payload forgets.

>>> adwin = Adwin()
>>> for _ in range(200):
...     _ = adwin.add(Chunk(1, 0.0, 0.0, None))
>>> for n in range(200):
...     if adwin.add(Chunk(1, 1.0, 0.0, None)):
...         break
>>> n < 30, adwin.size < 200
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels.statistics import has_cut

DELTA = 0.002  # probability of a false cut
_PER_SIZE = 5  # buckets of one size before two of them are merged


class Chunk(NamedTuple):
    """Some numbers in a row."""

    size: int  # how many
    mean: float
    spread: float  # sum of the squared deviations from the mean
    payload: Any

    def joined(self, other: Chunk, merge: Callable[[Any, Any], Any]) -> Chunk:
        """Both together."""
        size = self.size + other.size
        away = other.mean - self.mean
        mean = self.mean + away * other.size / size
        spread = self.spread + other.spread + away * away * self.size * other.size / size
        return Chunk(size, mean, spread, merge(self.payload, other.payload))


class Adwin:
    """The window; `merge` makes one payload of those of two chunks.

    `rows` has the buckets by size, smallest size first, and within a size the newest last; a bucket
    of row r is made of 2**r chunks.
    """

    def __init__(
        self,
        merge: Callable[[Any, Any], Any] = lambda a, _: a,
        delta: float = DELTA,
        most_chunks: int | None = None,
    ) -> None:
        self._merge = merge
        self._delta = delta
        self._most_chunks = most_chunks
        self.rows: list[list[Chunk]] = [[]]

    @property
    def chunks(self) -> list[Chunk]:
        """The buckets, oldest first."""
        return [chunk for row in reversed(self.rows) for chunk in row]

    @property
    def size(self) -> int:
        """How many numbers are in the window."""
        return sum(chunk.size for row in self.rows for chunk in row)

    @property
    def mean(self) -> float:
        """Their mean."""
        n = self.size
        return sum(c.size * c.mean for row in self.rows for c in row) / n if n else 0.0

    def add(self, chunk: Chunk) -> list[Chunk]:
        """Add a chunk; return the buckets that the window does not reach back to any more."""
        if chunk.size == 0:
            return []
        self.rows[0].append(chunk)
        self._compress()
        gone: list[Chunk] = []
        while self._should_cut():
            gone.append(self._drop_oldest())
        while self._most_chunks is not None and self._length() > self._most_chunks:
            gone.append(self._drop_oldest())
        return gone

    def forget(self, latest: int) -> list[Chunk]:
        """Let the window reach back `latest` chunks (few enough to be unmerged) and no further."""
        kept = self.rows[0][-latest:]
        gone = self.chunks[: -len(kept)] if kept else self.chunks
        self.rows = [kept]
        return gone

    def _length(self) -> int:
        """Length of the window in chunks."""
        return sum(len(row) << r for r, row in enumerate(self.rows))

    def _compress(self) -> None:
        for r, row in enumerate(self.rows):
            if len(row) <= _PER_SIZE:
                return
            if r + 1 == len(self.rows):
                self.rows.append([])
            older, newer = row.pop(0), row.pop(0)
            self.rows[r + 1].append(older.joined(newer, self._merge))

    def _drop_oldest(self) -> Chunk:
        oldest = self.rows[-1].pop(0)
        while len(self.rows) > 1 and not self.rows[-1]:
            self.rows.pop()
        return oldest

    def _should_cut(self) -> bool:
        """Whether some older part of the window has another mean than the rest."""
        parts = np.array([chunk[:3] for chunk in self.chunks], np.float64)
        return bool(has_cut(parts, self._delta))
