"""Bucket arrays that grow: more buckets for a longer span of time, or wider ones."""

from __future__ import annotations

import numpy as np

from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.events.log import Log
from slackwater.kernels import buckets as kernels
from slackwater.kernels.records import I64, NONE, Rings


class BucketRings:
    """`n` rings of the events of `log`; a bucket spans ``2**shift`` units of time."""

    def __init__(self, n: int, log: Log, limits: Limits = DEFAULT_LIMITS) -> None:
        self.n = n
        self._log = log
        self._limits = limits
        self.shift = 0
        self.arrays = self._new(limits.fewest_buckets)

    @property
    def length(self) -> int:
        """Buckets per ring."""
        return int(self.arrays.head.shape[1])

    def size(self, ring: int) -> int:
        """How many events are in `ring`."""
        return int(self.arrays.size[ring])

    def contents(self, ring: int) -> I64:
        """Events of `ring`, earliest first."""
        out = np.empty(self.size(ring), np.int64)
        kernels.contents(ring, self.arrays, self._log.records(), out)
        return out

    def insert(self, ring: int, events: I64) -> None:
        """Put in events; there is room for them."""
        kernels.insert_all(events, ring, self.shift, self.arrays, self._log.records())

    def fits(self, span: int) -> bool:
        """Whether there are enough buckets of one unit each."""
        return self.shift == 0 and span + 2 <= self.length

    def make_room(self, span: int) -> None:
        """Have buckets for `span` time units, which is no less than what the contents take."""
        if self.fits(span):
            return
        shift = 0
        while (span >> shift) + 2 > self._limits.most_buckets:
            shift += 1
        contents = [self.contents(ring) for ring in range(self.n)]
        self.shift = shift
        needed = 1 << ((span >> shift) + 1).bit_length()
        self.arrays = self._new(max(self._limits.fewest_buckets, needed))
        for ring, events in enumerate(contents):
            self.insert(ring, events)

    def _new(self, buckets: int) -> Rings:
        return Rings(
            head=np.full((self.n, buckets), NONE),
            tail=np.full((self.n, buckets), NONE),
            low=np.zeros(self.n, np.int64),
            high=np.zeros(self.n, np.int64),
            size=np.zeros(self.n, np.int64),
        )
