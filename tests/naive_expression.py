"""What an expression means, row by row in plain Python: the oracle of all back ends.

A null is None. What the back ends need not agree on raises `UndefinedError`.
"""

import math
import operator
import re
from datetime import UTC, datetime, timedelta
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
    Not,
    Or,
)

MOST = 2**53  # beyond, floats do not have all whole numbers
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": lambda x, y: int(math.fmod(x, y)) if is_whole(x, y) else math.fmod(x, y),
    "**": lambda x, y: float(x) ** float(y),
    "div": lambda x, y: int(x / y) if is_whole(x, y) else float(int(x / y)),
}
COMPARISONS = {
    sign: lambda x, y, compare=compare: compare(ranked(x), ranked(y))
    for sign, compare in {
        "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
        ">": operator.gt, ">=": operator.ge,
    }.items()
}  # fmt: skip
FUNCTIONS = {
    "abs": abs,
    "log": lambda x: math.log(x) if x > 0 else None,
    "dist": lambda x, y, u, v: math.dist((x, y), (u, v)),
    **{name: getattr(math, name) for name in "sqrt exp floor ceil sin cos tan atan2 hypot".split()},
}


TEXTS = {
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" "),
    "length": len,
    "concat": lambda *texts: "".join(texts),
    "substring": lambda text, first, n: text[first - 1 : first - 1 + n],
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": operator.contains,
    "like": lambda text, pattern: bool(re.fullmatch(as_regex(pattern), text, re.DOTALL)),
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_whole(*numbers):
    return all(isinstance(number, int) for number in numbers)


def ranked(value):
    """NaN equals itself and is above all other numbers."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


def as_regex(pattern):
    signs = {"%": ".*", "_": "."}
    return "".join(signs.get(sign, re.escape(sign)) for sign in pattern)


class UndefinedError(Exception):
    """Division by zero, a root of a negative number, a number that is too large."""


def value(node, row):
    """The value of a tree for a row, {Column: value}."""
    match node:
        case Column():
            return row[node]
        case Literal(number):
            return number
        case Moment(kind, micros):
            length = timedelta(microseconds=micros)
            return length if kind == "interval" else EPOCH + length
        case IsNull(operand):
            return value(operand, row) is None
        case In(operand, options):
            return value(Or(tuple(Compare((operand, o), ("==",)) for o in options)), row)
        case Case(branches, otherwise):
            for test, then in branches:
                if truth(value(test, row)):
                    return value(then, row)
            return value(otherwise, row)
        case And(operands):
            return connected(operands, row, decides=False)
        case Or(operands):
            return connected(operands, row, decides=True)
        case Not(operand):
            known = truth(value(operand, row))
            return None if known is None else not known
        case Compare(operands, operators):
            sides = [value(operand, row) for operand in operands]
            tests = [
                strict(COMPARISONS[sign], *pair)
                for sign, pair in zip(operators, pairwise(sides), strict=True)
            ]
            return False if False in tests else None if None in tests else True
        case Negate(operand):
            return strict(operator.neg, value(operand, row))
        case Binary(sign, left, right):
            return strict(ARITHMETIC[sign], value(left, row), value(right, row))
        case Call("coalesce", arguments):
            return next((v for v in (value(a, row) for a in arguments) if v is not None), None)
        case Call("min" | "max" as function, arguments):
            known = [v for v in (value(each, row) for each in arguments) if v is not None]
            return (min if function == "min" else max)(known, key=ranked, default=None)
        case Call(function, arguments):
            values = [value(each, row) for each in arguments]
            if function in TEXTS:
                return None if None in values else TEXTS[function](*values)
            if hasattr(values[0], function):  # of a time
                return getattr(values[0], function)
            return strict(FUNCTIONS.get(function), *values)


def connected(operands, row, decides):
    """And, Or: what stands behind one that decides is not looked at."""
    found = not decides
    for operand in operands:
        known = truth(value(operand, row))
        if known is decides:
            return decides
        found = None if known is None else found
    return found


def truth(known):
    """A number as a condition."""
    return None if known is None else bool(known)


def strict(function, *values):
    """A function that is null if a value is."""
    if None in values:
        return None
    try:
        found = function(*values)
    except (ArithmeticError, ValueError) as error:
        raise UndefinedError from error
    if isinstance(found, complex) or (isinstance(found, int | float) and not abs(found) < MOST):
        raise UndefinedError
    return found
