"""What a streamed query tells about itself: `query.lastProgress.observedMetrics["slackwater"]`.

Each shard adds one row of numbers to its output, once per micro-batch. They are folded into one
observed row and removed before the sink. Counters run since the first start of the query. Beside
the numbers is a sketch of what a chart needs, as text; who reads the row merges them (`listener`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, get_args

from slackwater.engine.checks import REASONS
from slackwater.engine.commands import Command
from slackwater.metrics.counters import SheddingMetrics, State
from slackwater.metrics.picture import sketch
from slackwater.query.goals import Goal, Recall
from slackwater.query.join import JoinQuery
from slackwater.spark.job import Job

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

    from slackwater.spark.shard import Shard

NAME = "slackwater"
PRODUCED = 1  # place of that number

_STATES = get_args(State)
_UNKNOWN = -(2**63)  # a time that is not known
_ONE = 10**9  # shares are told in whole numbers

# Of the shard: how it is folded over shards.
_SHARD: dict[str, str] = {
    "shards": "sum", "produced": "sum", "lost": "sum", "lost_unknown": "sum", "slack": "max",
    "max_delay": "max", "max_lateness": "max", "stored": "sum", "copies": "sum",
    "state_bytes": "sum", "restored": "sum", "refused_commands": "max", "target": "max",
    "missed": "sum", "missed_error": "sum", "evicted": "sum", "backlog": "max",
    "throttle": "min",
}  # fmt: skip
_COUNTS = ("arrivals", "in_order", "late_kept", "late_dropped", "buffered", "shed", "behind")
_REASONS = tuple(reason.replace(" ", "_") for reason in REASONS[1:])
_STREAM: dict[str, str] = {
    **dict.fromkeys(_COUNTS, "sum"),
    **dict.fromkeys(_REASONS, "sum"),
    "local_time": "max",
    "state": "max",
}


def numbers(shard: Shard, restored: bool, refused: int) -> list[int]:
    """The metrics of one shard, in the order that `observed` reads."""
    metrics = shard.engine.metrics()
    copies = sum(
        stream.arrivals for s, stream in enumerate(metrics.streams.values()) if not shard.counts(s)
    )
    own = [
        1, metrics.produced, metrics.lost, metrics.lost_unknown, metrics.slack, metrics.max_delay,
        metrics.max_lateness, metrics.stored, copies, shard.notes.state_bytes, int(restored),
        refused, _target(shard.engine.query.goal), *_shedding(metrics.shedding),
    ]  # fmt: skip
    for s, stream in enumerate(metrics.streams.values()):
        counts = [getattr(stream, name) for name in _COUNTS[:-1]] + [shard.notes.behind[s]]
        counts += [stream.rejected.get(reason, 0) for reason in REASONS[1:]]
        own += counts if shard.counts(s) else [0] * len(counts)
        time = _UNKNOWN if stream.local_time is None else stream.local_time
        own += [time, _STATES.index(stream.state)]
    return [*own, shard.number]


def sketch_bytes(shard: Shard, latest_rows: pa.Table | None, commands: Sequence[Command]) -> bytes:
    """What a shard adds to the picture, and the commands that it obeyed in this micro-batch."""
    counted = [shard.counts(s) for s in range(len(shard.job.schemas))]
    said = sketch(shard.engine, latest_rows, counted)
    said["commands"] = [command.as_dict() for command in commands]
    return json.dumps(said, separators=(",", ":")).encode()


def _shedding(shed: SheddingMetrics | None) -> list[int]:
    if shed is None:
        return [0, 0, 0, 0, _ONE]
    return [
        shed.missed, round(shed.missed_error**2), shed.evicted, round(shed.backlog),
        round(_ONE * shed.throttle),
    ]  # fmt: skip


def _target(goal: Goal) -> int:
    """The recall that is asked for, now; 0: none is."""
    return round(_ONE * goal.target) if isinstance(goal, Recall) else 0


def observed(job: Job) -> list[Column]:
    """The expressions that fold the numbers of all shards into one row."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    def fold(first: int, how: dict[str, str]) -> dict[str, Column]:
        return {
            name: getattr(F, function)(F.col("numbers")[first + place])
            for place, (name, function) in enumerate(how.items())
        }

    of_shard = fold(0, _SHARD)
    of_stream = [fold(len(_SHARD) + s * len(_STREAM), _STREAM) for s in range(len(job.schemas))]
    totals = {
        name: reduce(add, [folded[name] for folded in of_stream]) for name in (*_COUNTS, *_REASONS)
    }
    true = of_shard["produced"] + of_shard["lost"] + of_shard["missed"]
    columns = {
        **{name: totals[name] for name in _COUNTS},
        "rejected": _rejected(totals),
        **of_shard,
        "recall": F.when(_has_recall(job) & (true > 0), of_shard["produced"] / true),
        "target": F.when(of_shard["target"] > 0, of_shard["target"] / _ONE),
        "missed_error": F.sqrt(of_shard["missed_error"]),
        "throttle": of_shard["throttle"] / _ONE,
        "throttles": F.array(*map(_throttle_of, range(job.partitioning.shards))),
        "sketches": F.array(*map(_sketch_of, range(job.partitioning.shards))),
        "streams": F.struct(
            *(
                _stream(folded).alias(n)
                for n, folded in zip(job.query.names, of_stream, strict=True)
            )
        ),
    }
    return [column.alias(name) for name, column in columns.items()]


def _throttle_of(shard: int) -> Column:
    """The throttle of one shard; null if it had no work."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    numbers, place = F.col("numbers"), list(_SHARD).index("throttle")
    own = F.element_at(numbers, -1) == shard
    return F.max(F.when(own, numbers[place] / _ONE))


def _sketch_of(shard: int) -> Column:
    """The sketch of one shard; null if it had no work."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    own = F.element_at(F.col("numbers"), -1) == shard
    return F.max(F.when(own, F.col("data").cast("string")))


def _has_recall(job: Job) -> Column:
    """Whether results can be lost: those of windows are made without the events that were late."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.lit(isinstance(job.query, JoinQuery))


def _stream(folded: dict[str, Column]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    state = F.element_at(F.array(*map(F.lit, _STATES)), folded["state"].cast("int") + 1)
    known = folded["local_time"] > F.lit(_UNKNOWN)
    columns = {name: folded[name] for name in _COUNTS} | {
        "rejected": _rejected(folded),
        "local_time": F.when(known, folded["local_time"]),
        "state": state,
    }
    return F.struct(*(column.alias(name) for name, column in columns.items()))


def _rejected(counts: dict[str, Column]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.struct(*(counts[reason].alias(reason) for reason in _REASONS))
