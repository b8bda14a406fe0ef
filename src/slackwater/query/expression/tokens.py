"""The words of an expression, each with its place in the text.

>>> [token.text for token in tokens("a.`bid price` >= 1.5e3 AND b.s <> 'it''s'", "where")]
['a', '.', '`bid price`', '>=', '1.5e3', 'AND', 'b', '.', 's', '<>', "'it''s'", '']
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from slackwater.errors import QueryError
from slackwater.query.expression.names import QUOTED

_TOKEN = re.compile(
    rf"""\s*(?:(?P<quoted>{QUOTED.pattern})
    |(?P<text>'(?:[^']|'')*')
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>\*\*|//|\|\||<>|!=|==|<=|>=|[-+*/%=<>(),.])
    |(?P<end>$))""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A word, and where it stands."""

    form: str  # quoted, text, number, word, sign or end
    text: str
    start: int
    end: int


def tokens(text: str, what: str) -> list[Token]:
    """All words of a text; the last one is its end."""
    found: list[Token] = []
    at = 0
    while not found or found[-1].form != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            problem = _PROBLEMS.get(text[at], f"{text[at]!r} has no meaning here")
            msg = f"{what} does not parse: {problem}"
            raise place_error(msg, text, at, at + 1)
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "word":
            word = unicodedata.normalize("NFKC", word)  # as Python does
        found.append(Token(kind, word, match.start(kind), match.end()))
        at = match.end()
    return found


_PROBLEMS = {
    "`": "a ` is not closed",
    "'": "a ' is not closed",
    '"': 'a text stands in single quotes, a name in backticks, got "',
    "!": "not is NOT, not equal <>, got !",
    "&": "and is AND, got &",
    "|": "or is OR, got |",
}


def place_error(problem: str, text: str, start: int, end: int) -> QueryError:
    """An error that shows the place.

    >>> print(place_error("got x", "a.y < x", 6, 7))
    got x in 'a.y < x'
      a.y < x
            ^
    """
    first = text.rfind("\n", 0, start) + 1
    line = text[first:].split("\n", 1)[0].expandtabs(1)
    shown, at = line, start - first
    if len(line) > 90:  # around the place
        begin = max(0, at - 40)
        shown, at = line[begin : begin + 80], at - begin
    width = max(1, min(end - start, len(shown) - at))
    brief = text if len(text) <= 90 else f"{text[:40]}…"
    return QueryError(f"{problem} in {brief!r}\n  {shown}\n  {' ' * at}{'^' * width}")
