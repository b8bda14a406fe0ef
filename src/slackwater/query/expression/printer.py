"""From a tree to its canonical text, which parses to the same tree.

>>> text_of(Binary("*", Binary("+", Column("a", "x"), Literal(1)), Column("b", "bid price")))
'(a.x + 1) * b.`bid price`'
"""

from __future__ import annotations

import math

from slackwater.query.expression.nodes import (
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

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
_BINDS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}
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
        case Literal(value):
            return (_INFINITY if value == math.inf else repr(value)), _ATOM
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
