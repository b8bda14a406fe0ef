"""Conditions and columns: SQL as sqlglot reads it, to and from the trees of `query/expression`.

>>> to_sql("abs(a.x - b.`bid price`) < 1 and not a.y == 2 ** 3")
'ABS(a.x - b."bid price") < 1 AND NOT a.y = POWER(2, 3)'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from slackwater.errors import QueryError
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
    parse,
    text_of,
)
from slackwater.query.expression.moments import moment_of, text_of_moment
from slackwater.query.expression.parser import known_function, made_of
from slackwater.query.keys import equality_text
from slackwater.sql.literals import identifier, number, text

if TYPE_CHECKING:
    from sqlglot import exp

Fail = Callable[["exp.Expr", str], Exception]

_TEST = "TEST"  # an equality of two columns that is tried on each pair, and no key
_COMPARED = {"EQ": "==", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_COMPUTED = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "div", "Mod": "%"}
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_NO_COLUMNS = ("NOT", "SELECT")  # of all keywords, those that sqlglot takes for no name after a dot


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
    if not _is_clear(left) or not _is_clear(right):
        return None
    return equality_text(Column(left.table, left.name), Column(right.table, right.name))


def condition(nodes: list[exp.Expr], fail: Fail) -> str | None:
    """The expression of `where` for conditions that all must hold."""
    if not nodes:
        return None
    made = [_tested(node, fail) for node in nodes]
    return text_of(made[0] if len(made) == 1 else And(tuple(made)))


def expression(node: exp.Expr, fail: Fail) -> str:
    """The expression of `select` for a column of the results."""
    return text_of(_tree(node, fail))


def _tested(node: exp.Expr, fail: Fail) -> Node:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous) and node.name.upper() == _TEST:
        if len(node.expressions) != 1:
            raise fail(node, f"TEST takes one condition, got {len(node.expressions)}")
        return _tree(node.expressions[0], fail)
    return _tree(node, fail)


def _tree(node: exp.Expr, fail: Fail) -> Node:
    from sqlglot import exp

    def inner(child: exp.Expr) -> Node:
        return _tree(child, fail)

    kind = type(node).__name__
    match node:
        case exp.Paren():
            return inner(node.this)
        case exp.Column():
            return _column(node, fail)
        case exp.Literal() if node.is_string:
            return Literal(node.name)
        case exp.Literal():
            return _number(node, fail)
        case exp.Boolean():
            return Literal(bool(node.this))
        case exp.Null():
            return Literal(None)
        case exp.Cast() | exp.Interval():
            return _moment(node, fail)
        case exp.Is():
            return _is(node, fail)
        case exp.In() if node.expressions:
            return In(inner(node.this), tuple(map(inner, node.expressions)))
        case exp.Like():
            like = Call("like", (inner(node.this), inner(node.expression)))
            return Not(like) if node.args.get("negate") else like
        case exp.DPipe():
            return Call("concat", (inner(node.left), inner(node.right)))
        case exp.Case():
            return _case(node, fail)
        case exp.Neg():
            return Negate(inner(node.this))
        case exp.Not():
            return Not(inner(node.this))
        case exp.And():
            return And((inner(node.left), inner(node.right)))
        case exp.Or():
            return Or((inner(node.left), inner(node.right)))
        case exp.Between():
            low, high = node.args["low"], node.args["high"]
            return Compare((inner(low), inner(node.this), inner(high)), ("<=", "<="))
        case exp.Anonymous():
            return _call(node, fail)
        case exp.If():
            return Case(((inner(node.this), inner(node.args["true"])),), inner(node.args["false"]))
    if isinstance(node, exp.Binary) and kind in _COMPARED:
        return Compare((inner(node.left), inner(node.right)), (_COMPARED[kind],))
    if isinstance(node, exp.Binary) and kind in _COMPUTED:
        return Binary(_COMPUTED[kind], inner(node.left), inner(node.right))
    raise fail(
        node,
        "expected columns, numbers, texts, times, arithmetic, comparisons, AND, OR, NOT, BETWEEN, "
        f"IN, LIKE, IS NULL, CASE or a function, got {node.sql()}",
    )


def _column(node: Any, fail: Fail) -> Node:
    if not node.table:
        raise fail(node, f"a column must be written stream.column, got {node.name}")
    if not _PLAIN_NAME.fullmatch(node.table):
        raise fail(node, f"a stream's name must be letters, digits and _, got {node.table!r}")
    if not _is_clear(node):
        raise fail(node, f"a name that is not of letters, digits and _ needs \"quotes\", "
                   f"got {node.name!r}")  # fmt: skip
    return Column(node.table, node.name)


def _is_clear(node: Any) -> bool:
    """Whether a column is in quotes, or needs none."""
    return bool(node.this.quoted and node.name) or bool(_PLAIN_NAME.fullmatch(node.name))


def _number(node: Any, fail: Fail) -> Node:
    value = number(node.name)
    if value is None:
        raise fail(node, f"expected a number, got {node.name}")
    return Literal(value)


def _call(node: Any, fail: Fail) -> Node:
    name = node.name.upper()
    arguments = tuple(_tree(argument, fail) for argument in node.expressions)
    if not _PLAIN_NAME.fullmatch(name):
        raise fail(node, f"a function's name must be letters, digits and _, got {node.name!r}")
    function = known_function(name)
    try:  # whatever is wrong with it, the parser of text says it
        parse(f"{name}({', '.join(['a.a'] * len(arguments))})")
    except QueryError as error:
        raise fail(node, str(error).rsplit(" in '", 1)[0]) from None
    return made_of(str(function), arguments)


def _moment(node: Any, fail: Fail) -> Node:
    """TIMESTAMP '…', DATE '…' or INTERVAL 5 MINUTES."""
    from sqlglot import exp

    if isinstance(node, exp.Interval):
        unit = node.args.get("unit")
        text = f"{node.this.name} {unit.name.lower() if unit is not None else ''}"
        made = moment_of("interval", text) if isinstance(node.this, exp.Literal) else None
    else:
        word = node.to.this.name.lower()
        is_known = word.startswith(("timestamp", "date")) and node.this.is_string
        made = moment_of("date" if word == "date" else "timestamp", node.this.name) if is_known else None  # fmt: skip  # noqa: E501
    if made is None:
        msg = "a time is TIMESTAMP '2026-01-31 12:00:00', DATE '2026-01-31' or INTERVAL 5 MINUTES"
        raise fail(node, f"{msg}, got {node.sql()}")
    return made


def _is(node: Any, fail: Fail) -> Node:
    """IS NULL, IS TRUE or IS FALSE; IS NOT is a NOT around it."""
    from sqlglot import exp

    tested = _tree(node.this, fail)
    if isinstance(node.expression, exp.Null):
        return IsNull(tested)
    if isinstance(node.expression, exp.Boolean):
        value = Not(Not(tested)) if node.expression.this else Not(tested)
        return Call("coalesce", (value, Literal(value=False)))
    raise fail(node, f"expected NULL, TRUE or FALSE behind IS, got {node.expression.sql()}")


def _case(node: Any, fail: Fail) -> Node:
    compared = None if node.this is None else _tree(node.this, fail)
    branches = []
    for branch in node.args["ifs"]:
        test = _tree(branch.this, fail)
        tested = test if compared is None else Compare((compared, test), ("==",))
        branches.append((tested, _tree(branch.args["true"], fail)))
    otherwise = node.args.get("default")
    return Case(tuple(branches), Literal(None) if otherwise is None else _tree(otherwise, fail))


# ---- to SQL

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_OPERATORS = {
    "+": ("+", _SUM), "-": ("-", _SUM), "*": ("*", _PRODUCT), "/": ("/", _PRODUCT),
    "div": ("DIV", _PRODUCT), "%": ("%", _PRODUCT),
}  # fmt: skip
_IN_SQL = {"min": "LEAST", "max": "GREATEST", "log": "LN"}
_COMPARISONS = {"==": "=", "!=": "<>"}  # the others are spelled the same


def to_sql(expression_text: str, as_condition: bool = True) -> str:
    """The SQL of an expression of `where` or `select`."""
    tree = parse(expression_text, "where" if as_condition else "select")
    if not as_condition:
        return _written(tree)[0]
    tops = tree.operands if isinstance(tree, And) else (tree,)
    parts = [f"TEST({_at(top, _OR)})" if _is_key(top) else _at(top, _NOT) for top in tops]
    return " AND ".join(parts)


def column_in(text: str) -> Column | None:
    """The column that an expression of `select` is, if it is one."""
    tree = parse(text, "select")
    return tree if isinstance(tree, Column) else None


def _is_key(node: Node) -> bool:
    """Whether SQL would take it for a key."""
    match node:
        case Compare((Column() as left, Column() as right), ("==",)):
            return left.stream != right.stream
    return False


def _at(node: Node, least: int) -> str:
    """The text of an operand, in parentheses if it binds less than `least`."""
    text, binds = _written(node)
    return text if binds >= least else f"({text})"


def _written(node: Node) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case Column(stream, name):
            is_plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in _NO_COLUMNS
            return f"{identifier(stream)}.{name if is_plain else identifier(name)}", _ATOM
        case Literal(bool(value)):
            return str(value).upper(), _ATOM
        case Literal(str(value)):
            return text(value), _ATOM
        case Literal(value):
            shown = "NULL" if value is None else repr(value)
            return ("1e999" if value == inf else shown), _ATOM
        case Moment():
            return _moment_text(node)
        case Not(IsNull(operand)):
            return f"{_at(operand, _SUM)} IS NOT NULL", _COMPARE
        case IsNull(operand):
            return f"{_at(operand, _SUM)} IS NULL", _COMPARE
        case In(operand, options):
            listed = ", ".join(_at(each, _OR) for each in options)
            return f"{_at(operand, _SUM)} IN ({listed})", _COMPARE
        case Case(branches, otherwise):
            tests = [f"WHEN {_at(test, _OR)} THEN {_at(then, _OR)}" for test, then in branches]
            tests += [] if otherwise == Literal(None) else [f"ELSE {_at(otherwise, _OR)}"]
            return f"CASE {' '.join(tests)} END", _ATOM
        case Call("like", (tested, pattern)):
            return f"{_at(tested, _SUM)} LIKE {_at(pattern, _SUM)}", _COMPARE
        case Not(operand):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case Negate(operand):
            return f"-{_at(operand, _ATOM)}", _SIGN
        case And(operands):
            return " AND ".join(_at(operand, _NOT) for operand in operands), _AND
        case Or(operands):
            return " OR ".join(_at(operand, _AND) for operand in operands), _OR
        case Compare((low, tested, high), ("<=", "<=")):
            ends = f"{_at(low, _SUM)} AND {_at(high, _SUM)}"
            return f"{_at(tested, _SUM)} BETWEEN {ends}", _COMPARE
        case Compare(operands, operators):
            sides = [_at(operand, _SUM) for operand in operands]
            pairs = [
                f"{sides[i]} {_COMPARISONS.get(sign, sign)} {sides[i + 1]}"
                for i, sign in enumerate(operators)
            ]
            return " AND ".join(pairs), _COMPARE if len(pairs) == 1 else _AND
        case Binary("**" | "//" as function, left, right):
            name = "POWER" if function == "**" else "FLOORDIV"
            return f"{name}({_at(left, _OR)}, {_at(right, _OR)})", _ATOM
        case Binary(operator, left, right):
            sign, binds = _OPERATORS[operator]
            return f"{_at(left, binds)} {sign} {_at(right, binds + 1)}", binds
        case Call(function, arguments):
            name = _IN_SQL.get(function, function.upper())
            return f"{name}({', '.join(_at(each, _OR) for each in arguments)})", _ATOM
    raise AssertionError(node)


def _moment_text(node: Moment) -> tuple[str, int]:
    """As text has it, but for an interval, whose unit stands behind its number."""
    sign, word, value = text_of_moment(node).partition(node.kind)
    value = value.strip().strip("'")
    if word != "interval":
        return f"{word.upper()} '{value}'", _ATOM
    number_, unit = value.split()
    return f"{sign}INTERVAL '{number_}' {unit.upper()}", _SIGN if sign else _ATOM
