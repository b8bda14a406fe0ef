"""The Arrow back end of expressions: whole columns at once, with and without Spark alike.

>>> from slackwater.query.expression import parse
>>> columns = {Column("a", "x"): pa.array([3, None, -5])}
>>> evaluate(parse("abs(a.x) > 4"), columns, "select").to_pylist()
[False, None, True]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.errors import DataError, QueryError
from slackwater.joins.arrow_functions import (
    CALLS,
    LENGTH,
    MICROS,
    aligned,
    compared,
    computed,
    number,
    truth,
)
from slackwater.joins.column_types import type_in_tree
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
    columns_of,
    text_of,
    type_of,
    walk,
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
    type_of(tree, lambda column: type_in_tree(columns[column].type), what)
    value = _value(tree, columns, what)
    if pa.types.is_null(value.type):
        value = value.cast(pa.bool_())  # Spark's column of nothing but null has a type, too
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
            column = columns[node]
            is_coded = pa.types.is_dictionary(column.type)
            return column.cast(column.type.value_type) if is_coded else column
        case Literal(value):
            return pa.scalar(value)
        case Moment("interval", length):
            return pa.scalar(length, LENGTH)
        case Moment(kind, micros):
            moment = pa.scalar(micros, MICROS)
            return moment.cast(pa.date32()) if kind == "date" else moment
        case Negate(operand):
            value = of(operand)
            if pa.types.is_duration(value.type):
                return pc.negate_checked(value.cast(LENGTH).cast(pa.int64())).cast(LENGTH)
            return pc.negate_checked(number(value))
        case Binary(operator, left, right):
            return computed(operator, of(left), of(right))
        case Compare(operands, operators):
            pairs = zip(operators, pairwise(map(of, operands)), strict=True)
            return reduce(pc.and_kleene, [compared(sign, *pair) for sign, pair in pairs])
        case In(operand, options):
            value = of(operand)
            return reduce(pc.or_kleene, [compared("==", value, of(each)) for each in options])
        case IsNull(operand):
            return pc.is_null(of(operand))
        case Not(operand):
            return pc.invert(truth(of(operand)))
        case And(operands):
            return _connected(operands, columns, what, pc.and_kleene, decides=False)
        case Or(operands):
            return _connected(operands, columns, what, pc.or_kleene, decides=True)
        case Case(branches, otherwise):
            return _chosen(branches, otherwise, columns, what)
        case Call(function, arguments):
            return CALLS[function](*map(of, arguments))
    raise AssertionError(node)


# ---- what is computed for some rows only, as a division by zero elsewhere is no error


def _can_fail(node: Node) -> bool:
    return any(isinstance(each, Binary) and each.operator in _FAIL for each in walk(node))


def _connected(
    operands: Sequence[Node], columns: Values, what: str, connect: Any, *, decides: bool
) -> Any:
    """Conditions joined by AND or OR; those behind one that decides are not computed."""
    found = truth(_value(operands[0], columns, what))
    for operand in operands[1:]:
        if not _can_fail(operand) or isinstance(found, pa.Scalar):
            found = connect(found, truth(_value(operand, columns, what)))
            continue
        is_open = pc.fill_null(pc.not_equal(found, decides), fill_value=True)
        places = np.flatnonzero(is_open.to_numpy(zero_copy_only=False))
        value = _for_rows(operand, columns, what, places, pa.bool_())
        found = connect(found, _spread(truth(value), places, len(found)))
    return found


def _chosen(
    branches: Sequence[tuple[Node, Node]], otherwise: Node, columns: Values, what: str
) -> Any:
    """The values of CASE: each condition and value only for the rows that come so far."""
    n = len(next(iter(columns.values())))
    left = np.arange(n)
    parts, places = [], []
    for test, value in branches:
        holds = _for_rows(test, columns, what, left, pa.bool_())
        is_true = np.asarray(pc.fill_null(truth(holds), fill_value=False))
        parts.append(_for_rows(value, columns, what, left[is_true]))
        places.append(left[is_true])
        left = left[~is_true]
    parts.append(_for_rows(otherwise, columns, what, left))
    order = np.argsort(np.concatenate([*places, left]), kind="stable")
    return pa.concat_arrays(aligned(parts)).take(pa.array(order))


def _for_rows(
    node: Node, columns: Values, what: str, rows: Any, kind: pa.DataType | None = None
) -> pa.Array:
    """The values of a node for some of the rows."""
    own = {column: columns[column].take(pa.array(rows)) for column in columns_of(node)}
    value = _value(node, own or {_NONE: pa.nulls(len(rows))}, what)
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, len(rows))
    return value.cast(kind) if kind is not None and pa.types.is_null(value.type) else value


def _spread(values: pa.Array, places: Any, n: int) -> pa.Array:
    """The values at these places of n, elsewhere null."""
    index = np.full(n, -1)
    index[places] = np.arange(len(places))
    return values.take(pa.array(index, mask=index < 0))


_NONE = Column("", "")  # stands for the rows of an expression without columns
_FAIL = ("/", "//", "%", "div")
