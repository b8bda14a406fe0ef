"""The lateness of results, interval by interval: the measured recall of every K.

`kernels.lateness` says what lateness is and counts it while events arrive. Here an adaptation
interval is closed: its histogram goes to the controller, and the results that were not late at all,
which no probe counts, are found by subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels import lateness as kernels
from slackwater.kernels.histogram import BUCKETS
from slackwater.kernels.records import BEFORE, I64, Lateness
from slackwater.stats.buckets import dense, sparse
from slackwater.stats.results import PRODUCED, Results

# In an interval, of arrivals that are far behind, and as many again of the others:
_MOST_PROBES = 2**9  # arrivals that are probed: K is within 0.5 % of what all of them give
_MOST_STEPS = 2**13  # of these probes, about
_NEARER = 8  # far is half as far if so many times less would be done
_FEWEST = 1 / 2**14  # of the arrivals are probed, however many there are
_NO_BINS = np.empty(0, np.int64)


class LatenessOf(NamedTuple):
    """What became known of the lateness of results in an interval."""

    counts: I64  # late results by bucket of `histogram`, by the interval their last member came in
    lost: int  # of them
    on_time: (
        int  # results without lateness, in bins of result time that the join's clock has passed
    )
    found_in: I64  # those of these bins that have results
    passed: int  # how many bins the clock has passed

    @property
    def bins(self) -> int:
        """How many of the bins count for the rate of results; of a long gap only a part.

        Quiet bins count, so that the rate of a sparse stream is not that of its bursts; but a gap
        in a stream, which one interval passes, says nothing about the rate.
        """
        return min(self.passed, 2 * len(self.found_in) + 1)

    @classmethod
    def together(cls, parts: Sequence[LatenessOf]) -> LatenessOf:
        """The same of some shards together."""
        counts, lost, on_time, found_in, passed = zip(*parts, strict=True)
        found = np.unique(np.concatenate(found_in))
        return cls(np.sum(counts, axis=0), sum(lost), sum(on_time), found, max(passed))

    def times(self, n: int) -> LatenessOf:
        """What `n` shards would have seen if all saw the same."""
        return self._replace(counts=n * self.counts, lost=n * self.lost, on_time=n * self.on_time)


class ResultLateness:
    """Closes intervals of length `every`; `record` is what kernels count into."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.record = Lateness(
            np.zeros(kernels.CTL_LENGTH, np.int64),
            np.zeros((1, BUCKETS), np.int64),
            np.zeros(kernels.BINS, np.int64),
        )
        self.record.ctl[kernels.ONE_IN] = self.record.ctl[kernels.FAR] = 1
        self.record.ctl[kernels.EVERY] = every
        self._settled: int | None = None  # the first bin of result time that the clock is not past

    def close(self, join_clock: int, results: Results) -> LatenessOf:
        """End an interval; `results` are those that the join produced, by result time."""
        ctl, counts, caught = self.record
        settled = self._settle(join_clock, results)
        closed = LatenessOf(counts[0].copy(), int(ctl[kernels.LOST]), *settled)
        self._set_share()
        counts.fill(0)
        for place in (kernels.STEPS, kernels.PROBED, kernels.FAR_STEPS, kernels.FAR_PROBED):
            ctl[place] = 0
        ctl[kernels.LOST] = 0
        return closed

    def _settle(self, join_clock: int, results: Results) -> tuple[int, I64, int]:
        """Results without lateness in the bins that the clock has passed; which have any; all."""
        if join_clock == BEFORE:
            return 0, _NO_BINS, 0
        end = join_clock // self.every  # the bin that the clock is in
        begin = results.first if self._settled is None else self._settled
        self._settled = end
        if end <= begin:
            self._settled = begin
            return 0, _NO_BINS, 0
        caught = self.record.caught
        begin = max(begin, end - len(caught))
        passed = np.arange(begin, end) % len(caught)
        produced = results.between(begin * self.every, end * self.every)[PRODUCED]
        on_time = int(produced.sum()) - int(caught[passed].sum())
        caught[passed] = 0
        found_in = max(begin, results.first) + produced.nonzero()[0]
        return max(0, on_time), found_in, end - begin

    def _set_share(self) -> None:
        """Probe fewer arrivals where probes take many steps; fewer are enough there."""
        ctl = self.record.ctl
        far = int(ctl[kernels.FAR_PROBED]), int(ctl[kernels.FAR_STEPS])
        ctl[kernels.FAR] = _next_far(int(ctl[kernels.FAR]), *far)
        was = int(ctl[kernels.ONE_IN])
        probes = was * (int(ctl[kernels.PROBED]) - far[0])
        steps = was * (int(ctl[kernels.STEPS]) - far[1])
        one_in = 1
        while one_in * _FEWEST < 1 and (
            probes > one_in * _MOST_PROBES or steps > one_in * _MOST_STEPS
        ):
            one_in *= 2
        ctl[kernels.ONE_IN] = one_in

    # ---- for a snapshot

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "ctl": self.record.ctl.tolist(),
            "counts": sparse(self.record.counts[0]),
            "caught": sparse(self.record.caught),
            "settled": self._settled,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.record.ctl[:] = state["ctl"]
        dense(state["counts"], self.record.counts[0])
        dense(state["caught"], self.record.caught)
        self._settled = state["settled"]


def _next_far(far: int, probed: int, steps: int) -> int:
    """How far behind is far, if it was `far`, and so much was done for what was further."""
    if probed > _MOST_PROBES or steps > _MOST_STEPS:
        return 2 * far
    if _NEARER * probed < _MOST_PROBES and _NEARER * steps < _MOST_STEPS:
        return max(1, far // 2)
    return far
