"""A 64-bit hash of each row of Arrow columns, whatever their types.

It decides on which shard a key lives and which of two events that arrive together comes first, so
it must be the same in every process: it depends on values only, never on their layout.

>>> hash_rows([pa.array([1, 2, 1]), pa.array(["x", None, "x"])]).tolist()[::2]
[3279540960468913120, 3279540960468913120]
>>> sliced = pa.array([["a", "b"], ["c"], None]).slice(1)
>>> bool((hash_rows([sliced]) == hash_rows([pa.array([["c"], None])])).all())
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.events.batch import flat, is_set, offsets
from slackwater.kernels import hashing as kernels

U64 = NDArray[np.uint64]

_NULL = np.uint64(0x6E756C6C)
_NAN = np.array([np.nan])


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray]) -> U64:
    """One hash per row; equal rows have equal hashes."""
    state = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    with np.errstate(over="ignore"):  # wrapping around is what hashes do
        for column in columns:
            _mix(state, flat(column))
    return state


def _mix(state: U64, column: pa.Array) -> None:
    if column.null_count:
        valid = is_set(column)
        known = state[valid]
        _mix(known, column.drop_null())
        kernels.mix(state, np.full(len(state), _NULL))
        state[valid] = known
        return
    kind = column.type
    if pa.types.is_dictionary(kind):
        _mix(state, column.dictionary_decode())
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            _mix(state, column.field(i))
    elif pa.types.is_fixed_size_list(kind):
        ends = np.arange(len(column) + 1) * kind.list_size
        kernels.mix_runs(state, ends, hash_rows([column.flatten()]))
    elif (ends := offsets(column)) is None:
        _mix_plain(state, column)
    elif pa.types.is_map(kind):
        kernels.mix_runs(state, ends, hash_rows([column.keys, column.items]))
    elif pa.types.is_nested(kind):
        kernels.mix_runs(state, ends, hash_rows([column.values]))
    else:
        data = column.buffers()[2]
        content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        kernels.mix_bytes(state, ends, content)


def _mix_plain(state: U64, column: pa.Array) -> None:
    """Columns of values of equal length."""
    kind = column.type
    if pa.types.is_floating(kind):  # 0.0 equals -0.0, and NaN equals NaN
        floats = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False)) + 0.0
        kernels.mix(state, np.where(np.isnan(floats), _NAN, floats).view(np.uint64))
    elif pa.types.is_boolean(kind):
        kernels.mix(state, column.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64))
    elif pa.types.is_null(kind):
        kernels.mix(state, np.full(len(state), _NULL))
    else:
        width = kind.bit_width // 8
        raw = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width :]
        raw = raw[: len(column) * width].reshape(len(column), width)
        padded = np.zeros((len(column), -(-width // 8) * 8), np.uint8)
        padded[:, :width] = raw
        for word in padded.view(np.uint64).T:
            kernels.mix(state, np.ascontiguousarray(word))
