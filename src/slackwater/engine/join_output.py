"""What a join in order writes: pairs, and rows without partner in their turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from slackwater.engine.alone import RowsAlone
from slackwater.engine.output import parts_of
from slackwater.kernels.records import I64, Results

if TYPE_CHECKING:
    from slackwater.engine.join import JoinEngine


def write_in_turn(engine: JoinEngine, found: Results, during: I64) -> None:
    """Write pairs, and the rows without partner among them.

    `during` is the arrival with which each of the events in work is released.
    """
    if engine.alone is not None:
        _write(engine, *engine.alone.among(found, during[found.position]))
    else:  # who has no arrivals does not ask with which of them
        _write(engine, found, during[found.position] if engine.has_arrival else during)


def write_rest(engine: JoinEngine, alone: RowsAlone, piece: int | None) -> Iterator[None]:
    """Write the rows without partner behind the pairs of a step; yields behind each part."""
    rest, during, change = alone.rest()
    at = 0
    for part in parts_of(rest, engine.rows, piece):
        own = slice(at, at + len(part.ts))
        _write(engine, part, during[own], change[own])
        at = own.stop
        yield


def _write(engine: JoinEngine, found: Results, during: I64, change: I64 | None = None) -> None:
    tables = [rows.take(found.row[s]) for s, rows in enumerate(engine.rows)]
    engine.output.results(found, tables, change)
    if not engine.has_arrival:
        return
    arrival, base = engine.log.arrival, engine.log.base
    waits = arrival[during - base] - arrival[found.last - base]
    engine.output.waits.append(waits if engine.query.late != "emit" else waits[found.late == 0])
