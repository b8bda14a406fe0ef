"""The options of a join, and what each can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from slackwater.query.expression import Expression
from slackwater.query.units import TimeUnit

Bounds = Literal["[]", "(]", "[)"]
Late = Literal["count", "emit", "drop"]
LateProbe = Literal["none", "window-end"]
Overdue = Literal["advance", "now"]
Pipeline = Literal["clocked", "icde16"]
SlackScope = Literal["query", "shard"]
How = Literal["inner", "left", "right", "full", "semi", "anti", "asof"]
Direction = Literal["backward", "forward", "nearest"]
Emit = Literal["ordered", "eager"]
Select = Literal["*", "count"] | Mapping[str, str | Expression] | tuple[tuple[str, str], ...]
Where = str | Expression | Callable[..., bool] | None  # an Expression becomes its text

CHOICES = {
    "late": get_args(Late),
    "bounds": get_args(Bounds),
    "pipeline": get_args(Pipeline),
    "overdue": get_args(Overdue),
    "late_probe": get_args(LateProbe),
    "slack_scope": get_args(SlackScope),
    "unit": get_args(TimeUnit),
    "strict": (True, False),
    "how": get_args(How),
    "direction": get_args(Direction),
    "emit": get_args(Emit),
    "result_id": (True, False),
}
