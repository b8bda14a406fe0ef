"""``between=``: how much later an event of the second stream may be than one of the first.

A pair is true iff ``right.ts - left.ts`` lies in [low, high]. Where 0 lies in it, this is what two
windows say: an event of the first stream finds partners for `high`, one of the second for ``-low``.
Else one window is 0, and the other end is a condition on times, which each pair is tested with.

>>> windows_of(("-5 min", "30 min"))
('30 min', '5 min')
>>> windows_of(("10 min", "30 min")), windows_of(("-1 hour", "-1 min"))
(('30 min', 0), (0, '1 hour'))
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from slackwater.errors import QueryError
from slackwater.query.stream import Stream
from slackwater.query.units import Duration, TimeUnit, to_units

Between = tuple[Duration, Duration]  # low, high


def with_interval(
    streams: tuple[Stream, ...], between: Any, unit: TimeUnit, bounds: str = "[]"
) -> tuple[tuple[Stream, ...], Between | None]:
    """The streams with the windows that an interval gives them, and what is left to be tested.

    Raises
    ------
    QueryError
        If `between` is no interval, or there are windows beside it.
    """
    low, high = interval_units(between, unit)
    if len(streams) != 2:
        msg = f"between= is for two streams, got {len(streams)}; with more, give each a window"
        raise QueryError(msg)
    if bounds != "[]":
        msg = f"between= includes both ends, so bounds must be '[]', got {bounds!r}"
        raise QueryError(msg)
    for stream in streams:
        if getattr(stream, "window", None) is not None:
            msg = (
                f"between= gives both streams their windows, but stream {stream.name!r} has one: "
                f"{stream.window!r}; leave it out"
            )
            raise QueryError(msg)
    pairs = zip(streams, windows_of(between), strict=True)
    windowed = tuple(replace(stream, window=window) for stream, window in pairs)
    return windowed, None if low <= 0 <= high else (low, high)


def interval_units(between: Any, unit: TimeUnit) -> tuple[int, int]:
    """Both ends in units.

    >>> interval_units(("-1 s", "2 s"), "ms")
    (-1000, 2000)
    """
    if not isinstance(between, tuple | list) or len(between) != 2:
        msg = f"between must be two durations like ('0 s', '30 min'), got {between!r}"
        raise QueryError(msg)
    low, high = (_signed_units(end, unit) for end in between)
    if low > high:
        msg = f"between must have the smaller end first, got {between!r}"
        raise QueryError(msg)
    return low, high


def windows_of(between: Between) -> tuple[Duration, Duration]:
    """The windows of both streams."""
    low, high = between
    return (0 if _is_negative(high) else high), (_size(low) if _is_negative(low) else 0)


def _signed_units(end: Any, unit: TimeUnit) -> int:
    return to_units(_size(end), unit, "between") * (-1 if _is_negative(end) else 1)


def _is_negative(end: Any) -> bool:
    if isinstance(end, str):
        return end.lstrip().startswith("-")
    return end < timedelta(0) if isinstance(end, timedelta) else isinstance(end, int) and end < 0


def _size(end: Any) -> Any:
    if not _is_negative(end):
        return end
    return end.lstrip()[1:].lstrip() if isinstance(end, str) else -end
