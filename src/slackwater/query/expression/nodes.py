"""The tree of an expression, and what it means.

Text, `sw.col` and SQL are three ways to write a tree; numba (`joins/conditions.py`), Arrow
(`joins/arrow_values.py`) and SQL (`sql/expressions.py`, `testing/sql_condition.py`) are three ways
to compute it. What follows holds for all of them.

**Nulls** are those of SQL. A value that is null is unknown: arithmetic, functions and comparisons
with it are null. ``and``, ``or`` and ``not`` have three values: ``false and null`` is false,
``true or null`` is true, what else has a null in it is null. A condition holds only if it is true.
In ``where`` a row that has a null in a column without which the condition can never be true is
rejected before, with the reason ``null in where``.

**Spark's answer** is the standard. Whole numbers and booleans are whole (false 0, true 1), decimals
and floats are 64-bit floats in ``where``. A number stands for a condition where it is not 0. NaN
equals itself and is above all other numbers. ``%`` has the sign of the dividend, ``div`` rounds
towards 0, `least` and `greatest` leave nulls out, the logarithm of what is not above 0 is null.
Division by zero is an error. Not Spark's: ``//`` rounds down, ``**`` is a power.

**Undefined** is what the back ends need not agree on: whole numbers beyond 64 bits (an error in
``select``), whole numbers beyond 2**53 where an operator makes floats of them, and functions
outside of their domain, such as the root of a negative number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from slackwater.query.expression.names import quoted

ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**", "div")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
VECTOR_FUNCTIONS = ("dot", "cosine", "l2")  # each takes two columns of vectors
# By name, how many arguments a function takes; None: one or more.
NUMBER_FUNCTIONS: dict[str, int | None] = {
    "abs": 1, "min": None, "max": None, "dist": 4, "sqrt": 1, "exp": 1, "log": 1, "floor": 1,
    "ceil": 1, "sin": 1, "cos": 1, "tan": 1, "atan2": 2, "hypot": 2,
    **dict.fromkeys(VECTOR_FUNCTIONS, 2),
}  # fmt: skip
TEXT_FUNCTIONS: dict[str, int | None] = {
    "lower": 1, "upper": 1, "trim": 1, "length": 1, "concat": None, "substring": 3,
    "startswith": 2, "endswith": 2, "contains": 2, "like": 2,
}  # fmt: skip
TIME_FUNCTIONS: dict[str, int | None] = dict.fromkeys(
    ("year", "month", "day", "hour", "minute", "second"), 1
)
FUNCTIONS: dict[str, int | None] = {
    **NUMBER_FUNCTIONS, **TEXT_FUNCTIONS, **TIME_FUNCTIONS, "coalesce": None,
}  # fmt: skip
MOMENTS = ("timestamp", "date", "interval")


class Column(NamedTuple):
    """A column of a stream; null where its row has a null. A stream's name is an identifier."""

    stream: str
    name: str

    def __str__(self) -> str:
        return f"{quoted(self.stream)}.{quoted(self.name)}"


@dataclass(frozen=True)
class Literal:
    """A number that is not negative, true or false, a text, or null (None).

    A negative number is a `Negate`.
    """

    value: bool | int | float | str | None  # noqa: PYI041  to a reader these are kinds of their own
    kind: type = field(init=False, repr=False)  # or 1, 1.0 and true would be one literal

    def __post_init__(self) -> None:
        is_number = isinstance(self.value, int | float)
        if is_number and (math.isnan(self.value) or math.copysign(1, self.value) < 0):  # type: ignore[arg-type]
            msg = f"a literal is a number that is not negative, got {self.value!r}"
            raise ValueError(msg)
        object.__setattr__(self, "kind", type(self.value))


@dataclass(frozen=True)
class Moment:
    """A point in time, in microseconds of UTC; a date is its midnight, an interval a length."""

    kind: str  # one of MOMENTS
    micros: int


@dataclass(frozen=True)
class IsNull:
    """Whether a value is null; never null itself."""

    operand: Node


@dataclass(frozen=True)
class In:
    """Whether a value equals one of several; null if none does and one is null."""

    operand: Node
    options: tuple[Node, ...]


@dataclass(frozen=True)
class Case:
    """The value of the first condition that is true, else `otherwise`."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node = Literal(None)


@dataclass(frozen=True)
class Negate:
    """A number with the other sign; null of null."""

    operand: Node


@dataclass(frozen=True)
class Binary:
    """Arithmetic; null if an operand is.

    ``/`` and ``**`` make floats. A time minus a time is an interval, a time and an interval a time.
    ``//``, ``div`` and ``%`` of whole numbers are whole.
    """

    operator: str  # one of ARITHMETIC
    left: Node
    right: Node


@dataclass(frozen=True)
class Compare:
    """Comparisons in a chain, ``a < b <= c``; each compares neighbours, and all must hold.

    One is null if an operand is; the chain is their `And`.
    """

    operands: tuple[Node, ...]
    operators: tuple[str, ...]  # of COMPARISONS, one less


@dataclass(frozen=True)
class Not:
    """The opposite of a condition; null of null."""

    operand: Node


@dataclass(frozen=True)
class And:
    """False if an operand is, else null if one is, else true; an `And` in it is merged."""

    operands: tuple[Node, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _merged(And, self.operands))


@dataclass(frozen=True)
class Or:
    """True if an operand is, else null if one is, else false; an `Or` in it is merged."""

    operands: tuple[Node, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", _merged(Or, self.operands))


@dataclass(frozen=True)
class Call:
    """A function; null if an argument is, but for `min`, `max` and `coalesce`.

    Functions of vectors take columns without nulls: others are rejected in ``where``, and are an
    error in ``select``. The cosine of a zero vector is 0.
    """

    function: str  # one of FUNCTIONS
    arguments: tuple[Node, ...]


Node = (
    Column
    | Literal
    | Moment
    | Negate
    | Binary
    | Compare
    | Not
    | And
    | Or
    | Call
    | IsNull
    | In
    | Case
)


def _merged(kind: type[And | Or], operands: tuple[Node, ...]) -> tuple[Node, ...]:
    merged: list[Node] = []
    for operand in operands:
        merged += operand.operands if isinstance(operand, kind) else [operand]
    return tuple(merged)


def children(node: Node) -> tuple[Node, ...]:
    """The operands of a node."""
    match node:
        case Negate(operand) | Not(operand) | IsNull(operand):
            return (operand,)
        case In(operand, options):
            return (operand, *options)
        case Case(branches, otherwise):
            return (*(node for branch in branches for node in branch), otherwise)
        case Binary(_, left, right):
            return (left, right)
        case Compare(operands) | And(operands) | Or(operands):
            return operands
        case Call(_, arguments):
            return arguments
    return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it; without recursion, as trees may be deep."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def columns_of(node: Node) -> frozenset[Column]:
    """The columns that it reads."""
    return frozenset(each for each in walk(node) if isinstance(each, Column))


def literal(value: bool | int | float) -> Node:  # noqa: PYI041
    """The tree of a number, true or false.

    >>> literal(-2)
    Negate(operand=Literal(value=2))
    """
    return Negate(Literal(-value)) if math.copysign(1, value) < 0 else Literal(value)
