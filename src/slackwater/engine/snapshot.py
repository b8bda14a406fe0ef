"""An engine as bytes: everything it knows, and nothing it can work out again.

Layout, version 1: magic, version, then sections with their lengths: a JSON header, the live events
(compressed Arrow), and one section per stream with the columns that results still need. Buckets,
window runs and key codes are not saved; `restore` builds them from the events, in the same order.

An engine that is restored, in whatever process, goes on exactly as the old one would have.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.disorder.reorder import ReorderState
from slackwater.engine.engine import Counters, Engine
from slackwater.errors import SnapshotError
from slackwater.goals.controller import Controller
from slackwater.joins.window_join import JoinState
from slackwater.kernels.records import I64
from slackwater.query import Query

_MAGIC = b"SLKW"
VERSION = 1
_START = struct.Struct("<4sH")
_LENGTH = struct.Struct("<Q")
_STORED, _IN_SLACK, _OVERDUE, _IN_SYNC = range(4)
_MAY_CHANGE = {"goal", "retention", "late", "strict"}


def snapshot(engine: Engine) -> bytes:
    """The state of `engine` between two batches."""
    log, reorder, join = engine.log, engine.reorder.state(), engine.join.state()
    place = _places(engine, reorder, join)
    wanted = place >= 0
    wanted[-1:] = True  # the last arrival tells what time it is when the rest is flushed
    live = np.flatnonzero(wanted)
    records = log.records()
    columns = {
        "ts": log.ts[live],
        "stream": log.stream[live].astype(np.uint8),
        "arrival": log.arrival[live],
        "delay": log.delay[live],
        "place": place[live].astype(np.int8),
    }
    columns |= {f"int{i}": values[live] for i, values in enumerate(records.ints)}
    columns |= {f"float{i}": values[live] for i, values in enumerate(records.floats)}
    header = {
        "query": described(engine.query, engine.schemas),
        "goal": repr(engine.query.goal),
        "reorder": {"scalars": reorder.scalars, "local": reorder.local, "newest": reorder.newest},
        "join": join._asdict(),
        "counters": vars(engine.counters),
        "rejected": engine.rejected,
        "interval": engine.interval,
        "events": log.end,
        "rows": [rows.end for rows in engine.rows],
    }
    sections = [json.dumps(header, sort_keys=True).encode(), _packed(pa.table(columns))]
    for s, rows in enumerate(engine.rows):
        sections.append(_packed(rows.take(log.row[live[log.stream[live] == s]])))
    framed = [_LENGTH.pack(len(section)) + section for section in sections]
    return _START.pack(_MAGIC, VERSION) + b"".join(framed)


def restore(
    data: bytes,
    query: Query,
    schemas: Mapping[str, pa.Schema],
    controller: Controller | None = None,
) -> Engine:
    """The engine that was saved; `query` may differ in its goal, retention, late and strict."""
    sections = _sections(data)
    header = json.loads(sections[0])
    engine = Engine(query, schemas, controller)
    _check_same_query(header["query"], described(query, engine.schemas))
    events = _unpacked(sections[1])
    column = {name: events.column(name).to_numpy() for name in events.column_names}
    n = events.num_rows
    row = np.zeros(n, np.int64)
    keys = [np.zeros(n, np.int32) for _ in range(engine.intake.n_keys)]
    for s, rows in enumerate(engine.rows):
        table = _unpacked(sections[2 + s])
        own = column["stream"] == s
        rows.start_at(header["rows"][s] - table.num_rows)
        row[own] = rows.end + np.arange(table.num_rows)
        rows.append(table)
        for k, codes in enumerate(engine.intake.key_codes(s, table)):
            keys[k][own] = codes
    engine.log.start_at(header["events"] - n)
    first, _ = engine.log.append(
        column["ts"],
        column["stream"],
        keys,
        row=row,
        arrival=column["arrival"],
        delay=column["delay"],
        ints=_stack(column, "int", n),
        floats=_stack(column, "float", n),
    )
    engine.join.reserve_codes(engine.intake.codes.size)
    slack = engine.reorder.slack
    at = {place: first + np.flatnonzero(column["place"] == place) for place in range(4)}
    engine.reorder.resume(
        ReorderState(
            **header["reorder"], in_slack=at[_IN_SLACK], overdue=at[_OVERDUE], in_sync=at[_IN_SYNC]
        )
    )
    if repr(query.goal) != header["goal"]:
        engine.reorder.set_slack(slack)
    engine.join.resume(JoinState(**header["join"]), at[_STORED])
    engine.counters = Counters(**header["counters"])
    engine.rejected |= header["rejected"]
    engine.interval = header["interval"]
    return engine


def described(query: Query, schemas: list[pa.Schema]) -> dict[str, Any]:
    """What must not change between a snapshot and its restoration, by name."""
    said = {f.name: getattr(query, f.name) for f in fields(query) if f.name not in _MAY_CHANGE}
    said["streams"] = [f"{stream.name} by {stream.ts}" for stream in query.streams]
    said["windows"] = [str(stream.window) for stream in query.streams]
    if callable(query.where):
        code = query.where.__code__
        said["where"] = hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()
    said["columns"] = [[f"{c.name} {c.type}" for c in schema] for schema in schemas]
    return {name: json.loads(json.dumps(value, default=str)) for name, value in said.items()}


def _check_same_query(saved: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [name for name in now if saved.get(name) != now[name]]
    if changed:
        details = "; ".join(
            f"{name} was {saved.get(name)!r}, now {now[name]!r}" for name in changed
        )
        msg = f"the snapshot is of another query: {details}"
        raise SnapshotError(msg)


def _places(engine: Engine, reorder: ReorderState, join: JoinState) -> I64:
    """Where each event of the log is; -1: nowhere, it does not matter any more."""
    log = engine.log
    kept = log.ts >= np.array(join.horizons)[log.stream] if log.size else np.zeros(0, bool)
    place = np.where(kept, _STORED, -1)
    place[reorder.in_slack - log.base] = _IN_SLACK
    place[reorder.overdue - log.base] = _OVERDUE
    place[reorder.in_sync - log.base] = _IN_SYNC
    return place


def _stack(column: Mapping[str, Any], kind: str, n: int) -> Any:
    rows = [
        column[name] for name in column if name.startswith(kind) and name[len(kind) :].isdigit()
    ]
    return np.stack(rows) if rows else np.zeros((0, n))


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def _unpacked(section: bytes) -> pa.Table:
    return pa.ipc.open_stream(section).read_all().combine_chunks()


def _sections(data: bytes) -> list[bytes]:
    if len(data) < _START.size or data[: len(_MAGIC)] != _MAGIC:
        msg = f"not a Slackwater snapshot: it must begin with {_MAGIC!r}, got {data[:4]!r}"
        raise SnapshotError(msg)
    _, version = _START.unpack_from(data)
    if version != VERSION:
        msg = f"the snapshot has version {version}; this release reads version {VERSION}"
        raise SnapshotError(msg)
    sections, at = [], _START.size
    while at < len(data):
        end = at + _LENGTH.size
        length = _LENGTH.unpack_from(data, at)[0] if end <= len(data) else len(data)
        if end + length > len(data):
            msg = f"the snapshot is cut off: {len(data)} bytes, at least {end + length} expected"
            raise SnapshotError(msg)
        sections.append(data[end : end + length])
        at = end + length
    return sections
