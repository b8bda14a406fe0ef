"""Points in time and intervals: from text and back.

>>> moment_of("timestamp", "2026-01-31 12:00:00.5")
Moment(kind='timestamp', micros=1769860800500000)
>>> text_of_moment(moment_of("interval", "90 minutes")), moment_of("date", "soon")
("interval '90 minutes'", None)
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slackwater.errors import QueryError
from slackwater.query.expression.nodes import Moment
from slackwater.query.units import to_units

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = (("days", 86_400_000_000), ("hours", 3_600_000_000), ("minutes", 60_000_000),
          ("seconds", 1_000_000), ("ms", 1_000), ("us", 1))  # fmt: skip


def moment_of(word: str, text: str) -> Moment | None:
    """The moment that a text is; None: it is none. Without a zone it is UTC."""
    try:
        if word == "interval":
            return Moment("interval", to_units(text, "us"))
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, QueryError):
        return None
    if word == "date":
        return None if ":" in text else micros("date", moment)
    return micros("timestamp", moment)


def micros(kind: str, moment: datetime) -> Moment:
    """A moment of a point in time; without a zone it is UTC."""
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return Moment(kind, (known - EPOCH) // _MICROSECOND)


def text_of_moment(moment: Moment) -> str:
    """The text that is read as this moment."""
    if moment.kind == "interval":
        size, sign = abs(moment.micros), "-" if moment.micros < 0 else ""
        unit, length = next(pair for pair in _UNITS if size % pair[1] == 0) if size else _UNITS[3]
        return f"{sign}interval '{size // length} {unit}'"
    point = EPOCH + moment.micros * _MICROSECOND
    shown = point.date().isoformat() if moment.kind == "date" else str(point.replace(tzinfo=None))
    return f"{moment.kind} '{shown}'"
