"""The speed of results that are given out at once, and of as-of joins.

Part of `slackwater bench core`, on the streams of its two-way join.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import pyarrow as pa

from slackwater.jobs.measurement import Measurement
from slackwater.query.goals import Slack
from slackwater.query.join import join
from slackwater.query.join_options import Select
from slackwater.query.stream import Stream
from slackwater.testing.workloads import uniform_keys
from slackwater_lab.benches.timed import CoreOptions, Timed

_WITHIN = "2 s"  # windows, and the tolerance
_WITHIN_MS = 2_000
_K = Slack("1 s")
_THREE_AT_ONCE: tuple[tuple[int, Select, str, float | None], ...] = (  # keys, and the promise
    (2_000, "*", "three-way, pairs at once", 1.0),
    (100, "count", "three-way, counted at once", None),
)
_FASTEST = 5_000_000  # rows/s that an as-of join must reach


def _tables(options: CoreOptions) -> dict[str, pa.Table]:
    """Two streams of 10,000 rows/s on 20,000 keys, as those of the two-way join."""
    rows = options.size(1_000_000)
    return {name: uniform_keys(rows, seed=2 * options.seed + i) for i, name in enumerate("ab")}


def eager(options: CoreOptions) -> Iterator[Measurement]:
    """Pairs at once beside pairs in order: the same joins, in turns."""
    tables = _tables(options)
    streams = [Stream(name, ts="ts", window=_WITHIN) for name in tables]
    in_order = Timed(join(*streams, on="k", goal=_K), tables)
    at_once = Timed(join(*streams, on="k", goal=_K, emit="eager"), tables)
    for _ in range(options.runs):
        in_order.run()
        at_once.run()
    yield Measurement("two-way, pairs at once", at_once.rows_per_second, "rows/s")
    slower = round(at_once.best / in_order.best, 4)
    yield Measurement("pairs at once: time", slower, "times", ceiling=options.at_most(1.0))


def three_at_once(options: CoreOptions) -> Iterator[Measurement]:
    """Results of three streams at once beside those in order, in turns: with columns, and counted.

    Counted, a late event has a number of results for each time at which they are; in order its
    partners are sorted before, and there is one number for each event.
    """
    for keys, select, name, limit in _THREE_AT_ONCE:
        tables = {
            stream: uniform_keys(
                options.size(200_000), seed=3 * options.seed + i, rate_per_s=1_000, keys=keys
            )
            for i, stream in enumerate("abc")
        }
        streams = [Stream(stream, ts="ts", window="1 s") for stream in tables]
        query = join(*streams, on="k", goal=_K, select=select)
        in_order, at_once = Timed(query, tables), Timed(replace(query, emit="eager"), tables)
        for _ in range(options.runs):
            in_order.run()
            at_once.run()
        yield Measurement(name, at_once.rows_per_second, "rows/s")
        slower = round(at_once.best / in_order.best, 4)
        ceiling = None if limit is None else options.at_most(limit)
        yield Measurement(f"{name}: time", slower, "times", ceiling=ceiling)


def asof(options: CoreOptions) -> Iterator[Measurement]:
    """An as-of join, and that of Polars on the same rows, sorted before."""
    tables = _tables(options)
    streams = [Stream(name, ts="ts") for name in tables]
    query = join(*streams, on="k", how="asof", tolerance=_WITHIN, goal=_K)
    timed = Timed(query, tables).run(options.runs)
    floor = options.at_least(_FASTEST)
    yield Measurement("as-of", timed.rows_per_second, "rows/s", floor=floor)
    at_rest = round(_sorted_rows_per_second(tables, options.runs))
    yield Measurement("as-of, Polars on sorted rows", at_rest, "rows/s")


def _sorted_rows_per_second(tables: dict[str, pa.Table], runs: int) -> float:
    import polars as pl  # noqa: PLC0415  not everybody has it

    frames = [pl.DataFrame(table.drop_columns(["arrival"])).sort("ts") for table in tables.values()]
    seconds = []
    for _ in range(1 + runs):
        start = perf_counter()
        frames[0].join_asof(
            frames[1], on="ts", by="k", tolerance=_WITHIN_MS, check_sortedness=False
        )
        seconds.append(perf_counter() - start)
    return sum(map(len, frames)) / min(seconds[1:])
