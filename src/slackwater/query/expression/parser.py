"""From text to a tree: ``abs(quotes.`bid price` - trades.px) < 1 and trades.size > 0``.

The grammar is a small part of Python's: numbers, ``stream.column``, arithmetic, comparisons,
``and``/``or``/``not`` and some functions. Only names in backticks are not Python's. Nobody else
looks at Python's own tree.

>>> parse("a.x + 1 > 0")
Compare(operands=(Binary(operator='+', left=Column(stream='a', name='x'), right=Literal(value=1)), \
Literal(value=0)), operators=('>',))
"""

from __future__ import annotations

import ast
import re
import unicodedata
from functools import lru_cache

from slackwater.errors import QueryError
from slackwater.query.expression.limits import (
    DEEPEST,
    LARGEST,
    check_length,
    check_size,
    too_deep,
)
from slackwater.query.expression.names import QUOTED, quoted, unquoted
from slackwater.query.expression.nodes import (
    FUNCTIONS,
    VECTOR_FUNCTIONS,
    And,
    Binary,
    Call,
    Column,
    Compare,
    Literal,
    Negate,
    Node,
    Not,
    Or,
)
from slackwater.query.expression.printer import text_of

_NOT_CLOSED = "a ` is not closed"
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


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
        It does not parse, uses what the grammar does not have, or is too large.
    """
    check_length(text, what)
    return _parsed(text, what, stream)


@lru_cache(maxsize=256)  # the condition of a query is needed in many places
def _parsed(text: str, what: str, stream: str | None) -> Node:
    tree = _Parser(text, what, stream).parse()
    check_size(tree, what, text)
    return tree


class _Parser:
    def __init__(self, text: str, what: str, stream: str | None) -> None:
        self._text = text
        self._what = what
        self._stream = stream
        self._quoted: dict[str, str] = {}  # by what stands for it, a name in backticks

    def parse(self) -> Node:
        plain = self._without_quotes()
        try:
            body = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise self._error(getattr(error, "msg", None) or str(error)) from error
        except (RecursionError, MemoryError) as error:  # Python's parser raises either
            raise too_deep(self._what, self._text) from error
        return self._node(body, 0)

    def _without_quotes(self) -> str:
        """The text with identifiers for the names in backticks."""
        prefix, normal = "_q", unicodedata.normalize("NFKC", self._text)
        while prefix in normal:
            prefix += "q"

        def stand_in(match: re.Match[str]) -> str:
            name = f"{prefix}{len(self._quoted)}"
            self._quoted[name] = unquoted(match[0])
            return f" {name} "  # apart from what stands beside the backticks

        plain = QUOTED.sub(stand_in, self._text)
        if "`" in plain:
            raise self._error(_NOT_CLOSED)
        return plain

    def _error(self, detail: str) -> QueryError:
        return QueryError(f"{self._what} does not parse: {detail} in {self._text!r}")

    def _name(self, identifier: str) -> str:
        return self._quoted.get(identifier, identifier)

    # ---- nodes

    def _node(self, node: ast.expr, depth: int) -> Node:
        """The node of our tree, `depth` operators below the top."""
        match node:
            case ast.Attribute(value=ast.Name(id=stream), attr=name):
                return Column(self._name(stream), self._name(name))
            case ast.Name(id=name) if self._stream is not None:
                return Column(self._stream, self._name(name))
            case ast.Name(id=name):
                shown = quoted(self._quoted[name]) if name in self._quoted else name
                got = f"got {shown!r} in {self._text!r}"
                msg = f"{self._what} must name columns as stream.column, {got}"
                raise QueryError(msg)
            case ast.Constant(value=value):
                return self._literal(value)
        if depth >= DEEPEST:
            raise too_deep(self._what, self._text)

        def inner(child: ast.expr) -> Node:
            return self._node(child, depth + 1)

        match node:
            case ast.BoolOp(op=op, values=values):
                # connectors of one kind are merged, so one inside another is no deeper
                same = [isinstance(v, ast.BoolOp) and type(v.op) is type(op) for v in values]
                operands = tuple(
                    self._node(v, depth + (not s)) for v, s in zip(values, same, strict=True)
                )
                return And(operands) if isinstance(op, ast.And) else Or(operands)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(inner(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Negate(inner(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return inner(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return Binary(_ARITHMETIC[type(op)], inner(left), inner(right))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARISONS for op in ops
            ):
                operands = tuple(inner(side) for side in (left, *others))
                return Compare(operands, tuple(_COMPARISONS[type(op)] for op in ops))
            case ast.Call():
                return self._call(node, depth)
        raise self._not_in_grammar(node)

    def _literal(self, value: object) -> Node:
        if not isinstance(value, int | float):
            msg = f"{self._what} may only hold numbers, got {value!r} in {self._text!r}"
            raise QueryError(msg)
        if isinstance(value, int) and value >= LARGEST:
            msg = f"{self._what} may hold whole numbers below 2**63, got {value} in {self._text!r}"
            raise QueryError(msg)
        return Literal(value)

    def _call(self, node: ast.Call, depth: int) -> Node:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name not in FUNCTIONS or node.keywords:
            got = f"got {self._name(name)!r} in {self._text!r}"
            msg = f"{self._what} knows the functions {', '.join(FUNCTIONS)}; {got}"
            raise QueryError(msg)
        takes, given = FUNCTIONS[name], len(node.args)
        if given != takes and (takes is not None or not given):
            count = takes or "1 or more"
            msg = f"{self._what}: {name} takes {count} arguments, got {given} in {self._text!r}"
            raise QueryError(msg)
        arguments = tuple(self._node(argument, depth + 1) for argument in node.args)
        for argument in arguments if name in VECTOR_FUNCTIONS else ():
            if not isinstance(argument, Column):
                got = f"got {text_of(argument)} in {self._text!r}"
                msg = f"{self._what}: {name} takes columns of vectors, stream.column, {got}"
                raise QueryError(msg)
        return Call(name, arguments)

    def _not_in_grammar(self, node: ast.expr) -> QueryError:
        strange: ast.AST = node
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            strange = node.op
        elif isinstance(node, ast.Compare):
            strange = next(op for op in node.ops if type(op) not in _COMPARISONS)
        return QueryError(
            f"{self._what} may use arithmetic, comparisons, and/or/not and "
            f"{', '.join(FUNCTIONS)}; got {type(strange).__name__} in {self._text!r}"
        )
