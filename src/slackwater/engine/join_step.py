"""What a step of a join teaches: counters, the sample kept longer, retention and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.engine.accounting import count_results
from slackwater.engine.shedding import count_shed, made_without_shedding
from slackwater.kernels.records import Late, Made, Released, Sampled

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine


def note_step(engine: JoinEngine, out: Released, made: Made, late: Late, sampled: Sampled) -> None:
    """Take note of events that went through the join, of what they made and of late ones."""
    unknown = count_results(engine.counters, out.stream, made, late)
    if engine.sample is None:
        engine.counters.lost_not_estimated += unknown
    elif unknown > 0:
        engine.sample.note_late(out, late)
    if engine.retention is not None:
        engine.retention.join(len(out.event), int(made.n.sum()), late)
    if engine.shedder is not None:
        count_shed(engine.counters, engine.shedder, out.stream, made)
    if engine.statistics is not None:
        could_make = made
        if engine.shedder is not None and engine.shedder.is_shedding:
            could_make = made_without_shedding(out, sampled)
        engine.statistics.join(
            out.stream,
            out.ts,
            lambda: engine.log.delay[out.event - engine.log.base],
            could_make,
            (late.position, late.lost),
        )
