"""How names, numbers and durations are written in SQL.

>>> identifier("quotes"), identifier("left"), identifier("unit price")
('quotes', '"left"', '"unit price"')
>>> value("5 seconds"), value(250), value("late-degree"), value(True), value(0.95)
('5 SECONDS', '250', "'late-degree'", 'TRUE', '0.95')
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache
from typing import Any

from slackwater.query.units import is_time_unit
from slackwater.query.windows import Tuples

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ([a-z]+)")
_COUNTED = ("tuple", "tuples", "row", "rows", "unit", "units")


def identifier(name: str) -> str:
    """A name, in quotes if it could be taken for something else."""
    plain = _NAME.fullmatch(name) and name.upper() not in _keywords()
    return name if plain else '"' + name.replace('"', '""') + '"'


@cache
def _keywords() -> frozenset[str]:
    from sqlglot.tokens import Tokenizer

    from slackwater.sql.grammar import RESERVED

    known = {word for phrase in Tokenizer.KEYWORDS for word in phrase.split()}
    return frozenset(known) | RESERVED


def text(value: str) -> str:
    """A text in quotes."""
    return "'" + value.replace("'", "''") + "'"


def value(given: Any) -> str:
    """A number, duration, text, or several."""
    if isinstance(given, bool):
        return str(given).upper()
    if given is None:
        return "NULL"
    if isinstance(given, timedelta):
        return f"{given // timedelta(microseconds=1)} US"
    if isinstance(given, Tuples):
        return f"{given.count} TUPLES"
    if isinstance(given, tuple | list):
        return f"({', '.join(map(value, given))})"
    if isinstance(given, str):
        duration = _DURATION.fullmatch(given)
        if duration and is_duration_word(duration[2]):
            return given.upper()
        return text(given)
    return repr(given)


def number(text: str) -> float | None:
    """The number that a text is: whole if it has only digits; None: it is none.

    >>> number("5"), number("0.5"), number("0.9e")
    (5, 0.5, None)
    """
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return None


def is_duration_word(word: str) -> bool:
    """Whether a number in front of `word` is a length: 5 seconds, 100 tuples."""
    return word.lower() in _COUNTED or is_time_unit(word)
