"""What an engine does with small fixed inputs, as numbers: how they are made, and recorded.

`facts` runs a case of `behaviour_cases` and returns what came of it, flat and short: counters, the
series of K, results, late events, charts, and the state of a snapshot taken half way. A list of
numbers is told as ``[how many, their sum, their sum weighted by place]``; what is zero or empty is
left out.

To record anew, after a change that is intended::

    cd tests && NUMBA_DISABLE_JIT=1 ../.venv/bin/python -m golden.behaviour [part of a name ...]

The difference that git shows says what the change does.
"""

import json
import math
import random
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from helpers import batches
from slackwater.engine.chart_part import charts
from slackwater.engine.factory import engine_for, join_engine
from slackwater.engine.join import JoinEngine
from slackwater.engine.output import late_table
from slackwater.engine.replay import Run, recorded, schemas_of
from slackwater.engine.snapshot import restored
from slackwater.engine.snapshot_format import sections
from slackwater.engine.window import WindowEngine
from slackwater.events.limits import Limits
from slackwater.metrics.progress import metrics_dict
from slackwater.query.join import JoinQuery
from slackwater.stats.sampling import Sampling

FOLDER = Path(__file__).parent
# Where an engine is told apart by what is not recorded: names, types, text of the query.
UNRECORDED = ("query", "initial_goal", "chunks", "goal")
HUGE = 2**53  # beyond this, numbers stand for "never" and "before all"
SMALL = Limits(
    arrivals_at_once=97,
    results_at_once=16,
    smallest_store=16,
    smallest_table=4,
    fewest_buckets=8,
    most_buckets=2**9,
    code_cleanup=8,
    chunk_bytes=2_000,
)


class Case(NamedTuple):
    """A query and what arrives."""

    query: Any
    n: int = 110  # events of each stream
    seed: int = 1
    step: int = 10  # from one event of a stream to the next
    delays: tuple = (0, 0, 0, 0, 7, 15, 40, 130)
    keys: int = 4
    lead: tuple = (0, 3, 5, 8)  # how far the time of a stream is off
    sizes: tuple = (90, 31, 64)  # of batches
    each: Callable | None = None  # called with the engine and the number of the batch, before it
    options: dict = {}  # of the engine
    limits: Limits = SMALL
    sampling: Sampling = Sampling(1 / 2, 8)  # noqa: RUF012  frozen
    gap: tuple = ()  # (stream, from, to): it is silent then
    ticks: bool = False  # the last stream sends ticks in place of some events
    columns: Callable | None = None  # changes the table of a stream
    report: bool = False


def table(case, stream):
    """The events of a stream, in the order of their arrival."""
    dice = random.Random(1_000 * case.seed + stream)  # noqa: S311
    rows = []
    for i in range(case.n):
        ts = i * case.step + case.lead[stream]
        delay = dice.choice(case.delays)
        values = [dice.randrange(case.keys), *(dice.randrange(10) for _ in range(3))]
        null = dice.randrange(12) == 0
        rows.append((ts + delay, ts, i, *values, null))
    if case.gap and case.gap[0] == stream:
        rows = [row for row in rows if not case.gap[1] <= row[1] < case.gap[2]]
    rows.sort()
    arrival, ts, number, k, x, y, v, null = map(list, zip(*rows, strict=True))
    v = [None if gone else 4 * a - 7 for a, gone in zip(v, null, strict=True)]
    made = pa.table({
        "ts": pa.array(ts, pa.int64()),
        "k": pa.array(k, pa.int64()),
        "x": pa.array(x, pa.int64()),
        "y": pa.array(y, pa.int64()),
        "v": pa.array(v, pa.int64()),
        "f": pa.array([None if n is None else n / 4 for n in v], pa.float64()),
        "s": pa.array([f"key {a}" * (1 + a) for a in k]),
        "id": pa.array(number, pa.int64()),
        "arrival": pa.array(arrival, pa.int64()),
    })  # fmt: skip
    return made if case.columns is None else case.columns(made)


def batch_of(case):
    names = case.query.names
    tables = {name: table(case, s) for s, name in enumerate(names)}
    batch, orders = recorded(case.query, tables, "arrival")
    return (with_ticks(batch, case) if case.ticks else batch), orders


def with_ticks(batch, case):
    """Each fifth turn, every stream is told to be where the fastest is, less 30."""
    from slackwater.events.batch import Batch

    m = len(case.query.names)
    turns, arrival, ticks, top = [], [], [[] for _ in range(m)], 0
    at = [0] * m
    for n, s in enumerate(batch.stream.tolist()):
        top = max(top, int(batch.checked[s].ts[at[s]]))
        at[s] += 1
        turns.append(s)
        arrival.append(int(batch.arrival[n]))
        if n % 5 == 4:
            other = n % m
            turns.append(m + other)
            arrival.append(arrival[-1])
            ticks[other].append(top - 30)
    return Batch(
        batch.tables,
        np.array(turns, np.uint8),
        np.array(arrival, np.int64),
        tuple(np.array(t, np.int64) for t in ticks),
    )


def started(case, batch):
    query, schemas = case.query, schemas_of(case.query, batch)
    if isinstance(query, JoinQuery) and query.is_matched:
        return join_engine(query, schemas, limits=case.limits, **case.options)
    if isinstance(query, JoinQuery):
        own = {"limits": case.limits, "sampling": case.sampling}
        return JoinEngine(query, schemas, **own, **case.options)
    if query.kind == "window":
        return WindowEngine(query, schemas, case.limits)
    return engine_for(query, schemas, **case.options)


# ---- numbers


def short(value):
    """A value as it is recorded; None: nothing."""
    if isinstance(value, str | bool) or value is None:
        return value or None
    if isinstance(value, int | np.integer):
        return (int(value) if abs(value) < HUGE else "huge") or None
    if isinstance(value, float | np.floating):
        return float(f"{value:.9g}") or None
    numbers = list(leaves(value))
    if not any(numbers):
        return [len(numbers)] if numbers else None
    if len(numbers) <= 6:
        return [short(n) or 0 for n in numbers]
    return summed(numbers)


def leaves(value):
    """All numbers in plain data, in order."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key])
    elif isinstance(value, list | tuple | np.ndarray):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, str):
        yield len(value) and 1  # packed bytes depend on the library that packs them
    elif value is not None:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, float) and not math.isfinite(value):
            value = 5_000.0 if value > 0 else -3_000.0 if value < 0 else 1_000.0
        yield value % 1009 if abs(value) >= HUGE else value


def summed(numbers):
    """How many, their sum, and their sum weighted by place."""
    weighted = sum((1 + i % 97) * n for i, n in enumerate(numbers))
    return [len(numbers), *(short(total) or 0 for total in (sum(numbers), weighted))]


def flat(value, name="", depth=3):
    """Nested plain data as a flat dict, without what is zero or empty."""
    if isinstance(value, dict) and depth and len(value) <= 40:
        found = {}
        for key, inner in value.items():
            found |= flat(inner, f"{name}.{key}" if name else str(key), depth - 1)
        return found
    told = short(value)
    return {} if told is None else {name: told}


def column(values):
    """A column: how many are set, and what they add up to."""
    known = [v for v in values.to_pylist() if v is not None]
    numbers = [v if isinstance(v, int | float) else zlib.crc32(repr(v).encode()) for v in known]
    return summed([*leaves(numbers)])


def columns(name, found):
    """A table; without its own columns where there are none."""
    rows = {f"{name}": found.num_rows or None}
    rows |= {f"{name}.{c}": column(found[c]) for c in found.column_names if found.num_rows}
    return {k: v for k, v in rows.items() if v is not None}


# ---- what an engine does


def half_way(engine):
    """The state of a snapshot, and what it would go on from."""
    data = engine.snapshot()
    header, *chunks = sections(data)
    state = json.loads(sections(header)[0])
    sizes = [[n, size] for _, n, size in state["chunks"]]
    own = {k: v for k, v in state.items() if k not in UNRECORDED}
    return data, flat(own, "state", 2) | flat({"chunks": sizes, "written": len(chunks)}, "state")


def shown(engine, output, when):
    """Counters and charts."""
    found = flat(metrics_dict(engine.metrics(), engine.query), f"metrics {when}", 2)
    chart = charts(engine, engine.latest_rows(output))
    return found if chart is None else found | flat(chart._asdict(), f"chart {when}", 2)


def given(output, names):
    """What came out."""
    made = [np.concatenate(parts).tolist() for parts in zip(*output.made, strict=True)]
    found = columns("results", output.table) | columns("late", late_table(output.late, names))
    waits = np.concatenate(output.waits).tolist() if output.waits else []
    found |= flat({"made": made, "waits": waits, "top": output.top, "dropped": output.dropped})
    found |= flat({"rejected": [r.columns for r in output.rejected]})
    if output.slacks:
        found["K"] = output.slacks if len(output.slacks) <= 24 else summed([*leaves(output.slacks)])
    for partial in output.partials:
        now, start, is_closed, tally = partial
        what = f"partial {start} {'closed' if is_closed else 'early'}"
        found[what] = [now, *(short(part) or 0 for part in tally.counts)]
    return found


@patch("slackwater.events.log._FEWEST", 128)  # so that events are forgotten all the time
def facts(case):
    """Run the case; once more from the snapshot that is taken half way: nothing may differ."""
    batch, orders = batch_of(case)
    parts = list(batches(batch, case.sizes))
    cut = len(parts) // 2
    engine, outputs = started(case, batch), []

    def feed(engine, numbers):
        for n in numbers:
            if case.each is not None:
                case.each(engine, n)
            yield engine.feed(parts[n])
            assert engine.metrics().is_balanced

    def rest(engine):
        later = list(feed(engine, range(cut, len(parts))))
        return [*later, engine.flush()]

    outputs += feed(engine, range(cut))
    found = {"shown half way": summed([*leaves(shown(engine, outputs[-1], ""))])}
    data, state = half_way(engine)
    other = restored(data, started(case, batch))
    assert half_way(other)[1] | {"state.chunks": 0} == state | {"state.chunks": 0}
    later = rest(engine)
    again = rest(other)
    found |= state | shown(engine, later[-1], "at the end")
    found["state at the end"] = summed([*leaves(half_way(engine)[1])])
    assert shown(other, again[-1], "at the end").items() <= found.items()
    whole, cut_short = later[0], again[0]
    for one, two in zip(later[1:], again[1:], strict=True):
        whole.extend(one)
        cut_short.extend(two)
    names = case.query.names
    assert given(whole, names) == given(cut_short, names)
    first, *more = outputs
    for output in [*more, whole]:
        first.extend(output)
    found |= given(first, names) | flat({"members": first.members})  # they have other rows again
    if case.report:
        run = Run(case.query, batch, orders, first, engine.metrics(), has_arrival=True)
        told = vars(run.report(0.9, over=300, every=50))
        found |= flat({k: v for k, v in told.items() if not isinstance(v, pa.Table)}, "report")
        found |= columns("report.measurements", told["measurements"])
    return found


# ---- records


def file_of(name):
    """Cases of the default controller of recall are apart: it changes more often."""
    is_default = name.startswith("default recall")
    return FOLDER / ("behaviour_of_recall.json" if is_default else "behaviour.json")


def record(names):
    """Write down what these cases do now."""
    from golden.behaviour_cases import ALL

    for file in sorted({file_of(name) for name in ALL}):
        known = json.loads(file.read_text()) if file.exists() else {}
        own = [name for name in ALL if file_of(name) == file]
        entries = {}
        for name in own:
            wanted = name not in known or not names or any(part in name for part in names)
            entries[name] = ALL[name]() if wanted else known[name]
        file.write_text(written(entries))


def written(entries):
    """JSON with a line for each fact."""
    cases = []
    for name, found in entries.items():
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        cases.append(f"{json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n " + ",\n ".join(cases) + "\n}\n"


if __name__ == "__main__":
    record(sys.argv[1:])
