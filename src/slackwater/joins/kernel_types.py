"""The numba types of what the kernels of window joins take.

These kernels are compiled with stated types: once for all conditions, which they call through a
pointer, and once for none.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types

from slackwater.events.log import Log
from slackwater.joins.conditions import scan_signature
from slackwater.kernels.records import Frame, Lateness, Plan, Results, Scratch, Store

NUMBER = types.int64
VECTOR = types.Array(types.int64, 1, "C")
MATRIX = types.Array(types.int64, 2, "C")
FLAGS = types.Array(types.uint8, 1, "C")
LATENESS = types.NamedTuple([VECTOR, MATRIX, VECTOR], Lateness)

_RUNS = types.Array(types.int32, 2, "C")


def join_types(has_condition: bool) -> list[Any]:
    """Return the types of condition, arrays of the join, log and results, as kernels take them."""
    return [
        types.FunctionType(scan_signature()) if has_condition else types.none,
        types.NamedUniTuple(VECTOR, 4, Frame),
        types.NamedTuple([NUMBER, NUMBER, VECTOR, *[MATRIX] * 5, VECTOR, MATRIX], Plan),
        types.NamedTuple([_RUNS, MATRIX], Store),
        types.NamedTuple([*[VECTOR] * 6, MATRIX, *[VECTOR] * 8], Scratch),
        numba.typeof(Log().records()),
        types.NamedTuple([MATRIX, VECTOR, VECTOR, VECTOR, FLAGS], Results),
    ]
