"""From aggregates to slots, which kernels fill, and from filled slots to columns of results.

A slot is one running number of one column: a count, a sum, a smallest value. An average needs two
slots, a count and a sum; several aggregates of a column share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.errors import QueryError
from slackwater.events.batch import flat
from slackwater.kernels import stacks as kernels
from slackwater.kernels.records import F64, I64, Aggregated, Arrivals, Slots
from slackwater.query.functions import Aggregate

_MOST_COLUMNS = 62  # bits of the number that marks null values
_NUMBERS = ("sum", "avg", "stddev")  # need numbers; the others take times too


class ValueColumn(NamedTuple):
    """A column that is aggregated: where its values are in the log."""

    name: str
    is_float: bool
    row: int  # of `ints` or `floats`
    bit: int  # of the nulls


class _Slot(NamedTuple):
    op: int
    value: ValueColumn


@dataclass(frozen=True)
class ResultColumn:
    """A column of the results, and the slots it is made of."""

    name: str
    aggregate: Aggregate
    type: pa.DataType
    slot: int  # -1: none, for count() and for what is read from rows
    count: int  # the slot that counts its values, or -1


class SlotPlan:
    """The slots and result columns of a query over a stream of a known schema."""

    def __init__(self, select: Mapping[str, Aggregate], schema: pa.Schema, stream: str) -> None:
        self._values: dict[str, ValueColumn] = {}
        self._slots: list[_Slot] = []
        self._schema, self._stream = schema, stream
        self.columns = [self._column(name, how) for name, how in select.items()]

    def _column(self, name: str, how: Aggregate) -> ResultColumn:
        if how.column is None:
            return ResultColumn(name, how, pa.int64(), -1, -1)
        if how.column not in self._schema.names:
            msg = (
                f"{name} aggregates {how.column!r}, but stream {self._stream!r} has no such column;"
                f" it has {', '.join(self._schema.names)}"
            )
            raise QueryError(msg)
        kind = self._schema.field(how.column).type
        if how.function in ("first", "last"):
            return ResultColumn(name, how, kind, -1, -1)
        value = self._value(how, kind)
        count = self._slot(kernels.COUNT, value)
        ints = not value.is_float
        match how.function:
            case "count":
                return ResultColumn(name, how, pa.int64(), count, count)
            case "sum" | "avg":
                slot = self._slot(kernels.SUM_INT if ints else kernels.SUM_FLOAT, value)
                whole = pa.int64() if ints and how.function == "sum" else pa.float64()
                return ResultColumn(name, how, whole, slot, count)
            case "min":
                slot = self._slot(kernels.MIN_INT if ints else kernels.MIN_FLOAT, value)
                return ResultColumn(name, how, kind, slot, count)
            case "max":
                slot = self._slot(kernels.MAX_INT if ints else kernels.MAX_FLOAT, value)
                return ResultColumn(name, how, kind, slot, count)
            case _:
                slot = self._slot(kernels.MOMENTS_INT if ints else kernels.MOMENTS_FLOAT, value)
                return ResultColumn(name, how, pa.float64(), slot, count)

    def _value(self, how: Aggregate, kind: pa.DataType) -> ValueColumn:
        types = pa.types
        number = types.is_integer(kind) or types.is_floating(kind)
        is_time = types.is_temporal(kind) and not types.is_interval(kind)
        allowed_here = number or (is_time and how.function not in _NUMBERS)
        if how.function != "count" and (types.is_uint64(kind) or not allowed_here):
            allowed = "numbers" if how.function in _NUMBERS else "numbers or times"
            msg = f"{how.function}({how.column}) takes {allowed}, got {kind}; cast the column"
            raise QueryError(msg)
        known = self._values.get(str(how.column))
        if known is not None:
            return known
        if len(self._values) == _MOST_COLUMNS:
            msg = f"a window aggregates at most {_MOST_COLUMNS} columns, got more"
            raise QueryError(msg)
        is_float = types.is_floating(kind)
        row = sum(v.is_float == is_float for v in self._values.values()) + (not is_float)
        value = ValueColumn(str(how.column), is_float, row, len(self._values))
        self._values[value.name] = value
        return value

    def _slot(self, op: int, value: ValueColumn) -> int:
        slot = _Slot(op, value)
        if slot not in self._slots:
            self._slots.append(slot)
        return self._slots.index(slot)

    # ---- for the log

    @property
    def widths(self) -> dict[str, int]:
        """Rows of `ints` (the first marks null values) and `floats`; no vectors."""
        floats = sum(value.is_float for value in self._values.values())
        return {"ints": 1 + len(self._values) - floats, "floats": floats, "vectors": 0}

    def read(self, stream: int) -> list[str]:  # noqa: ARG002  there is one
        """Return the columns of the stream that results are computed from."""
        named = [c.aggregate.column for c in self.columns if c.aggregate.column is not None]
        return list(dict.fromkeys(named))

    def fill(
        self,
        stream: int,  # noqa: ARG002
        table: pa.Table,
        ints: I64,
        floats: F64,
        vectors: F64,  # noqa: ARG002
    ) -> None:
        """Write the values of `table` to the arrays that kernels read."""
        ints[0] = 0
        for value in self._values.values():
            column = flat(table.column(value.name))
            if column.null_count:
                ints[0] |= (
                    column.is_null().to_numpy(zero_copy_only=False).astype(np.int64) << value.bit
                )
            target = floats if value.is_float else ints
            target[value.row] = _numbers(column, value.is_float)

    def values(self, aggregates: Sequence[Aggregate], place: I64, records: Arrivals) -> F64:
        """Return the values of events at these places, one row per aggregate; NaN: null."""
        rows = np.zeros((len(aggregates), len(place)))
        for row, aggregate in zip(rows, aggregates, strict=True):
            if aggregate.column is None:
                continue
            value = self._values[aggregate.column]
            matrix = records.floats if value.is_float else records.ints
            row[:] = matrix[value.row, place]
            row[(records.ints[0, place] >> value.bit) & 1 == 1] = np.nan
        return rows

    # ---- for the kernel

    def slots(self) -> tuple[Slots, dict[str, int]]:
        """Return the slots, and how many rows of running numbers they take."""
        rows = {"ints": 0, "floats": 0}
        row = []
        for op, _ in self._slots:
            kind = "ints" if op <= kernels.MAX_INT else "floats"
            row.append(rows[kind])
            rows[kind] += 3 if op >= kernels.MOMENTS_INT else 1
        numbers = [
            [slot.op for slot in self._slots],
            [slot.value.row for slot in self._slots],
            [slot.value.bit for slot in self._slots],
            row,
        ]
        return Slots(*(np.array(column, np.int64) for column in numbers)), rows

    # ---- results

    def reads_rows(self, which: str) -> bool:
        """Return whether results need the ``"first"`` or ``"last"`` rows of windows."""
        return any(column.aggregate.function == which for column in self.columns)

    def column(
        self, column: ResultColumn, found: Aggregated, members: Mapping[str, pa.Table]
    ) -> pa.Array | pa.ChunkedArray:
        """Return a column of results; `members` has first and last rows, where needed."""
        how = column.aggregate.function
        if how in ("first", "last"):
            return members[how].column(column.aggregate.column)
        if column.slot < 0:
            return pa.array(found.size)
        n = found.ints[column.count]
        if how == "count":
            return pa.array(n)
        empty = n < (2 if how == "stddev" else 1)
        if how == "stddev":
            spread = found.floats[column.slot] / np.maximum(n - 1, 1)
            return pa.array(np.sqrt(np.maximum(spread, 0.0)), mask=empty)
        is_float = column.slot >= 0 and self._slots[column.slot].value.is_float
        numbers = found.floats[column.slot] if is_float else found.ints[column.slot]
        if how == "avg":
            return pa.array(numbers / np.maximum(n, 1), mask=empty)
        return _typed(pa.array(numbers, mask=empty), column.type)


def _numbers(column: pa.Array, is_float: bool) -> np.ndarray:
    if is_float:
        values = column.cast(pa.float64())
        return np.asarray(values.fill_null(0.0).to_numpy(zero_copy_only=False))
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64()) if kind.bit_width == 64 else column.view(pa.int32())
    elif not pa.types.is_integer(kind):  # only counted
        return np.zeros(len(column), np.int64)
    values = column.cast(pa.int64())
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False))


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return integers in their original type."""
    if pa.types.is_temporal(kind):
        raw = values if kind.bit_width == 64 else values.cast(pa.int32())
        return raw.view(kind)
    return pc.cast(values, kind)
