"""The Arrow back end of expressions: whole columns at once, with and without Spark alike.

>>> from slackwater.query.expression import parse
>>> columns = {Column("a", "x"): pa.array([3, None, -5])}
>>> evaluate(parse("abs(a.x) > 4"), columns, "select").to_pylist()
[False, None, True]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.errors import DataError, QueryError
from slackwater.joins.columns import is_number, is_vector
from slackwater.query.expression import (
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
    Type,
    columns_of,
    text_of,
    type_of,
)

Values = Mapping[Column, pa.Array]


def evaluate(tree: Node, columns: Values, what: str) -> pa.Array:
    """The values of a checked tree, one per row of `columns`; `what` names it in errors.

    Raises
    ------
    QueryError
        Arrow cannot compute a part of it for the types of its columns.
    DataError
        Arrow cannot compute it for these values.
    """
    type_of(tree, lambda column: _type_in_tree(columns[column].type), what)
    value = _value(tree, columns, what)
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, len(next(iter(columns.values()))))


def _value(node: Node, columns: Values, what: str) -> Any:
    """The value of a node: a column, or a scalar; errors name the innermost that fails."""
    try:
        return _computed(node, columns, what)
    except pa.ArrowNotImplementedError as error:
        kinds = ", ".join(f"{each} {columns[each].type}" for each in sorted(columns_of(node)))
        msg = f"{what} cannot compute {text_of(node)}" + (f" of {kinds}" if kinds else "")
        raise QueryError(msg) from error
    except pa.ArrowInvalid as error:  # a sum that does not fit
        msg = f"{what} cannot compute {text_of(node)}: {error}"
        raise DataError(msg) from error


def _computed(node: Node, columns: Values, what: str) -> Any:
    def of(child: Node) -> Any:
        return _value(child, columns, what)

    match node:
        case Column():
            return columns[node]
        case Literal(value):
            return pa.scalar(value)
        case Negate(operand):
            return pc.negate_checked(_number(of(operand)))
        case Binary(operator, left, right):
            return _ARITHMETIC[operator](_number(of(left)), _number(of(right)))
        case Compare(operands, operators):
            pairs = zip(operators, pairwise(map(of, operands)), strict=True)
            return reduce(pc.and_kleene, [_compared(sign, *pair) for sign, pair in pairs])
        case Not(operand):
            return pc.invert(_truth(of(operand)))
        case And(operands):
            return reduce(pc.and_kleene, [_truth(of(operand)) for operand in operands])
        case Or(operands):
            return reduce(pc.or_kleene, [_truth(of(operand)) for operand in operands])
        case Call(function, arguments):
            return _CALLS[function](*map(of, arguments))
    raise AssertionError(node)


# ---- types


def _type_in_tree(kind: pa.DataType) -> Type:
    """What a tree calls a type of Arrow."""
    if pa.types.is_boolean(kind):
        return Type.BOOLEAN
    if pa.types.is_integer(kind):
        return Type.INTEGER
    if is_number(kind):
        return Type.FLOAT
    return Type.VECTOR if is_vector(kind) else Type.OTHER


def _number(value: Any) -> Any:
    """The value, booleans as 0 and 1."""
    return value.cast(pa.int64()) if pa.types.is_boolean(value.type) else value


def _truth(value: Any) -> Any:
    """The value, numbers as whether they are not 0."""
    return pc.not_equal(value, 0) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return is_number(value.type) and not pa.types.is_boolean(value.type)


def _float(value: Any) -> Any:
    return value.cast(pa.float64())


# ---- operators


def _divide(left: Any, right: Any) -> Any:
    return pc.divide(_float(left), _float(right))


def _floored(left: Any, right: Any) -> Any:
    return pc.floor(_divide(left, right))


def _remainder(left: Any, right: Any) -> Any:
    return pc.subtract(_float(left), pc.multiply(_floored(left, right), _float(right)))


def _power(left: Any, right: Any) -> Any:
    return pc.power(_float(left), _float(right))


def _compared(sign: str, left: Any, right: Any) -> Any:
    return _COMPARISONS[sign](_number(left), _number(right))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": _divide,
    "//": _floored,
    "%": _remainder,
    "**": _power,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


# ---- functions


def _smallest(*values: Any) -> Any:
    return pc.min_element_wise(*map(_number, values), skip_nulls=False)


def _largest(*values: Any) -> Any:
    return pc.max_element_wise(*map(_number, values), skip_nulls=False)


def _hypot(x: Any, y: Any) -> Any:
    return pc.sqrt(pc.add(_power(x, pa.scalar(2)), _power(y, pa.scalar(2))))


def _dist(x: Any, y: Any, u: Any, v: Any) -> Any:
    return _hypot(pc.subtract(_float(x), _float(u)), pc.subtract(_float(y), _float(v)))


def _of_vectors(function: str) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        a, b = _matrix(left, function), _matrix(right, function)
        if a.shape != b.shape and len(a):
            msg = f"select: {function} takes two vectors of the same length, got "
            raise DataError(msg + f"{a.shape[1]} and {b.shape[1]}")
        with np.errstate(invalid="ignore", divide="ignore"):
            return pa.array(_VECTORS[function](a, b))

    return compute


def _matrix(column: Any, function: str) -> Any:
    lengths = pc.unique(pc.list_value_length(column))
    values = pc.list_flatten(column)
    if column.null_count or values.null_count or len(lengths) > 1:
        msg = f"select: {function} takes vectors of one length without nulls"
        raise DataError(msg)
    width = lengths[0].as_py() if len(lengths) else 0
    return values.cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(len(column), width)


def _dot(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=1)


def _cosine(a: Any, b: Any) -> Any:
    norms = np.sqrt(_dot(a, a) * _dot(b, b))
    return np.divide(_dot(a, b), norms, out=np.zeros(len(norms)), where=norms != 0)


_VECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "dot": _dot,
    "cosine": _cosine,
    "l2": lambda a, b: np.sqrt(_dot(a - b, a - b)),
}
_CALLS: dict[str, Callable[..., Any]] = {
    "abs": lambda x: pc.abs_checked(_number(x)),
    "min": _smallest,
    "max": _largest,
    "dist": _dist,
    "hypot": _hypot,
    "sqrt": lambda x: pc.sqrt(_float(x)),
    "exp": lambda x: pc.exp(_float(x)),
    "log": lambda x: pc.ln(_float(x)),
    "floor": lambda x: pc.floor(_float(x)),
    "ceil": lambda x: pc.ceil(_float(x)),
    "sin": lambda x: pc.sin(_float(x)),
    "cos": lambda x: pc.cos(_float(x)),
    "tan": lambda x: pc.tan(_float(x)),
    "atan2": lambda y, x: pc.atan2(_float(y), _float(x)),
    **{name: _of_vectors(name) for name in VECTOR_FUNCTIONS},
}
