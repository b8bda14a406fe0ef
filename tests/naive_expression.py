"""What an expression means, row by row in plain Python: the oracle of all back ends.

A null is None. What the back ends need not agree on raises `UndefinedError`.
"""

import math
import operator
from itertools import pairwise

from slackwater.query.expression import (
    And,
    Binary,
    Call,
    Column,
    Compare,
    Literal,
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
    "%": operator.mod,
    "**": operator.pow,
}
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FUNCTIONS = {
    "abs": abs,
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "dist": lambda x, y, u, v: math.dist((x, y), (u, v)),
    **{
        name: getattr(math, name)
        for name in "sqrt exp log floor ceil sin cos tan atan2 hypot".split()
    },
}


class UndefinedError(Exception):
    """Division by zero, a root of a negative number, a number that is too large."""


def value(node, row):
    """The value of a tree for a row, {Column: value}."""
    match node:
        case Column():
            return row[node]
        case Literal(number):
            return number
        case And(operands):
            truths = [truth(value(operand, row)) for operand in operands]
            return False if False in truths else None if None in truths else True
        case Or(operands):
            truths = [truth(value(operand, row)) for operand in operands]
            return True if True in truths else None if None in truths else False
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
        case Call(function, arguments):
            return strict(FUNCTIONS[function], *(value(each, row) for each in arguments))


def truth(known):
    """A number as a condition."""
    return None if known is None else bool(known)


def strict(function, *values):
    """A function that is null if a value is."""
    if None in values:
        return None
    whole = all(isinstance(each, int) for each in values)
    if function is operator.pow and whole and values[1] < 0:
        raise UndefinedError
    try:
        found = function(*values)
    except (ArithmeticError, ValueError) as error:
        raise UndefinedError from error
    if isinstance(found, complex) or not abs(found) < MOST:
        raise UndefinedError
    return found
