"""How large an expression may be, so that a hostile one costs nothing."""

from __future__ import annotations

from slackwater.errors import QueryError
from slackwater.query.expression.nodes import Call, Column, Literal, Node, children, walk

LONGEST = 10_000  # characters; what is longer can exhaust Python's own parser
DEEPEST = 100  # operators inside each other; back ends go down the tree by recursion
MOST = 500  # names and numbers; compiling takes longer than in proportion
LARGEST = 2**63  # whole numbers must be below


def check_length(text: str, what: str) -> None:
    """Raise if the text is too long to be parsed."""
    if len(text) > LONGEST:
        msg = f"{what} may have {LONGEST:,} characters, got {len(text):,}"
        raise QueryError(msg)


def check_size(tree: Node, what: str, text: str) -> None:
    """Raise if the tree is too deep or too wide; `text` shows it in errors."""
    if is_deep(tree):
        raise too_deep(what, text)
    leaves = sum(isinstance(node, Column | Literal | Call) for node in walk(tree))
    if leaves > MOST:
        msg = f"{what} may have {MOST} names and numbers, got {leaves} in {text[:40]!r}…"
        raise QueryError(msg)


def is_deep(tree: Node) -> bool:
    """Whether it is deeper than allowed; without recursion, which might be too deep itself."""
    level = [tree]
    for _ in range(DEEPEST + 1):  # the last level has leaves only
        level = [child for node in level for child in children(node)]
    return bool(level)


def too_deep(what: str, text: str) -> QueryError:
    """The error of an expression that is too deep."""
    most = f"{DEEPEST} operators inside each other"
    return QueryError(f"{what} is nested too deeply, at most {most}: {text[:40]!r}…")
