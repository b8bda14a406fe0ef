"""What may be left out when the CPU or the memory is short. Frozen, validated, plain data.

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
class TailDrop:
    """Who finds the input buffer full is dropped, and nothing else is done: the baseline.

    Parameters
    ----------
    budget
        What the CPU can do: comparisons per second of event time. Figures are then the same
        wherever they are computed. None: measured with the wall clock.
    buffer
        How much work may wait, as time: results are late by at most this for want of CPU.
    every
        Δ: everything is reconsidered each Δ of event time.
    usage
        With the wall clock: the share of the time that the join may be busy.
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
        """Raise what only the query can tell: its time unit and the lengths of its windows."""
        to_units(self.buffer, unit, "buffer")
        if to_units(self.every, unit, "every") < 1:
            msg = f"every must be at least 1 {unit}, got {self.every!r}"
            raise QueryError(msg)
        if None in lengths:
            msg = "load shedding needs time windows on all streams, got a tuple-count window"
            raise QueryError(msg)


@dataclass(frozen=True)
class RandomDrop(TailDrop):
    """Events are dropped at random before the join, at the rates that leave most results.

    Parameters
    ----------
    sample
        ω: the share of events from which is learnt.
    fraction
        z: the share of the whole join's work that is done, if it is not to be found but given.
    """

    sample: float = 0.05
    fraction: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("sample", self.sample, "above 0 and below 1", lambda x: 0 < x < 1)
        if self.fraction is not None:
            _number("fraction", self.fraction, "above 0 and at most 1", lambda x: 0 < x <= 1)


@dataclass(frozen=True)
class Harvest(RandomDrop):
    """Only the most profitable stretches of the windows are looked at (GrubJoin): ``"adaptive"``.

    Parameters
    ----------
    boost
        γ: by how much the rules ``"rates"`` and ``"backlog"`` open the throttle when there is CPU
        to spare.
    throttle
        How z is found: from what the join costs and what the CPU has shown it can do
        (``"capacity"``), or by what was consumed of what came: ``"rates"``, the paper's rule, and
        ``"backlog"``, which counts what waits as well.
    basic_window
        b: windows are looked at in stretches of this length. None: a twentieth of the longest.
    memory
        Most bytes of events in the windows, ``"64 MB"``. None: as many as it takes.
    scores
        How is learnt what stretches are worth: from what each ``"direction"`` of the join finds
        there, or as printed, from one histogram of lags ``"per-stream"`` (GrubJoin V-B).
    index
        ``"sorted"``: a condition like ``abs(a.x - b.x) <= 1``, without a key, finds its partners by
        bisection in basic windows sorted by value; ``"none"``: it looks at all of them. (Equal keys
        are always found by their hash.)
    search, metric
        How the harvest fractions are found; see `shedding.setting.choose`.
    """

    boost: float = 1.2
    throttle: Rule = "capacity"
    basic_window: Duration | None = None
    memory: str | int | None = None
    scores: Scores = "direction"
    index: IndexKind = "sorted"
    search: Search = "better"
    metric: Metric = "gain per cost"

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("boost", self.boost, "above 1", lambda x: x > 1)
        _choice("throttle", self.throttle, Rule)
        _choice("scores", self.scores, Scores)
        _choice("index", self.index, IndexKind)
        _choice("search", self.search, Search)
        _choice("metric", self.metric, Metric)
        self.memory_bytes  # noqa: B018  raise now

    @property
    def memory_bytes(self) -> int | None:
        """Most bytes in the windows."""
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
        """Raise what only the query can tell."""
        super().check(unit, lengths)
        if self.basic_window is None:
            return
        basic = to_units(self.basic_window, unit, "basic_window")
        shortest = min(length for length in lengths if length is not None)
        if not 1 <= basic <= max(shortest, 1):
            msg = (
                f"basic_window must be at least 1 {unit} and at most the shortest window "
                f"({shortest} {unit}), got {self.basic_window!r}"
            )
            raise QueryError(msg)


Shedding = Harvest | RandomDrop | TailDrop
Asked = Literal["adaptive", "off"] | Shedding
SHEDDINGS: dict[str, type[Shedding]] = {kind.__name__: kind for kind in get_args(Shedding)}


def shedding_of(asked: Any) -> Shedding | None:
    """What ``shed=`` means; None: nothing is shed."""
    if asked == "off":
        return None
    if asked == "adaptive":
        return Harvest()
    if isinstance(asked, TailDrop):
        return asked
    kinds = ", ".join(SHEDDINGS)
    msg = f"shed must be 'adaptive', 'off' or one of {kinds}, got {asked!r}"
    raise QueryError(msg)


def shedding_to_dict(asked: Asked) -> dict[str, Any] | str:
    """Plain data that JSON can hold."""
    if isinstance(asked, str):
        return asked
    return {"kind": type(asked).__name__} | as_plain(asdict(asked))


def shedding_from_dict(plain: Mapping[str, Any] | str) -> Any:
    """What `shedding_to_dict` described."""
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
