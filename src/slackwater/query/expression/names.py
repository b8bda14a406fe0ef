"""How a column is written: plain where that is clear, else in backticks.

A stream's name is an identifier. A column may be called anything; in text, a name that is no
identifier stands in backticks, and a backtick inside of it is doubled.

>>> quoted("price"), quoted("bid price"), quoted("class"), quoted("a`b")
('price', '`bid price`', '`class`', '`a``b`')
>>> unquoted("`bid price`"), unquoted("price")
('bid price', 'price')
"""

from __future__ import annotations

import keyword
import re
import unicodedata

QUOTED = re.compile(r"`(?:[^`]|``)+`")


def quoted(name: str) -> str:
    """The name as text has it: in backticks if it would be read as something else."""
    return name if is_plain(name) else in_backticks(name)


def in_backticks(name: str) -> str:
    """The name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(text: str) -> str:
    """The name that a text without or in backticks is."""
    return text[1:-1].replace("``", "`") if QUOTED.fullmatch(text) else text


def is_plain(name: str) -> bool:
    """Whether Python reads the name as itself: it normalises identifiers."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and unicodedata.normalize("NFKC", name) == name
    )
