"""Where the events of a join are, and its state as plain data, for snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.disorder.stage import ReorderState
from slackwater.engine.base import DEAD
from slackwater.joins.window_join import JoinState
from slackwater.kernels.records import I64, U8
from slackwater.query.goals import goal_from_dict

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine

STORED, _IN_SLACK, _OVERDUE, _IN_SYNC = range(4)  # locations of events


def event_locations(engine: JoinEngine) -> U8:
    """For each event of the log: stored in the windows, or waiting in one of the buffers."""
    log, waiting = engine.log, engine.reorder.state()
    horizons = np.array([engine.join.stream_horizon(s) for s in range(len(engine.rows))])
    kept = log.ts >= horizons[log.stream] if log.size else np.zeros(0, bool)
    kept &= log.keys[:, 0] >= 0  # ticks and shed events are not stored
    place = np.where(kept, STORED, DEAD).astype(np.uint8)
    place[waiting.in_slack - log.base] = _IN_SLACK
    place[waiting.overdue - log.base] = _OVERDUE
    place[waiting.in_sync - log.base] = _IN_SYNC
    return place


def plain_state(engine: JoinEngine) -> dict[str, Any]:
    """The state without the events."""
    waiting, statistics, shedder = engine.reorder.state(), engine.statistics, engine.shedder
    return {
        "reorder": {
            "scalars": waiting.scalars,
            "local": waiting.local,
            "newest": waiting.newest,
            "moved": waiting.moved,
        },
        "join": engine.join.state()._asdict(),
        "statistics": None if statistics is None else statistics.state(),
        "controller": engine.controller.state(),
        "retention": None if engine.retention is None else engine.retention.state(),
        "shedder": None if shedder is None else shedder.state(),
        "sample": None if engine.sample is None else engine.sample.state(),
    }


def resume(engine: JoinEngine, header: dict[str, Any], at: dict[int, I64]) -> None:
    """Continue from the header of a snapshot; the goal may be another one."""
    slack = engine.reorder.slack
    none = np.empty(0, np.int64)
    engine.reorder.resume(
        ReorderState(
            **header["reorder"],
            in_slack=at.get(_IN_SLACK, none),
            overdue=at.get(_OVERDUE, none),
            in_sync=at.get(_IN_SYNC, none),
        )
    )
    same_goal = repr(engine.initial_goal) == header["initial_goal"]
    goal = goal_from_dict(header["goal"])
    if same_goal and goal != engine.query.goal:
        engine.set_goal(goal)  # it was changed on the way
    elif not same_goal and engine.statistics is None:
        engine.reorder.set_slack(slack)  # a goal that learns finds its own way from the old one
    stored = at.get(STORED, none)
    if engine.query.is_clocked:  # events are stored before they are released
        stored = np.concatenate([stored, at.get(_IN_SLACK, none)])
    engine.join.resume(JoinState(**header["join"]), stored)
    if engine.statistics is not None and engine.statistics.fits(header["statistics"]):
        engine.statistics.resume(header["statistics"])
        if same_goal:
            engine.controller.resume(header["controller"])
    if engine.retention is not None and header["retention"] is not None:
        engine.retention.resume(header["retention"])
    if engine.sample is not None:
        engine.sample.resume(header["sample"], *header["attachments"])
    if engine.shedder is not None and engine.shedder.fits(header["shedder"]):
        engine.shedder.resume(header["shedder"])
        engine.join.set_orders(engine.shedder.orders)
