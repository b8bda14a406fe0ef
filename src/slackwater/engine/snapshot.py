"""An engine as bytes: its whole state, without what can be computed from the rest.

A snapshot is a *header* and *chunks*. The chunks hold live events in arrival order, with the
columns that are still needed. A chunk never changes; its name is the hash of its content. The
header has all the rest, and the location of each event of each chunk. So the next snapshot of the
same engine writes the events that are new and a header, not the whole window again; see `Archive`.

Buckets, window runs, times and key codes are not saved; `restored` builds them from the events, in
the same order. An engine that is restored, in whatever process, goes on exactly as the old one
would have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from slackwater.engine.accounting import Counters
from slackwater.engine.base import DEAD, AnyEngine
from slackwater.engine.snapshot_format import (
    Chunk,
    chunk_bytes,
    chunk_from,
    framed,
    packed_table,
    sections,
    unpacked_table,
)
from slackwater.errors import SnapshotError
from slackwater.kernels.records import BEFORE, I64, NONE, TICK, U8
from slackwater.query.fingerprint import check_same, fingerprint
from slackwater.query.goals import goal_to_dict

AnEngine = TypeVar("AnEngine", bound=AnyEngine)


class Saved(NamedTuple):
    """A snapshot, as what changed since the last one."""

    header: bytes
    new: dict[str, bytes]  # chunks by name
    gone: list[str]  # chunks that are not needed any more


@dataclass(frozen=True)
class _Held:
    """A chunk that was saved, and which of the engine's events are in it."""

    name: str
    events: I64  # numbers; NONE: not alive when the engine was restored
    size: int  # bytes


class Archive(Generic[AnEngine]):
    """The chunks in which an engine's events are saved.

    Chunks of similar size are merged, so that there are few of them and an event is written a
    logarithmic number of times; a chunk of which most is dead is written anew.
    """

    def __init__(self, engine: AnEngine) -> None:
        self.engine = engine
        self.held: list[_Held] = []
        self.until = engine.log.base  # events from here on are in no chunk yet

    def save(self) -> Saved:
        """A snapshot of the engine; `held` is what it consists of then."""
        engine = self.engine
        location = engine.event_locations()
        before = {held.name for held in self.held}
        new: dict[str, bytes] = {}
        self.held = [self._write(part, new) for part in self._parts(location)]
        self.until = engine.log.end
        names = {held.name for held in self.held}
        header = _header(engine) | {
            "chunks": [[held.name, len(held.events), held.size] for held in self.held]
        }
        inside = [self._locations_in(held, location) for held in self.held]
        locations = np.concatenate([np.empty(0, np.uint8), *inside])
        parts = [
            json.dumps(header, sort_keys=True).encode(),
            packed_table(pa.table({"location": locations})),
            *engine.attachments(),
        ]
        return Saved(framed(parts), new, sorted(before - names))

    def _locations_in(self, held: _Held, location: U8) -> U8:
        known = held.events >= self.engine.log.base
        inside = np.full(len(held.events), DEAD, np.uint8)
        inside[known] = location[held.events[known] - self.engine.log.base]
        return inside

    def _parts(self, location: U8) -> list[_Held]:
        """The chunks that should be there now; those without a name have to be written."""
        parts: list[_Held] = []
        for held in [*self.held, *self._unsaved(location)]:
            events = held.events[self._locations_in(held, location) != DEAD]
            if len(events) == 0:
                continue
            size = held.size * len(events) // len(held.events)
            part = held if 2 * len(events) > len(held.events) else _Held("", events, size)
            while parts and self._should_merge(parts[-1], part):
                older = parts.pop()
                both = np.concatenate([older.events, part.events])
                alive = both[self._locations_in(_Held("", both, 0), location) != DEAD]
                size = (older.size + part.size) * len(alive) // len(both)
                part = _Held("", alive, size)
            parts.append(part)
        return parts

    def _should_merge(self, older: _Held, newer: _Held) -> bool:
        most = self.engine.limits.chunk_bytes
        if older.size + newer.size > most or 2 * older.size > 3 * newer.size:
            return False  # a factor, so that batches that shrink bit by bit do not all stay apart
        return not newer.name or newer.size <= 4 * older.size  # do not rewrite much for little

    def _unsaved(self, location: U8) -> list[_Held]:
        """The live events that are in no chunk yet, cut to the size of one."""
        engine, base = self.engine, self.engine.log.base
        begin = max(self.until, base)
        events = begin + np.flatnonzero(location[begin - base :] != DEAD)
        if len(events) == 0:
            return []
        sizes = np.zeros(len(events), np.int64)
        for s, rows in enumerate(engine.rows):
            own = engine.log.stream[events - base] == s
            sizes[own] = rows.sizes(engine.log.row[events[own] - base])
        part = np.cumsum(sizes) // engine.limits.chunk_bytes
        cuts = np.flatnonzero(np.diff(part)) + 1
        total = np.add.reduceat(sizes, [0, *cuts.tolist()])
        return [
            _Held("", inside, int(size))
            for inside, size in zip(np.split(events, cuts), total, strict=True)
        ]

    def _write(self, part: _Held, new: dict[str, bytes]) -> _Held:
        if part.name:
            return part
        log, at = self.engine.log, part.events - self.engine.log.base
        stream = log.stream[at].astype(np.uint8)
        chunk = Chunk(
            stream,
            log.arrival[at],
            log.delay[at],
            tuple(rows.take(log.row[at[stream == s]]) for s, rows in enumerate(self.engine.rows)),
        )
        data = chunk_bytes(chunk)
        name = hashlib.blake2b(data, digest_size=16).hexdigest()
        new[name] = data
        return _Held(name, part.events, part.size)


def restore_archive(
    header: bytes, chunk: Callable[[str], Chunk], engine: AnEngine
) -> Archive[AnEngine]:
    """Put the state of `header` into a new `engine`; `chunk` finds chunks by name."""
    first, locations, *attachments = sections(header, 2)
    state = json.loads(first) | {"attachments": attachments}
    check_same(state["query"], fingerprint(engine.query, engine.schemas))
    location = unpacked_table(locations).column("location").to_numpy()
    chunks = [chunk(name) for name, _, _ in state["chunks"]]
    alive = location != DEAD
    first_event = _put_back(engine, state, chunks, alive)
    archive, begin = Archive(engine), 0
    numbers = np.where(alive, first_event + np.cumsum(alive) - 1, NONE)
    for name, n, size in state["chunks"]:
        archive.held.append(_Held(name, numbers[begin : begin + n], size))
        begin += n
    archive.until = engine.log.end
    inside = location[alive]
    at = {int(p): first_event + np.flatnonzero(inside == p) for p in np.unique(inside)}
    engine.resume(state, at)
    engine.counters = Counters(**state["counters"])
    if engine.recent is not None and state.get("recent") is not None:  # a goal may have changed
        engine.recent.resume(state["recent"])
    for known, saved in zip(engine.identities, state["identities"], strict=True):
        known.resume(saved)
    engine.flushed = state["flushed"]
    engine.has_arrival = state["has_arrival"]
    return archive


def _put_back(engine: AnyEngine, state: Any, chunks: Sequence[Chunk], alive: Any) -> int:
    """Fill the log and the rows as they were; return the number of the first event.

    A flush needs the last arrival; if its event is not needed any more, a tick stands for it.
    """
    m = len(engine.rows)
    tables = [
        pa.concat_tables([engine.rows[s].schema.empty_table(), *(c.tables[s] for c in chunks)])
        for s in range(m)
    ]
    stream, arrival, delay = (
        np.concatenate([np.empty(0, np.int64), *columns])
        for columns in (list(zip(*(c[:3] for c in chunks), strict=True)) or [[], [], []])
    )
    raw = engine.intake.restored([table.combine_chunks() for table in tables])
    at = np.concatenate([np.empty(0, np.int64), *(np.flatnonzero(stream == s) for s in range(m))])
    order = np.empty(len(at), np.int64)  # of each event, its place in `raw`
    order[at] = np.arange(len(at))
    row = np.empty(len(at), np.int64)
    for s, table in enumerate(tables):
        engine.rows[s].start_at(state["rows"][s] - table.num_rows)
        row[stream == s] = engine.rows[s].end + np.arange(table.num_rows)
        engine.rows[s].append(table)
    live = order[alive]
    all_alive = len(live) == state["events"]
    engine.log.start_at(state["events"] - len(live) - (not all_alive))
    first, _ = engine.log.append(
        raw.ts[live],
        stream[alive],
        [codes[live] for codes in raw.code],
        row=row[alive],
        arrival=arrival[alive],
        delay=delay[alive],
        ints=raw.ints[:, live],
        floats=raw.floats[:, live],
        vectors=raw.vectors[live],
    )
    if not all_alive:
        tick = {"row": engine.rows[0].end, "arrival": state["now"], "delay": 0}
        engine.log.append(
            np.array([BEFORE]),
            np.array([0]),
            [np.array([TICK], np.int32) for _ in raw.code],
            **{name: np.array([value]) for name, value in tick.items()},
        )
    engine.reserve_codes(engine.intake.codes.size)
    return first


# ---- in one piece


def snapshot(engine: AnyEngine) -> bytes:
    """The state of `engine` between two batches."""
    saved = Archive(engine).save()
    return framed([saved.header, *saved.new.values()])


def restored(data: bytes, engine: AnEngine) -> AnEngine:
    """Put the state of a snapshot into a new `engine`.

    Its query may differ from the saved one in the options of `query.fingerprint.MAY_CHANGE`.
    """
    header, *chunks = sections(data, 1)
    by_name = {hashlib.blake2b(chunk, digest_size=16).hexdigest(): chunk for chunk in chunks}

    def find(name: str) -> Chunk:
        if name not in by_name:
            msg = f"the snapshot is damaged: chunk {name} is missing or has been changed"
            raise SnapshotError(msg)
        return chunk_from(by_name[name])

    return restore_archive(header, find, engine).engine


def _header(engine: AnyEngine) -> dict[str, Any]:
    log = engine.log
    return engine.state() | {
        "query": fingerprint(engine.query, engine.schemas),
        "initial_goal": repr(engine.initial_goal),
        "goal": goal_to_dict(engine.query.goal),
        "counters": vars(engine.counters),
        "recent": None if engine.recent is None else engine.recent.state(),
        "identities": [known.state() for known in engine.identities],
        "flushed": engine.flushed,
        "has_arrival": engine.has_arrival,
        "events": log.end,
        "rows": [rows.end for rows in engine.rows],
        "now": int(log.arrival[-1]) if log.size else 0,
    }
