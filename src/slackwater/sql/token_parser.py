"""What every clause is made of: words, names, numbers, durations; and where they stand.

Tokens and expressions are sqlglot's. Its parser knows the functions of all databases; here every
function is known by its name only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, ClassVar, NoReturn

from sqlglot import exp, parser
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.errors import QueryError
from slackwater.query.units import Duration
from slackwater.query.windows import Tuples, length_of_text
from slackwater.sql.diagnostics import SqlError, meant
from slackwater.sql.literals import is_duration_word, number
from slackwater.sql.statement import Length, Span

_WORD = re.compile(r"[^\W\d]\w*")


class WordParser(parser.Parser):
    """Reads words and values, and says where something is wrong."""

    FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {"CASE": lambda self: self._parse_case()}

    # ---- errors

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise with the place; sqlglot calls this too."""
        token = token or self._curr
        if message.startswith("Required keyword"):  # sqlglot's way to miss an operand
            message = f"expected an expression, got {token.text if token else 'the end'}"
        raise self._error(message[:1].lower() + message[1:], self._span(token))

    def _error(self, message: str, span: Span) -> SqlError:
        return SqlError(message, self.sql, *span)

    def _span(self, first: Token, last: Token | None = None) -> Span:
        if not first:  # the end of the text
            return Span(len(self.sql.rstrip()), len(self.sql.rstrip()) + 1)
        return Span(first.start, (last or first).end + 1)

    def _from(self, first: Token) -> Span:
        """From a token to the last one that was taken."""
        return self._span(first, self._prev)

    def _expected(self, what: str, known: Sequence[str] = ()) -> NoReturn:
        got = self._curr.text if self._curr else "the end"
        self.raise_error(f"expected {what}, got {got}{meant(got, known)}", self._curr)

    def _checked(self, make: Callable[[], Any], first: Token) -> Any:
        """What `make` makes; errors of the query get to know the place."""
        try:
            return make()
        except QueryError as error:
            raise self._error(str(error), self._from(first)) from error

    def _once(self, known: object, clause: str, first: Token) -> None:
        if known:
            self.raise_error(f"there is more than one {clause}", first)

    # ---- values

    def _close(self, kind: TokenType, sign: str) -> None:
        if not self._match(kind):
            self._expected(f"{sign} or a comma")

    def _is_name(self) -> bool:
        kind = self._curr.token_type
        if not self._curr or kind == TokenType.STRING:
            return False
        return kind == TokenType.IDENTIFIER or bool(_WORD.fullmatch(self._curr.text))

    def _name(self, what: str) -> str:
        if not self._is_name():
            self._expected(what)
        self._advance()
        return self._prev.text

    def _is_number(self) -> bool:
        kind = self._curr.token_type
        return kind == TokenType.NUMBER or (
            kind == TokenType.DOT and self._next.token_type == TokenType.NUMBER
        )

    def _length(self, behind: str) -> Length:
        """``5 SECONDS``, ``100 TUPLES``, ``'5 seconds'`` or a bare number of units."""
        first = self._curr
        value = self._value(behind)
        if isinstance(value, bool) or not isinstance(value, str | int | Tuples):
            self.raise_error(f"expected a length behind {behind}, got {value}", first)
        return value if isinstance(value, Tuples) else length_of_text(value)  # type: ignore[return-value]

    def _duration(self, behind: str) -> Duration:
        """A length that is not counted in tuples."""
        first = self._curr
        length = self._length(behind)
        if isinstance(length, Tuples):
            self.raise_error(f"expected a length in time behind {behind}, got tuples", first)
        return length

    def _number(self, behind: str) -> Any:
        first = self._curr
        value = self._value(behind)
        if not isinstance(value, int | float):
            self.raise_error(f"expected a number behind {behind}, got {value!r}", first)
        return value

    def _value_or_word(self, behind: str) -> Any:
        """A value, or a word that is a text without quotes."""
        if self._curr.text.upper() in ("TRUE", "FALSE", "NULL"):
            return self._value(behind)
        return self._name("a word").lower() if self._is_name() else self._value(behind)

    def _value(self, behind: str) -> Any:
        """A number, percentage, duration, text, TRUE, FALSE, NULL, or several in parentheses."""
        if self._match(TokenType.STRING):
            return self._prev.text
        for word, known in (("TRUE", True), ("FALSE", False), ("NULL", None)):
            if self._match_text_seq(word):
                return known
        if self._match(TokenType.L_PAREN):
            several = [self._value(behind)]
            while self._match(TokenType.COMMA):
                several.append(self._value(behind))
            self._close(TokenType.R_PAREN, ")")
            return tuple(several)
        if not self._is_number():
            self._expected(f"a value behind {behind}")
        first = self._curr
        text = "0." if self._match(TokenType.DOT) else ""
        self._advance()
        text += self._prev.text
        value = number(text)
        if value is None:
            self.raise_error(f"expected a number behind {behind}, got {text}", first)
        if self._match(TokenType.MOD):
            return float(Decimal(text) / 100)
        if self._is_name() and is_duration_word(self._curr.text):
            self._advance()
            return length_of_text(f"{text} {self._prev.text.lower()}")
        return value

    # ---- of sqlglot's expressions, what has no place here

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:  # noqa: ARG002
        return this
