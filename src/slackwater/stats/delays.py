"""The disorder of all streams in the recent past: delays, rates, and leads over the slowest.

How far back the past reaches is up to one ADWIN window per stream (ICDE16 IV-A). It watches
``log(1 + d)`` of the delays d in steps of g, scaled to [0, 1]: disorder changes by factors, and a
single event with a huge delay is no change. The paper watches the delays themselves; ``"delay"``
does that, up to the same longest one, since ADWIN takes numbers in [0, 1].

To ADWIN every event is a sample of its own. Delays are not that: in a burst all are long. A
*steady* window takes the mean of an interval as one sample, so that bursts do not cut it, and needs
`Novelty` for changes that cannot wait.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels import statistics as kernels
from slackwater.kernels.delay_scale import LINEAR, buckets_of
from slackwater.kernels.records import BEFORE, F64, I64, Arrivals
from slackwater.query.goals import Signal
from slackwater.stats.adwin import Adwin, Chunk
from slackwater.stats.buckets import BUCKETS, dense, sparse, together, used
from slackwater.stats.novelty import Novelty

_SIGNALS: dict[Signal, F64] = {
    "log": np.log1p(np.arange(LINEAR)) / np.log(LINEAR),
    "delay": np.arange(LINEAR) / (LINEAR - 1),
}
MOST_INTERVALS = 1024  # the past never reaches back further


class Past(NamedTuple):
    """Payload of a chunk: what happened in some adaptation intervals."""

    histogram: I64  # events by delay bucket, as far as there are any
    size: int  # events
    led: int  # events with a lead
    lead: float  # sum of the leads
    span: int  # how long it took

    def with_(self, other: Past) -> Past:
        """Both together."""
        return Past(
            together(self.histogram, other.histogram),
            self.size + other.size,
            self.led + other.led,
            self.lead + other.lead,
            self.span + other.span,
        )


class Delays:
    """Delay histograms over ADWIN windows, and of the last interval."""

    def __init__(
        self,
        m: int,
        granularity: int,
        every: int,
        steady: bool = False,
        adwin: Signal = "log",
    ) -> None:
        self._signal = _SIGNALS[adwin]
        self._end = BEFORE  # of the last interval
        self.changed = BEFORE  # when the last change was noticed
        self.granularity = granularity  # of delays, in units
        self.top = 0  # no bucket beyond this has been used
        self.every = every  # length of an adaptation interval
        self._local = np.full(m, BEFORE)
        self._novelty = [Novelty() for _ in range(m)] if steady else None
        self._totals = np.zeros((m, 4))  # events, events with a lead, leads, time: over the windows
        self._adwin = [Adwin(Past.with_, most_chunks=MOST_INTERVALS) for _ in range(m)]
        self.histogram = np.zeros((m, BUCKETS), np.int64)  # over the windows
        self.latest = np.zeros((m, BUCKETS), np.int64)  # of the last interval
        self._now = np.zeros((m, BUCKETS), np.int64)  # of the one that goes on
        self._tally = np.zeros((m, kernels.TALLY_LENGTH), np.float64)

    def arrive(self, begin: int, end: int, max_delay: int, arrivals: Arrivals) -> None:
        """Take in the arrivals ``begin <= number < end``.

        Their delays are in the log; `max_delay` is the largest so far.
        """
        self.top = int(buckets_of(np.array([max_delay]), self.granularity)[0])
        kernels.observe(
            begin,
            end,
            self.granularity,
            arrivals,
            self._local,
            self._signal,
            self._now,
            self._tally,
        )

    def close(self, end: int) -> None:
        """The interval is over: it is `end`."""
        span = self.every if self._end == BEFORE else end - self._end
        self._end = end
        news = 0
        for s, adwin in enumerate(self._adwin):
            now = self._now[s, : self.top + 1]
            histogram = now[: used(now)].copy()  # no longer than this interval needs
            size = int(histogram.sum())
            total, squares, led, lead = self._tally[s].tolist()
            if not size:
                continue  # silence is no sample
            mean = total / size
            spread = max(0.0, squares - mean * total)
            past = Past(histogram, size, int(led), lead, span)
            if self._novelty is None:
                chunk = Chunk(size, mean, spread, past)
            else:
                chunk = Chunk(1, mean, 0.0, past)
                news = max(news, self._novelty[s].add(mean))
            self._count(s, past, 1)
            for gone in adwin.add(chunk):
                self._count(s, gone.payload, -1)
        if news:
            self._forget(news)
            self.changed = end
        self.latest, self._now = self._now, self.latest
        self._now[:, : self.top + 1] = 0
        self._tally[:] = 0

    def _forget(self, latest: int) -> None:
        """Keep the `latest` intervals only: something has changed."""
        for s, adwin in enumerate(self._adwin):
            for gone in adwin.forget(latest):
                self._count(s, gone.payload, -1)

    def _count(self, s: int, past: Past, times: int) -> None:
        self.histogram[s, : len(past.histogram)] += times * past.histogram
        self._totals[s] += np.multiply(times, past[1:])

    # ---- what is known

    @property
    def counts(self) -> list[int]:
        """How many events of each stream are in its window."""
        return [int(n) for n in self._totals[:, 0]]

    @property
    def largest(self) -> int:
        """The bucket of the largest delay in the windows."""
        return max(0, used(self.histogram[:, : self.top + 1].sum(axis=0)) - 1)

    def rates(self) -> F64:
        """Events per unit of time."""
        return np.asarray(self._totals[:, 0] / np.maximum(self._totals[:, 3], 1))

    def leads(self) -> I64:
        """K_sync of each stream in steps: its average lead, beyond that of the slowest."""
        leads = self._totals[:, 2] / np.maximum(self._totals[:, 1], 1)
        return np.asarray(np.rint((leads - leads.min()) / self.granularity), np.int64)

    # ---- for a snapshot

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "end": self._end,
            "top": self.top,
            "changed": self.changed,
            "local": self._local.tolist(),
            "windows": [
                [[_plain(chunk) for chunk in row] for row in adwin.rows] for adwin in self._adwin
            ],
            "latest": [sparse(h) for h in self.latest],
            "now": [sparse(h) for h in self._now],
            "tally": self._tally.tolist(),
            "novelty": [novelty.means.tolist() for novelty in self._novelty or ()],
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._end = state["end"]
        self.top = state["top"]
        self.changed = state["changed"]
        self._local[:] = state["local"]
        for s, adwin in enumerate(self._adwin):
            adwin.rows = [[_chunk(plain) for plain in row] for row in state["windows"][s]]
            for chunk in adwin.chunks:
                self._count(s, chunk.payload, 1)
            dense(state["latest"][s], self.latest[s])
            dense(state["now"][s], self._now[s])
        self._tally[:] = state["tally"]
        for novelty, means in zip(self._novelty or (), state["novelty"], strict=True):
            novelty.means = np.array(means, np.float64)


def _plain(chunk: Chunk) -> list[Any]:
    past = chunk.payload
    return [*chunk[:3], sparse(past.histogram), *past[1:]]


def _chunk(plain: list[Any]) -> Chunk:
    size, mean, spread, counts, *rest = plain
    histogram = dense(counts, np.zeros(counts[0][-1] + 1, np.int64))
    return Chunk(size, mean, spread, Past(histogram, *rest))
