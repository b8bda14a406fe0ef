"""From the oracle's events to the engine and back.

A `Case` is one query over one list of arrivals. The oracle and the engine both answer it with
lists of (result time, arrival numbers of the members in stream order).
"""

from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import slackwater as sw
from naive import Event, Tuples, clocked, cosine, dot, join, l2, pipeline, reorder, truth
from slackwater.disorder.reorder import Reorder
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import replay_join
from slackwater.engine.snapshot import restored
from slackwater.events.batch import Batch
from slackwater.events.limits import Limits

NAMES = "abcde"
COLUMNS = ("k", "x", "y")  # what an event's values are called
LONG = 10**8  # a retention that covers every lateness in the tests
# Buckets become wider early: to clear a million takes longer than the rest of a case.
FEW_BUCKETS = Limits(most_buckets=2**12)


class Graph(NamedTuple):
    """A join condition: for the engine (`on`, `where`), and as a function of oracle events."""

    on: object
    where: object
    holds: object
    keys: tuple = ()  # key columns of each stream


def _equal(*edges):
    """Equalities between columns, each given as ((stream, column), (stream, column))."""
    places = [((i, COLUMNS.index(c)), (j, COLUMNS.index(d))) for (i, c), (j, d) in edges]

    def holds(*r):
        return all(r[i].values[c] == r[j].values[d] for (i, c), (j, d) in places)

    return holds


def _edges(edges, m):
    text = [f"{NAMES[i]}.{c} = {NAMES[j]}.{d}" for (i, c), (j, d) in edges]
    ends = [end for edge in edges for end in edge]
    keys = tuple(tuple({c for i, c in ends if i == s}) for s in range(m))
    return Graph(text, None, _equal(*edges), keys)


def near(a, b):
    """The two-stream condition that is also given to the engine as a function."""
    return abs(a.x - b.x) <= 1


THETA = {  # a few fixed predicates, so that each is compiled once
    2: ("abs(a.x - b.x) <= 1", lambda a, b: abs(a.values[1] - b.values[1]) <= 1),
    3: (
        "a.x + b.x > c.x and a.y != c.y",
        lambda a, b, c: a.values[1] + b.values[1] > c.values[1] and a.values[2] != c.values[2],
    ),
}


def vector(e):
    """The vector of an event, in conditions over vectors; some are zero."""
    _, x, y = e.values
    return [x - 1, y - 1, e.arrival % 5 - 2]


VECTORS = {  # each stream has lists of another type
    2: ("cosine(a.v, b.v) > 0.65", lambda a, b: cosine(vector(a), vector(b)) > 0.65),
    3: (
        "cosine(a.v, b.v) > 0.1 and l2(b.v, c.v) < 3 and dot(a.v, c.v) <= a.x",
        lambda a, b, c: (
            cosine(vector(a), vector(b)) > 0.1
            and l2(vector(b), vector(c)) < 3
            and dot(vector(a), vector(c)) <= a.values[1]
        ),
    ),
}
LISTS = (pa.list_(pa.float64()), pa.list_(pa.float32(), 3), pa.large_list(pa.int8()))


@cache
def graph(kind, m):
    """The join condition of one kind over m streams."""
    if kind == "key":
        return Graph("k", None, _equal(*(((0, "k"), (j, "k")) for j in range(1, m))), (("k",),) * m)
    if kind == "keys":
        both = [((0, c), (j, c)) for j in range(1, m) for c in "kx"]
        return Graph(["k", "x"], None, _equal(*both), (("k", "x"),) * m)
    if kind == "star":
        return _edges([((0, "kxy"[j % 3]), (j, "k")) for j in range(1, m)], m)
    if kind == "chain":
        return _edges([((j - 1, "k"), (j, "x")) for j in range(1, m)], m)
    if kind == "cross":
        return Graph(None, None, lambda *r: True, ((),) * m)
    if kind == "vectors":
        return Graph(None, *VECTORS[m], ((),) * m)
    text, holds = THETA[m]
    if kind == "function":
        return Graph(None, near, holds, ((),) * m)
    if kind == "theta":
        return Graph(None, text, holds, ((),) * m)
    same = graph("key", m)  # kind == "key and theta"
    return Graph("k", text, lambda *r: same.holds(*r) and holds(*r), same.keys)


class Case(NamedTuple):
    """One query and its arrivals."""

    events: list
    windows: list
    kind: str = "key"
    slack: int | None = 0  # None: K follows the largest delay
    bounds: str = "[]"
    slide: int | None = None
    overdue: str = "advance"
    late_probe: str = "none"
    pipeline: str = "icde16"  # most golden cases are the papers'

    @property
    def is_clocked(self):
        return self.pipeline == "clocked" and not any(isinstance(w, Tuples) for w in self.windows)

    @property
    def m(self):
        return len(self.windows)

    @property
    def graph(self):
        return graph(self.kind, self.m)

    @property
    def valid(self):
        """The events that are not rejected: those without a null key."""
        keys = [[COLUMNS.index(c) for c in columns] for columns in self.graph.keys]
        return [e for e in self.events if all(e.values[c] is not None for c in keys[e.stream])]

    @property
    def query(self):
        return (self.windows, self.graph.holds, self.bounds, self.slide or 1)

    @property
    def disorder(self):
        follow = self.slack is None
        slide = {"slide": self.slide or 1, "open_end": self.bounds == "[)"}
        ks = [self.slack or 0] * self.m
        return {"ks": ks, "follow": follow, "overdue": self.overdue} | slide


# ---- the oracle's answers


def plain(results):
    """Results as (result time, arrival numbers), sorted within each result time."""
    return sorted((max(r).ts, tuple(e.arrival for e in r)) for r in results)


def true_results(case):
    return plain(truth(case.valid, *case.query))


def naive_run(case):
    """What the oracle's pipeline produces, and its late events with (event, kept)."""
    if case.is_clocked:
        results, late = naive_clocked(case)
        return results, [(e, kept) for e, kept, _ in late]
    return pipeline(case.valid, *case.query, late_probe=case.late_probe, **case.disorder)


def naive_clocked(case):
    """The same of the clocked pipeline, with how far behind the clock late events are."""
    ks = [case.slack or 0] * len(case.valid)
    return clocked(case.valid, *case.query, ks=ks, follow=case.slack is None)


def naive_losses(case):
    """(stream, ts, late by, kept, results lost) of each late event, in the order of processing.

    A true result that was not produced is lost with its member that was processed last.
    """
    if case.is_clocked:
        produced, late = naive_clocked(case)
        missing = set(truth(case.valid, *case.query)) - set(produced)
        lost = Counter(max(r, key=lambda e: e.arrival) for r in missing)
        return [(e.stream, e.ts, by, kept, lost[e]) for e, kept, by in late]
    ties = any(isinstance(w, Tuples) for w in case.windows)
    steps = reorder(case.valid, hold_ties=ties, **case.disorder)
    order = [e for left, *_ in steps for e in left]
    produced, late = join(order, *case.query, late_probe=case.late_probe)
    place = {e: n for n, e in enumerate(order)}
    missing = set(truth(case.valid, *case.query)) - set(produced)
    lost = Counter(max(r, key=place.get) for r in missing)
    clock = [max(e.ts for e in order[: n + 1]) for n in range(len(order))]
    return [(e.stream, e.ts, clock[place[e]] - e.ts, kept, lost[e]) for e, kept in late]


# ---- the engine's answers


def tables(case):
    """One table per stream; by the column arr the engine sees the arrivals in the case's order."""
    found = {
        NAMES[j]: pa.table(
            {
                "ts": pa.array([e.ts for e in case.events if e.stream == j], pa.int64()),
                **{
                    c: pa.array([e.values[n] for e in case.events if e.stream == j], pa.int64())
                    for n, c in enumerate(COLUMNS)
                },
                "id": pa.array([e.arrival for e in case.events if e.stream == j], pa.int64()),
                "arr": pa.array([e.arrival for e in case.events if e.stream == j], pa.int64()),
            }
        )
        for j in range(case.m)
    }
    if case.kind == "vectors":
        for j, (name, table) in enumerate(found.items()):
            vectors = [vector(e) for e in case.events if e.stream == j]
            found[name] = table.append_column("v", pa.array(vectors, LISTS[j]))
    return found


def engine_query(case, **options):
    """The case's query."""
    windows = [sw.Tuples(w) if isinstance(w, Tuples) else w for w in case.windows]
    more = {"vectors": {"v": 3}} if case.kind == "vectors" else {}
    return sw.join(
        *(sw.Stream(n, ts="ts", window=w, **more) for n, w in zip(NAMES, windows, strict=False)),
        on=case.graph.on,
        where=case.graph.where,
        goal=sw.MaxSlack() if case.slack is None else sw.Slack(case.slack),
        bounds=case.bounds,
        slide=case.slide,
        pipeline=case.pipeline,
        overdue=case.overdue,
        late_probe=case.late_probe,
        **options,
    )


def engine_run(case, **options):
    """Replay the case through the engine."""
    return replay_join(engine_query(case, **options), tables(case), "arr", FEW_BUCKETS)


def emitted(run, m):
    """The engine's results in the order it gave them, late ones included."""
    return members(run.results, m)


def members(results, m):
    """A table of results as (result time, arrival numbers)."""
    ids = [results[f"{NAMES[j]}_id"].to_pylist() for j in range(m)]
    return list(zip(results["result_ts"].to_pylist(), zip(*ids, strict=True), strict=True))


# ---- batch by batch


def batches(batch, sizes):
    """The arrivals of `batch` cut into batches of these sizes, over and over."""
    rest, begin, i = [*batch.tables, *batch.ticks], 0, 0
    m = len(batch.tables)
    while begin < len(batch.stream):
        turns = batch.stream[begin : begin + sizes[i % len(sizes)]]
        counts = np.bincount(turns, minlength=len(rest)).tolist()
        parts = [
            t.slice(0, n) if j < m else t[:n]
            for j, (t, n) in enumerate(zip(rest, counts, strict=True))
        ]
        arrival = None if batch.arrival is None else batch.arrival[begin : begin + len(turns)]
        yield Batch(tuple(parts[:m]), turns, arrival, tuple(parts[m:]))
        rest = [
            t.slice(n) if j < m else t[n:]
            for j, (t, n) in enumerate(zip(rest, counts, strict=True))
        ]
        begin, i = begin + len(turns), i + 1


def schemas(query, batch):
    """The schemas of a query's streams, by name."""
    return dict(zip(query.names, (t.schema for t in batch.tables), strict=True))


def answers(engine, outputs):
    """Everything a user can see of all that `engine` gave."""
    output, *rest = outputs
    for later in rest:
        output.extend(later)
    made = [np.concatenate(column).tolist() for column in zip(*output.made, strict=True)]
    late = [np.concatenate(column).tolist() for column in zip(*output.late, strict=True)]
    waits = np.concatenate(output.waits).tolist() if output.waits else []
    return output.table, made, late, output.slacks, waits, engine.metrics()


def fed(query, batch, sizes=(10**6,), restart=False, as_engine=False, **options):
    """Feed batches of these sizes and flush, restarting from a snapshot after each if asked."""
    options = {"limits": FEW_BUCKETS} | options
    engine = JoinEngine(query, schemas(query, batch), **options)
    outputs = []
    for part in batches(batch, sizes):
        outputs.append(engine.feed(part))
        assert engine.metrics().is_balanced
        if restart:
            engine = restored(
                engine.snapshot(), JoinEngine(query, schemas(query, batch), **options)
            )
    outputs.append(engine.flush())
    return engine if as_engine else answers(engine, outputs)


# ---- shards


def by_key(case, e, n):
    """Equal keys meet in the same shard."""
    columns = [COLUMNS.index(c) for c in case.graph.keys[e.stream]]
    return [sum(e.values[c] or 0 for c in columns) % n]


def replicate(case, e, n):
    """The first stream is split; the others are everywhere."""
    return [e.arrival % n] if e.stream == 0 else range(n)


def shards(case, n, home=by_key):
    """What arrives at each of n shards: its events, and a tick where another's event moves time.

    A tick is an event without values, as in the oracle.
    """
    valid, local, arriving = set(case.valid), {}, [[] for _ in range(n)]
    for e in case.events:
        moves = e in valid and e.ts > local.get(e.stream, e.ts - 1)
        local |= {e.stream: e.ts} if moves else {}
        for shard in range(n):
            if shard in home(case, e, n):
                arriving[shard].append(e)
            elif moves:
                arriving[shard].append(e._replace(values=None))
    return arriving


def shard_batch(case, arriving):
    """What arrives at a shard, as one batch."""
    ticks = [e for e in arriving if e.values is None]
    own = case._replace(events=[e for e in arriving if e.values is not None])
    return Batch(
        tuple(tables(own).values()),
        np.array([e.stream + case.m * (e.values is None) for e in arriving], np.uint8),
        np.array([e.arrival for e in arriving], np.int64),
        tuple(np.array([e.ts for e in ticks if e.stream == s], int) for s in range(case.m)),
    )


# ---- step by step


def arrivals(*pairs):
    """Events from (stream, ts), numbered in the order given."""
    return [Event(ts, stream, n, (0, 0, 0)) for n, (stream, ts) in enumerate(pairs)]


class Step(NamedTuple):
    """What one arrival did: times that left, times in each K-slack buffer and sync buffer."""

    left: list
    slack: list
    sync: list


def naive_steps(events, slack, n_streams=1, **options):
    """Trace the oracle; `slack` is one K, or one per stream."""
    ks = [slack] * n_streams if isinstance(slack, int) else slack
    for left, slacks, syncs in reorder(events, ks, **options):
        yield Step(
            [e.ts for e in left],
            [[e.ts for e in s] for s in slacks],
            [sorted(e.ts for e in s) for s in syncs],
        )


def engine_steps(events, slack, n_streams=1, **options):
    """Trace the engine's reordering stage in the same way."""
    stage = Reorder(n_streams=n_streams, slack=slack, **options)
    streams = range(n_streams)
    for e in events:
        left = [events[n].ts for n in stage.arrive(e.stream, e.ts, tick=e.values is None)]
        yield Step(left, [stage.in_slack(s) for s in streams], [stage.in_sync(s) for s in streams])
    yield Step([events[n].ts for n in stage.flush().event], [], [])
