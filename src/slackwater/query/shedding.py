"""Options of load shedding: what a join leaves out when CPU or memory is short.

Frozen, validated, plain data. `TailDrop`, `RandomDrop` and `Harvest` are alternatives.

>>> Harvest(boost=0.5)
Traceback (most recent call last):
slackwater.errors.QueryError: boost must be above 1, got 0.5
>>> shedding_of("adaptive") == Harvest()
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from slackwater.errors import QueryError
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units

Rule = Literal["capacity", "backlog", "rates"]
IndexKind = Literal["sorted", "none"]
Scores = Literal["direction", "per-stream"]
Metric = Literal["gain per cost", "output", "output per cost"]
Search = Literal["better", "double-sided", "greedy", "reverse", "exhaustive"]

_BYTES = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


@dataclass(frozen=True)
class SheddingBase:
    """What all kinds of load shedding have in common.

    The properties are what the engine asks of a kind; each kind overrides those that it has.

    Parameters
    ----------
    budget
        CPU capacity: comparisons per second of event time. Results are then the same on every
        machine. None: the load is measured with the wall clock.
    buffer
        Largest backlog of work, as a duration: the most that results are delayed for lack of CPU.
    every
        Δ: settings are reconsidered after each Δ of event time.
    usage
        With the wall clock: the fraction of the time that the join may be busy.
    """

    budget: float | None = None
    buffer: Duration = "1 second"
    every: Duration = "1 second"
    usage: float = 0.8

    def __post_init__(self) -> None:
        if self.budget is not None:
            _number("budget", self.budget, "above 0", lambda x: x > 0)
        _number("usage", self.usage, "above 0 and at most 1", lambda x: 0 < x <= 1)

    def check(self, unit: TimeUnit, lengths: tuple[int | None, ...]) -> None:
        """Validate durations in the query's unit, and the windows.

        Parameters
        ----------
        unit
            Time unit of the query.
        lengths
            Length of the window of each stream; None: a tuple-count window.

        Raises
        ------
        QueryError
            If a duration is too short, or a stream has a tuple-count window.
        """
        to_units(self.buffer, unit, "buffer")
        if to_units(self.every, unit, "every") < 1:
            msg = f"every must be at least 1 {unit}, got {self.every!r}"
            raise QueryError(msg)
        if None in lengths:
            msg = "load shedding needs time windows on all streams, got a tuple-count window"
            raise QueryError(msg)

    @property
    def uses_measured_load(self) -> bool:
        """Whether the load is measured with the wall clock, outside the engine."""
        return self.budget is None

    @property
    def sample_rate(self) -> float:
        """Fraction of events sampled for learning; 0: nothing is learnt."""
        return 0.0

    @property
    def fixed_fraction(self) -> float | None:
        """The throttle fraction z if it is given; None: it is found."""
        return None

    @property
    def counts_events(self) -> bool:
        """Whether the throttle is set by numbers of events (GrubJoin III-A)."""
        return False

    @property
    def memory_bytes(self) -> int | None:
        """Most bytes of events in the windows; None disables eviction."""
        return None

    @property
    def harvests_windows(self) -> bool:
        """Whether only chosen parts of the windows are searched."""
        return False

    @property
    def uses_sorted_windows(self) -> bool:
        """Whether conditions on near values use sorted basic windows."""
        return False

    @property
    def scores_per_stream(self) -> bool:
        """Whether basic windows are scored by lags, one histogram per stream (GrubJoin V-B)."""
        return False

    def basic_window_in(self, unit: TimeUnit) -> int | None:  # noqa: ARG002  few kinds have it
        """Length of a basic window in `unit`; None: the default."""
        return None


@dataclass(frozen=True)
class SampledShedding(SheddingBase):
    """Load shedding that learns from a random sample of the events.

    Parameters
    ----------
    sample
        ω: fraction of events sampled for learning.
    fraction
        z: fraction of the full join's work that is done. None: it is found from the load.
    """

    sample: float = 0.05
    fraction: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("sample", self.sample, "above 0 and below 1", lambda x: 0 < x < 1)
        if self.fraction is not None:
            _number("fraction", self.fraction, "above 0 and at most 1", lambda x: 0 < x <= 1)

    @property
    def sample_rate(self) -> float:
        """Fraction of events sampled for learning."""
        return self.sample

    @property
    def fixed_fraction(self) -> float | None:
        """The throttle fraction z if it is given; None: it is found."""
        return self.fraction


@dataclass(frozen=True)
class TailDrop(SheddingBase):
    """Drop events that arrive while the buffer is full, and do nothing else: the baseline.

    Parameters
    ----------
    budget
        CPU capacity: comparisons per second of event time. Results are then the same on every
        machine. None: the load is measured with the wall clock.
    buffer
        Largest backlog of work, as a duration: the most that results are delayed for lack of CPU.
    every
        Δ: settings are reconsidered after each Δ of event time.
    usage
        With the wall clock: the fraction of the time that the join may be busy.

    Raises
    ------
    QueryError
        If a value is not allowed.

    Examples
    --------
    >>> TailDrop(buffer="2 seconds").buffer
    '2 seconds'
    """


@dataclass(frozen=True)
class RandomDrop(SampledShedding):
    """Drop events at random before the join, at the rates that leave most results.

    Parameters
    ----------
    budget
        CPU capacity: comparisons per second of event time. Results are then the same on every
        machine. None: the load is measured with the wall clock.
    buffer
        Largest backlog of work, as a duration: the most that results are delayed for lack of CPU.
    every
        Δ: settings are reconsidered after each Δ of event time.
    usage
        With the wall clock: the fraction of the time that the join may be busy.
    sample
        ω: fraction of events sampled for learning.
    fraction
        z: fraction of the full join's work that is done. None: it is found from the load.

    Raises
    ------
    QueryError
        If a value is not allowed.

    Examples
    --------
    >>> RandomDrop(budget=1e6).sample
    0.05
    """


@dataclass(frozen=True)
class Harvest(SampledShedding):
    """Search only the most profitable parts of the windows (GrubJoin): ``"adaptive"``.

    Parameters
    ----------
    budget
        CPU capacity: comparisons per second of event time. Results are then the same on every
        machine. None: the load is measured with the wall clock.
    buffer
        Largest backlog of work, as a duration: the most that results are delayed for lack of CPU.
    every
        Δ: settings are reconsidered after each Δ of event time.
    usage
        With the wall clock: the fraction of the time that the join may be busy.
    sample
        ω: fraction of events sampled for learning.
    fraction
        z: fraction of the full join's work that is done. None: it is found from the load.
    boost
        γ: factor by which the rules ``"rates"`` and ``"backlog"`` open the throttle when there is
        spare CPU.
    throttle
        How z is found: ``"capacity"``, from the cost of the join and the measured capacity of the
        CPU; ``"rates"``, the paper's rule, from the events consumed and the events that arrived;
        or ``"backlog"``, which adds the waiting events to those that arrived.
    basic_window
        b: length of the parts in which windows are searched. None: a twentieth of the longest
        window.
    memory
        Most bytes of events in the windows, ``"64 MB"``. None: no limit.
    scores
        What is learnt: ``"direction"``, the matches and results that each direction of the join
        finds by age; or ``"per-stream"``, as in the paper: one histogram of lags per stream, one
        selectivity per pair of streams, and join orders by lowest selectivity (GrubJoin V).
    index
        ``"sorted"``: a condition like ``abs(a.x - b.x) <= 1``, without a key, finds its partners by
        bisection in basic windows sorted by value; ``"none"``: it compares with all events. (Equal
        keys are always found by their hash.)
    search, metric
        How the harvest fractions are found; see `shedding.harvest_search.choose`.
    setting_cost
        With a `budget`: comparisons that each setting tried counts as. 0: setting is free.

    Raises
    ------
    QueryError
        If a value is not allowed.

    Examples
    --------
    >>> Harvest(memory="64 MB").memory_bytes
    67108864
    """

    boost: float = 1.2
    throttle: Rule = "capacity"
    basic_window: Duration | None = None
    memory: str | int | None = None
    scores: Scores = "direction"
    index: IndexKind = "sorted"
    search: Search = "better"
    metric: Metric = "gain per cost"
    setting_cost: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("boost", self.boost, "above 1", lambda x: x > 1)
        _choice("throttle", self.throttle, Rule)
        _choice("scores", self.scores, Scores)
        _choice("index", self.index, IndexKind)
        _choice("search", self.search, Search)
        _choice("metric", self.metric, Metric)
        _number("setting_cost", self.setting_cost, "at least 0", lambda x: x >= 0)
        self.memory_bytes  # noqa: B018  raise now

    @property
    def memory_bytes(self) -> int | None:
        """Most bytes of events in the windows; None disables eviction."""
        if self.memory is None:
            return None
        match = _SIZE.fullmatch(str(self.memory))
        factor = _BYTES.get(match[2].lower()) if match else None
        size = int(float(match[1]) * factor) if match and factor else 0
        if isinstance(self.memory, bool) or size < 1:
            msg = f"memory must be a number of bytes like '64 MB', above 0, got {self.memory!r}"
            raise QueryError(msg)
        return size

    def check(self, unit: TimeUnit, lengths: tuple[int | None, ...]) -> None:
        """Validate durations in the query's unit, and the windows."""
        super().check(unit, lengths)
        basic = self.basic_window_in(unit)
        if basic is None:
            return
        shortest = min(length for length in lengths if length is not None)
        if not 1 <= basic <= max(shortest, 1):
            msg = (
                f"basic_window must be at least 1 {unit} and at most the shortest window "
                f"({shortest} {unit}), got {self.basic_window!r}"
            )
            raise QueryError(msg)

    @property
    def harvests_windows(self) -> bool:
        """Whether only chosen parts of the windows are searched."""
        return True

    @property
    def uses_sorted_windows(self) -> bool:
        """Whether conditions on near values use sorted basic windows."""
        return self.index == "sorted"

    @property
    def counts_events(self) -> bool:
        """Whether the throttle is set by numbers of events (GrubJoin III-A)."""
        return self.throttle != "capacity"

    @property
    def scores_per_stream(self) -> bool:
        """Whether basic windows are scored by lags, one histogram per stream (GrubJoin V-B)."""
        return self.scores == "per-stream"

    def basic_window_in(self, unit: TimeUnit) -> int | None:
        """Length of a basic window in `unit`; None: the default."""
        if self.basic_window is None:
            return None
        return to_units(self.basic_window, unit, "basic_window")


Shedding = Harvest | RandomDrop | TailDrop
SheddingOption = Literal["adaptive", "off"] | Shedding
SHEDDINGS: dict[str, type[Shedding]] = {kind.__name__: kind for kind in get_args(Shedding)}


def shedding_of(option: Any) -> Shedding | None:
    """Return the shedding that ``shed=`` names; None: nothing is shed.

    Raises
    ------
    QueryError
        If `option` is neither a known name nor one of the kinds.
    """
    if option == "off":
        return None
    if option == "adaptive":
        return Harvest()
    if isinstance(option, Shedding):
        return option
    kinds = ", ".join(SHEDDINGS)
    msg = f"shed must be 'adaptive', 'off' or one of {kinds}, got {option!r}"
    raise QueryError(msg)


def shedding_to_dict(option: SheddingOption) -> dict[str, Any] | str:
    """Return plain data that JSON can hold."""
    if isinstance(option, str):
        return option
    return {"kind": type(option).__name__} | as_plain(asdict(option))


def shedding_from_dict(plain: Mapping[str, Any] | str) -> Any:
    """Return the option that `shedding_to_dict` wrote."""
    if isinstance(plain, str):
        return plain
    given = dict(plain)
    return SHEDDINGS[given.pop("kind")](**given)


def _number(name: str, value: Any, allowed: str, is_good: Callable[[float], bool]) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_good(value):
        msg = f"{name} must be {allowed}, got {value!r}"
        raise QueryError(msg)


def _choice(name: str, value: Any, allowed: Any) -> None:
    if value not in get_args(allowed):
        listed = ", ".join(map(repr, get_args(allowed)))
        msg = f"{name} must be one of {listed}, got {value!r}"
        raise QueryError(msg)
