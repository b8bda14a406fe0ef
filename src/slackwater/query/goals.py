"""Goals of a query: a recall, a latency, a slack and others. Frozen, validated, plain data.

>>> Recall(0.95)
Recall(target=0.95, over='1 minute', confidence=0.97, at_least=None, ...)
>>> Recall(95)
Traceback (most recent call last):
slackwater.errors.QueryError: recall must be above 0 and at most 1, got 95
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.units import Duration, TimeUnit, as_plain, check_share, to_units
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound
from slackwater.query.windows import Tuples, length_of_text

Model = Literal["lateness", "measured", "eqsel", "noneqsel", "late-degree", "pd"]
Signal = Literal["log", "delay"]

# Options that only these models have.
_MODELS_WITH: dict[str, tuple[Model, ...]] = {
    "at_least": ("lateness", "measured"),
    "calibrate": ("eqsel", "noneqsel"),
    "basic_window": ("eqsel", "noneqsel"),
    "adwin": ("eqsel", "noneqsel"),
    "most_late": ("late-degree",),
}
# A change for the worse costs what is lost until K is chosen again: a small part of what a period
# may lose, if there are many intervals in it.
_INTERVALS_PER_PERIOD = 240
_INTERVALS = "100 ms", "1 second"  # the shortest and the longest by default


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
    at_least
        K is never smaller than this: a floor for bursts that nothing announces.
    unmatched
        Of the rows without a partner, the share that must be right: of outer and anti joins. None:
        they wait as long as `target` asks for.
    model
        Who chooses K: ``"lateness"`` (the default: by the measured lateness of results),
        ``"measured"`` (by delays, corrected by measured losses; also where lateness cannot be
        measured: tuple-count windows and ``pipeline="icde16"``), the papers' own ``"eqsel"``,
        ``"noneqsel"`` (ICDE16), ``"late-degree"`` and ``"pd"`` (Thesis).
    every
        L: K is reconsidered each L. None: for ``"lateness"`` 1/240 of `over`, but at least 100 ms
        and at most 1 s; for the others 1 s.
    granularity
        g: steps of K, which is rounded up; K is 0 only where nothing is late. For models other than
        ``"lateness"`` also steps of delays.
    decay
        ``"late-degree"``: how much of what was learnt lasts to the next interval.
    overall
        ``"late-degree"`` and ``"pd"``: whether the target is that of the whole run so far.
    gains
        ``"pd"``: what an error of 1 and its change by 1 per interval add to K, as durations.
    calibrate
        ``"eqsel"``, ``"noneqsel"``: whether the next interval must make up for the last period
        (Γ′ of ICDE16 IV-C), as printed. False: Γ′ = Γ, so K follows the model alone.
    basic_window
        ``"eqsel"``, ``"noneqsel"``: b, the length of a basic window: a multiple of g. The longer,
        the less of a window counts as arrived. None: g.
    adwin
        ``"eqsel"``, ``"noneqsel"``: the numbers in which ADWIN looks for changes: ``"log"``,
        log(1 + d) of the delays d, or the ``"delay"`` itself, as printed.
    most_late
        ``"late-degree"``: Λ_max, above which late degrees are not told apart; K is never larger.
        None: the longest window, or `over` if that is longer.

    Raises
    ------
    QueryError
        If a value is not allowed, or an option belongs to another model.

    Examples
    --------
    >>> Recall(0.95, over="1 minute") == Recall(0.95)
    True
    >>> Recall(0.95, model="best")
    Traceback (most recent call last):
    slackwater.errors.QueryError: model must be one of 'lateness', ..., got 'best'
    """

    target: float
    over: Duration = "1 minute"
    confidence: float = 0.97
    at_least: Duration | None = None
    model: Model = "lateness"
    every: Duration | None = None
    granularity: Duration = "10 ms"
    decay: float = 0.8
    overall: bool = False
    gains: tuple[Duration, Duration] = ("200 ms", "200 ms")
    calibrate: bool = True
    basic_window: Duration | None = None
    adwin: Signal = "log"
    most_late: Duration | None = None
    unmatched: float | None = None

    def __post_init__(self) -> None:
        check_share("recall", self.target)
        check_share("confidence", self.confidence, below=1.0)
        check_share("decay", self.decay)
        if self.unmatched is not None:
            check_share("unmatched", self.unmatched)
        if self.model not in get_args(Model):
            listed = ", ".join(map(repr, get_args(Model)))
            msg = f"model must be one of {listed}, got {self.model!r}"
            raise QueryError(msg)
        if self.adwin not in get_args(Signal):
            msg = f"adwin must be one of 'log', 'delay', got {self.adwin!r}"
            raise QueryError(msg)
        for option, models in _MODELS_WITH.items():
            if getattr(self, option) != getattr(type(self), option) and self.model not in models:
                listed = " and ".join(map(repr, models))
                msg = f"{option}= is for model={listed}, got model={self.model!r}"
                raise QueryError(msg)
        object.__setattr__(self, "gains", tuple(self.gains))

    def check(self, unit: TimeUnit) -> None:
        """Validate durations in the query's unit."""
        over, every = to_units(self.over, unit, "over"), self.interval(unit)
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
                f"({self.every or f'{every} {unit}'!r}), got {self.over!r}"
            )
            raise QueryError(msg)
        for gain in self.gains:
            to_units(gain, unit, "gains")
        self.floor(unit)
        self.basic_steps(unit)
        if self.most_late is not None and to_units(self.most_late, unit, "most_late") < 1:
            msg = f"most_late must be at least 1 {unit}, got {self.most_late!r}"
            raise QueryError(msg)

    def basic_steps(self, unit: TimeUnit) -> int:
        """The length of a basic window, b, in steps of g."""
        if self.basic_window is None:
            return 1
        b, g = to_units(self.basic_window, unit, "basic_window"), to_units(self.granularity, unit)
        if b < 1 or b % g:
            msg = (
                f"basic_window must be a multiple of granularity, {self.granularity!r}, "
                f"got {self.basic_window!r}"
            )
            raise QueryError(msg)
        return b // g

    def interval(self, unit: TimeUnit) -> int:
        """The time between two choices of K, L, in units."""
        if self.every is not None:
            return to_units(self.every, unit, "every")
        shortest, longest = (to_units(length, unit) for length in _INTERVALS)
        if self.model != "lateness":
            return longest
        over = to_units(self.over, unit, "over")
        return max(1, min(over, max(shortest, min(longest, over // _INTERVALS_PER_PERIOD))))

    def floor(self, unit: TimeUnit) -> int:
        """The smallest K that is allowed, in units."""
        if self.at_least is None:
            return 0
        floor = to_units(self.at_least, unit, "at_least")
        if floor < 0:
            msg = f"at_least must be >= 0, got {self.at_least!r}"
            raise QueryError(msg)
        return floor


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
        check_share("the quantile", self.target)

    def interval(self, unit: TimeUnit) -> int:
        """The time between two choices of K, in units."""
        return to_units(self.every, unit, "every")

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

    def interval(self, unit: TimeUnit) -> int:
        """The time between two choices of K, in units."""
        return to_units(self.every, unit, "every")

    def check(self, unit: TimeUnit) -> None:
        """Validate durations in the query's unit."""
        if isinstance(self.limit, int | float) and self.limit < 0:
            msg = f"a latency must be >= 0, got {self.limit!r}"
            raise QueryError(msg)
        to_units(self.limit, unit, "latency")
        Recall(1.0, self.every, every=self.every, granularity=self.granularity).check(unit)


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
