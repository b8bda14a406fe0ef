"""What stands behind WITH: the goal, load shedding and the other options of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from slackwater.query.goals import Goal
from slackwater.query.shedding import Shedding
from slackwater.sql import grammar
from slackwater.sql.diagnostics import meant
from slackwater.sql.statement import Clause, Statement
from slackwater.sql.token_parser import WordParser


class SettingsParser(WordParser):
    """Reads settings, one at a time."""

    def _setting_of(self, statement: Statement) -> None:
        first = self._curr
        option, value = self._option()
        if option in statement.settings:
            self.raise_error(f"{option} is given more than once", first)
        statement.settings[option] = Clause(value, self._from(first))

    def _option(self) -> tuple[str, Any]:
        """The name of an option of the query, and its value."""
        first = self._curr
        for phrase, option, choices in grammar.CHOICES:  # SLACK SCOPE is no SLACK
            if self._match_text_seq(*phrase):
                return option, self._choice(phrase, choices)
        for words in grammar.GOALS:
            if self._match_text_seq(*words.words):
                return "goal", self._checked(self._goal(words), first)
        for phrase, option in grammar.VALUES:
            if self._match_text_seq(*phrase):
                return option, self._value(" ".join(phrase))
        if self._match_text_seq("COMPENSATE"):
            return "compensate", self._compensation()
        if self._match_text_seq("SHED"):
            return "shed", self._shedding(first)
        self._expected(f"one of {', '.join(grammar.SETTINGS)}", grammar.SETTINGS)

    def _goal(self, words: grammar.GoalWords) -> Callable[[], Goal]:
        given: dict[str, Any] = {}
        named = " ".join(words.words)
        if words.first is not None:
            given[words.first] = self._value(named)
        if words.second is not None and self._match_text_seq(words.second[0]):
            given[words.second[1]] = self._value_or_word(words.second[0])
        given |= self._options(grammar.options_of(words.kind, words), named)
        return lambda: words.kind(**given)

    def _choice(self, phrase: Sequence[str], choices: dict[tuple[str, ...], Any]) -> Any:
        for words, value in choices.items():
            if not words or self._match_text_seq(*words):
                return value
        spelled = [" ".join(words) for words in choices]
        self._expected(f"{' or '.join(spelled)} behind {' '.join(phrase)}", spelled)

    def _compensation(self) -> Any:
        if self._match_text_seq("TRUE") or self._match_text_seq("FALSE"):
            return self._prev.text.upper() == "TRUE"
        if self._curr.token_type == TokenType.STRING or (
            self._is_name() and self._curr.text.lower() in grammar.COMPENSATION
        ):
            self._advance()
            return self._prev.text.lower()
        return True

    def _shedding(self, first: Token) -> Any:
        if self._match_text_seq("ADAPTIVE") or self._match_text_seq("OFF"):
            return self._prev.text.lower()
        for words, kind in grammar.SHEDDING:
            if self._match_text_seq(*words):
                given = self._options(grammar.options_of(kind), f"SHED {' '.join(words)}")
                made: Shedding = self._checked(lambda: kind(**given), first)  # noqa: B023
                return made
        known = ("ADAPTIVE", "OFF", *(" ".join(words) for words, _ in grammar.SHEDDING))
        self._expected(f"one of {', '.join(known)} behind SHED", known)

    def _options(self, allowed: Sequence[str], behind: str) -> dict[str, Any]:
        """``(model 'eqsel', every 2 SECONDS)``, if it is there."""
        given: dict[str, Any] = {}
        if not self._match(TokenType.L_PAREN):
            return given
        while True:
            token = self._curr
            name = self._name("an option").lower()
            if name not in allowed:
                near = meant(name, allowed)
                listed = ", ".join(allowed) or "none"
                self.raise_error(f"{behind} has the options {listed}; got {name}{near}", token)
            self._once(name in given, name, token)
            given[name] = self._value_or_word(name)
            if not self._match(TokenType.COMMA):
                break
        self._close(TokenType.R_PAREN, ")")
        return given
