"""From a tree to its canonical text, which parses to the same tree.

>>> text_of(Binary("*", Binary("+", Column("a", "x"), Literal(1)), Column("b", "bid price")))
'(a.x + 1) * b.`bid price`'
"""

from __future__ import annotations

import math

from slackwater.query.expression.moments import text_of_moment
from slackwater.query.expression.nodes import (
    And,
    Binary,
    Call,
    Case,
    Column,
    Compare,
    In,
    IsNull,
    Literal,
    Moment,
    Negate,
    Node,
    Not,
    Or,
)

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
_BINDS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT,
          "div": _PRODUCT}  # fmt: skip
_INFINITY = "1e309"  # reads as infinity, which has no literal of its own


def text_of(node: Node) -> str:
    """The canonical text of a tree: single spaces, and parentheses only where they are needed."""
    return _written(node)[0]


def _at(node: Node, least: int) -> str:
    """The text of an operand, in parentheses if it binds less than `least`."""
    text, binds = _written(node)
    return text if binds >= least else f"({text})"


def _written(node: Node) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case Column():
            return str(node), _ATOM
        case Literal(str(value)):
            return "'" + value.replace("'", "''") + "'", _ATOM
        case Literal(value):
            shown = "null" if value is None else repr(value)
            return (_INFINITY if value == math.inf else shown), _ATOM
        case Moment():
            return text_of_moment(node), _ATOM if node.micros >= 0 else _SIGN
        case Not(IsNull(operand)):
            return f"{_at(operand, _SUM)} is not null", _COMPARE
        case Not(In(operand, options)):
            return f"{_at(operand, _SUM)} not in {_listed(options)}", _COMPARE
        case IsNull(operand):
            return f"{_at(operand, _SUM)} is null", _COMPARE
        case In(operand, options):
            return f"{_at(operand, _SUM)} in {_listed(options)}", _COMPARE
        case Case(branches, otherwise):
            tests = [f"when {_at(test, _OR)} then {_at(then, _OR)}" for test, then in branches]
            if otherwise != Literal(None):
                tests.append(f"else {_at(otherwise, _OR)}")
            return f"case {' '.join(tests)} end", _ATOM
        case Call("like", (text, pattern)):
            return f"{_at(text, _SUM)} like {_at(pattern, _SUM)}", _COMPARE
        case Negate(operand):
            return f"-{_at(operand, _SIGN)}", _SIGN
        case Binary("**", left, right):  # groups to the right, and takes a sign behind it
            return f"{_at(left, _ATOM)} ** {_at(right, _SIGN)}", _POWER
        case Binary(operator, left, right):
            binds = _BINDS[operator]
            return f"{_at(left, binds)} {operator} {_at(right, binds + 1)}", binds
        case Compare(operands, operators):
            sides = [_at(operand, _SUM) for operand in operands]
            rest = (f" {sign} {side}" for sign, side in zip(operators, sides[1:], strict=True))
            return sides[0] + "".join(rest), _COMPARE
        case Not(operand):
            return f"not {_at(operand, _NOT)}", _NOT
        case And(operands):
            return " and ".join(_at(operand, _NOT) for operand in operands), _AND
        case Or(operands):
            return " or ".join(_at(operand, _AND) for operand in operands), _OR
        case Call(function, arguments):
            return f"{function}({', '.join(_at(each, _OR) for each in arguments)})", _ATOM


def _listed(nodes: tuple[Node, ...]) -> str:
    return f"({', '.join(_at(each, _OR) for each in nodes)})"
