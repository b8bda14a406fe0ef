"""The condition of a join as SQL that means the same, for an oracle that is not ours.

>>> as_sql("abs(a.x - b.x) <= 1 and a.y // 2 == 0", {"a": "s0", "b": "s1"})
'((abs((s0."x" - s1."x")) <= 1) AND ((floor(s0."y" / 2)) = 0))'
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import pairwise

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "{} + {}", ast.Sub: "{} - {}", ast.Mult: "{} * {}", ast.Div: "{} / {}",
    ast.FloorDiv: "floor({} / {})", ast.Pow: "pow({}, {})",
    ast.Mod: "{0} - floor({0} / {1}) * {1}",  # as Python has it: the sign is that of the divisor
    ast.Lt: "{} < {}", ast.LtE: "{} <= {}", ast.Gt: "{} > {}", ast.GtE: "{} >= {}",
    ast.Eq: "{} = {}", ast.NotEq: "{} <> {}",
    ast.And: " AND ", ast.Or: " OR ", ast.Not: "NOT {}", ast.USub: "- {}", ast.UAdd: "+ {}",
}  # fmt: skip
_FUNCTIONS = {
    "abs": "abs", "min": "least", "max": "greatest", "sqrt": "sqrt", "exp": "exp", "log": "ln",
    "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos", "tan": "tan", "atan2": "atan2",
}  # fmt: skip
_DISTANCE = "sqrt(pow({0} - {2}, 2) + pow({1} - {3}, 2))"


class NotSqlError(ValueError):
    """A condition for which there is no SQL here."""


def as_sql(condition: str, places: Mapping[str, str]) -> str:
    """The condition over `places`, the tables of the streams; raises `NotSqlError`."""
    return _sql(ast.parse(condition, mode="eval").body, places)


def _sql(node: ast.AST, places: Mapping[str, str]) -> str:
    def of(part: ast.AST) -> str:
        return _sql(part, places)

    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return repr(value)
        case ast.Attribute(value=ast.Name(id=stream), attr=column) if stream in places:
            return f'{places[stream]}."{column}"'
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_OPERATORS[type(op)].format(of(left), of(right))})"
        case ast.UnaryOp(op=op, operand=operand):
            return f"({_OPERATORS[type(op)].format(of(operand))})"
        case ast.BoolOp(op=op, values=values):
            return f"({_OPERATORS[type(op)].join(map(of, values))})"
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = pairwise([of(left), *map(of, others)])
            tests = [_OPERATORS[type(op)].format(*two) for op, two in zip(ops, sides, strict=True)]
            return "(" + " AND ".join(tests) + ")"
        case ast.Call(func=ast.Name(id=name), args=given) if name in _FUNCTIONS:
            return f"{_FUNCTIONS[name]}({', '.join(map(of, given))})"
        case ast.Call(func=ast.Name(id="dist"), args=given):
            return _DISTANCE.format(*map(of, given))
        case ast.Call(func=ast.Name(id="hypot"), args=given):
            return _DISTANCE.format(*map(of, given), "0", "0")
    msg = ast.unparse(node)
    raise NotSqlError(msg)
