"""How long events are kept so that it is found out which decided rows were wrong.

A row without partner, or an as-of row, is known to be wrong when its partner comes and the event is
still there. What is not kept is not found out, and so not learnt: a goal would believe that it is
held. So events are kept as long as nearly all corrections need, with some reserve. An arrival that
is later than that counts for as many rows as others have, as late as it is itself; so the time that
events are kept grows until what is beyond is next to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.histogram import BUCKETS, upper_edges
from slackwater.kernels.partners import IN_TIME, LATE, N_ARRIVALS, N_PAIRS, SEMI
from slackwater.kernels.records import I64, Matching
from slackwater.stats.buckets import dense, sparse

_TAIL = 0.1  # share of the rows that may be wrong which may lie beyond
_PERIODS = 10  # of the goal, after which what was learnt counts half
_HEADROOM = 1.25  # events are kept longer than what was needed so far by this
_MOST = 2**20  # events that are kept beyond their windows

_EDGES = upper_edges()


class CorrectionReach:
    """Learns from the waits that rows needed; `next_length` is called at the end of an interval.

    Parameters
    ----------
    record
        What the matching kernel counts into.
    allowed
        Share of the rows that the goal allows to be wrong.
    every, over
        Length of an interval, and of the period of the goal.
    shares_unseen
        Whether somebody else, who is called later, clears the arrivals that were later than that.
    """

    def __init__(
        self, record: Matching, allowed: float, every: int, over: int, shares_unseen: bool = False
    ) -> None:
        self._record = record
        self._tail = _TAIL * allowed
        self._every = every
        self._keep = 0.5 ** (every / (_PERIODS * over))
        self._shares_unseen = shares_unseen
        self._waits = np.zeros(BUCKETS)
        self._rows = self._arrivals = self._intervals = 0.0  # all of these fade with time
        self._before = (0, 0)

    def next_length(self, needed: I64) -> int:
        """End an interval in which rows needed these waits; return how long to keep events."""
        ctl, keep = self._record.ctl, self._keep
        of = [N_PAIRS] if ctl[SEMI] else [IN_TIME, LATE]
        now = int(ctl[of].sum()), int(ctl[N_ARRIVALS])
        rows, arrivals = (total - old for total, old in zip(now, self._before, strict=True))
        self._before = now
        self._rows = keep * self._rows + rows
        self._arrivals = keep * self._arrivals + arrivals
        self._intervals = keep * self._intervals + 1
        self._waits *= keep
        of_each = self._rows / max(self._arrivals, 1.0)
        self._waits += needed + self._record.unseen * of_each
        if not self._shares_unseen:
            self._record.unseen[:] = 0
        beyond = np.cumsum(self._waits[::-1])[::-1]  # with a wait in this bucket or a longer one
        far = np.flatnonzero(beyond > self._tail * self._rows)
        covered = int(_HEADROOM * _EDGES[far[-1]]) if len(far) else 0
        rate = self._arrivals / (self._intervals * self._every)
        return min(covered, int(_MOST / max(rate, 1e-9)))

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "waits": sparse(self._waits),
            "faded": [self._rows, self._arrivals, self._intervals],
            "before": list(self._before),
            "unseen": sparse(self._record.unseen),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        dense(state["waits"], self._waits)
        self._rows, self._arrivals, self._intervals = state["faded"]
        self._before = (state["before"][0], state["before"][1])
        dense(state["unseen"], self._record.unseen)
