"""The reference has every public name, and each docstring has the sections that a user looks for.

ruff checks the form of docstrings (numpydoc), this their content: every parameter is described, and
what is returned, what is raised, and an example are there.
"""

import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import get_overloads

import griffe
import pytest
import yaml

import slackwater
from slackwater.errors import SlackwaterError

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
DIRECTIVE = re.compile(r"^::: (?P<path>\S+)\n(?P<options>(?:    .*\n)*)", re.MULTILINE)

# Names whose docstrings are still incomplete. Nothing may be added: complete the docstring instead,
# and take its name off this list (the test fails for names that are complete).
OPEN: set[str] = set()


def directives():
    """Names of the reference: the path of each, and its members that are shown."""
    found = {}
    for page in PAGES:
        for match in DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            options = (yaml.safe_load(match["options"]) or {}).get("options", {})
            found[match["path"]] = tuple(options.get("members", ()))
    return found


def resolved(path):
    """The object at a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


SHOWN = directives()


def test_every_public_name_is_in_the_reference():
    at_the_door = {path.rpartition(".")[2] for path in SHOWN if path.startswith("slackwater.")}
    names = {
        name
        for name in slackwater.__all__
        if not name.startswith("_") and not inspect.ismodule(getattr(slackwater, name))
    }
    assert sorted(names - at_the_door) == []


def test_no_name_is_in_the_reference_twice():
    assert len(SHOWN) == sum(
        len(DIRECTIVE.findall(page.read_text(encoding="utf-8"))) for page in PAGES
    )


@pytest.mark.parametrize("path", SHOWN)
def test_what_is_in_the_reference_exists_under_the_name_that_users_import(path):
    name = path.rpartition(".")[2]
    if name in slackwater.__all__:
        assert resolved(path) is getattr(slackwater, name)
    assert all(hasattr(resolved(path), member) for member in SHOWN[path])


def test_every_page_of_the_reference_is_listed_on_its_first():
    first = (ROOT / "docs" / "api" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^\]]+\]\((\S+)\)", first, re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES if page.name != "README.md"]


def sections(found):
    """The sections of a docstring: words, parameters, returns, raises, examples."""
    docstring = griffe.Docstring(inspect.getdoc(found) or "")
    parsed = griffe.parse_numpy(docstring, warnings=False)
    return {section.kind.value: section.value for section in parsed}


def parameters(found):
    """Names of parameters, those of every overload."""
    calls = get_overloads(found) if inspect.isfunction(found) else []
    names = [
        name
        for call in (calls or [found])
        for name in inspect.signature(call).parameters
        if name not in ("self", "cls")
    ]
    return list(dict.fromkeys(names))


def is_validated(found):
    """Whether it refuses values: a class when it is made, a function in its own lines."""
    if isinstance(found, type):
        return any("__post_init__" in vars(base) for base in found.__mro__)
    return re.search(r"^\s+raise ", inspect.getsource(found), re.MULTILINE) is not None


def problems(found, name, needs_example=True):
    """What is missing in a docstring, each in a line."""
    if isinstance(found, property | cached_property):
        return [] if inspect.getdoc(found) else [f"{name}: no docstring"]
    have = sections(found)
    missing = [] if "text" in have else [f"{name}: no summary"]
    if isinstance(found, type) and issubclass(found, Exception):
        return missing
    described = [
        part.strip("* ") for item in have.get("parameters", []) for part in item.name.split(",")
    ]
    wanted = parameters(found)
    missing += [
        f"{name}: parameter {one!r} is not described" for one in wanted if one not in described
    ]
    missing += [f"{name}: there is no parameter {one!r}" for one in described if one not in wanted]
    returns = inspect.signature(found).return_annotation if not isinstance(found, type) else None
    if returns not in (None, "None", inspect.Signature.empty) and not have.keys() & {
        "returns",
        "yields",
    }:
        missing.append(f"{name}: no Returns")
    if is_validated(found) and "raises" not in have:
        missing.append(f"{name}: no Raises")
    if needs_example and "examples" not in have:
        missing.append(f"{name}: no Examples")
    return missing


def of_name(path):
    """What is missing in the docstrings of a name of the reference and its members."""
    found, name = resolved(path), path.rpartition(".")[2]
    if SHOWN[path] or inspect.ismodule(found):  # the members are what a user looks for
        missing = [] if inspect.getdoc(found) else [f"{name}: no docstring"]
        for member in SHOWN[path]:
            part = inspect.getattr_static(found, member)
            is_value = isinstance(part, property | cached_property)
            part = part if is_value else getattr(found, member)
            missing += problems(part, f"{name}.{member}", needs_example=False)
        return missing
    return problems(found, name)


def named():
    reason = "known to be incomplete"
    return [
        pytest.param(path, marks=pytest.mark.xfail(reason=reason) if name in OPEN else ())
        for path in SHOWN
        for name in [path.rpartition(".")[2]]
    ]


@pytest.mark.parametrize("path", named())
def test_a_public_name_is_described_as_users_need_it(path):
    missing = of_name(path)
    assert missing == [], "\n" + "\n".join(missing)


def test_open_names_are_public():
    assert OPEN <= {path.rpartition(".")[2] for path in SHOWN}


def test_an_incomplete_docstring_is_found():
    def half(speed: int, colour: str) -> int:
        """Show it.

        Parameters
        ----------
        speed
            How fast.
        size
            How large.
        """
        raise SlackwaterError

    assert problems(half, "half") == [
        "half: parameter 'colour' is not described",
        "half: there is no parameter 'size'",
        "half: no Returns",
        "half: no Raises",
        "half: no Examples",
    ]
