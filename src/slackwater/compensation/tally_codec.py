"""Tallies as text: in snapshots, and from shard to shard."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.compensation.tally import Tally
from slackwater.kernels.records import F64

_ARRAYS = ("counts", "products", "delay", "latest")


class TallyCodec:
    """Encodes and decodes the tallies of one query.

    Parameters
    ----------
    shape
        Number of streams, cells and values.
    group_types
        Arrow types of the columns that make groups.
    """

    def __init__(self, shape: tuple[int, int, int], group_types: list[pa.DataType]) -> None:
        self._shape = shape
        self._schema = pa.schema([(str(i), kind) for i, kind in enumerate(group_types)])

    def encode(self, tally: Tally) -> dict[str, str]:
        """Return a tally as plain data."""
        plain = {name: _text(getattr(tally, name).tobytes()) for name in _ARRAYS}
        if len(self._schema):
            columns = list(zip(*tally.groups, strict=True)) or [()] * len(self._schema)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self._schema) as writer:
                writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
            plain["groups"] = _text(sink.getvalue().to_pybytes())
        return plain

    def decode(self, plain: dict[str, Any]) -> Tally:
        """Return the tally that was encoded."""
        m, cells, n_values = self._shape
        groups: list[tuple[Any, ...]] = [()]
        if len(self._schema):
            table = pa.ipc.open_stream(_bytes(plain["groups"])).read_all()
            groups = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        counts, products, delay, latest = (_numbers(plain[name]) for name in _ARRAYS)
        return Tally(
            counts.reshape(m, cells),
            products.reshape(len(groups), n_values, cells**m),
            groups,
            delay,
            latest,
        )


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _bytes(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def _numbers(text: str) -> F64:
    return np.frombuffer(_bytes(text), np.float64).copy()
