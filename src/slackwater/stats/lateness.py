"""The lateness of results, interval by interval: the measured recall of every K.

`kernels.lateness` says what lateness is and counts it while events arrive. Here an adaptation
interval is closed: its histogram goes to the controller, and the results that were not late at all,
which no probe counts, are found by subtraction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels import lateness as kernels
from slackwater.kernels.histogram import BUCKETS
from slackwater.kernels.records import BEFORE, I64, Lateness
from slackwater.stats.buckets import dense, sparse
from slackwater.stats.results import PRODUCED, Results

_MOST_PROBES = 2**12  # arrivals that are probed in an interval
_MOST_STEPS = 2**14  # of these probes, about
_FEWEST = 1 / 2**14  # of the arrivals are probed, however many there are


class LatenessOf(NamedTuple):
    """What became known of the lateness of results in an interval."""

    counts: I64  # late results by bucket of `histogram`, by the interval their last member came in
    lost: int  # of them
    on_time: (
        int  # results without lateness, in bins of result time that the join's clock has passed
    )
    bins: int  # how many of these bins have results


class ResultLateness:
    """Closes intervals of length `every`; `record` is what kernels count into."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.record = Lateness(
            np.zeros(kernels.CTL_LENGTH, np.int64),
            np.zeros((1, BUCKETS), np.int64),
            np.zeros(kernels.BINS, np.int64),
        )
        self.record.ctl[kernels.ONE_IN] = 1
        self.record.ctl[kernels.EVERY] = every
        self._settled: int | None = None  # the first bin of result time that the clock is not past

    def close(self, join_clock: int, results: Results) -> LatenessOf:
        """End an interval; `results` are those that the join produced, by result time."""
        ctl, counts, caught = self.record
        on_time, bins = self._settle(join_clock, results)
        closed = LatenessOf(counts[0].copy(), int(ctl[kernels.LOST]), on_time, bins)
        self._set_share()
        counts[:] = 0
        ctl[[kernels.STEPS, kernels.PROBED, kernels.LOST]] = 0
        return closed

    def _settle(self, join_clock: int, results: Results) -> tuple[int, int]:
        """Results without lateness in the bins that the clock has passed; how many have any."""
        if join_clock == BEFORE:
            return 0, 0
        end = join_clock // self.every  # the bin that the clock is in
        begin = results.first if self._settled is None else self._settled
        self._settled = end
        if end <= begin:
            self._settled = begin
            return 0, 0
        caught = self.record.caught
        begin = max(begin, end - len(caught))
        passed = np.arange(begin, end) % len(caught)
        produced = results.between(begin * self.every, end * self.every)[PRODUCED]
        on_time = int(produced.sum()) - int(caught[passed].sum())
        caught[passed] = 0
        return max(0, on_time), int(np.count_nonzero(produced))

    def _set_share(self) -> None:
        """Probe fewer arrivals where probes take many steps; fewer are enough there."""
        ctl = self.record.ctl
        all_probes, all_steps = ctl[[kernels.PROBED, kernels.STEPS]] * ctl[kernels.ONE_IN]
        one_in = 1
        while one_in * _FEWEST < 1 and (
            all_probes > one_in * _MOST_PROBES or all_steps > one_in * _MOST_STEPS
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
