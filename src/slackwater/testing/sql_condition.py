"""The condition of a join as SQL of DuckDB that means the same, for an oracle that is not ours.

>>> as_sql("abs(a.x - b.x) <= 1 and a.y // 2 == 0", {"a": "s0", "b": "s1"})
'((abs((s0."x" - s1."x")) <= 1) AND (floor((s0."y") / (2)) = 0))'
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from slackwater.query.expression import (
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
    is_condition,
    parse,
    text_of,
)

_ARITHMETIC = {
    "+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "/": "({} / {})",
    "//": "floor(({}) / ({}))", "**": "pow({}, {})",
    "%": "({0} - floor(({0}) / ({1})) * {1})",  # the sign is that of the divisor
}  # fmt: skip
_COMPARISONS = {"==": "=", "!=": "<>"}  # the others are spelled the same
_FUNCTIONS = {
    "abs": "abs({})", "sqrt": "sqrt({})", "exp": "exp({})", "log": "ln({})", "floor": "floor({})",
    "ceil": "ceil({})", "sin": "sin({})", "cos": "cos({})", "tan": "tan({})",
    "atan2": "atan2({}, {})", "hypot": "sqrt(pow({}, 2) + pow({}, 2))",
    "dist": "sqrt(pow({0} - {2}, 2) + pow({1} - {3}, 2))",
}  # fmt: skip
# least and greatest of DuckDB leave nulls out; here one null makes a null
_EXTREMES = {"min": "list_sort([{}], 'ASC', 'NULLS FIRST')[1]",
             "max": "list_sort([{}], 'DESC', 'NULLS FIRST')[1]"}  # fmt: skip
_LONGEST = 1_000_000  # % doubles its operands, so % inside % inside % grows without end


class NotSqlError(ValueError):
    """A condition for which there is no SQL here."""


def as_sql(condition: str, places: Mapping[str, str]) -> str:
    """The condition over `places`, the tables of the streams; raises `NotSqlError`."""
    tree = parse(condition)
    return _truth(tree, places)


def _truth(node: Node, places: Mapping[str, str]) -> str:
    """A condition; a column is true or a number, and DuckDB casts it itself."""
    text = sql_of(node, places)
    return text if is_condition(node) or isinstance(node, Column) else f"({text} <> 0)"


def _number(node: Node, places: Mapping[str, str]) -> str:
    """A number; a condition is 0 or 1."""
    text = sql_of(node, places)
    return f"CAST({text} AS BIGINT)" if is_condition(node) else text


def sql_of(node: Node, places: Mapping[str, str]) -> str:
    """The SQL of a tree; raises `NotSqlError`."""
    text = _sql(node, places)
    if len(text) > _LONGEST:
        msg = f"{text_of(node)[:40]}… is too long as SQL"
        raise NotSqlError(msg)
    return text


def _sql(node: Node, places: Mapping[str, str]) -> str:
    def numbers(*nodes: Node) -> list[str]:
        return [_number(each, places) for each in nodes]

    match node:
        case Literal(bool(value)):
            return str(value).upper()
        case Literal(int(value)):
            return repr(value)
        case Literal(value):  # without quotes it would be a decimal
            return f"'{value!r}'::DOUBLE"
        case Column(stream, name) if stream in places:
            quoted = name.replace('"', '""')
            return f'{places[stream]}."{quoted}"'
        case Negate(operand):
            return f"(- {numbers(operand)[0]})"
        case Binary(operator, left, right):
            return _ARITHMETIC[operator].format(*numbers(left, right))
        case Compare(operands, operators):
            pairs = zip(operators, pairwise(numbers(*operands)), strict=True)
            tests = [f"{a} {_COMPARISONS.get(sign, sign)} {b}" for sign, (a, b) in pairs]
            return f"({' AND '.join(tests)})"
        case Not(operand):
            return f"(NOT {_truth(operand, places)})"
        case And(operands):
            return f"({' AND '.join(_truth(each, places) for each in operands)})"
        case Or(operands):
            return f"({' OR '.join(_truth(each, places) for each in operands)})"
        case Call(function, arguments) if function in _FUNCTIONS:
            return _FUNCTIONS[function].format(*numbers(*arguments))
        case Call(function, arguments) if function in _EXTREMES:
            return _EXTREMES[function].format(", ".join(numbers(*arguments)))
    raise NotSqlError(text_of(node))
