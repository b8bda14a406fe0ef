"""From text to a `Statement`: the clauses are ours, tokens and expressions are sqlglot's."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from slackwater.query.windows import Sliding, Tumbling
from slackwater.sql import grammar
from slackwater.sql.diagnostics import SqlError, meant
from slackwater.sql.settings_parser import SettingsParser
from slackwater.sql.statement import (
    Clause,
    SetStatement,
    Sink,
    Source,
    Span,
    Statement,
    StreamClause,
)

_LONGEST = 100_000  # characters
_MISSING = re.compile(r"(\d+):(\d+)")


class SlackwaterParser(SettingsParser):
    """Statements of one or more streams."""

    # ---- statements

    def _parse_statement(self) -> Any:
        """A query; in files also where its streams come from and its results go."""
        first = self._curr
        if self._match_text_seq("SET"):
            return self._setting(first)
        if self._match_text_seq("CREATE", "STREAM"):
            return self._source(first)
        if self._match_text_seq("INSERT", "INTO"):
            return self._sink(first)
        return self._query()

    def _query(self) -> Statement:
        first = self._curr
        if not self._match_text_seq("SELECT"):
            self._expected("SELECT", ("SELECT", "SET", "CREATE STREAM", "INSERT INTO"))
        items = self._parse_expressions()
        if not items:
            self._expected("columns, aggregates or * behind SELECT")
        if not self._match_text_seq("FROM"):
            if meant(self._prev.text, ("FROM",)):  # it was taken for the name of a column
                self._advance(-1)
            self._expected("FROM", ("FROM",))
        streams = [self._stream()]
        while True:
            if self._match(TokenType.COMMA):
                streams.append(self._stream())
            elif self._match_text_seq("INNER", "JOIN") or self._match_text_seq("JOIN"):
                streams.append(self._joined(self._stream()))
            elif (how := self._kind()) is not None:
                streams.append(self._joined(self._stream()))
                streams[-1].how = how
            else:
                break
        statement = Statement(items, streams, self._from(first))
        while self._curr:
            self._clause(statement)
        statement.span = self._from(first)
        return statement

    def _kind(self) -> Clause | None:
        """``LEFT OUTER JOIN``, ``LEFT SEMI JOIN``, ``ASOF JOIN`` and the like, if one is here."""
        first = self._curr
        for how in grammar.KINDS:
            if self._match_text_seq(how.upper()):
                break
        else:
            return None
        if how == "left":
            for one_sided in ("semi", "anti"):
                if self._match_text_seq(one_sided.upper()):
                    how = one_sided
        if how in ("left", "right", "full"):
            self._match_text_seq("OUTER")
        if not self._match_text_seq("JOIN"):
            self._expected("JOIN", ("JOIN",))
        return Clause(how, self._from(first))

    def _clause(self, statement: Statement) -> None:
        first = self._curr
        if self._match_text_seq("WHERE"):
            self._once(statement.where, "WHERE", first)
            statement.where = self._condition("WHERE")
        elif self._match_text_seq("GROUP", "BY") or self._match(TokenType.GROUP_BY):
            self._once(statement.group, "GROUP BY", first)
            statement.group = self._parse_csv(self._parse_assignment)
            if not statement.group:
                self._expected("columns behind GROUP BY")
        elif self._match_text_seq("SLIDE"):
            self._once(statement.slide, "SLIDE", first)
            statement.slide = Clause(self._length("SLIDE"), self._from(first))
        elif self._match_text_seq("WINDOW"):
            self._once(statement.window, "WINDOW", first)
            statement.window = Clause(self._window(), self._from(first))
        elif self._match_text_seq("WITH"):
            self._setting_of(statement)
            while self._curr and (self._match(TokenType.COMMA) or not self._at_clause()):
                self._setting_of(statement)
        else:
            words = (*grammar.CLAUSES, "JOIN")
            self._expected(f"one of {', '.join(words)}, or the end", words)

    def _at_clause(self) -> bool:
        """Whether a clause begins, and not a setting."""
        word, behind = self._curr.text.upper(), self._next.text.upper()
        return word in ("WHERE", "SLIDE", "WINDOW", "WITH", "GROUP BY") or (word, behind) == (
            "GROUP",
            "BY",
        )

    def _condition(self, behind: str) -> exp.Expr:
        condition: exp.Expr | None = self._parse_assignment()
        if condition is None:
            self._expected(f"a condition behind {behind}")
        return condition

    def _window(self) -> Tumbling | Sliding:
        if self._match_text_seq("TUMBLING"):
            return Tumbling(self._duration("TUMBLING"))
        if self._match_text_seq("SLIDING"):
            length = self._duration("SLIDING")
            if not self._match_text_seq("EVERY"):
                self._expected("EVERY, behind the length of a sliding window", ("EVERY",))
            return Sliding(length, self._duration("EVERY"))
        self._expected("TUMBLING or SLIDING", ("TUMBLING", "SLIDING"))

    # ---- streams

    def _stream(self) -> StreamClause:
        first = self._curr
        source = self._name("the name of a stream")
        stream = StreamClause(source, source, self._from(first))
        self._window_spec(stream)
        word = self._curr.text.upper()
        if self._match_text_seq("AS") or self._match(TokenType.ALIAS):
            stream.name = self._name("a name behind AS")
        elif self._is_name() and word not in grammar.RESERVED:
            stream.name = self._name("a name")
        self._window_spec(stream)
        keep = self._curr
        if self._match_text_seq("KEEP"):
            self._once(stream.range, f"window of {stream.name}", keep)
            stream.range = Clause(self._length("KEEP"), self._from(keep))
        stream.span = self._from(first)
        return stream

    def _joined(self, stream: StreamClause) -> StreamClause:
        if self._match_text_seq("USING"):
            if not self._match(TokenType.L_PAREN):
                self._expected("( behind USING")
            stream.using = [self._name("a column")]
            while self._match(TokenType.COMMA):
                stream.using.append(self._name("a column"))
            self._close(TokenType.R_PAREN, ")")
        if self._match_text_seq("ON"):
            stream.on = self._condition("ON")
        first = self._curr
        if self._match_text_seq("TOLERANCE"):
            stream.tolerance = Clause(self._duration("TOLERANCE"), self._from(first))
        first = self._curr
        for direction in grammar.DIRECTIONS:
            if self._match_text_seq(direction.upper()):
                stream.direction = Clause(direction, self._from(first))
        return stream

    def _window_spec(self, stream: StreamClause) -> None:
        """``[RANGE 100 TUPLES, SLIDE 10 TUPLES, WATTR orderID, DRATIO 1%]``."""
        if not self._match(TokenType.L_BRACKET):
            return
        while True:
            first = self._curr
            if self._match_text_seq("SLIDE"):
                self._once(stream.slide, "SLIDE", first)
                stream.slide = Clause(self._length("SLIDE"), self._from(first))
            elif self._match_text_seq("WATTR"):
                self._once(stream.wattr, "WATTR", first)
                stream.wattr = self._name("a column behind WATTR")
            elif self._match_text_seq("DRATIO"):
                self._once(stream.dratio, "DRATIO", first)
                stream.dratio = Clause(self._number("DRATIO"), self._from(first))
            elif self._match_text_seq("ID"):
                stream.id.append(self._name("a column behind ID"))
            elif self._match_text_seq("VECTOR"):
                column = self._name("a column behind VECTOR")
                stream.vectors[column] = self._number("the length of the vectors")
            else:
                self._once(stream.range, f"window of {stream.name}", first)
                if not self._match_text_seq("RANGE") and not self._is_number():
                    words = ("RANGE", "SLIDE", "WATTR", "DRATIO", "VECTOR", "ID")
                    self._expected(f"one of {', '.join(words)}, or a length", words)
                stream.range = Clause(self._length("RANGE"), self._from(first))
            if not self._match(TokenType.COMMA):
                break
        self._close(TokenType.R_BRACKET, "]")

    # ---- files

    def _setting(self, first: Token) -> SetStatement:
        name = self._name("a name behind SET")
        while self._match(TokenType.DOT):
            name += f".{self._name('a name behind the dot')}"
        if not self._match(TokenType.EQ):
            self._expected("= behind the name")
        return SetStatement(name, self._value_or_word(name), self._from(first))

    def _source(self, first: Token) -> Source:
        name = self._name("the name of a stream")
        schema = self._columns()
        if not self._match_text_seq("FROM"):
            self._expected("FROM and a format such as PARQUET", ("FROM",))
        form, path, options = self._place("FROM")
        return Source(name, schema, form, path, options, self._from(first))

    def _sink(self, first: Token) -> Sink:
        form, path, options = self._place("INTO")
        return Sink(form, path, options, self._query(), self._from(first))

    def _columns(self) -> str | None:
        """The columns in parentheses as they are written, for Spark to read."""
        opening = self._curr
        if not self._match(TokenType.L_PAREN):
            return None
        depth = 1
        while depth:
            if not self._curr:
                self.raise_error("the parenthesis is not closed", opening)
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
            self._advance()
        return " ".join(self.sql[opening.end + 1 : self._prev.start].split())

    def _place(self, behind: str) -> tuple[str, str | None, dict[str, Any]]:
        form = self._name(f"a format behind {behind}").lower()
        path = self._prev.text if self._match(TokenType.STRING) else None
        options: dict[str, Any] = {}
        if self._match_text_seq("OPTIONS"):
            if not self._match(TokenType.L_PAREN):
                self._expected("( behind OPTIONS")
            while True:
                quoted = self._match(TokenType.STRING)
                name = self._prev.text if quoted else self._name("an option")
                options[name] = self._value_or_word(name)
                if not self._match(TokenType.COMMA):
                    break
            self._close(TokenType.R_PAREN, ")")
        return form, path, options


class Slackwater(Dialect):
    """SQL with windows behind streams and a goal behind WITH."""

    class Tokenizer(tokens.Tokenizer):
        """A name may stand in double quotes, or in backticks as in Spark."""

        IDENTIFIERS: ClassVar = ['"', "`"]

    Parser = SlackwaterParser


def parse(sql: str) -> list[Any]:
    """The statements of a text, or an error with its place."""
    if len(sql) > _LONGEST:
        msg = f"SQL may have {_LONGEST:,} characters, got {len(sql):,}"
        raise SqlError(msg, sql[:40], 0, 40)
    try:
        found = Slackwater().parse(sql)
    except TokenError as error:
        raise SqlError(_brief(error), sql, *_place_of(error, sql)) from None
    except SqlglotError as error:
        raise SqlError(_brief(error), sql, len(sql.rstrip()), len(sql)) from None
    except RecursionError:
        msg = "expressions are nested too deeply"
        raise SqlError(msg, sql, 0, len(sql)) from None
    return [statement for statement in found if statement is not None]


def _brief(error: Exception) -> str:
    message = str(error.__cause__ or error).splitlines()[0]
    if message.startswith("Missing"):
        return "a quote or comment is not closed"
    return message[:1].lower() + message[1:]


def _place_of(error: Exception, sql: str) -> Span:
    """Where a text or comment begins that does not end; else the end."""
    found = _MISSING.search(str(error.__cause__ or error))
    if found is None:
        return Span(len(sql.rstrip()), len(sql))
    start = int(found[2])
    return Span(start, start + 1)
