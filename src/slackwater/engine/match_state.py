"""The state of joins from arrivals for snapshots; the marks of events are an attachment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from slackwater.disorder.stage import ReorderState
from slackwater.engine.base import DEAD
from slackwater.engine.snapshot_format import packed_table, unpacked_table
from slackwater.events.log import Log
from slackwater.joins.matcher import Matcher
from slackwater.kernels import partners as kernels
from slackwater.kernels.asof import RANK
from slackwater.kernels.records import I64, NONE, U8
from slackwater.query.goals import goal_from_dict

if TYPE_CHECKING:
    from slackwater.engine.arrivals import ArrivalEngine

_KEPT = 0  # a location
_SAVED = {"state": kernels.STATE, "value": kernels.VALUE, "rank": RANK}


def event_locations(engine: ArrivalEngine) -> U8:
    """Kept, or not needed any more."""
    return np.where(engine.matcher.is_kept(), _KEPT, DEAD).astype(np.uint8)


def saved_marks(log: Log, locations: U8, matcher: Matcher) -> bytes:
    """What became of the events that are kept, in arrival order.

    A partner is the place of its event among them.
    """
    alive = np.flatnonzero(locations != DEAD)
    place = np.full(log.size + 1, NONE)  # at the end: an event that is not kept
    place[alive] = np.arange(len(alive))
    is_undecided = np.zeros(log.size, bool)
    is_undecided[matcher.undecided.events() - log.base] = True
    marks = log.marks[alive]
    partner = marks[:, kernels.PARTNER]
    columns: dict[str, Any] = {name: marks[:, column] for name, column in _SAVED.items()}
    columns["partner"] = place[np.where(partner >= log.base, partner - log.base, -1)]
    columns["undecided"] = is_undecided[alive]
    return packed_table(pa.table(columns))


def restore_marks(log: Log, kept: I64, saved: bytes) -> I64:
    """Give the events back their marks; return those whose rows are not decided."""
    table = unpacked_table(saved)
    marks = log.marks[kept - log.base]
    for name, column in _SAVED.items():
        marks[:, column] = table.column(name).to_numpy()
    partner = table.column("partner").to_numpy()
    marks[:, kernels.PARTNER] = NONE
    there = partner != NONE
    marks[there, kernels.PARTNER] = kept[partner[there]]
    log.marks[kept - log.base] = marks
    undecided: I64 = kept[table.column("undecided").to_numpy(zero_copy_only=False)]
    return undecided


def ready_rows(log: Log, kept: I64, clock: int) -> tuple[I64, I64]:
    """The events of a semi join whose rows wait for the join's clock, and their times."""
    marks = log.marks[kept - log.base]
    times = marks[:, kernels.VALUE]
    is_ready = (marks[:, kernels.STATE] & kernels.MATCHED > 0) & (times > clock)
    is_ready &= log.stream[kept - log.base] == 0
    return kept[is_ready], times[is_ready]


def plain_state(engine: ArrivalEngine) -> dict[str, Any]:
    """The state without the events."""
    return {
        "reorder": engine.reorder.state().without_events(),
        "common_slack": None if engine.common_slack is None else engine.common_slack.state(),
        "matcher": engine.matcher.state()._asdict(),
        "waits": [None if w is None else w.state() for w in (engine.waits, engine.keeper)],
        "corrections": None if engine.corrections is None else engine.corrections.state(),
    }


def resume(engine: ArrivalEngine, header: dict[str, Any], at: dict[int, I64]) -> None:
    """Continue from the header of a snapshot; the goal may be another one."""
    none = np.empty(0, np.int64)
    slack = engine.reorder.slack
    engine.reorder.resume(
        ReorderState(**header["reorder"], in_slack=none, overdue=none, in_sync=none)
    )
    # what shards learnt alone differs: those that share K from here on start anew
    begins_to_share = engine.common_slack is not None and header["common_slack"] is None
    same_goal = repr(engine.initial_goal) == header["initial_goal"]
    goal = goal_from_dict(header["goal"])
    if same_goal and goal != engine.query.goal:
        engine.set_goal(goal)  # it was changed on the way
    elif not same_goal and engine.statistics is None:
        engine.reorder.set_slack(slack)  # a goal that learns finds its own way from the old one
    kept = at.get(_KEPT, none)
    engine.put_back(header, kept)
    for waits, saved in zip((engine.waits, engine.keeper), header["waits"], strict=True):
        if waits is not None and saved is not None:
            waits.resume(saved, same_goal and not (begins_to_share and waits is engine.waits))
    if engine.corrections is not None and header["corrections"] is not None:
        engine.corrections.resume(header["corrections"])
    if engine.common_slack is not None and header["common_slack"] is not None:
        engine.common_slack.resume(header["common_slack"], same_goal)
