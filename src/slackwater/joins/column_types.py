"""What kinds of columns there are, by their Arrow types."""

from __future__ import annotations

import pyarrow as pa

from slackwater.query.expression import Type


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers; true and false are 1 and 0."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    tests = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    return any(test(kind) for test in tests) and is_number(kind.value_type)


def is_time(kind: pa.DataType) -> bool:
    """Whether it is a timestamp or a date."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def type_in_tree(kind: pa.DataType) -> Type:
    """What a tree calls a type of Arrow."""
    if pa.types.is_dictionary(kind):
        return type_in_tree(kind.value_type)
    if pa.types.is_boolean(kind):
        return Type.BOOLEAN
    if pa.types.is_integer(kind):
        return Type.INTEGER
    if is_number(kind):
        return Type.FLOAT
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Type.TEXT
    if is_time(kind):
        return Type.TIME
    if pa.types.is_duration(kind):
        return Type.INTERVAL
    return Type.VECTOR if is_vector(kind) else Type.OTHER
