"""The windows of a query: side by side, sliding, or counted in tuples.

A bare integer is a length in the unit of the time column; a number of tuples is always `Tuples`.

>>> Tumbling("10 seconds"), Sliding("30 seconds", "10 seconds"), Tuples(100)
(Tumbling(length='10 seconds'), Sliding(length='30 seconds', slide='10 seconds'), Tuples(count=100))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slackwater.errors import QueryError
from slackwater.query.units import Duration, TimeUnit, as_plain, to_units

_COUNTED = re.compile(r"\s*(\d+)\s*(tuples?|rows?|units?)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Tumbling:
    """Windows side by side.

    Parameters
    ----------
    length
        How long a window is, and so how far apart two of them begin.

    Examples
    --------
    >>> Tumbling("10 seconds").length
    '10 seconds'
    """

    length: Duration

    def in_units(self, unit: TimeUnit) -> tuple[int, int]:
        """Return the length and the step as whole numbers of `unit`."""
        length = _positive(self.length, unit, "window")
        return length, length


@dataclass(frozen=True)
class Sliding:
    """Windows of one length that overlap, or that leave gaps.

    Parameters
    ----------
    length
        How long a window is.
    slide
        How far apart two windows end; longer than `length`, some events are in no window. None:
        each event ends a window, for windows of one stream.

    Examples
    --------
    >>> Sliding("30 seconds", "10 seconds").in_units("ms")
    (30000, 10000)
    """

    length: Duration
    slide: Duration | None = None

    def in_units(self, unit: TimeUnit) -> tuple[int, int | None]:
        """Return the length and the step as whole numbers of `unit`; no step: each event."""
        length = _positive(self.length, unit, "window")
        return length, None if self.slide is None else _positive(self.slide, unit, "slide")


@dataclass(frozen=True)
class Tuples:
    """A window of the last `count` events, in the order (ts, stream, arrival).

    It is also how a goal counts events: ``DropRatio(0.01, every=Tuples(1000))``.

    Parameters
    ----------
    count
        How many events the window holds.
    slide
        A window ends with every so many events, for windows of one stream. None: with each.

    Raises
    ------
    QueryError
        If `count` or `slide` is not a whole number above 0.

    Examples
    --------
    >>> Tuples(100).count
    100
    """

    count: int
    slide: int | None = field(default=None)

    def __post_init__(self) -> None:
        for what, number in (("hold", self.count), ("slide by", self.slide)):
            if number is None and what == "slide by":
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                msg = f"a tuple-count window must {what} at least 1 tuple, got {number!r}"
                raise QueryError(msg)

    def __repr__(self) -> str:
        slide = "" if self.slide is None else f", slide={self.slide}"
        return f"Tuples(count={self.count}{slide})"


Window = Tumbling | Sliding | Tuples
WINDOWS: dict[str, type[Window]] = {"Tumbling": Tumbling, "Sliding": Sliding, "Tuples": Tuples}


def window_to_dict(window: Window) -> dict[str, Any]:
    """Return plain data that JSON can hold."""
    return {"kind": type(window).__name__} | as_plain(asdict(window))


def window_from_dict(plain: Mapping[str, Any]) -> Window:
    """Return the window that `window_to_dict` described."""
    given = dict(plain)
    return WINDOWS[given.pop("kind")](**given)


def length_of_text(text: Duration) -> Duration | Tuples:
    """Read a length as job files and SQL write it.

    >>> length_of_text("100 tuples"), length_of_text("500 units"), length_of_text("5 s")
    (Tuples(count=100), 500, '5 s')
    """
    counted = _COUNTED.fullmatch(text) if isinstance(text, str) else None
    if counted is None:
        return text
    number, word = int(counted[1]), counted[2].lower()
    return number if word.startswith("unit") else Tuples(number)


def sliding_window(length: Duration | Tuples, slide: Duration | Tuples | None) -> Window:
    """Return the window with this length and slide; both are counted, or both are durations."""
    if isinstance(length, Tuples):
        if slide is None:
            return length
        if isinstance(slide, Tuples):
            return Tuples(length.count, slide.count)
    elif not isinstance(slide, Tuples):
        return Sliding(length, slide)
    msg = (
        "the length and the slide of a window must be of one kind, both in tuples or both in "
        f"time, got {length!r} and {slide!r}"
    )
    raise QueryError(msg)


def _positive(length: Duration, unit: TimeUnit, what: str) -> int:
    units = to_units(length, unit, what)
    if units < 1:
        msg = f"{what} must be at least 1 {unit}, got {length!r}"
        raise QueryError(msg)
    return units
