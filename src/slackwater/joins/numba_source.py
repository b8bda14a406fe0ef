"""The numba back end of expressions: a tree as source that is plain Python and compiles.

Numbers are Python's, so that it also runs without numba. Nulls never get here: `engine/checks.py`
rejects the rows that have them.

>>> from slackwater.query.expression import Column, parse
>>> source_of(parse("abs(a.x - 1) < 2 or not a.x"), {Column("a", "x"): "v0"})
'((abs((v0 - 1)) < 2) or (not (v0 != 0)))'
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numba

from slackwater.kernels import vectors as kernels
from slackwater.query.expression import (
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
    VectorCall,
    is_condition,
    vector_call,
)

# What the source calls, besides Python's own abs, min and max.
LIBRARY: Mapping[str, Any] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "floor": math.floor, "ceil": math.ceil,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "atan2": math.atan2, "hypot": math.hypot,
    "dist": numba.njit(lambda x, y, u, v: math.sqrt((x - u) ** 2 + (y - v) ** 2)),
    "dot": kernels.dot, "cosine": kernels.cosine, "l2": kernels.l2,
}  # fmt: skip


def source_of(node: Node, sources: Mapping[Column | VectorCall, str]) -> str:
    """The source of a checked tree; `sources` has that of its columns and functions of vectors."""

    def of(child: Node) -> str:
        return source_of(child, sources)

    def truth(child: Node) -> str:
        return of(child) if is_condition(child) else f"({of(child)} != 0)"

    call = vector_call(node)
    if call is not None:
        return sources[call]
    match node:
        case Column():
            return sources[node]
        case Literal(value):
            return "1e309" if value == math.inf else repr(value)
        case Negate(operand):
            return f"(-{of(operand)})"
        case Binary(operator, left, right):
            return f"({of(left)} {operator} {of(right)})"
        case Compare((first, *rest), operators):
            pairs = zip(operators, rest, strict=True)
            return f"({of(first)}{''.join(f' {sign} {of(side)}' for sign, side in pairs)})"
        case Not(operand):
            return f"(not {truth(operand)})"
        case And(operands):
            return f"({' and '.join(map(truth, operands))})"
        case Or(operands):
            return f"({' or '.join(map(truth, operands))})"
        case Call("min" | "max", (only,)):
            return of(only)
        case Call(function, arguments):
            return f"{function}({', '.join(map(of, arguments))})"
    raise AssertionError(node)
