"""Durations as people write them, as whole numbers of the query's time unit; and shares.

>>> to_units("5 seconds", "ms"), to_units("1.5 min", "ms"), to_units("200 ms", "us")
(5000, 90000, 200000)
>>> to_units(250, "ms")
250
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any, Literal

from slackwater.errors import QueryError

TimeUnit = Literal["ms", "us"]
Duration = str | int | timedelta

PER_SECOND: dict[TimeUnit, int] = {"ms": 1_000, "us": 1_000_000}

_MICROSECONDS = {
    "us": 1,
    "microsecond": 1,
    "ms": 1_000,
    "msec": 1_000,
    "millisecond": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "second": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")
_LARGEST = 2**61


def to_units(duration: Duration, unit: TimeUnit, what: str = "duration") -> int:
    """Turn `duration` into whole `unit`s; `what` names it in error messages."""
    per_unit = _MICROSECONDS[unit]
    if isinstance(duration, bool) or not isinstance(duration, str | int | timedelta):
        msg = f"{what} must be a number of {unit}, '5 seconds' or a timedelta, got {duration!r}"
        raise QueryError(msg)
    if isinstance(duration, int):
        units = Fraction(duration)
    elif isinstance(duration, timedelta):
        units = Fraction(duration // timedelta(microseconds=1), per_unit)
    else:
        match = _WRITTEN.fullmatch(duration)
        name = match[2] if match else ""
        per_name = _per_name(name)
        if match is None or per_name is None:
            msg = f"{what} must be like '5 seconds', '200 ms' or '1 minute', got {duration!r}"
            raise QueryError(msg)
        units = Fraction(match[1]) * per_name / per_unit
    if units < 0 or units > _LARGEST:
        msg = f"{what} must be >= 0 and at most {_LARGEST} {unit}, got {duration!r}"
        raise QueryError(msg)
    if units.denominator != 1:
        msg = f"{what} must be a whole number of {unit}, got {duration!r}; see unit='us'"
        raise QueryError(msg)
    return int(units)


def is_time_unit(word: str) -> bool:
    """Whether `word` is a unit that `to_units` knows.

    >>> is_time_unit("SECONDS"), is_time_unit("MS"), is_time_unit("tuples")
    (True, True, False)
    """
    return _per_name(word) is not None


def _per_name(name: str) -> int | None:
    """Microseconds in a unit; its name may be a plural, and in capitals."""
    lower = name.lower()
    return _MICROSECONDS.get(lower) or _MICROSECONDS.get(lower.removesuffix("s"))


def as_plain(values: dict[str, Any]) -> dict[str, Any]:
    """Durations as text or number."""
    return {
        name: f"{value // timedelta(microseconds=1)} us" if isinstance(value, timedelta) else value
        for name, value in values.items()
    }


def check_share(what: str, value: Any, below: float | None = None) -> None:
    """Raise if `value` is no share: a number in (0, 1], or in (0, `below`)."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 0 < value <= 1 or value == below:
        most = "at most 1" if below is None else f"below {below:g}"
        msg = f"{what} must be above 0 and {most}, got {value!r}"
        raise QueryError(msg)
