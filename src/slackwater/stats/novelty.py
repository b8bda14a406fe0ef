"""Whether the disorder of a stream is now unlike anything it was of late.

ADWIN needs many intervals to be sure of a change, and takes every burst for one. This asks another
question: is the mean of the last few intervals outside the range of all such means before, by half
of that range? Bursts that come and go widen the range and are no news. A step is, after two
intervals if things got worse, after five if they got better.

>>> novelty = Novelty()
>>> calm, burst = [0.1, 0.12, 0.11, 0.1], [0.4, 0.3]
>>> [novelty.add(x) for x in (calm + burst) * 5] == [0] * 30
True
>>> [novelty.add(x) for x in (0.7, 0.7, 0.7)]
[0, 2, 0]
"""

from __future__ import annotations

from collections.abc import Sequence

WORSE = 2  # intervals that must be worse
BETTER = 5  # intervals that must be better
_FEWEST = 20  # means that make a range
_MOST = 120
_SLIGHT = 0.02  # a difference that does not matter


class Novelty:
    """The means of the latest intervals, since the last news."""

    def __init__(self) -> None:
        self.means: list[float] = []

    def add(self, mean: float) -> int:
        """Add the mean of an interval; return how many of the latest intervals are news."""
        self.means.append(mean)
        del self.means[:-_MOST]
        for n, sign in ((WORSE, 1), (BETTER, -1)):
            if _is_new([sign * x for x in self.means], n):
                del self.means[:-n]
                return n
        return 0


def _is_new(means: Sequence[float], n: int) -> bool:
    """Whether the mean of the last `n` lies above the range of all such means before them."""
    if len(means) < _FEWEST + n:
        return False
    past = [sum(means[i : i + n]) / n for i in range(len(means) - 2 * n + 1)]
    high, low = max(past), min(past)
    return sum(means[-n:]) / n > high + max((high - low) / 2, _SLIGHT)
