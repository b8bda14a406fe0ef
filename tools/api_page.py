"""Write docs/api.md, the reference of all public names, from their signatures and docstrings.

Run it with ``.venv/bin/python tools/api_page.py``; a test compares the page with what it would be.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_overloads

import slackwater
from slackwater.engine.replay import AggregateRun, Run, WindowRun
from slackwater.metrics.progress import lines
from slackwater.metrics.prometheus import exposition
from slackwater.spark.checkpoint import check_checkpoint
from slackwater.spark.listener import MetricsLog
from slackwater.spark.session import session

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"

_WIDTH = 100
_QUERY = ("replay", "stream", "to_dict", "from_dict")

# What is on the page: headings, and names with the members that are shown.
CHAPTERS: dict[str, dict[str, tuple[str, ...]]] = {
    "Asking": {"join": (), "window": (), "sql": (), "Stream": (), "Tuples": ()},
    "Goals": {
        name: ()
        for name in (
            "Recall", "Latency", "DropRatio", "InputQuantile", "Slack", "MaxSlack", "NoSlack",
            "ErrorBound", "Deadline",
        )
    },
    "Load shedding": {"Harvest": (), "RandomDrop": (), "TailDrop": ()},
    "Aggregates": {
        name: ()
        for name in (
            "Aggregate", "count", "sum", "avg", "min", "max", "stddev", "first", "last", "Tumbling",
            "Sliding",
        )
    },
    "Queries": {
        "JoinQuery": (*_QUERY[:2], "with_", *_QUERY[2:]), "WindowQuery": _QUERY,
        "AggregateQuery": _QUERY,
    },
    "Runs": {
        "Run": ("results", "late", "rejected", "produced", "slack", "report"),
        "WindowRun": ("results", "late", "rejected"),
        "AggregateRun": ("results", "early", "exact", "rejected"),
    },
    "On Spark": {
        "session": (), "results": (), "rejects": (), "check_checkpoint": (), "MetricsLog": ("wait",)
    },
    "Metrics": {"lines": (), "exposition": ()},
    "Errors": {
        name: ()
        for name in (
            "SlackwaterError", "QueryError", "DataError", "ConditionError", "SnapshotError",
            "SparkError", "EngineStoppedError",
        )
    },
}  # fmt: skip
_MADE_BY_OTHERS = ("JoinQuery", "WindowQuery", "AggregateQuery", "Run", "WindowRun", "AggregateRun")
_ELSEWHERE: dict[str, tuple[str, Any]] = {
    "Run": ("slackwater.engine.replay", Run),
    "WindowRun": ("slackwater.engine.replay", WindowRun),
    "AggregateRun": ("slackwater.engine.replay", AggregateRun),
    "session": ("slackwater.spark", session),
    "check_checkpoint": ("slackwater.spark", check_checkpoint),
    "MetricsLog": ("slackwater.spark", MetricsLog),
    "lines": ("slackwater.metrics.progress", lines),
    "exposition": ("slackwater.metrics.prometheus", exposition),
}


def page() -> str:
    """The whole page."""
    parts = [
        "# API reference",
        "Made by `tools/api_page.py` from signatures and docstrings; do not edit it. Names are\n"
        "those of `import slackwater as sw` where nothing else is said. A `Duration` is a text\n"
        "like `\"5 seconds\"`, a number in the query's unit, or a timedelta. Job files have the\n"
        "same options ([running.md](running.md)), and so has SQL ([sql.md](sql.md)).",
    ]  # fmt: skip
    parts += [
        f"[{chapter}](#{chapter.lower().replace(' ', '-')}): "
        + ", ".join(f"[`{name}`](#{name.lower()})" for name in names)
        for chapter, names in CHAPTERS.items()
    ]
    for chapter, names in CHAPTERS.items():
        parts.append(f"## {chapter}")
        for name, members in names.items():
            parts += described(name, members)
    return "\n\n".join(parts) + "\n"


def described(name: str, members: tuple[str, ...]) -> Iterator[str]:
    """A public name: signature, words, parameters, members."""
    module, found = _ELSEWHERE.get(name, ("slackwater", getattr(slackwater, name, None)))
    yield f"### {name}"
    if not is_error(found) and name not in _MADE_BY_OTHERS:
        shown = f"sw.{name}" if module == "slackwater" else name
        calls = list(reversed(get_overloads(found))) or [found]
        signatures = "\n".join(signature(shown, call) for call in calls)
        yield f"```python no-run\n{signatures}\n```"
    words, parameters = documented(found)
    if isinstance(found, type) and not is_error(found) and name not in _MADE_BY_OTHERS:
        parameters += inherited(found, parameters)
    yield words if module == "slackwater" else f"From `{module}`. {words}"
    if parameters:
        yield table(parameters)
    for member in members:
        part = inspect.getattr_static(found, member)
        is_method = callable(getattr(found, member)) and not isinstance(part, property)
        function = getattr(found, member) if is_method else None
        head = signature(f".{member}", function) if function is not None else f".{member}"
        words, parameters = documented(part if function is None else function)
        one_line = head if len(head) + 4 < _WIDTH and "\n" not in head else f".{member}(…)"
        yield f"**`{one_line}`** {words}"
        if parameters:
            yield table(parameters)


def is_error(found: Any) -> bool:
    """Whether it is a class of errors."""
    return isinstance(found, type) and issubclass(found, Exception)


def signature(name: str, call: Callable[..., Any]) -> str:
    """How it is called, on several lines if one is too short."""
    given = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
    shown, is_keyword_only = [], False
    for parameter in given:
        starred: dict[Any, str] = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            if not any(p.kind is p.VAR_POSITIONAL for p in given):
                shown.append("*")
        text = starred.get(parameter.kind, "") + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {as_text(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {default(parameter.default)}"
        shown.append(text)
    line = f"{name}({', '.join(shown)})"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in shown) + ")"


def as_text(annotation: Any) -> str:
    """An annotation as it is in the source."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return (text or str(annotation)).strip("'\"")


def default(value: Any) -> str:
    """A default as one would write it."""
    return "…" if "factory" in repr(value) else repr(value).replace("'", '"')


def documented(found: Any) -> tuple[str, list[tuple[str, str]]]:
    """The words of a docstring without its examples, and its parameters."""
    text = inspect.getdoc(found) or ""
    text, _, listed = text.partition("Parameters\n----------\n")
    words = re.split(r"\n(?=>>>)", text.strip())[0].strip()
    parameters: list[tuple[str, str]] = []
    for line in listed.splitlines():
        if line.startswith(">>>"):
            break
        if line.startswith(" "):
            name, about = parameters.pop()
            parameters.append((name, f"{about} {line.strip()}".strip()))
        elif line:
            parameters.append((line, ""))
    return plain(words), parameters


def inherited(found: type, parameters: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Parameters that only the classes behind it describe."""
    known = {name for name, _ in parameters}
    wanted = set(inspect.signature(found).parameters) - known
    behind: dict[str, str] = {}
    for base in found.__mro__[1:]:
        if base.__module__.startswith("slackwater"):
            behind |= {name: about for name, about in documented(base)[1] if name in wanted}
    return list(behind.items())


def plain(text: str) -> str:
    """Markdown in place of reStructuredText."""
    return text.replace("``", "`")


def table(parameters: list[tuple[str, str]]) -> str:
    """Parameters and what they mean."""
    rows = [
        f"| `{name}` | {plain(about).replace('|', chr(92) + '|')} |" for name, about in parameters
    ]
    return "\n".join(["| parameter | meaning |", "| --- | --- |", *rows])


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(PAGE.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
