"""Mutants: small changes of the source, made by the operators of cosmic-ray."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "slackwater"

# The engine: its packages, and the kernels that hold their loops. tests/unit/test_mutants.py checks
# that no file is left out but those of UNREAD.
PACKAGES = (
    "compensation", "controllers", "disorder", "engine", "events", "joins", "kernels", "metrics",
    "shedding", "stats", "windows",
)  # fmt: skip
KERNELS = {
    "compensation": "products",
    "controllers": "back_test recall drops histogram",
    "disorder": "clocked clock_series reorder buckets heartbeat",
    "events": "intake hashing",
    "joins": "join matching partners asof at_once arrival fetch count lateness longer_sample walk "
    "frame windows sorted_windows keys vectors records",
    "shedding": "shed shed_count harvest basic_windows drop_rates",
    "stats": "accounting cross delay_scale recent statistics",
    "windows": "aggregate stacks",
}
# How kernels are compiled and cached: nothing that kernels as plain Python show.
UNREAD = ("engine/warm", "kernels/jit", "kernels/archive")

GROUPS = {name: [f"{name}/*"] for name in PACKAGES if name != "kernels"} | {
    f"{name}, kernels": [f"kernels/{kernel}" for kernel in kernels.split()]
    for name, kernels in KERNELS.items()
}

# The nearest wrong operator. Others (`+` for `<<`, `<` for `is`) die at once and flatter the score.
BINARY = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv RShift_LShift LShift_RShift"
BINARY += " BitOr_BitAnd BitAnd_BitOr BitXor_BitAnd"
COMPARISON = "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt"
COMPARISON += " Is_IsNot IsNot_Is"
UNARY = "USub_UAdd Delete_Not Delete_Invert"
OTHERS = "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd"
OTHERS += " ReplaceBreakWithContinue ReplaceContinueWithBreak ExceptionReplacer NumberReplacer"
OTHERS += " ZeroIterationForLoop"


@dataclass(frozen=True)
class Mutant:
    """One change: the occurrence of an operator in a file."""

    group: str
    path: str
    line: int
    operator: str
    occurrence: int


def operators() -> dict[str, Any]:
    """The chosen operators of cosmic-ray by name, made."""
    provider = import_module("cosmic_ray.operators.provider").OperatorProvider()
    named = [f"ReplaceBinaryOperator_{pair}" for pair in BINARY.split()]
    named += [f"ReplaceComparisonOperator_{pair}" for pair in COMPARISON.split()]
    named += [f"ReplaceUnaryOperator_{pair}" for pair in UNARY.split()]
    return {name: provider[name]() for name in [*named, *OTHERS.split()]}


def mutated(mutant: Mutant) -> str:
    """The source with the change made."""
    source, operator = (ROOT / mutant.path).read_text(), operators()[mutant.operator]
    trees = import_module("cosmic_ray.ast")
    tree, seen = trees.get_ast(source), 0
    for node in trees.ast_nodes(tree):
        places = len(list(operator.mutation_positions(node)))
        if seen <= mutant.occurrence < seen + places:
            changed = operator.mutate(node, mutant.occurrence - seen)
            if changed is not node:
                siblings = node.parent.children
                siblings[siblings.index(node)] = changed
            return str(tree.get_code())
        seen += places
    msg = f"{mutant.path} has changed: there is no {mutant}"
    raise LookupError(msg)


def annotated(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the source has annotations, which nothing reads when the program runs."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for name in ("annotation", "returns"):
            if (part := getattr(node, name, None)) is not None:
                begin, end = (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)
                found.append((begin, end))
    return found


def statement(source: str, line: int) -> range:
    """The lines of the innermost statement there, without those of its body."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):  # from the outside
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
            if node.lineno <= line < end:
                found = range(node.lineno, end)
    return found


def files(group: str) -> list[Path]:
    """The files of a group."""
    unread = {SOURCE / f"{name}.py" for name in UNREAD}
    return sorted(
        {path for glob in GROUPS[group] for path in SOURCE.glob(f"{glob}.py")} - unread
    )  # fmt: skip


def population(group: str) -> Iterator[Mutant]:
    """Every mutant of a group but those of annotations, texts and imports for the type checker."""
    trees = import_module("cosmic_ray.ast")
    for path in files(group):
        source = path.read_text()
        lines, unread = source.splitlines(), annotated(source)
        nodes = list(trees.ast_nodes(trees.get_ast(source)))
        for name, operator in operators().items():
            places = [(node, at) for node in nodes for at, _ in operator.mutation_positions(node)]
            for occurrence, (node, at) in enumerate(places):
                annotation = any(begin <= at < end for begin, end in unread)
                text = node.search_ancestor("fstring") is not None
                if not (annotation or text or "TYPE_CHECKING" in lines[at[0] - 1]):
                    yield Mutant(group, str(path.relative_to(ROOT)), at[0], name, occurrence)


def described(mutant: Mutant) -> str:
    """A mutant in a line: where, what stood there, what stands there now."""
    old = (ROOT / mutant.path).read_text().splitlines()
    new = mutated(mutant).splitlines()
    changes = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
    before, after = (" ".join(side.split()) for side in changes[0])
    return f"{mutant.path}:{mutant.line}: {before}  ->  {after}"
