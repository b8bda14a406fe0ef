"""How long rows must wait, or events be kept, to be right: the lateness of every kind of join.

The matching kernels note the wait that each row needed as soon as it is known, like
`kernels.lateness` of pairs in order. Here an interval is closed, in the form that controllers take:

- rows without partner are right if they wait longer than until their first partner comes;
- an as-of row is right if it waits until its partner and its own event are there;
- a row of a semi join is in time if it waits for one of its pairs;
- a pair of an eager join is found if its first member is kept until the last one comes. Of arrivals
  that are later than events are kept, the pairs are not seen: each counts for as many as others
  have, as late as it is itself. That is more than they need, never less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.partners import (
    IN_TIME,
    LATE,
    LATE_PAIRS,
    N_ARRIVALS,
    N_PAIRS,
    WITHDRAWN,
)
from slackwater.kernels.records import I64, Matching
from slackwater.stats.buckets import dense, sparse
from slackwater.stats.lateness import LatenessOf

_TOTALS = {
    "decided": (IN_TIME, LATE),
    "late": (LATE,),
    "withdrawn": (WITHDRAWN,),
    "pairs": (N_PAIRS,),
    "late_pairs": (LATE_PAIRS,),
    "taken_in": (N_ARRIVALS,),
}


class NeededWaits:
    """Closes intervals of what a matching kernel noted.

    Parameters
    ----------
    record
        What the kernel counts into.
    what
        ``"alone"``, rows without partner; ``"asof"``; ``"semi"``; or ``"kept"``, pairs of eager
        emission.
    right
        Of rows without partner, the share that must be right.
    """

    def __init__(self, record: Matching, what: str, right: float = 1.0) -> None:
        self._record = record
        self._what = what
        self._right = right
        self._before = dict.fromkeys(_TOTALS, 0)

    def close(self) -> LatenessOf:
        """End an interval."""
        now = {name: int(self._record.ctl[list(of)].sum()) for name, of in _TOTALS.items()}
        new = {name: total - self._before[name] for name, total in now.items()}
        self._before = now
        if self._what == "kept":
            return self._kept(new["pairs"], now["pairs"] / max(1, now["taken_in"]))
        counts = np.maximum(self._record.needs, 0)
        np.minimum(self._record.needs, 0, out=self._record.needs)  # corrected after all
        if self._what == "semi":
            return _closed(counts, new["late_pairs"], new["pairs"] - int(counts.sum()))
        if self._what == "asof":
            lost = new["withdrawn"] + new["late"]
            return _closed(counts, lost, new["decided"] - int(counts.sum()))
        # the share of wrong ones is of all that are given out: so many may be lost in all
        right = max(0, new["decided"] - new["withdrawn"])
        return _closed(counts, new["withdrawn"], round(right / self._right) - int(counts.sum()))

    def _kept(self, pairs: int, of_each: float) -> LatenessOf:
        seen = self._record.keeps
        # whole numbers whose sums are right, however few there are in a bucket
        rising = np.rint(np.cumsum(self._record.unseen) * of_each).astype(np.int64)
        unseen = np.diff(rising, prepend=0)
        closed = _closed(seen + unseen, int(rising[-1]), pairs - int(seen.sum()))
        seen[:] = 0
        self._record.unseen[:] = 0
        return closed

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        names = ("keeps", "unseen") if self._what == "kept" else ("needs",)
        noted = {name: sparse(getattr(self._record, name)) for name in names}
        return {"before": self._before, "noted": noted}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._before = state["before"]
        for name, counts in state["noted"].items():
            dense(counts, getattr(self._record, name))


def _closed(counts: I64, lost: int, on_time: int) -> LatenessOf:
    known = max(0, on_time)
    # an interval without rows counts too, or the rate would be that of the busy ones
    return LatenessOf(counts.copy(), lost, known, np.zeros(int(known > 0), np.int64), passed=1)
