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
    is_condition,
    parse,
    text_of,
)

_ARITHMETIC = {
    "+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "/": "({} / {})",
    "//": "floor(({}) / ({}))", "**": "pow({}, {})", "%": "({} % {})",
    "div": "trunc(({}) / ({}))",
}  # fmt: skip
_COMPARISONS = {"==": "=", "!=": "<>"}  # the others are spelled the same
_FUNCTIONS = {
    "abs": "abs({})", "sqrt": "sqrt({})", "exp": "exp({})", "floor": "floor({})",
    "log": "ln(CASE WHEN {0} > 0 THEN {0} END)",
    "ceil": "ceil({})", "sin": "sin({})", "cos": "cos({})", "tan": "tan({})",
    "atan2": "atan2({}, {})", "hypot": "sqrt(pow({}, 2) + pow({}, 2))",
    "dist": "sqrt(pow({0} - {2}, 2) + pow({1} - {3}, 2))",
}  # fmt: skip
# of any number of arguments; like Spark's, least and greatest leave nulls out
_SEVERAL = {"min": "least({})", "max": "greatest({})"}
_OF_TEXTS = {
    "lower": "lower({})", "upper": "upper({})", "trim": "trim({})", "length": "length({})",
    "substring": "substring({}, {}, {})", "startswith": "starts_with({}, {})",
    "endswith": "ends_with({}, {})", "contains": "contains({}, {})", "like": "({} LIKE {})",
}  # fmt: skip
_OF_TIMES = ("year", "month", "day", "hour", "minute", "second")
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
        case Literal(str(value)):
            quoted = value.replace("'", "''")
            return f"'{quoted}'"
        case Literal(None):
            return "NULL"
        case Moment("interval", micros):
            return f"to_microseconds({micros})"
        case Moment(_, micros):
            return f"make_timestamp({micros})"
        case IsNull(operand):
            return f"({sql_of(operand, places)} IS NULL)"
        case In(operand, options):
            same = (_sql(Compare((operand, each), ("==",)), places) for each in options)
            return f"({' OR '.join(same)})"
        case Case(branches, otherwise):
            whens = [f"WHEN {_truth(t, places)} THEN {_number(v, places)}" for t, v in branches]
            return f"CASE {' '.join(whens)} ELSE {_number(otherwise, places)} END"
        case Call("concat", arguments):
            return f"({' || '.join(sql_of(each, places) for each in arguments)})"
        case Call("coalesce", arguments):
            return f"coalesce({', '.join(numbers(*arguments))})"
        case Call(function, arguments) if function in _OF_TEXTS:
            return _OF_TEXTS[function].format(*(sql_of(each, places) for each in arguments))
        case Call(function, (argument,)) if function in _OF_TIMES:
            return f"{function}({sql_of(argument, places)})"
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
        case Call(function, arguments) if function in _SEVERAL:
            return _SEVERAL[function].format(", ".join(numbers(*arguments)))
    raise NotSqlError(text_of(node))
