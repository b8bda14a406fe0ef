"""K*: the smallest fixed slack that would have done, known in hindsight (DESIGN 5).

Fixed slacks are tried by bisection: more slack should not give a smaller Φ. The sweep remembers
what a fixed slack gave, so all targets on the same data share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.query.goals import Slack
from slackwater_lab.cases import phi
from slackwater_lab.experiment import Setting


@dataclass
class Search:
    """The fixed slacks on `data` that have, over all seeds, a Φ(gamma) not below `wanted`."""

    data: str
    seeds: Sequence[int]
    gamma: float
    wanted: float  # Φ
    most: int  # K that surely does: the largest delay
    granularity: int = 10

    def __post_init__(self) -> None:
        self.low = -1  # multiples of the granularity: not enough
        self.high = -(-self.most // self.granularity)  # enough

    @property
    def is_over(self) -> bool:
        """Whether the answer is known."""
        return self.high - self.low <= 1

    @property
    def slack(self) -> int:
        """The smallest K known to do."""
        return self.high * self.granularity

    @property
    def guess(self) -> int:
        """Half way, but not far beyond what does not do: most answers are small."""
        return min((self.low + self.high) // 2, 4 * max(self.low, 1) + 4)

    def learn(self, reached: float) -> None:
        """Narrow it down: the guess gave this Φ."""
        guess = self.guess
        if reached >= self.wanted:
            self.high = guess
        else:
            self.low = guess


def search_all(setting: Setting, searches: Sequence[Search]) -> None:
    """Finish all searches, each round of them as one sweep."""
    while open_ones := [search for search in searches if not search.is_over]:
        jobs = [
            [setting.job(s.data, Slack(f"{s.guess * s.granularity} ms"), seed) for seed in s.seeds]
            for s in open_ones
        ]
        setting.run([job for group in jobs for job in group])
        for search, group in zip(open_ones, jobs, strict=True):
            search.learn(phi(setting.run(group), search.gamma))
