"""The oracle of results at once: an inner join of any number of streams with ``emit="eager"``.

A result goes out with the arrival of its last member, if all others are still kept then. An event
is forgotten once its time + its window is below F, the largest so far of min(S, C - keep).
"""

from itertools import product
from math import inf
from typing import NamedTuple

from naive import clock_series


class Found(NamedTuple):
    """A result, with which arrival it goes out, and how long its others had to be kept."""

    during: int  # a place among the arrivals
    members: tuple
    needed: int

    @property
    def ts(self):
        return max(self.members).ts


class AtOnce(NamedTuple):
    """Streams with closed windows; `on` says which events belong together."""

    windows: tuple
    on: object

    def fits(self, members):
        t = max(members).ts
        inside = all(e.ts + w >= t for e, w in zip(members, self.windows, strict=True))
        return inside and self.on(*members)

    def end(self, e):
        return e.ts + self.windows[e.stream]

    def play(self, arrivals, slack=0, keep=0, follow=False, idle_after=None):
        """All results, in the order of their arrivals. An event without values is a tick."""
        m, forgets = len(self.windows), -inf
        series = clock_series(arrivals, [slack] * len(arrivals), m, follow, idle_after)
        for n, (x, (_, clock, common)) in enumerate(zip(arrivals, series, strict=True)):
            forgets = max(forgets, min(clock, common - keep))
            if x.values is None:
                continue
            here = [e for e in arrivals[:n] if e.values is not None and self.end(e) >= forgets]
            sides = [[e for e in here if e.stream == s] for s in range(m)]
            sides[x.stream] = [x]
            for r in filter(self.fits, product(*sides)):
                needed = common - min(self.end(e) for e in r if e is not x)
                yield Found(n, r, needed)
