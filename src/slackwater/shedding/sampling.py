"""The sample of events that statistics and estimates come from (window shredding, GrubJoin V-B.1).

While the join sheds load, a sampled event searches a share of every window that is spread evenly
over it, so that what it finds is a fair sample of all results.
"""

from __future__ import annotations

from typing import NamedTuple

from slackwater.kernels import shed as fields
from slackwater.kernels.records import HarvestModel, Shed
from slackwater.shedding import harvest_search

_ESTIMATES = [fields.WOULD_MAKE, fields.WOULD_MAKE_VARIANCE, fields.LOST_VARIANCE]
_SHARES = [fields.FIRST_FRACTION, fields.LATER_FRACTION]


class SampleEstimates(NamedTuple):
    """Estimates from the sample since the last call."""

    full_results: float  # results of the whole join while it was shedding, estimated
    full_results_variance: float
    lost_variance: float  # of the estimate of what was lost with late events


class Sampling:
    """How much of each window sampled events search.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    first_step_only
        Search a share of the first window and all of the others, as in the paper; else the same
        share of every window.
    """

    def __init__(self, shed: Shed, first_step_only: bool) -> None:
        self._shed = shed
        self._first_step_only = first_step_only

    @property
    def rate(self) -> float:
        """Fraction of events in the sample."""
        return float(self._shed.number[fields.SAMPLE])

    def share_of_results(self, m: int) -> float:
        """Return the share of all results of a join of `m` streams that the sample finds."""
        first, later = (float(share) for share in self._shed.number[_SHARES])
        return self.rate * first * later ** (m - 2)

    def limit(self, z: float, known: HarvestModel, full_cost: float) -> None:
        """Let sampled events do the fraction `z` of the work of the whole join."""
        first, later = z, 1.0
        if not self._first_step_only and z < 1.0:
            first = later = harvest_search.shred_fraction(known, z * full_cost)
        self._shed.number[_SHARES] = first, later

    def open(self) -> None:
        """Let sampled events search whole windows."""
        self._shed.number[_SHARES] = 1.0

    def take_estimates(self) -> SampleEstimates:
        """Return the estimates since the last call, and start new ones."""
        estimates = (float(value) for value in self._shed.number[_ESTIMATES])
        taken = SampleEstimates(*estimates)
        self._shed.number[_ESTIMATES] = 0.0
        return taken
