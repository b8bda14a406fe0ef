"""The code keeps the limits of its layout: sizes, names, tests on kinds, imports."""

import ast
import json
import resource
import subprocess
import sys
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {path: ast.parse(path.read_text("utf-8")) for path in (ROOT / "src").rglob("*.py")}
LAB = {path: ast.parse(path.read_text("utf-8")) for path in (ROOT / "lab/src").rglob("*.py")}
HEAVY = {"duckdb", "numba", "numpy", "pandas", "polars", "pyarrow", "pyspark", "rich", "sqlglot"}


def places(found):
    return [f"{path.relative_to(ROOT)}:{line} {what}" for path, line, what in found]


# ---- sizes


def test_no_file_is_longer_than_400_lines():
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert not places((path, n, "lines") for path, n in lengths.items() if n > 400)


def test_no_class_is_longer_than_250_lines():
    assert not places(
        (path, node.lineno, node.name)
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.end_lineno - node.lineno >= 250
    )


# ---- tests on the kind of a query or an engine


def is_kind(node):
    """Whether a class, or one of several, is a query's or an engine's."""
    names = [n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in ast.walk(node)]
    return any(name.endswith(("Query", "Engine")) for name in names)


def called(node):
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def asks_for_kind(node):
    """Whether `node` is one of the ways to ask what an object is, instead of what it can do."""
    if isinstance(node, ast.MatchClass):
        return is_kind(node.cls)
    if isinstance(node, ast.Compare) and isinstance(
        node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq
    ):
        sides = [node.left, *node.comparators]
        return any(called(side) == "type" for side in sides) or any(
            isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides
        )
    if called(node) in ("isinstance", "issubclass"):
        return is_kind(node.args[1])
    if called(node) == "getattr" and len(node.args) == 3:  # a `hasattr` in disguise
        return any(word in ast.unparse(node.args[0]) for word in ("query", "goal", "engine"))
    return called(node) == "hasattr"


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(query, sw.JoinQuery | sw.WindowQuery)",
        "isinstance(engine, (JoinEngine, WindowEngine))",
        "type(query) is JoinQuery",
        "query.kind == 'join'",
        "hasattr(query, 'where')",
        "getattr(self.query, 'where', None)",
        "match query:\n    case JoinQuery(): pass",
    ],
)
def test_a_test_on_a_kind_is_recognised(code):
    assert [asks_for_kind(node) for node in ast.walk(ast.parse(code))].count(True) == 1


@pytest.mark.parametrize(
    "code", ["isinstance(query, str)", "kinds[type(query)]", "getattr(query, name)", "query.kind"]
)
def test_a_look_at_something_else_is_not(code):
    assert not any(map(asks_for_kind, ast.walk(ast.parse(code))))


def test_few_places_ask_for_the_kind_of_a_query_or_an_engine():
    found = places(
        (path, node.lineno, ast.unparse(node))
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if asks_for_kind(node)
    )
    assert len(found) <= 15, "\n".join(found)


# ---- names


@pytest.mark.parametrize("name", ["errors", "memory", "delays", "plan"])
def test_a_module_name_has_one_meaning(name):
    assert len([path for path in chain(MODULES, LAB) if path.stem == name]) <= 1


@pytest.mark.parametrize("name", ["Setting", "Outcome", "Line"])
def test_a_class_name_has_one_meaning(name):
    defined = Counter()
    for tree in chain(MODULES.values(), LAB.values()):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name] += 1
            elif isinstance(node, ast.Assign):
                defined.update(t.id for t in node.targets if isinstance(t, ast.Name))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined.update(alias.asname for alias in node.names if alias.asname)
    assert defined[name] <= 1


# ---- imports


def test_contracts_name_packages():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    layers, without_spark = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    named = " | ".join(layers["layers"] + without_spark["source_modules"]).split(" | ")
    packages = {path.parent.name for path in MODULES if path.name == "__init__.py"}
    tops = {name.removeprefix("slackwater.") for name in named} - {"slackwater_lab", "errors"}
    assert tops <= packages
    assert not [name for name in tops if "." in name]


IMPORT = "import json, sys, slackwater; print(json.dumps(sorted(sys.modules)))"


def test_the_front_door_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert "slackwater" in loaded
    assert not loaded & HEAVY


def test_the_front_door_opens_at_once():
    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import slackwater"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.3  # of the processor: others may use the machine
