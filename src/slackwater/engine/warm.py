"""Compile every kernel once, so that the first query does not wait for it.

Run as ``python -m slackwater.engine.warm``.

It runs small queries of each kind; numba keeps what it compiled on disk. Arguments choose some of
the kinds: several processes can share the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.engine.factory import engine_for
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored
from slackwater.engine.window import WindowEngine
from slackwater.events.hashing import hash_rows
from slackwater.joins.sampled_join import compiled_probe
from slackwater.kernels import hashing as kernels
from slackwater.query.aggregate import aggregate
from slackwater.query.functions import count, stddev
from slackwater.query.functions import max as largest
from slackwater.query.functions import sum as total
from slackwater.query.goals import MaxSlack, NoSlack, Recall, Slack
from slackwater.query.join import JoinQuery, join
from slackwater.query.shedding import Harvest, RandomDrop
from slackwater.query.stream import Stream
from slackwater.query.window import WindowQuery, window
from slackwater.query.window_goals import DropRatio
from slackwater.query.windows import Sliding, Tumbling, Tuples
from slackwater.stats.novelty import Novelty

_CONDITIONS: list[dict[str, Any]] = [{"on": "k"}, {"where": "abs(a.x - b.x) < 1"}]
_SHEDDING = (
    Harvest(budget=100.0, every=2), Harvest(budget=100.0, every=2, index="none"),
    RandomDrop(budget=100.0, every=2),
)  # fmt: skip
_ROWS = {
    "ts": [1, 4, 3, 5, 12, 8],
    "k": [1, 1, 2, 1, 2, 1],
    "x": [0.5, 1.5, 2.5, 1.0, 2.0, 3.0],
    "v": 6 * [[0.5, 1.5]],
}


def _queries() -> list[JoinQuery]:
    a, b = (Stream(name, "ts", 5, vectors={"v": 2}) for name in "ab")
    return [
        join(a, b, on="k", goal=Slack(1)),
        join(a, b, where="abs(a.x - b.x) < 1", goal=MaxSlack(), late="emit"),
        join(a, b, where="cosine(a.v, b.v) > 0.8", goal=NoSlack()),
        join(
            a,
            Stream("b", "ts", Tuples(2)),
            Stream("c", "ts", 5),
            on="k",
            select="count",
            goal=NoSlack(),
        ),  # fmt: skip
        join(a, b, on="k", goal=Recall(0.9, over=4, every=2, granularity=1)),
        join(a, b, on="k", goal=Recall(0.9, over=4, every=2, granularity=1, model="noneqsel")),
    ]


def _shed() -> list[JoinQuery]:
    a, b = (Stream(name, "ts", 5) for name in "ab")
    return [
        join(a, b, **condition, shed=shed, goal=NoSlack())
        for condition in _CONDITIONS
        for shed in _SHEDDING
    ]


def _windows() -> list[WindowQuery]:
    stream = Stream("s", ts="ts")
    select = {"most": largest("x"), "spread": stddev("k")}
    return [
        window(
            stream, window=Tuples(2), by="k", select=select, goal=DropRatio(0.1, every=Tuples(2))
        ),
        window(stream, window=Sliding(4, 2), select=select),
    ]


def _kinds() -> list[JoinQuery]:
    a, b = (Stream(name, "ts", 5, vectors={"v": 2}) for name in "ab")
    plain = Stream("a", "ts"), Stream("b", "ts")
    options: list[dict[str, Any]] = [{"emit": "eager"}, {"how": "full", "goal": Slack(1)}]
    kinds = [join(a, b, **c, **o) for c in _CONDITIONS for o in options]
    third = Stream("c", "ts", 5)
    at_once = [join(a, b, third, **c, emit="eager") for c in _CONDITIONS]
    counted = join(a, b, third, on="k", emit="eager", select="count")
    asof = join(*plain, on="k", how="asof", tolerance=5, goal=Slack(1))
    return [*kinds, *at_once, counted, asof]


def _join_all(queries: Sequence[JoinQuery]) -> None:
    table = pa.table(_ROWS)
    for query in queries:
        tables = dict.fromkeys(query.names, table)
        schemas = dict.fromkeys(query.names, table.schema)
        batch, _ = recorded(query, tables, None)
        engine = engine_for(query, schemas)
        engine.feed(batch)
        engine = restored(engine.snapshot(), engine_for(query, schemas))
        engine.flush()
        engine.metrics()


def _joins() -> None:
    _join_all(_queries())
    _join_all(_kinds())
    for has_condition in (False, True):
        compiled_probe(has_condition)  # only late events beyond retention need it
    _hashing(pa.table(_ROWS))
    novelty = Novelty()
    for _ in range(30):
        novelty.add(0.0)


def _shedding() -> None:
    _join_all(_shed())


def _single() -> None:
    table = pa.table(_ROWS)
    for query in _windows():
        batch, _ = recorded(query, {"s": table}, None)
        windows = WindowEngine(query, {"s": table.schema})
        windows.feed(batch)
        windows = restored(windows.snapshot(), WindowEngine(query, {"s": table.schema}))
        windows.flush()


def _aggregates() -> None:
    table = pa.table(_ROWS)
    for select in ({"n": count()}, {"n": count(), "sum": total("a.x")}):
        query = aggregate(
            Stream("a", "ts"), Stream("b", "ts"), on="k", select=select, window=Tumbling(4),
            deadline=5,
        )  # fmt: skip
        query.replay(dict.fromkeys(query.names, table), "ts")


def _hashing(table: pa.Table) -> None:
    text = pa.array(["a", "b", None, "c", "d", "e"])
    lists = pa.array([[1], [], None, [2, 3], [4], [5]])
    content = hash_rows([*table.columns, text, lists])
    ends = np.array([0, len(content)])
    kernels.sort_runs(ends[:1], ends[1:], content, np.arange(len(content)))


_KINDS: dict[str, Callable[[], None]] = {
    "joins": _joins,
    "shedding": _shedding,
    "windows": _single,
    "aggregates": _aggregates,
}


def warm(kinds: Sequence[str] = tuple(_KINDS)) -> None:
    """Run every kernel of these kinds once."""
    for kind in kinds:
        _KINDS[kind]()


if __name__ == "__main__":
    warm(sys.argv[1:] or tuple(_KINDS))
