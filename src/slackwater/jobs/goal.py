"""Read the goal and the load shedding of a job file: names, or tables of settings."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

from slackwater.jobs.toml_table import Table
from slackwater.query.goals import Goal, InputQuantile, Latency, MaxSlack, NoSlack, Recall, Slack
from slackwater.query.shedding import Harvest, RandomDrop, Shedding, SheddingOption, TailDrop
from slackwater.query.units import TimeUnit, to_units
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound
from slackwater.query.windows import length_of_text

Default = TypeVar("Default", bound=Goal | None)

_SHEDDING: dict[str, type[Shedding]] = {
    "harvest": Harvest, "random-drop": RandomDrop, "tail-drop": TailDrop,
}  # fmt: skip
_NAMED_GOALS: dict[str, Goal] = {"no-slack": NoSlack(), "max-slack": MaxSlack()}
# Goals with options: the key that selects the goal holds the value of its first field.
_GOALS: dict[str, type[Goal]] = {
    "recall": Recall,
    "input_quantile": InputQuantile,
    "latency": Latency,
    "drop_ratio": DropRatio,
    "error_bound": ErrorBound,
    "deadline": Deadline,
    "slack": Slack,
    "synchronize": NoSlack,
}


def goal_of(joining: Table, unit: TimeUnit, default: Default) -> Goal | Default:
    """A goal by its name, or a table: ``{recall = 0.95, over = "1 minute"}``."""
    if "goal" not in joining.given:
        return default
    given = joining.given["goal"]
    if isinstance(given, str) and given in _NAMED_GOALS:
        return _NAMED_GOALS[given]
    kinds = [kind for kind in _GOALS if kind in given] if isinstance(given, dict) else []
    if kinds == ["deadline", "slack"]:  # a deadline may have a slack
        kinds = ["deadline"]
    if len(kinds) != 1:
        listed = ", ".join(_GOALS)
        joining.refuse("goal", f'"no-slack", "max-slack" or a table with one of {listed}')
    [kind] = kinds
    goal = _GOALS[kind]
    first, *others = fields(goal)
    types = {kind: first.type} | {field.name: field.type for field in others}
    table = Table(f"{joining.where} goal:", given, tuple(types))
    values = {
        name: _checked(table, name, str(types[name]), value, unit) for name, value in given.items()
    }
    values[first.name] = values.pop(kind)
    made = table.checked(lambda: goal(**values))
    if isinstance(made, Recall | InputQuantile | Latency):
        table.checked(lambda: made.check(unit))
    return made


def deadline_of(aggregates: Table, unit: TimeUnit) -> Deadline:
    """``"12 s"``, or a table: ``{limit = "2 s", after = "end"}``."""
    if "deadline" not in aggregates.given:
        aggregates.fail("needs deadline")
    given = aggregates.given["deadline"]
    if not isinstance(given, dict):
        aggregates.duration("deadline", unit)
        return aggregates.checked(lambda: Deadline(given))
    types = {field.name: str(field.type) for field in fields(Deadline)}
    table = Table(f"{aggregates.where} deadline:", given, tuple(types))
    if "limit" not in given:
        table.fail("needs limit")
    for name, value in given.items():
        _checked(table, name, types[name], value, unit)
    return table.checked(lambda: Deadline(**given))


def goal_text(goal: Any) -> str:
    """Format a goal, with the options that differ from their defaults."""
    given = [
        str(getattr(goal, f.name)) if f.default is MISSING else f"{f.name}={getattr(goal, f.name)}"
        for f in fields(goal)
        if getattr(goal, f.name) != f.default
    ]
    return f"{type(goal).__name__}({', '.join(given)})"


def shedding_of(joining: Table, unit: TimeUnit) -> SheddingOption:
    """``"adaptive"``, ``"off"``, or a table of settings with the name of the method."""
    given = joining.given.get("shed", "off")
    if given in ("adaptive", "off"):
        return given  # type: ignore[no-any-return]
    method = given.get("method", "harvest") if isinstance(given, dict) else None
    if method not in _SHEDDING:
        listed = ", ".join(map(repr, _SHEDDING))
        joining.refuse("shed", f"'adaptive', 'off' or a table with a method: {listed}")
    kind = _SHEDDING[method]
    types = {field.name: str(field.type) for field in fields(kind)}
    table = Table(f"{joining.where} shed:", given, ("method", *types))
    for name, value in given.items():
        _checked(table, name, types.get(name, ""), value, unit)
    return table.checked(lambda: kind(**{n: v for n, v in given.items() if n != "method"}))


def _checked(table: Table, name: str, kind: str, value: Any, unit: TimeUnit) -> Any:
    """The value of a field, if it is of the type that the goal itself takes for granted."""
    if kind == "bool" and not isinstance(value, bool):
        table.refuse(name, "true or false")
    if kind.startswith("Duration"):
        table.duration(name, unit)
    if kind.startswith("tuple"):
        if not isinstance(value, list) or len(value) != 2:
            table.refuse(name, "a list of two durations")
        for duration in value:
            table.checked(lambda: to_units(duration, unit, name))  # noqa: B023  called at once
    return length_of_text(value) if kind == "Tuples" else value
