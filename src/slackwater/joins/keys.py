"""Key values as small codes, one code space for all keys of a query.

Equal values get equal codes, whatever their Arrow types (int32 and int64, timestamps of different
units). A null equals nothing; its code is NONE.

>>> codes = KeyCodes([{0: [pa.int64()], 1: [pa.int32()]}], first=2)
>>> codes.encode(0, [pa.array([7, 9, 7])], 3).tolist()
[2, 3, 2]
>>> codes.encode(0, [pa.array([9, None], pa.int32())], 2).tolist()
[3, -1]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.errors import DataError
from slackwater.events.batch import is_set
from slackwater.events.hashing import U64, hash_rows
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.kernels import keys as kernels
from slackwater.kernels.records import I32, I64, NONE

KeyTypes = Mapping[int, Sequence[pa.DataType]]  # stream number -> types of its key columns

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads consecutive values
_NAN = np.array([np.nan]).view(np.int64)[0]


class KeyCodes:
    """Codes of all keys of a query; `first` is the first code that may be used.

    Codes depend on the order in which values come; `hashes`, kept on request, do not.
    """

    def __init__(
        self, keys: Sequence[KeyTypes], first: int, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.size = first
        self._first = first
        self._keys = [_Key(types, limits.smallest_table) for types in keys]
        self._hashes: _Hashes | None = None

    def keep_hashes(self) -> None:
        """Have a hash of the value of each code from here on; there are no codes yet."""
        self._hashes = _Hashes()

    def hashes(self, codes: I64) -> U64:
        """The hashes of the values of these codes."""
        assert self._hashes is not None
        return self._hashes.value[codes]

    def encode(self, key: int, columns: Sequence[pa.Array], n: int) -> I32:
        """Codes of `n` values of `key`, given the key columns of a stream's rows."""
        packed, valid = self._keys[key].pack(columns, n)
        codes, self.size = self._keys[key].table.encode(packed, self.size)
        if not valid.all():
            codes[~valid] = NONE
        if self._hashes is not None:
            self._hashes.learn(codes, columns, self._keys[key].hashed_as, self.size)
        return codes

    def keep(self, live: NDArray[np.bool_]) -> I32:
        """Forget the codes that are not `live`; return the new code of each old one."""
        live = live[: self.size].copy()
        live[: self._first] = True
        renamed = np.where(live, np.cumsum(live) - 1, NONE).astype(np.int32)
        for key in self._keys:
            key.keep(renamed)
        if self._hashes is not None:
            self._hashes.keep(live)
        self.size = int(live.sum())
        return renamed


class _Hashes:
    """A hash of the value of each code, the same in every process."""

    def __init__(self) -> None:
        self.value: U64 = np.zeros(0, np.uint64)
        self._is_known = np.zeros(0, bool)

    def learn(
        self, codes: I32, columns: Sequence[pa.Array], types: Sequence[pa.DataType], size: int
    ) -> None:
        """Hash the values of the codes that are new; there are `size` codes by now.

        A null has no code, but its place in the table has one: only rows with values count.
        """
        more = size - len(self.value)
        if more > 0:
            self.value = np.append(self.value, np.zeros(more, np.uint64))
            self._is_known = np.append(self._is_known, np.zeros(more, bool))
        rows = np.flatnonzero(codes != NONE)
        rows = rows[~self._is_known[codes[rows]]]
        if len(rows) == 0 or not columns:
            return
        new, first = np.unique(codes[rows], return_index=True)
        places = pa.array(rows[first])
        values = [_plain(c.take(places)).cast(t) for c, t in zip(columns, types, strict=True)]
        self.value[new] = hash_rows(values)
        self._is_known[new] = True

    def keep(self, live: NDArray[np.bool_]) -> None:
        """Forget the codes that are not `live`."""
        self.value, self._is_known = self.value[live], self._is_known[live]


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


class _Key:
    """One key: its columns are packed into one 64-bit value, which has a code."""

    def __init__(self, types: KeyTypes, smallest: int) -> None:
        families = [_family(list(column)) for column in zip(*types.values(), strict=True)]
        self._columns = [family.coder(smallest) for family in families]
        self.hashed_as = [family.hashed_as for family in families]
        # codes of all columns but the last
        self._pairs = [_Ints(smallest) for _ in self._columns[2:]]
        self.table = _Table(smallest)

    def pack(self, columns: Sequence[pa.Array], n: int) -> tuple[I64, NDArray[np.bool_]]:
        """One value per row, and whether all of its columns are set."""
        packed, valid = np.zeros(n, np.int64), np.ones(n, bool)
        for i, (column, values) in enumerate(zip(self._columns, columns, strict=True)):
            valid &= is_set(values)
            if len(self._columns) == 1:
                return column.bits(values), valid
            codes = column.codes(values)
            if i >= 2:  # noqa: PLR2004
                packed = self._pairs[i - 2].codes_of(packed)
            packed = codes if i == 0 else packed << 32 | codes
        return packed, valid

    def keep(self, renamed: I32) -> None:
        """Follow the renaming of codes; forget the values of those that are gone."""
        packed = self.table.rename(renamed)
        for i in reversed(range(1, len(self._columns))):
            self._columns[i].keep(packed & 0xFFFFFFFF)
            packed >>= 32
            if i >= 2:  # noqa: PLR2004
                packed = self._pairs[i - 2].keep(packed)
        if self._columns:  # a cross join has none
            self._columns[0].keep(packed)


class _Table:
    """64-bit values and their codes, in at least `smallest` slots."""

    def __init__(self, smallest: int) -> None:
        self._smallest = smallest
        self._size = 0
        self._keys = np.zeros(smallest, np.int64)
        self._codes = np.full(smallest, NONE, np.int32)

    def encode(self, values: I64, next_code: int) -> tuple[I32, int]:
        """Codes of `values`; unknown values get codes from `next_code` on, which is returned."""
        out = np.empty(len(values), np.int32)
        at = 0
        while at < len(values):
            room = len(self._keys) // 2 - self._size
            before = next_code
            at, next_code = kernels.encode(
                at, values, self._slots(values), self._keys, self._codes, next_code, room, out
            )
            self._size += next_code - before
            if at < len(values):
                self._rebuild(*self._entries(), 4 * len(self._keys))
        return out, int(next_code)

    def rename(self, renamed: I32) -> I64:
        """Change codes, dropping entries renamed to NONE; return the values that are left."""
        values, codes = self._entries()
        codes = renamed[codes]
        left = codes != NONE
        self._rebuild(values[left], codes[left], self._smallest)
        remaining: I64 = values[left]
        return remaining

    def _entries(self) -> tuple[I64, I32]:
        used = self._codes != NONE
        return self._keys[used], self._codes[used]

    def _slots(self, values: I64) -> I64:
        shift = np.uint64(64 - (len(self._keys) - 1).bit_length())
        slots: I64 = ((values.view(np.uint64) * _MIX) >> shift).astype(np.int64)  # wraps around
        return slots

    def _rebuild(self, values: I64, codes: I32, capacity: int) -> None:
        while capacity < 4 * len(values):
            capacity *= 2
        self._keys = np.zeros(capacity, np.int64)
        self._codes = np.full(capacity, NONE, np.int32)
        order = np.argsort(codes)
        values, codes = values[order], codes[order]
        places = np.empty(len(values), np.int32)
        kernels.encode(
            0, values, self._slots(values), self._keys, self._codes, 0, len(values), places
        )
        used = self._codes != NONE
        self._codes[used] = codes[self._codes[used]]
        self._size = len(values)


class _Ints:
    """Column of whole numbers: the value is its own 64 bits."""

    def __init__(self, smallest: int, to: pa.DataType | None = None) -> None:
        self._to = to
        self._table = _Table(smallest)
        self._next = 0

    def bits(self, values: pa.Array) -> I64:
        """The 64 bits of each value."""
        if self._to is not None:
            values = values.cast(self._to)
        whole = values.cast(pa.int64()) if not pa.types.is_int64(values.type) else values
        if whole.null_count:
            whole = whole.fill_null(0)
        return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)

    def codes(self, values: pa.Array) -> I64:
        """Small codes of the values, for use in a composite key."""
        return self.codes_of(self.bits(values))

    def codes_of(self, bits: I64) -> I64:
        """Small codes of 64-bit values."""
        codes, self._next = self._table.encode(bits, self._next)
        return codes.astype(np.int64)

    def keep(self, codes: I64) -> I64:
        """Keep only the entries with these codes; return their values."""
        renamed = np.full(self._next, NONE, np.int32)
        known = codes[(codes >= 0) & (codes < self._next)]
        renamed[known] = known
        return self._table.rename(renamed)


class _Floats(_Ints):
    """Column of floats: 0.0 equals -0.0, and NaN equals NaN, as in Spark."""

    def bits(self, values: pa.Array) -> I64:
        floats = np.asarray(values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
        bits = (floats + 0.0).view(np.int64)
        return np.where(np.isnan(floats), _NAN, bits)


class _Objects(_Ints):
    """Column of anything that hashes: text, bytes, decimals, dates."""

    def __init__(self, smallest: int) -> None:
        super().__init__(smallest)
        self._known: dict[Any, int] = {}

    def bits(self, values: pa.Array) -> I64:
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        codes = np.array([self._code(value) for value in values.dictionary.to_pylist()], np.int64)
        places = np.asarray(values.indices.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        return codes[places] if len(codes) else np.zeros(len(values), np.int64)

    def _code(self, value: Any) -> int:
        code = self._known.setdefault(value, self._next)
        self._next = max(self._next, code + 1)
        return code

    def codes_of(self, bits: I64) -> I64:
        return bits

    def keep(self, codes: I64) -> I64:
        live = set(codes.tolist())
        self._known = {value: code for value, code in self._known.items() if code in live}
        return codes


class _Family(NamedTuple):
    """How values of some types are made comparable."""

    coder: Callable[[int], _Ints]  # from the smallest size of its table
    hashed_as: pa.DataType  # the type in which equal values have the same bytes


def _family(types: list[pa.DataType]) -> _Family:
    """The family in which values of all `types` are comparable; an error if there is none."""
    types = [t.value_type if pa.types.is_dictionary(t) else t for t in types]
    is_ = pa.types
    if all(is_.is_boolean(t) for t in types):
        return _Family(_Ints, types[0])
    if all(is_.is_integer(t) and not is_.is_uint64(t) for t in types):
        return _Family(_Ints, pa.int64())
    if all(is_.is_integer(t) or is_.is_floating(t) for t in types):
        if any(is_.is_floating(t) for t in types):
            return _Family(_Floats, pa.float64())
        return _Family(_Objects, pa.decimal256(76, 0))
    if all(is_.is_timestamp(t) for t in types) and len({t.tz is None for t in types}) == 1:
        finest = max(types, key=_fineness)
        unit = pa.timestamp(finest.unit, types[0].tz)
        return _Family(partial(_Ints, to=unit), finest)
    for same in _SAME_FAMILY:
        if all(same(t) for t in types):
            return _Family(_Objects, _widest(types))
    msg = f"the columns of a key must be comparable, got {' and '.join(map(str, types))}"
    raise DataError(msg)


def _fineness(kind: pa.DataType) -> int:
    return ["s", "ms", "us", "ns"].index(kind.unit)


def _widest(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a family that holds the values of all of them."""
    if all(pa.types.is_duration(t) for t in types):
        return max(types, key=_fineness)
    if any(pa.types.is_decimal(t) for t in types):
        scale = max((t.scale for t in types if pa.types.is_decimal(t)), default=0)
        return pa.decimal256(76, scale)
    return max(types, key=lambda t: (t.bit_width if pa.types.is_temporal(t) else 0, str(t)))


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type in which equal values of all `types` have the same bytes.

    >>> common_type([pa.int32(), pa.int64()]), common_type([pa.int8(), pa.float32()])
    (DataType(int64), DataType(double))
    """
    return _family(list(types)).hashed_as


_SAME_FAMILY = (
    lambda t: pa.types.is_string(t) or pa.types.is_large_string(t),
    lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t),
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    lambda t: pa.types.is_decimal(t) or pa.types.is_integer(t),
)
