r"""What is wrong with a statement, and where: the line, a caret, and what may have been meant.

>>> raise SqlError("expected a number", "SELECT *\nWITH RECALL high", 21, 25)
Traceback (most recent call last):
slackwater.sql.diagnostics.SqlError: expected a number
  line 2:  WITH RECALL high
                       ^^^^
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from slackwater.errors import QueryError


class SqlError(QueryError):
    """SQL that is no query.

    Parameters
    ----------
    problem
        What is wrong.
    sql
        The whole text.
    start, end
        The part of it that is wrong.
    """

    def __init__(self, problem: str, sql: str, start: int, end: int) -> None:
        start = min(max(start, 0), len(sql))
        self.problem = problem
        self.line = sql.count("\n", 0, start) + 1
        self.column = start - (sql.rfind("\n", 0, start) + 1) + 1
        first = sql.rfind("\n", 0, start) + 1
        shown = sql[first:].split("\n", 1)[0].expandtabs(1)
        head = f"  line {self.line}:  "
        width = max(1, min(end, first + len(shown)) - start)
        caret = " " * (len(head) + start - first) + "^" * width
        super().__init__(f"{problem}\n{head}{shown}\n{caret}")


def meant(word: str, known: Iterable[str]) -> str:
    """`` (did you mean …?)``, or nothing."""
    by_upper = {name.upper(): name for name in known}
    near = get_close_matches(word.upper(), by_upper, n=1)
    return f"; did you mean {by_upper[near[0]]}?" if near else ""
