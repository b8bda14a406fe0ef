"""The bytes of snapshots: chunks of events, tables, sections with a version and a checksum."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from slackwater.errors import SnapshotError
from slackwater.kernels.records import I64, U8

_MAGIC = b"SLKW"
VERSION = 11
_START = struct.Struct("<4sH")
_CHECKSUM_BYTES = 16
_LENGTH = struct.Struct("<Q")


class Chunk(NamedTuple):
    """Some events, in arrival order; what is in it never changes."""

    stream: U8
    arrival: I64
    delay: I64
    tables: tuple[pa.Table, ...]  # their rows, by stream


def chunk_bytes(chunk: Chunk) -> bytes:
    """A chunk, compressed."""
    events = pa.table({"stream": chunk.stream, "arrival": chunk.arrival, "delay": chunk.delay})
    return framed([packed_table(events), *map(packed_table, chunk.tables)])


def chunk_from(data: bytes) -> Chunk:
    """The chunk that these bytes are."""
    events, *tables = map(unpacked_table, sections(data))
    stream, arrival, delay = (column.to_numpy() for column in events.columns)
    return Chunk(stream, arrival, delay, tuple(tables))


def packed_table(table: pa.Table) -> bytes:
    """A table, compressed."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def unpacked_table(section: bytes) -> pa.Table:
    """The table that these bytes are."""
    return pa.ipc.open_stream(section).read_all().combine_chunks()


def framed(parts: Sequence[bytes]) -> bytes:
    """Sections of bytes as one, with the version of the format and a checksum.

    What is read back is used without further checks, by kernels that do not test bounds: so a
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
