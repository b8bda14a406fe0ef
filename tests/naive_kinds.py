"""The oracle of join kinds: what each of them means, and what it does at any slack.

Two streams, 0 on the left and 1 on the right. `windows` are the closed lengths W of DESIGN 14: the
partners of an event of time t of stream s lie in [t - W_other, t + W_s].
"""

from bisect import bisect_right
from collections import Counter
from math import inf
from typing import NamedTuple

from naive import Event, clock_series

PRESERVED = {"left": {0}, "right": {1}, "full": {0, 1}, "anti": {0}, "asof": {0}}
WITH_PAIRS = ("inner", "left", "right", "full")
REACH = {"backward": (0, 1), "forward": (1, 0), "nearest": (1, 1)}  # times the tolerance


class Row(NamedTuple):
    """A row of results: its time and members; what it does to the rows before; out of order?"""

    ts: int
    left: Event | None
    right: Event | None
    change: str = "insert"
    late: bool = False


class Given(NamedTuple):
    """A row, and with which arrival it is given out; `inf`: at the end."""

    during: float
    row: Row


class Join(NamedTuple):
    """A join of two streams; `tie` orders events of equal times by content."""

    windows: tuple
    on: object  # of a left and a right event
    how: str = "inner"
    direction: str = "backward"
    tie: object = lambda e: e.values

    @property
    def preserved(self):
        return PRESERVED.get(self.how, set())

    def are_partners(self, left, right):
        later = max(left.ts, right.ts)
        inside = left.ts >= later - self.windows[0] and right.ts >= later - self.windows[1]
        return inside and self.on(left, right)

    def pairs(self, events):
        left, right = ([e for e in events if e.stream == s] for s in (0, 1))
        return [(a, b) for a in left for b in right if self.are_partners(a, b)]

    def due(self, e):
        """The time of a row without partner."""
        return e.ts + self.windows[e.stream]

    def best(self, left, rights):
        """The as-of partner among these: the nearest, the earlier, the largest by content."""
        among = [r for r in rights if self.are_partners(left, r)]
        key = lambda r: (-abs(left.ts - r.ts), r.ts <= left.ts, self.tie(r), r.arrival)  # noqa: E731
        return max(among, key=key, default=None)


def truth(join, events):
    """The rows that are true, as (time, left, right)."""
    pairs, how = join.pairs(events), join.how
    matched = {e for pair in pairs for e in pair}
    left = [e for e in events if e.stream == 0]
    if how == "asof":
        rights = [e for e in events if e.stream == 1]
        return [(join.due(e), e, join.best(e, rights)) for e in left]
    if how == "semi":
        first = {e: min(max(p).ts for p in pairs if e in p) for e in left if e in matched}
        return [(t, e, None) for e, t in first.items()]
    alone = [e for e in events if e.stream in join.preserved and e not in matched]
    rows = [(join.due(e), *side(e)) for e in alone]
    return [(max(a, b).ts, a, b) for a, b in pairs if how in WITH_PAIRS] + rows


def side(e):
    """A row's members if one is missing."""
    return (e, None) if e.stream == 0 else (None, e)


class Play:
    """What a join does with these arrivals.

    `ks` is K at each arrival: how long ordered results wait, and rows without a partner. `keep` is
    how long events are kept beyond their windows, behind the join's clock or, with ``eager``, the
    common one. An event without values is a tick.
    """

    def __init__(self, join, arrivals, ks, keep, eager=False, follow=False, idle_after=None):
        self.join, self.eager = join, eager
        series = list(clock_series(arrivals, ks, 2, follow, idle_after))
        self.before, self.after, common = zip(*series, strict=True) if series else ((), (), ())
        self.place = {e: n for n, e in enumerate(arrivals)}
        self.common = common
        self.events = [e for e in arrivals if e.values is not None]
        forgets, self.forgotten = -inf, []
        decides = bool(join.preserved)
        for before, after, c in series:
            base = min(before if decides else after, c - keep) if eager else before - keep
            forgets = max(forgets, base)
            self.forgotten.append(forgets)
        self.pairs = [p for p in join.pairs(self.events) if self.is_found(*p)]

    def sees(self, e, at):
        """Whether `e` is still kept at this arrival."""
        reach = self.join.windows[e.stream]
        if self.join.how == "asof" and e.stream == 1:
            reach = sum(self.join.windows)
        return e.ts + reach >= self.forgotten[at]

    def last(self, a, b):
        """When the later one of two arrives."""
        return max(self.place[a], self.place[b])

    def is_found(self, a, b):
        first, last = sorted((a, b), key=self.place.get)
        return self.sees(first, self.place[last]) and (
            self.sees(first, self.place[first])  # else it was not stored at all
        )

    def in_time(self, a, b):
        t, at = max(a.ts, b.ts), self.last(a, b)
        x = a if self.place[a] == at else b
        return t > self.before[at] or t == self.before[at] == x.ts

    def reached(self, t, at, strictly=False):
        """The first arrival from `at` on with which the join's clock is at `t`, or beyond it."""
        found = bisect_right(self.after, t if strictly else t - 1)
        return max(found, at) if found < len(self.after) else inf

    def decided(self, e):
        return self.reached(self.join.due(e), self.place[e], strictly=True)

    def given(self):
        """All rows, corrections included, in some order."""
        how = self.join.how
        if how == "asof":
            return [g for e in self.events if e.stream == 0 for g in self._asof(e)]
        if how == "semi":
            return [g for e in self.events if e.stream == 0 for g in self._semi(e)]
        alone = [e for e in self.events if e.stream in self.join.preserved]
        rows = [g for e in alone for g in self._alone(e)]
        return rows + ([self._pair(*p) for p in self.pairs] if how in WITH_PAIRS else [])

    def _pair(self, a, b):
        t, at = max(a.ts, b.ts), self.last(a, b)
        if self.eager:
            return Given(at, Row(t, a, b))
        if self.in_time(a, b):
            return Given(self.reached(t, at), Row(t, a, b))
        return Given(at, Row(t, a, b, late=True))

    def _is_late(self, e):
        return not self.eager and self.join.due(e) < self.before[self.place[e]]

    def _alone(self, e):
        """The row of `e` without partner, and its withdrawal."""
        matched = min((self.last(*p) for p in self.pairs if e in p), default=inf)
        decided, row = self.decided(e), Row(self.join.due(e), *side(e), late=self._is_late(e))
        if matched == inf or matched > decided:
            yield Given(decided, row)
        if decided < matched < inf:
            yield Given(matched, row._replace(change="delete", late=True))

    def _semi(self, e):
        own = [p for p in self.pairs if e in p]
        if not own:
            return
        time = lambda p: max(p).ts  # noqa: E731
        first = min(self.last(*p) for p in own)
        if self.eager:
            yield Given(first, Row(min(time(p) for p in own if self.last(*p) == first), e, None))
            return
        good = [p for p in own if self.in_time(*p)]
        if good:
            pair = min(good, key=time)
            yield Given(self.reached(time(pair), self.last(*pair)), Row(time(pair), e, None))
            return
        at = max(self.decided(e), first)
        t = min(time(p) for p in own if self.last(*p) <= at)
        yield Given(at, Row(t, e, None, late=True))

    def _asof(self, e):
        decided, due = self.decided(e), self.join.due(e)
        at = min(decided, len(self.after) - 1)
        rights = sorted((r for r in self.events if r.stream == 1), key=self.place.get)
        known = [r for r in rights if self.place[r] <= at and self.sees(r, self.place[r])]
        best = self.join.best(e, [r for r in known if self.sees(r, at)])
        yield Given(decided, Row(due, e, best, late=self._is_late(e)))
        if not self.sees(e, self.place[e]):
            return
        for r in rights:
            if self.place[r] > at and self.sees(e, self.place[r]):
                better = self.join.best(e, [r] if best is None else [best, r])
                if better != best:
                    best = better
                    yield Given(self.place[r], Row(due, e, best, "update", late=True))


def accounts(play):
    """How many rows without partner were in time, late and withdrawn, as metrics count them."""
    rows = [g.row for g in play.given() if g.row.left is None or g.row.right is None]
    return Counter(
        "withdrawn" if r.change == "delete" else "late" if r.late else "in time" for r in rows
    )


def last_version(rows):
    """What is left when all changes have been made: rows by their members."""
    left = Counter()
    for r in rows:
        key = (r.ts, r.left, r.right)
        left[key] += -1 if r.change == "delete" else 1
    return +left
