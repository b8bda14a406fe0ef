"""Goals of a query: a recall, a latency, a slack and others. Frozen, validated, plain data.

>>> Recall(0.95)
Recall(target=0.95, over='1 minute', confidence=0.97, model='measured', ...)
>>> Recall(95)
Traceback (most recent call last):
slackwater.errors.QueryError: recall must be above 0 and at most 1, got 95
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units
from slackwater.query.windows import Tuples, length_of_text

Model = Literal["measured", "eqsel", "noneqsel", "late-degree", "pd"]


@dataclass(frozen=True)
class NoSlack:
    """K = 0: no waiting. An event that is late in its stream is lost unless another stream lags.

    Parameters
    ----------
    synchronize
        False leaves out the Synchronizer too (Baseline3 of the Thesis): events are joined as they
        arrive.

    Examples
    --------
    >>> NoSlack()
    NoSlack(synchronize=True)
    """

    synchronize: bool = True


@dataclass(frozen=True)
class Slack:
    """A fixed K.

    Parameters
    ----------
    length
        K: every event waits until its stream has delivered an event that is newer by this.

    Examples
    --------
    >>> Slack("200 ms")
    Slack(length='200 ms')
    """

    length: Duration


@dataclass(frozen=True)
class MaxSlack:
    """K follows the largest observed delay and never shrinks.

    Examples
    --------
    >>> MaxSlack()
    MaxSlack()
    """


@dataclass(frozen=True)
class Recall:
    """The smallest K such that a share `target` of the true results is produced over any period.

    Parameters
    ----------
    target
        Γ: above 0, at most 1.
    over
        P: recall is measured over the last P of result time.
    confidence
        Share of these measurements that must reach the target.
    model
        Who chooses K: ``"measured"`` (the default: model and measured losses), the papers' own
        ``"eqsel"``, ``"noneqsel"`` (ICDE16), ``"late-degree"`` and ``"pd"`` (Thesis).
    every
        L: K is reconsidered each L.
    granularity
        g: steps of K and of delays.
    decay
        ``"late-degree"``: how much of what was learnt lasts to the next interval.
    overall
        ``"late-degree"`` and ``"pd"``: whether the target is that of the whole run so far.
    gains
        ``"pd"``: what an error of 1 and its change by 1 per interval add to K, as durations.

    Raises
    ------
    QueryError
        If `target`, `confidence`, `decay` or `model` is not allowed.

    Examples
    --------
    >>> Recall(0.95, over="1 minute") == Recall(0.95)
    True
    >>> Recall(0.95, model="best")
    Traceback (most recent call last):
    slackwater.errors.QueryError: model must be one of 'measured', ..., got 'best'
    """

    target: float
    over: Duration = "1 minute"
    confidence: float = 0.97
    model: Model = "measured"
    every: Duration = "1 second"
    granularity: Duration = "10 ms"
    decay: float = 0.8
    overall: bool = False
    gains: tuple[Duration, Duration] = ("200 ms", "200 ms")

    def __post_init__(self) -> None:
        _share("recall", self.target)
        _share("confidence", self.confidence, below=1.0)
        _share("decay", self.decay)
        if self.model not in get_args(Model):
            listed = ", ".join(map(repr, get_args(Model)))
            msg = f"model must be one of {listed}, got {self.model!r}"
            raise QueryError(msg)
        object.__setattr__(self, "gains", tuple(self.gains))

    def check(self, unit: TimeUnit) -> None:
        """Validate durations in the query's unit."""
        over, every = to_units(self.over, unit, "over"), to_units(self.every, unit, "every")
        granularity = to_units(self.granularity, unit, "granularity")
        if every < 1 or granularity < 1:
            msg = (
                f"every and granularity must be at least 1 {unit}, "
                f"got {self.every!r} and {self.granularity!r}"
            )
            raise QueryError(msg)
        if over < every:
            msg = (
                f"over must not be shorter than every, the adaptation interval "
                f"({self.every!r}), got {self.over!r}"
            )
            raise QueryError(msg)
        for gain in self.gains:
            to_units(gain, unit, "gains")


@dataclass(frozen=True)
class InputQuantile:
    """The smallest K that covers a share `target` of the delays: the usual p95 watermark.

    It promises nothing about results: a result of m events is complete only if all of them are.

    Parameters
    ----------
    target
        The quantile of delays: above 0, at most 1.
    every
        K is reconsidered each `every` of event time.
    granularity
        Steps of K and of delays.

    Raises
    ------
    QueryError
        If `target` is not allowed.

    Examples
    --------
    >>> InputQuantile(0.95)
    InputQuantile(target=0.95, every='1 second', granularity='10 ms')
    """

    target: float
    every: Duration = "1 second"
    granularity: Duration = "10 ms"

    def __post_init__(self) -> None:
        _share("the quantile", self.target)

    def check(self, unit: TimeUnit) -> None:
        """Validate durations in the query's unit."""
        Recall(1.0, self.every, every=self.every, granularity=self.granularity).check(unit)


@dataclass(frozen=True)
class Latency:
    """The largest K such that results come no later than `limit` on average.

    The latency of a result is K plus the lead of the fastest stream over the slowest one, which the
    join waits for. Where that lead alone is longer, K is 0.

    Parameters
    ----------
    limit
        The longest latency on average.
    every
        K is reconsidered each `every` of event time.
    granularity
        Steps of K and of delays.

    Examples
    --------
    >>> Latency("2 seconds")
    Latency(limit='2 seconds', every='1 second', granularity='10 ms')
    """

    limit: Duration
    every: Duration = "1 second"
    granularity: Duration = "10 ms"

    def check(self, unit: TimeUnit) -> None:
        """Validate durations in the query's unit."""
        if isinstance(self.limit, int | float) and self.limit < 0:
            msg = f"a latency must be >= 0, got {self.limit!r}"
            raise QueryError(msg)
        to_units(self.limit, unit, "latency")
        Recall(1.0, self.every, every=self.every, granularity=self.granularity).check(unit)


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
        The number of events over which the mean is taken; as many are held back in the beginning,
        until something is known of their order.

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
        _share("an error bound", self.bound)
        _share("confidence", self.confidence, below=1.0)
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


Goal = (
    NoSlack
    | Slack
    | MaxSlack
    | Recall
    | InputQuantile
    | Latency
    | DropRatio
    | ErrorBound
    | Deadline
)
GOALS: dict[str, type[Goal]] = {goal.__name__: goal for goal in get_args(Goal)}


def goal_to_dict(goal: Goal) -> dict[str, Any]:
    """Plain data that JSON can hold."""
    values = {f.name: getattr(goal, f.name) for f in fields(goal)}
    counted = {n: f"{v.count} tuples" for n, v in values.items() if isinstance(v, Tuples)}
    return {"kind": type(goal).__name__} | as_plain(values | counted)


def goal_from_dict(plain: Mapping[str, Any]) -> Goal:
    """The goal that `goal_to_dict` described."""
    given = dict(plain)
    kind = GOALS[given.pop("kind")]
    counted = {f.name: length_of_text(given[f.name]) for f in fields(kind) if _is_counted(f, given)}
    return kind(**(given | counted))


def _is_counted(option: Field[Any], given: Mapping[str, Any]) -> bool:
    return option.type == "Tuples" and option.name in given


def _share(what: str, value: Any, below: float | None = None) -> None:
    """A number in (0, 1], or in (0, 1)."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 0 < value <= 1 or value == below:
        most = "at most 1" if below is None else f"below {below:g}"
        msg = f"{what} must be above 0 and {most}, got {value!r}"
        raise QueryError(msg)
