"""Times in another unit than the query's, as seconds that are taken for milliseconds.

A number has no unit, so such times are not wrong by themselves. Only another clock shows it: an
arrival column, or another stream. Where that clock has a date between 1990 and 2100 and these times
are a power of a thousand away from it, the unit is different.

>>> in_unit(1.7e9, 1.7e12, "ms"), in_unit(1.7e15, 1.7e12, "ms"), in_unit(17, 170, "ms")
('seconds', 'microseconds', None)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.kernels.records import I64
from slackwater.query.units import PER_SECOND, TimeUnit

_SAMPLE = 1000
_UNITS = {1: "seconds", 10**3: "milliseconds", 10**6: "microseconds", 10**9: "nanoseconds"}
_OUR_DAYS = 631_152_000, 4_102_444_800  # 1990 to 2100, in seconds since 1970
_NEAR = 0.1  # 1990 and 2100 are further apart, but clocks of one query are not


class Clock(NamedTuple):
    """A column with times, and a typical one of them."""

    name: str
    time: float


def typical(ts: I64, good: Any) -> float | None:
    """The median of a sample of usable times."""
    step = max(1, len(ts) // _SAMPLE)
    sample = ts[::step][good[::step]]
    return float(np.median(sample)) if len(sample) else None


def in_unit(time: float, other: float, unit: TimeUnit) -> str | None:
    """The unit in which `time` seems to be, if `other` is right and it is not `unit`."""
    per_second = PER_SECOND[unit]
    if not _OUR_DAYS[0] <= other / per_second <= _OUR_DAYS[1]:
        return None
    for scale, name in _UNITS.items():
        if scale != per_second and abs(time / other * per_second / scale - 1) <= _NEAR:
            return name
    return None


def warn_of_units(clocks: Sequence[Clock], unit: TimeUnit) -> None:
    """Log a warning for each clock that another one contradicts."""
    for clock in clocks:
        for other in clocks:
            seems = in_unit(clock.time, other.time, unit)
            if seems is not None:
                logging.getLogger("slackwater").warning(
                    "%s seems to be in %s, going by %s, but is taken for %s: convert it",
                    clock.name, seems, other.name, _UNITS[PER_SECOND[unit]],
                )  # fmt: skip
                break
