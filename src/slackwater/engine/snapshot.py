"""An engine as bytes: everything it knows, and nothing it can work out again.

A snapshot is a *header* and *chunks*. The chunks hold live events in arrival order, with the
columns that are still needed. A chunk never changes; it is known by the hash of its content. The
header tells all the rest, and where each event of each chunk is by now. So the next snapshot of the
same engine writes the events that are new and a header, not the whole window again; see `Archive`.

Buckets, window runs, times and key codes are not saved; `restore` builds them from the events, in
the same order. An engine that is restored, in whatever process, goes on exactly as the old one
would have.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.base import DEAD, AnyEngine, Counters
from slackwater.engine.join import JoinEngine
from slackwater.engine.window import WindowEngine
from slackwater.errors import SnapshotError
from slackwater.kernels.records import BEFORE, I64, NONE, U8
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.goals import goal_to_dict
from slackwater.query.join import JoinQuery, Stream
from slackwater.query.window import AnyQuery, WindowQuery

_MAGIC = b"SLKW"
VERSION = 5
_START = struct.Struct("<4sH")
_CHECKSUM_BYTES = 16
_LENGTH = struct.Struct("<Q")
MAY_CHANGE = {"goal", "retention", "late", "strict", "shed", "compensate", "confidence"}
_CHUNK_BYTES = 2 * 2**20  # before compression


class Chunk(NamedTuple):
    """Some events, in arrival order; what is in it never changes."""

    stream: U8
    arrival: I64
    delay: I64
    tables: tuple[pa.Table, ...]  # their rows, by stream


class Saved(NamedTuple):
    """A snapshot, as what changed since the last one."""

    header: bytes
    new: dict[str, bytes]  # chunks by name
    gone: list[str]  # chunks that are not needed any more


@dataclass
class _Held:
    """A chunk that was saved, and which of the engine's events are in it."""

    name: str
    events: I64  # numbers; NONE: not alive when the engine was restored
    size: int  # bytes


class Archive:
    """The chunks in which an engine's events are saved.

    Chunks of similar size are merged, so that there are few of them and an event is written a
    logarithmic number of times; a chunk of which most is dead is written anew.
    """

    def __init__(self, engine: AnyEngine) -> None:
        self.engine = engine
        self.held: list[_Held] = []
        self.until = engine.log.base  # events from here on are in no chunk yet

    def save(self) -> Saved:
        """A snapshot of the engine; `held` is what it consists of then."""
        engine = self.engine
        place = engine.places()
        before = {held.name for held in self.held}
        new: dict[str, bytes] = {}
        self.held = [self._write(part, new) for part in self._parts(place)]
        self.until = engine.log.end
        names = {held.name for held in self.held}
        header = _header(engine) | {
            "chunks": [[held.name, len(held.events), held.size] for held in self.held]
        }
        places = [self._places_in(held, place) for held in self.held]
        parts = [
            json.dumps(header, sort_keys=True).encode(),
            _packed(pa.table({"place": np.concatenate([np.empty(0, np.uint8), *places])})),
        ]
        return Saved(framed(parts), new, sorted(before - names))

    def _places_in(self, held: _Held, place: U8) -> U8:
        known = held.events >= self.engine.log.base
        inside = np.full(len(held.events), DEAD, np.uint8)
        inside[known] = place[held.events[known] - self.engine.log.base]
        return inside

    def _parts(self, place: U8) -> list[_Held]:
        """The chunks that should be there now; those without a name have to be written."""
        parts: list[_Held] = []
        for held in [*self.held, *self._unsaved(place)]:
            events = held.events[self._places_in(held, place) != DEAD]
            if len(events) == 0:
                continue
            size = held.size * len(events) // len(held.events)
            part = held if 2 * len(events) > len(held.events) else _Held("", events, size)
            while parts and _should_merge(parts[-1], part):
                older = parts.pop()
                both = np.concatenate([older.events, part.events])
                alive = both[self._places_in(_Held("", both, 0), place) != DEAD]
                size = (older.size + part.size) * len(alive) // len(both)
                part = _Held("", alive, size)
            parts.append(part)
        return parts

    def _unsaved(self, place: U8) -> list[_Held]:
        """The live events that are in no chunk yet, cut to the size of one."""
        engine, base = self.engine, self.engine.log.base
        begin = max(self.until, base)
        events = begin + np.flatnonzero(place[begin - base :] != DEAD)
        if len(events) == 0:
            return []
        sizes = np.zeros(len(events), np.int64)
        for s, rows in enumerate(engine.rows):
            own = engine.log.stream[events - base] == s
            sizes[own] = rows.sizes(engine.log.row[events[own] - base])
        part = np.cumsum(sizes) // _CHUNK_BYTES
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


def _should_merge(older: _Held, newer: _Held) -> bool:
    if older.size + newer.size > _CHUNK_BYTES or 2 * older.size > 3 * newer.size:
        return False  # a factor, so that batches that shrink bit by bit do not all stay apart
    return not newer.name or newer.size <= 4 * older.size  # do not rewrite much for little


def engine_for(query: AnyQuery, schemas: Mapping[str, pa.Schema], **options: Any) -> AnyEngine:
    """A new engine; `options` are those of the engine of a join."""
    if isinstance(query, WindowQuery):
        return WindowEngine(query, schemas)
    if isinstance(query, AggregateQuery):
        return AggregateEngine(query, schemas, partial=options.get("common_clock", False))
    return JoinEngine(query, schemas, **options)


def restore_archive(
    header: bytes,
    chunk: Callable[[str], Chunk],
    query: AnyQuery,
    schemas: Mapping[str, pa.Schema],
    **options: Any,
) -> Archive:
    """The archive (with its engine) whose header this is; `chunk` finds chunks by name."""
    about, places = sections(header, 2)
    said = json.loads(about)
    engine = engine_for(query, schemas, **options)
    check_same(said["query"], described(query, engine.schemas))
    place = _unpacked(places).column("place").to_numpy()
    names = [name for name, _, _ in said["chunks"]]
    chunks = [chunk(name) for name in names]
    alive = place != DEAD
    first = _put_back(engine, said, chunks, alive)
    archive, begin = Archive(engine), 0
    numbers = np.where(alive, first + np.cumsum(alive) - 1, NONE)
    for name, n, size in said["chunks"]:
        archive.held.append(_Held(name, numbers[begin : begin + n], size))
        begin += n
    archive.until = engine.log.end
    inside = place[alive]
    engine.resume(said, {int(p): first + np.flatnonzero(inside == p) for p in np.unique(inside)})
    engine.counters = Counters(**said["counters"])
    if engine.recent is not None and said.get("recent") is not None:  # a goal may have changed
        engine.recent.resume(said["recent"])
    engine.flushed = said["flushed"]
    engine.knows_arrival = said["knows_arrival"]
    return archive


def _put_back(engine: AnyEngine, said: Any, chunks: Sequence[Chunk], alive: Any) -> int:
    """Let the log and the rows be as they were; return the number of the first event.

    The last arrival tells what time it is when the rest is flushed; a tick stands for it.
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
        engine.rows[s].start_at(said["rows"][s] - table.num_rows)
        row[stream == s] = engine.rows[s].end + np.arange(table.num_rows)
        engine.rows[s].append(table)
    live = order[alive]
    all_alive = len(live) == said["events"]
    engine.log.start_at(said["events"] - len(live) - (not all_alive))
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
        tick = {"row": engine.rows[0].end, "arrival": said["now"], "delay": 0}
        engine.log.append(
            np.array([BEFORE]),
            np.array([0]),
            [np.array([NONE], np.int32) for _ in raw.code],
            **{name: np.array([value]) for name, value in tick.items()},
        )
    engine.reserve_codes(engine.intake.codes.size)
    return first


# ---- in one piece


def snapshot(engine: AnyEngine) -> bytes:
    """The state of `engine` between two batches."""
    saved = Archive(engine).save()
    return framed([saved.header, *saved.new.values()])


def restore(
    data: bytes, query: AnyQuery, schemas: Mapping[str, pa.Schema], **options: Any
) -> AnyEngine:
    """The engine that was saved; `query` may differ in its goal, retention, late and strict."""
    header, *chunks = sections(data, 1)
    by_name = {hashlib.blake2b(chunk, digest_size=16).hexdigest(): chunk for chunk in chunks}

    def find(name: str) -> Chunk:
        if name not in by_name:
            msg = f"the snapshot is damaged: chunk {name} is missing or has been changed"
            raise SnapshotError(msg)
        return chunk_from(by_name[name])

    return restore_archive(header, find, query, schemas, **options).engine


# ---- the parts


def _header(engine: AnyEngine) -> dict[str, Any]:
    log = engine.log
    return engine.state() | {
        "query": described(engine.query, engine.schemas),
        "asked": repr(engine.asked),
        "goal": goal_to_dict(engine.query.goal),
        "counters": vars(engine.counters),
        "recent": None if engine.recent is None else engine.recent.state(),
        "flushed": engine.flushed,
        "knows_arrival": engine.knows_arrival,
        "events": log.end,
        "rows": [rows.end for rows in engine.rows],
        "now": int(log.arrival[-1]) if log.size else 0,
    }


def described(query: AnyQuery, schemas: Sequence[pa.Schema]) -> dict[str, Any]:
    """What must not change between a snapshot and its restoration, by name."""
    said = {f.name: getattr(query, f.name) for f in fields(query) if f.name not in MAY_CHANGE}
    said["streams"] = [_described(stream) for stream in query.streams]
    if isinstance(query, JoinQuery):
        said["windows"] = [str(stream.window) for stream in query.streams]
    if isinstance(query, JoinQuery) and callable(query.where):
        code = query.where.__code__
        said["where"] = hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()
    said["columns"] = [[f"{c.name} {c.type}" for c in schema] for schema in schemas]
    return {name: json.loads(json.dumps(value, default=str)) for name, value in said.items()}


def _described(stream: Stream) -> str:
    lengths = "".join(f", {name} of {length}" for name, length in dict(stream.vectors).items())
    return f"{stream.name} by {stream.ts}{lengths}"


def check_same(
    saved: Mapping[str, Any], now: Mapping[str, Any], what: str = "the snapshot"
) -> None:
    """Raise an error that names what changed."""
    changed = [name for name in now if saved.get(name) != now[name]]
    if changed:
        details = "; ".join(
            f"{name} was {saved.get(name)!r}, now {now[name]!r}" for name in changed
        )
        msg = f"{what} is of another query: {details}"
        raise SnapshotError(msg)


def chunk_bytes(chunk: Chunk) -> bytes:
    """A chunk, compressed."""
    events = pa.table({"stream": chunk.stream, "arrival": chunk.arrival, "delay": chunk.delay})
    return framed([_packed(events), *map(_packed, chunk.tables)])


def chunk_from(data: bytes) -> Chunk:
    """The chunk that these bytes are."""
    events, *tables = map(_unpacked, sections(data))
    stream, arrival, delay = (column.to_numpy() for column in events.columns)
    return Chunk(stream, arrival, delay, tuple(tables))


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def _unpacked(section: bytes) -> pa.Table:
    return pa.ipc.open_stream(section).read_all().combine_chunks()


def framed(parts: Sequence[bytes]) -> bytes:
    """Sections of bytes as one, with the version of the format and a checksum.

    What is read back is trusted to make sense, down to kernels that do not look at bounds: so a
    damaged byte must be found before.
    """
    inside = b"".join(_LENGTH.pack(len(p)) + p for p in parts)
    return _START.pack(_MAGIC, VERSION) + _checksum(inside) + inside


def _checksum(inside: bytes | memoryview) -> bytes:
    return hashlib.blake2b(inside, digest_size=_CHECKSUM_BYTES).digest()


def sections(data: bytes, at_least: int = 0) -> list[bytes]:
    """The sections that were framed; raises when these bytes are not what was written."""
    if len(data) < _START.size or data[: len(_MAGIC)] != _MAGIC:
        msg = f"not a Slackwater snapshot: it must begin with {_MAGIC!r}, got {data[:4]!r}"
        raise SnapshotError(msg)
    _, version = _START.unpack_from(data)
    if version != VERSION:
        msg = f"the snapshot has version {version}; this release reads version {VERSION}"
        raise SnapshotError(msg)
    found, begin = [], _START.size + _CHECKSUM_BYTES
    at = begin
    while at < len(data):
        end = at + _LENGTH.size
        length = _LENGTH.unpack_from(data, at)[0] if end <= len(data) else len(data)
        if end + length > len(data):
            msg = f"the snapshot is cut off: {len(data)} bytes, at least {end + length} expected"
            raise SnapshotError(msg)
        found.append(data[end : end + length])
        at = end + length
    if len(found) < at_least:
        msg = f"the snapshot is cut off: {len(found)} sections, at least {at_least} expected"
        raise SnapshotError(msg)
    if data[_START.size : begin] != _checksum(memoryview(data)[begin:]):
        msg = "the snapshot is damaged: its bytes are not those that were written"
        raise SnapshotError(msg)
    return found
