"""Whether the disorder of a stream is now unlike anything it was of late.

ADWIN needs many intervals to be sure of a change, and takes every burst for one. This tests another
question: is the mean of the last few intervals outside the range of all such means before, by half
of that range? Bursts that come and go widen the range and are no news. A step is, after two
intervals if things got worse (after one if they got much worse), after five if they got better.

>>> novelty = Novelty()
>>> calm, burst = [0.1, 0.12, 0.11, 0.1], [0.4, 0.3]
>>> [novelty.add(x) for x in (calm + burst) * 5] == [0] * 30
True
>>> [novelty.add(x) for x in (0.1, 0.7, 0.7)]
[0, 0, 2]
>>> [novelty.add(x) for x in [0.7] * 20 + [7.0]][-1]
2
"""

from __future__ import annotations

import numpy as np

from slackwater.kernels.records import F64
from slackwater.kernels.statistics import is_beyond

WORSE = 2  # intervals that must be worse
BETTER = 5  # intervals that must be better
_FEWEST = 20  # means that make a range
_MOST = 120
_SLIGHT = 0.02  # a difference that does not matter


class Novelty:
    """The means of the latest intervals, since the last news."""

    def __init__(self) -> None:
        self.means: F64 = np.empty(0)

    def add(self, mean: float) -> int:
        """Add the mean of an interval; return how many of the latest intervals are news."""
        self.means = np.append(self.means[1 - _MOST :], mean)
        for n, sign in ((WORSE, 1.0), (BETTER, -1.0)):
            if len(self.means) >= _FEWEST + n and is_beyond(self.means, n, sign, _SLIGHT):
                self.means = self.means[-n:]
                return n
        return 0
