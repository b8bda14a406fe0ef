"""The recall model of ICDE16 IV-A over the statistics of the engine."""

from __future__ import annotations

import numpy as np

from slackwater.kernels import recall as kernels
from slackwater.kernels.delay_scale import longest_delay
from slackwater.kernels.records import F64, I64
from slackwater.query.join import JoinQuery
from slackwater.query.windows import Tuples
from slackwater.stats.delays import Delays


class RecallModel:
    """Which recall a slack of K would give, if the near future is like the recent past.

    Parameters
    ----------
    query
        The join.
    basic
        The length of a basic window, b, in steps of g.
    """

    def __init__(self, query: JoinQuery, basic: int = 1) -> None:
        self._basic = basic
        self._streams = query.streams
        self._lengths = query.lengths
        m = len(query.streams)
        self._share = np.ones((m, 1))
        self._fill = np.zeros((m, 2))
        self._lead = np.zeros(m, np.int64)
        self._window = np.ones(m)
        self._granularity = 1
        self._most = 0

    def learn(self, delays: Delays) -> None:
        """Go by `delays`."""
        self._granularity = delays.granularity
        self._lead = delays.leads()
        self._window = self._windows(delays.rates()) / self._granularity
        self._most = delays.largest
        m = len(self._lead)
        self._share, self._fill = np.empty((m, self._most + 1)), np.empty((m, self._most + 2))
        kernels.running_sums(delays.histogram, self._share, self._fill)

    def _windows(self, rates: F64) -> F64:
        """Lengths of the windows in units; a tuple-count window is as long as its tuples take."""
        return np.array([
            stream.window.count / max(rate, 1e-9) if isinstance(stream.window, Tuples) else length
            for stream, length, rate in zip(self._streams, self._lengths, rates, strict=True)
        ], np.float64).clip(1)  # fmt: skip

    @property
    def _learnt(self) -> tuple[I64, F64, int, F64, F64]:
        return self._lead, self._window, self._basic, self._share, self._fill

    @property
    def lead(self) -> int:
        """K_sync of the fastest stream, in units."""
        return int(self._lead.max()) * self._granularity

    @property
    def largest(self) -> int:
        """The largest delay, in units."""
        return longest_delay(self._most, self._granularity)

    def recall(self, slack: int) -> float:
        """The recall that K = `slack` should give."""
        steps = slack // self._granularity
        return float(kernels.recall_at(steps, *self._learnt))

    def curve(self) -> F64:
        """The recall of a K at the end of each bucket: 0, g, 2 g, ... up to the largest delay."""
        curve = np.zeros(self._most + 1)
        kernels.recall_curve(*self._learnt, curve)
        return curve

    def smallest_slack(self, recall: float) -> int:
        """The smallest K that should give `recall`, and no more than the largest delay."""
        found = kernels.smallest_slack(recall, self._most, *self._learnt)
        return longest_delay(found, self._granularity)

    def smallest_corrected(self, recall: float, ratio: F64) -> int:
        """The same if the recall at the end of each bucket is to be multiplied by `ratio`."""
        found = kernels.smallest_corrected(recall, self._most, ratio, *self._learnt)
        return longest_delay(found, self._granularity)
