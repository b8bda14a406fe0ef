"""What of a query must stay the same between a snapshot and its restoration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from slackwater.errors import SnapshotError
from slackwater.query.any_query import AnyQuery
from slackwater.query.stream import Stream

if TYPE_CHECKING:
    import pyarrow as pa

MAY_CHANGE = {
    "goal", "retention", "late", "strict", "shed", "slack_scope", "compensate", "confidence",
    "max_jump",
}  # fmt: skip


def fingerprint(query: AnyQuery, schemas: Sequence[pa.Schema]) -> dict[str, Any]:
    """What must not change while a snapshot or a checkpoint is used, by name."""
    kept = {f.name: getattr(query, f.name) for f in fields(query) if f.name not in MAY_CHANGE}
    kept["streams"] = [_stream(stream) for stream in query.streams]
    if any(stream.window is not None for stream in query.streams):
        kept["windows"] = [str(stream.window) for stream in query.streams]
    if callable(kept.get("where")):
        code = kept["where"].__code__
        kept["where"] = hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()
    kept["columns"] = [[f"{c.name} {c.type}" for c in schema] for schema in schemas]
    return {name: json.loads(json.dumps(value, default=str)) for name, value in kept.items()}


def _stream(stream: Stream) -> str:
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
