"""Goals of windows: what may be dropped of one stream, how wrong aggregates may be, a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.units import Duration, TimeUnit, check_share, to_units
from slackwater.query.windows import Tuples

Heartbeat = Literal["largest", "mean", "max-delay", "adaptive"]


@dataclass(frozen=True)
class DropRatio:
    """At most a share `ratio` of all events is dropped, and no more is waited for than that takes.

    Parameters
    ----------
    ratio
        DRATIO of Kim: from 0 (best effort: as few as possible) to below 1, over all events so far.
    heartbeat
        How it is estimated: from the ``"largest"`` time so far (ours, the default), or from the
        recent ``"mean"`` of all times, as Kim does it. ``"max-delay"`` and ``"adaptive"``
        ((m1 + m2) / 2) are the methods that Kim compares with; they take no ratio but 0.
    every
        The period after which the heartbeat is reconsidered: a number of events.
    recent
        M, the events over which the mean is taken: an exponential average in which each new event
        has a weight of 1 / M. ``"largest"`` holds back as many in the beginning, until something is
        known of their order.
    steps
        ``"mean"``: the offset moves by the largest distance divided by this, once a period.

    Raises
    ------
    QueryError
        If a value is not allowed, or if `heartbeat` takes no ratio but 0 and has another.

    Examples
    --------
    >>> DropRatio(0.01).ratio
    0.01
    >>> DropRatio(1)
    Traceback (most recent call last):
    slackwater.errors.QueryError: a drop ratio must be at least 0 and below 1, got 1
    """

    ratio: float = 0.0
    heartbeat: Heartbeat = "largest"
    every: Tuples = Tuples(1000)
    recent: Tuples = Tuples(100)
    steps: int = 50

    def __post_init__(self) -> None:
        good = isinstance(self.ratio, int | float) and not isinstance(self.ratio, bool)
        if not good or not 0 <= self.ratio < 1:
            msg = f"a drop ratio must be at least 0 and below 1, got {self.ratio!r}"
            raise QueryError(msg)
        if self.heartbeat not in get_args(Heartbeat):
            listed = ", ".join(map(repr, get_args(Heartbeat)))
            msg = f"heartbeat must be one of {listed}, got {self.heartbeat!r}"
            raise QueryError(msg)
        if self.ratio and self.heartbeat in ("max-delay", "adaptive"):
            msg = (
                f"heartbeat={self.heartbeat!r} cannot be steered: ratio must be 0, got {self.ratio}"
            )
            raise QueryError(msg)
        for name in ("every", "recent"):
            value = getattr(self, name)
            if not isinstance(value, Tuples) or value.slide is not None:
                msg = f"{name} must be a number of events like Tuples(1000), got {value!r}"
                raise QueryError(msg)
        if not isinstance(self.steps, int) or isinstance(self.steps, bool) or self.steps < 1:
            msg = f"steps must be a whole number not below 1, got {self.steps!r}"
            raise QueryError(msg)

    @property
    def is_steered(self) -> bool:
        """Whether something is chosen anew each period."""
        return self.ratio > 0


@dataclass(frozen=True)
class ErrorBound:
    """The aggregates of windows are wrong by at most a share `bound` of their true values.

    Of windows in time, and without groups. The error of a window is that of its worst aggregate;
    `first` and `last` do not count.

    Parameters
    ----------
    bound
        The relative error: 0.02 is 2 %.
    confidence
        Share of the windows that must keep it.
    every
        The period after which the heartbeat is reconsidered: a number of events.
    recent
        The number of events that are held back in the beginning, until something is known of their
        order.

    Raises
    ------
    QueryError
        If a value is not allowed.

    Examples
    --------
    >>> ErrorBound(0.02).confidence
    0.97
    """

    bound: float
    confidence: float = 0.97
    every: Tuples = Tuples(1000)
    recent: Tuples = Tuples(100)

    def __post_init__(self) -> None:
        check_share("an error bound", self.bound)
        check_share("confidence", self.confidence, below=1.0)
        DropRatio(every=self.every, recent=self.recent)


@dataclass(frozen=True)
class Deadline:
    """The aggregates of a window are returned at a fixed arrival time, from what is there by then.

    Parameters
    ----------
    limit
        ω: how long after the window's start, or after its end.
    after
        ``"start"`` as in PECJ, or ``"end"``.
    slack
        A K-slack buffer in front (PECJ's KSJ): what it still holds back at the deadline does not
        count. With None, everything that is there counts (PECJ's WMJ).

    Raises
    ------
    QueryError
        If `after` is neither ``"start"`` nor ``"end"``.

    Examples
    --------
    >>> Deadline("12 seconds")
    Deadline(limit='12 seconds', after='start', slack=None)
    """

    limit: Duration
    after: Literal["start", "end"] = "start"
    slack: Duration | None = None

    def __post_init__(self) -> None:
        if self.after not in ("start", "end"):
            msg = f"after must be one of 'start', 'end', got {self.after!r}"
            raise QueryError(msg)

    def check(self, unit: TimeUnit) -> None:
        """Validate durations in the query's unit."""
        least = 1 if self.after == "start" else 0
        if to_units(self.limit, unit, "a deadline") < least:
            msg = (
                f"a deadline after the {self.after} of a window must be at least {least} {unit}, "
                f"or no data can have arrived; got {self.limit!r}"
            )
            raise QueryError(msg)
        if self.slack is not None:
            to_units(self.slack, unit, "slack")
