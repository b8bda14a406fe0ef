"""From text to a tree: ``abs(q.`bid price` - t.px) < 1 AND t.venue IN ('X', 'Y')``.

The grammar is SQL's, with Spark's words; Python's ``==``, ``//``, ``**`` and chains such as
``0 < a.x < 1`` are taken too. Words may be written large or small.

>>> parse("a.x + 1 > 0")
Compare(operands=(Binary(operator='+', left=Column(stream='a', name='x'), right=Literal(value=1)), \
Literal(value=0)), operators=('>',))
>>> parse("a.x IS NULL") == parse("a.x is null")
True
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from typing import NoReturn

from slackwater.errors import QueryError
from slackwater.query.expression.limits import LARGEST, check_length, check_size, too_deep
from slackwater.query.expression.moments import moment_of
from slackwater.query.expression.names import quoted, unquoted
from slackwater.query.expression.nodes import (
    FUNCTIONS,
    VECTOR_FUNCTIONS,
    And,
    Binary,
    Call,
    Case,
    Column,
    Compare,
    In,
    IsNull,
    Literal,
    Negate,
    Node,
    Not,
    Or,
)
from slackwater.query.expression.printer import text_of
from slackwater.query.expression.tokens import Token, place_error, tokens

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER = range(1, 9)
_BINARY = {
    "+": _SUM, "-": _SUM, "||": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT,
    "%": _PRODUCT, "div": _PRODUCT, "**": _POWER,
}  # fmt: skip
_COMPARISONS = {
    "=": "==", "==": "==", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "null": None}
_MOST_DIGITS = 400  # Python refuses whole numbers of thousands
_TESTS = ("is", "in", "not", "between", "like")
_SPELLED = {
    "least": "min", "greatest": "max", "ln": "log", "ceiling": "ceil", "char_length": "length",
    "substr": "substring", "ifnull": "coalesce", "nvl": "coalesce", "dayofmonth": "day",
}  # fmt: skip
# Functions that are another node, with how many arguments they take.
_REWRITTEN: dict[str, tuple[int, Callable[..., Node]]] = {
    "power": (2, lambda x, y: Binary("**", x, y)),
    "pow": (2, lambda x, y: Binary("**", x, y)),
    "floordiv": (2, lambda x, y: Binary("//", x, y)),
    "if": (3, lambda test, then, other: Case(((test, then),), other)),
    "nullif": (2, lambda x, y: Case(((Compare((x, y), ("==",)), Literal(None)),), x)),
    "isnull": (1, IsNull),
    "isnotnull": (1, lambda x: Not(IsNull(x))),
}


def parse(text: str, what: str = "where", stream: str | None = None) -> Node:
    """The tree of a text.

    Parameters
    ----------
    text
        The expression.
    what
        What it is, for errors: ``"where"`` or ``"select"``.
    stream
        The stream of columns that are written without one; None: all must have one.

    Raises
    ------
    QueryError
        It does not parse, uses what the grammar does not have, or is too large; the error shows
        the place.
    """
    check_length(text, what)
    return _parsed(text, what, stream)


@lru_cache(maxsize=256)  # the condition of a query is needed in many places
def _parsed(text: str, what: str, stream: str | None) -> Node:
    try:
        tree = _Parser(text, what, stream).parse()
    except RecursionError as error:
        raise too_deep(what, text) from error
    check_size(tree, what, text)
    return tree


class _Words:
    """The words of a text, one after the other."""

    def __init__(self, text: str, what: str, stream: str | None) -> None:
        self._text = text
        self._what = what
        self._stream = stream
        self._tokens = tokens(text, what)
        self._at = 0

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    @property
    def _word(self) -> str:
        """What stands here, in small letters; empty for texts and names in backticks."""
        return self._now.text.lower() if self._now.form in ("word", "sign") else ""

    def _take(self) -> Token:
        token = self._now
        self._at += token.form != "end"
        return token

    def _match(self, *words: str) -> bool:
        """Take these words if they stand here."""
        here = self._tokens[self._at : self._at + len(words)]
        if [t.text.lower() if t.form in ("word", "sign") else "" for t in here] != list(words):
            return False
        self._at += len(words)
        return True

    def _need(self, word: str, behind: str) -> None:
        if not self._match(word):
            self._expected(f"{word.upper()} {behind}".strip())

    def _expected(self, what: str) -> NoReturn:
        got = repr(self._now.text) if self._now.form != "end" else "the end"
        hint = "; a text stands in single quotes" if self._now.text == '"' else ""
        msg = f"{self._what} does not parse: expected {what}, got {got}{hint}"
        raise self._error(msg)

    def _error(self, problem: str, first: Token | None = None) -> QueryError:
        token = first or self._now
        end = self._tokens[max(self._at - 1, 0)].end if first else token.end
        return place_error(problem, self._text, token.start, max(end, token.end))


class _Parser(_Words):
    def parse(self) -> Node:
        tree = self._expression(0)
        if self._now.form != "end":
            self._expected("an operator or the end")
        return tree

    # ---- operators

    def _expression(self, least: int) -> Node:
        """An expression whose operators bind at least so tightly."""
        left = self._prefix()
        while True:
            word = self._word
            if word in ("or", "and"):
                binds = _OR if word == "or" else _AND
                if binds < least:
                    return left
                self._take()
                right = self._expression(binds + 1)
                left = Or((left, right)) if word == "or" else And((left, right))
            elif word in _COMPARISONS or word in _TESTS:
                if least > _COMPARE:
                    return left
                left = self._comparison(left)
            elif word in _BINARY:
                binds = _BINARY[word]
                if binds < least:
                    return left
                self._take()
                # ** groups to the right, and takes a sign behind it
                right = self._expression(_SIGN if word == "**" else binds + 1)
                left = Call("concat", (left, right)) if word == "||" else Binary(word, left, right)
            else:
                return left

    def _prefix(self) -> Node:
        if self._is_column():
            return self._column()
        if self._match("not"):
            return Not(self._expression(_NOT))
        if self._match("-"):
            return Negate(self._expression(_SIGN))
        if self._match("+"):
            return self._expression(_SIGN)
        return self._atom()

    def _comparison(self, left: Node) -> Node:
        """What is compared with `left`: others in a chain, null, a list, a range, a pattern."""
        if self._word in _COMPARISONS:
            operands, signs = [left], []
            while self._word in _COMPARISONS:
                signs.append(_COMPARISONS[self._take().text])
                operands.append(self._expression(_SUM))
            return Compare(tuple(operands), tuple(signs))
        if self._match("is"):
            is_not = self._match("not")
            if self._match("null"):
                tested: Node = IsNull(left)
            elif self._word in ("true", "false"):
                value = self._match("true") or not self._match("false")
                tested = Call("coalesce", (Not(Not(left) if value else left), Literal(value=False)))
            else:
                self._expected("NULL, TRUE or FALSE behind IS")
            return Not(tested) if is_not else tested
        if self._match("not"):
            if self._word not in ("in", "between", "like"):
                self._expected("IN, BETWEEN or LIKE behind NOT")
            return Not(self._comparison(left))
        if self._match("in"):
            self._need("(", "behind IN")
            if self._word == ")":
                self._expected("values between the parentheses of IN")
            return In(left, self._listed())
        if self._match("between"):
            low = self._expression(_SUM)
            self._need("and", "behind the lower end of BETWEEN")
            return Compare((low, left, self._expression(_SUM)), ("<=", "<="))
        self._need("like", "")
        return Call("like", (left, self._expression(_SUM)))

    # ---- what stands between operators

    def _atom(self) -> Node:
        token, word = self._now, self._word
        if self._match("("):
            inner = self._expression(0)
            self._need(")", "")
            return inner
        if token.form == "number":
            return self._number()
        if token.form == "text":
            self._take()
            return Literal(token.text[1:-1].replace("''", "'"))
        if word in _CONSTANTS:
            self._take()
            return Literal(_CONSTANTS[word])
        if self._match("case"):
            return self._case()
        if word in ("timestamp", "timestamp_ntz", "date", "interval"):
            return self._moment(word)
        if token.form in ("word", "quoted"):
            is_call = self._tokens[self._at + 1].text == "("
            return self._call() if is_call else self._bare_column()
        return self._expected("a value")

    def _is_column(self) -> bool:
        follows = self._tokens[self._at + 1] if self._now.form != "end" else self._now
        return self._now.form in ("word", "quoted") and follows[:2] == ("sign", ".")

    def _column(self) -> Node:
        first = self._take()
        self._take()
        if self._now.form not in ("word", "quoted"):
            self._expected("the name of a column behind the dot")
        name = self._take()
        if self._word == ".":
            rest = self._tokens[self._at + 1].text
            msg = (
                f"{self._what}: a column is stream.column; write "
                f"{first.text}.`{name.text}.{rest}`, got '{first.text}.{name.text}.'"
            )
            raise self._error(msg, first)
        return Column(unquoted(first.text), unquoted(name.text))

    def _bare_column(self) -> Node:
        token = self._take()
        if self._stream is not None:
            return Column(self._stream, unquoted(token.text))
        shown = quoted(unquoted(token.text))
        msg = f"{self._what} must name columns as stream.column, got {shown!r}"
        raise self._error(msg, token)

    def _number(self) -> Node:
        token = self._take()
        is_whole = token.text.isdecimal() and len(token.text) <= _MOST_DIGITS
        value = int(token.text) if is_whole else float(token.text)
        if token.text.isdecimal() and value >= LARGEST:
            msg = f"{self._what} may hold whole numbers below 2**63, got {token.text[:40]}"
            raise self._error(msg, token)
        return Literal(value)

    def _listed(self) -> tuple[Node, ...]:
        """Expressions up to the parenthesis that closes."""
        if self._match(")"):
            return ()
        found = [self._expression(0)]
        while self._match(","):
            found.append(self._expression(0))
        self._need(")", "or a comma")
        return tuple(found)

    def _case(self) -> Node:
        compared = None if self._word == "when" else self._expression(0)
        branches = []
        while self._match("when"):
            test = self._expression(0)
            self._need("then", "behind the condition of WHEN")
            tested = test if compared is None else Compare((compared, test), ("==",))
            branches.append((tested, self._expression(0)))
        if not branches:
            self._expected("WHEN behind CASE")
        otherwise = self._expression(0) if self._match("else") else Literal(None)
        self._need("end", "of CASE")
        return Case(tuple(branches), otherwise)

    def _moment(self, word: str) -> Node:
        first = self._take()
        if self._now.form not in ("text", "number"):
            self._expected(f"a value behind {word.upper()}")
        token = self._take()
        value = token.text.strip("'")
        if word == "interval" and self._now.form == "word" and not any(map(str.isalpha, value)):
            value = f"{value} {self._take().text}"
        made = moment_of(word, value)
        if made is None:
            like = {"interval": "5 minutes", "date": "2026-01-31"}.get(word, "2026-01-31 12:00:00")
            msg = f"{self._what}: {word} must be like '{like}', got {value!r}"
            raise self._error(msg, first)
        return made

    def _call(self) -> Node:
        first = self._take()
        name = unquoted(first.text)
        given = name.lower() if first.form == "word" else name
        function = _SPELLED.get(given, given)
        known = first.form == "word" and (function in FUNCTIONS or function in _REWRITTEN)
        if not known:
            near = get_close_matches(function, [*FUNCTIONS, *_REWRITTEN, *_SPELLED], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            msg = f"{self._what} knows the functions {', '.join(FUNCTIONS)}; got {name!r}{hint}"
            raise self._error(msg, first)
        self._take()
        arguments = self._listed()
        takes = _REWRITTEN[function][0] if function in _REWRITTEN else FUNCTIONS[function]
        if len(arguments) != takes and (takes is not None or not arguments):
            count = takes or "1 or more"
            msg = f"{self._what}: {given} takes {count} arguments, got {len(arguments)}"
            raise self._error(msg, first)
        for argument in arguments if function in VECTOR_FUNCTIONS else ():
            if not isinstance(argument, Column):
                takes_columns = f"{function} takes columns of vectors, stream.column"
                msg = f"{self._what}: {takes_columns}, got {text_of(argument)}"
                raise self._error(msg, first)
        return made_of(function, arguments)


def known_function(name: str) -> str | None:
    """The name in the tree of a function as text has it; None: there is none."""
    function = _SPELLED.get(name.lower(), name.lower())
    return function if function in FUNCTIONS or function in _REWRITTEN else None


def made_of(function: str, arguments: tuple[Node, ...]) -> Node:
    """The node of a function that is known."""
    if function in _REWRITTEN:
        return _REWRITTEN[function][1](*arguments)
    return Call(function, arguments)
