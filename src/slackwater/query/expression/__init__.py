"""Expressions over the columns of streams: one tree, written as text, with `col`, or as SQL.

`nodes` has the tree and its meaning; `parser` and `printer` go from text to trees and back;
`operators` has `col`. The back ends that compute a tree are elsewhere.
"""

from __future__ import annotations

from slackwater.query.expression.condition import Band, Condition, Part, VectorCall, vector_call
from slackwater.query.expression.nodes import (
    FUNCTIONS,
    VECTOR_FUNCTIONS,
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
    literal,
    walk,
)
from slackwater.query.expression.operators import Expression, canonical, col
from slackwater.query.expression.parser import parse
from slackwater.query.expression.printer import text_of
from slackwater.query.expression.types import Type, is_condition, type_of

__all__ = [
    "FUNCTIONS",
    "VECTOR_FUNCTIONS",
    "And",
    "Band",
    "Binary",
    "Call",
    "Case",
    "Column",
    "Compare",
    "Condition",
    "Expression",
    "In",
    "IsNull",
    "Literal",
    "Moment",
    "Negate",
    "Node",
    "Not",
    "Or",
    "Part",
    "Type",
    "VectorCall",
    "canonical",
    "col",
    "columns_of",
    "is_condition",
    "literal",
    "parse",
    "text_of",
    "type_of",
    "vector_call",
    "walk",
]
