"""Where the parts of a statement stand in its text, for errors that show the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from slackwater.errors import QueryError
from slackwater.sql.diagnostics import SqlError
from slackwater.sql.statement import Span

Made = TypeVar("Made")


class Places:
    """The text of a statement.

    Parameters
    ----------
    sql
        The whole text.
    statement
        The part of it that is the statement.
    """

    def __init__(self, sql: str, statement: Span) -> None:
        self._sql = sql
        self._statement = statement

    def error(self, problem: str, span: Span) -> SqlError:
        """An error about a part of the text."""
        return SqlError(problem, self._sql, *span)

    def error_at(self, node: exp.Expr, problem: str) -> SqlError:
        """An error about an expression."""
        return self.error(problem, self.span(node))

    def span(self, node: exp.Expr) -> Span:
        """Where an expression stands: from its first word to its last."""
        marks = [n.meta for n in node.walk() if "start" in n.meta]
        if not marks:
            return self._statement
        return Span(min(m["start"] for m in marks), max(m["end"] for m in marks) + 1)

    def checked(self, make: Callable[[], Made], span: Span) -> Made:
        """What `make` makes; errors of the query get the place."""
        try:
            return make()
        except SqlError:
            raise
        except QueryError as error:
            raise self.error(str(error), span) from error
