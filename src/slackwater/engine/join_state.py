"""Where the events of a join are, and its state as plain data, for snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.disorder.stage import ReorderState
from slackwater.engine.base import DEAD
from slackwater.engine.match_state import restore_marks, saved_marks
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
    if engine.alone is not None:
        kept |= engine.alone.matcher.is_kept()
    kept &= log.keys[:, 0] >= 0  # ticks and shed events are not stored
    place = np.where(kept, STORED, DEAD).astype(np.uint8)
    place[waiting.in_slack - log.base] = _IN_SLACK
    place[waiting.overdue - log.base] = _OVERDUE
    place[waiting.in_sync - log.base] = _IN_SYNC
    return place


def stored_events(engine: JoinEngine) -> int:
    """How many events of the log are in the windows, and not in a buffer any more."""
    log = engine.log
    since = max(engine.first_alive, log.base)
    rest = slice(since - log.base, None)
    horizons = np.array([engine.join.stream_horizon(s) for s in range(len(engine.rows))])
    kept = (log.ts[rest] >= horizons[log.stream[rest]]) & (log.keys[rest, 0] >= 0)
    engine.first_alive = since + (int(np.argmax(kept)) if kept.any() else len(kept))
    waiting = engine.reorder.waiting() - since
    kept[waiting[waiting >= 0]] = False
    return int(np.count_nonzero(kept))


def attachments(engine: JoinEngine) -> list[bytes]:
    """The marks of all events and the events of the sample, if there are such."""
    parts = []
    if engine.alone is not None:
        parts.append(saved_marks(engine.log, event_locations(engine), engine.alone.matcher))
    return parts if engine.sample is None else [*parts, engine.sample.saved_events()]


def plain_state(engine: JoinEngine) -> dict[str, Any]:
    """The state without the events."""
    waiting, statistics, shedder = engine.reorder.state(), engine.statistics, engine.shedder
    return {
        "reorder": waiting.without_events(),
        "join": engine.join.state()._asdict(),
        "statistics": None if statistics is None else statistics.state(),
        "controller": engine.controller.state(),
        "common_slack": None if engine.common_slack is None else engine.common_slack.state(),
        "retention": None if engine.retention is None else engine.retention.state(),
        "shedder": None if shedder is None else shedder.state(),
        "sample": None if engine.sample is None else engine.sample.state(),
        "alone": None if engine.alone is None else engine.alone.state(),
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
    stored = at.get(STORED, none)
    if engine.join.stores_at_arrival:
        stored = np.concatenate([stored, at.get(_IN_SLACK, none)])
    engine.join.resume(JoinState(**header["join"]), stored)
    # what shards learnt alone differs: those that share K from here on start anew
    begins_to_share = engine.common_slack is not None and header["common_slack"] is None
    same_goal = repr(engine.initial_goal) == header["initial_goal"]
    goal = goal_from_dict(header["goal"])
    if same_goal and goal != engine.query.goal:
        engine.set_goal(goal)  # it was changed on the way
    elif not same_goal and engine.statistics is None:
        engine.reorder.set_slack(slack)  # a goal that learns finds its own way from the old one
    if engine.statistics is not None and engine.statistics.fits(header["statistics"]):
        engine.statistics.resume(header["statistics"])
        if same_goal and not begins_to_share:
            engine.controller.resume(header["controller"])
    if engine.common_slack is not None and header["common_slack"] is not None:
        engine.common_slack.resume(header["common_slack"], same_goal)
    if engine.retention is not None and header["retention"] is not None:
        engine.retention.resume(header["retention"])
    if engine.sample is not None:
        own = header["attachments"][engine.alone is not None :]
        engine.sample.resume(header["sample"], *own)
    if engine.alone is not None:
        kept = np.sort(np.concatenate([none, *at.values()]))
        undecided = restore_marks(engine.log, kept, header["attachments"][0])
        same = same_goal and not begins_to_share
        engine.alone.resume(header["alone"], kept, undecided, same)
    if engine.shedder is not None and engine.shedder.fits(header["shedder"]):
        engine.shedder.resume(header["shedder"])
        engine.join.set_orders(engine.shedder.orders)
