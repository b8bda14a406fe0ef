"""Conditions and columns: SQL as sqlglot reads it, to and from the expressions of `where`.

>>> to_sql("abs(a.x - b.x) < 1 and not a.y == 2 ** 3")
'ABS(a.x - b.x) < 1 AND NOT a.y = POWER(2, 3)'
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from slackwater.query.expression import tree_of
from slackwater.sql.literals import identifier, number

if TYPE_CHECKING:
    from sqlglot import exp

Fail = Callable[["exp.Expr", str], Exception]

_TEST = "TEST"  # an equality of two columns that is tried on each pair, and no key
_SPELLED = {"GREATEST": "max", "LEAST": "min", "LN": "log", "CEILING": "ceil"}
_COMPARED = {
    "EQ": ast.Eq, "NEQ": ast.NotEq, "LT": ast.Lt, "LTE": ast.LtE, "GT": ast.Gt, "GTE": ast.GtE,
}  # fmt: skip
_COMPUTED = {
    "Add": ast.Add, "Sub": ast.Sub, "Mul": ast.Mult, "Div": ast.Div, "IntDiv": ast.FloorDiv,
    "Mod": ast.Mod,
}  # fmt: skip
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


# ---- from SQL


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that are joined by AND, without the parentheses around each."""
    from sqlglot import exp

    if node is None:
        return []
    if isinstance(node, exp.And):
        return [*conjuncts(node.left), *conjuncts(node.right)]
    bare = node.unnest()
    return conjuncts(bare) if isinstance(bare, exp.And) else [bare]


def key_of(node: exp.Expr) -> str | None:
    """``a.x = b.y`` if it ties two streams, as `on` has it."""
    from sqlglot import exp

    if not isinstance(node, exp.EQ):
        return None
    left, right = node.left.unnest(), node.right.unnest()
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    if not left.table or not right.table or left.table == right.table:
        return None
    return f"{left.table}.{left.name} = {right.table}.{right.name}"


def condition(nodes: list[exp.Expr], fail: Fail) -> str | None:
    """The expression of `where` for conditions that all must hold."""
    if not nodes:
        return None
    made = [_tested(node, fail) for node in nodes]
    return ast.unparse(made[0] if len(made) == 1 else ast.BoolOp(ast.And(), made))


def expression(node: exp.Expr, fail: Fail) -> str:
    """The expression of `select` for a column of the results."""
    return ast.unparse(_python(node, fail))


def _tested(node: exp.Expr, fail: Fail) -> ast.expr:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous) and node.name.upper() == _TEST:
        if len(node.expressions) != 1:
            raise fail(node, f"TEST takes one condition, got {len(node.expressions)}")
        return _python(node.expressions[0], fail)
    return _python(node, fail)


def _python(node: exp.Expr, fail: Fail) -> ast.expr:
    """The same in the grammar of `where`, a part of Python's."""
    from sqlglot import exp

    def inner(child: exp.Expr) -> ast.expr:
        return _python(child, fail)

    kind = type(node).__name__
    match node:
        case exp.Paren():
            return inner(node.this)
        case exp.Column():
            return _column(node, fail)
        case exp.Literal():
            return _number(node, fail)
        case exp.Boolean():
            return ast.Constant(bool(node.this))
        case exp.Neg():
            return ast.UnaryOp(ast.USub(), inner(node.this))
        case exp.Not():
            return ast.UnaryOp(ast.Not(), inner(node.this))
        case exp.And() | exp.Or():
            return _connected(node, fail)
        case exp.Between():
            low, high = node.args["low"], node.args["high"]
            limits = [inner(node.this), inner(high)]
            return ast.Compare(inner(low), [ast.LtE(), ast.LtE()], limits)
        case exp.Anonymous():
            return _call(node, fail)
    if isinstance(node, exp.Binary) and kind in _COMPARED:
        return ast.Compare(inner(node.left), [_COMPARED[kind]()], [inner(node.right)])
    if isinstance(node, exp.Binary) and kind in _COMPUTED:
        return ast.BinOp(inner(node.left), _COMPUTED[kind](), inner(node.right))
    raise fail(
        node,
        "expected numbers, columns, arithmetic, comparisons, AND, OR, NOT, BETWEEN or a function, "
        f"got {node.sql()}",
    )


def _connected(node: exp.And | exp.Or, fail: Fail) -> ast.BoolOp:
    """A chain of the same connector as one, as Python reads it: ``a and b and c``."""
    values = []
    for side in (node.left, node.right):
        same = isinstance(side, type(node))
        made = _python(side, fail)
        values += made.values if same and isinstance(made, ast.BoolOp) else [made]
    return ast.BoolOp(ast.And() if type(node).__name__ == "And" else ast.Or(), values)


def _column(node: Any, fail: Fail) -> ast.expr:
    if not node.table:
        raise fail(node, f"a column must be written stream.column, got {node.name}")
    for part in (node.table, node.name):
        if not _PLAIN_NAME.fullmatch(part):
            raise fail(node, f"names in expressions must be letters, digits and _, got {part!r}")
    return ast.Attribute(ast.Name(node.table, ast.Load()), node.name, ast.Load())


def _number(node: Any, fail: Fail) -> ast.expr:
    if node.is_string:
        raise fail(node, f"conditions compare numbers, got the text {node.name!r}; filter by text "
                   "before the join")  # fmt: skip
    value = number(node.name)
    if value is None:
        raise fail(node, f"expected a number, got {node.name}")
    return ast.Constant(value)


def _call(node: Any, fail: Fail) -> ast.expr:
    name = node.name.upper()
    arguments = [_python(argument, fail) for argument in node.expressions]
    if name in ("POWER", "POW") and len(arguments) == 2:
        return ast.BinOp(arguments[0], ast.Pow(), arguments[1])
    return ast.Call(ast.Name(_SPELLED.get(name, name.lower()), ast.Load()), arguments, [])


# ---- to SQL

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", _SUM), ast.Sub: ("-", _SUM), ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT), ast.FloorDiv: ("DIV", _PRODUCT), ast.Mod: ("%", _PRODUCT),
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def to_sql(text: str, as_condition: bool = True) -> str:
    """The SQL of an expression of `where` or `select`."""
    node = tree_of(text)
    if not as_condition:
        return _written(node)[0]
    tops = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    parts = [f"TEST({_at(top, _OR)})" if _is_key(top) else _at(top, _NOT) for top in tops]
    return " AND ".join(parts)


def _is_key(node: ast.expr) -> bool:
    """Whether SQL would take it for a key."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
        return False
    sides = [node.left, *node.comparators]
    names = [side.value.id for side in sides if isinstance(side, ast.Attribute)
             and isinstance(side.value, ast.Name)]  # fmt: skip
    return len(sides) == len(names) == 2 and names[0] != names[1]


def _at(node: ast.expr, least: int) -> str:
    """The text of an operand, in parentheses if it binds less than `least`."""
    text, binds = _written(node)
    return text if binds >= least else f"({text})"


def _written(node: ast.expr) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case ast.Attribute(value=ast.Name(id=stream), attr=name):
            return f"{identifier(stream)}.{name}", _ATOM
        case ast.Constant(value=bool(value)):
            return str(value).upper(), _ATOM
        case ast.Constant(value=value):
            return ("1e999" if value == inf else repr(value)), _ATOM
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _written(operand)
        case ast.UnaryOp(operand=operand):
            return f"-{_at(operand, _ATOM)}", _SIGN
        case ast.BoolOp(op=op, values=values):
            word, binds = ("AND", _AND) if isinstance(op, ast.And) else ("OR", _OR)
            return f" {word} ".join(_at(value, binds + 1) for value in values), binds
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            pairs = [
                f"{_at(sides[i], _SUM)} {_COMPARISONS[type(op)]} {_at(sides[i + 1], _SUM)}"
                for i, op in enumerate(ops)
            ]
            return " AND ".join(pairs), _COMPARE if len(pairs) == 1 else _AND
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"POWER({_at(left, _OR)}, {_at(right, _OR)})", _ATOM
        case ast.BinOp(left=left, op=op, right=right):
            sign, binds = _OPERATORS[type(op)]
            return f"{_at(left, binds)} {sign} {_at(right, binds + 1)}", binds
        case ast.Call(func=ast.Name(id=name), args=args):
            return f"{name.upper()}({', '.join(_at(arg, _OR) for arg in args)})", _ATOM
    raise AssertionError(ast.unparse(node))  # `Expression.parse` lets nothing else through
