"""Cases of joins of all kinds, their oracle and their engine; for properties."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import slackwater as sw
from helpers import FEW_BUCKETS, answers, batches, schemas
from naive import Event
from naive_kinds import REACH, Join, Play
from slackwater.engine.factory import join_engine
from slackwater.engine.replay import recorded
from slackwater.engine.snapshot import restored
from slackwater.events.batch import Batch

KINDS = ("left", "right", "full", "semi", "anti", "asof", "inner")
DIRECTIONS = ("backward", "forward", "nearest")
_STEPS = (0, 0, 0, 0, 1, 1, 1, 2, 3, 7)
_DELAYS = (4, 12, 31)
_LEADS = (0, 0, 3, 20)  # of the right stream
_SLACKS = (0, 0, 1, 3, 8, 20, None)  # None: K follows the largest delay
_KEEPS = (0, 2, 9, 10**6, 10**6, 10**6)
_MOST = 20


class Kind(NamedTuple):
    """A join and its arrivals; event values are key, value and rank, None is null."""

    events: list
    how: str
    emit: str
    windows: tuple
    slack: int | None
    keep: int
    direction: str
    has_where: bool

    @property
    def late(self):
        return "count" if self.emit == "eager" and self.how in ("inner", "semi") else "emit"

    @property
    def arrivals(self):
        """Those that count: nulls are rejected where a row without partner has no place."""
        preserved = self.oracle.preserved
        return [e for e in self.events if e.stream in preserved or not self._has_null(e)]

    def _has_null(self, e):
        read = e.values[: 1 + self.has_where] if e.values is not None else ()
        return None in read

    @property
    def oracle(self):
        reach = REACH[self.direction]
        windows = self.windows
        if self.how == "asof":
            windows = tuple(self.windows[0] * times for times in reach)
        return Join(windows, self._are_equal, self.how, self.direction, lambda e: e.values[2])

    def _are_equal(self, a, b):
        if a.values is None or b.values is None:
            return False
        (j, x, _), (k, y, _) = a.values, b.values
        if j is None or k is None or j != k:
            return False
        return not self.has_where or (x is not None and y is not None and abs(x - y) <= 1)

    def play(self, arrivals=None, idle_after=None):
        """What the oracle says."""
        arrivals = self.arrivals if arrivals is None else arrivals
        ks = [self.slack or 0] * len(arrivals)
        follow = self.slack is None
        return Play(self.oracle, arrivals, ks, self.keep, self.emit == "eager", follow, idle_after)

    def query(self, ids="rank", **options):
        is_asof = self.how == "asof"
        windows = (None, None) if is_asof else self.windows
        options = {"late": self.late, "retention": self.keep} | options
        return sw.join(
            *(sw.Stream(name, "ts", w, id=ids) for name, w in zip("lr", windows, strict=True)),
            on="k",
            where="abs(l.x - r.x) <= 1" if self.has_where else None,
            how=self.how,
            emit=self.emit,
            goal=sw.MaxSlack() if self.slack is None else sw.Slack(self.slack),
            tolerance=self.windows[0] if is_asof else None,
            direction=self.direction,
            **options,
        )

    def tables(self, events=None):
        events = self.events if events is None else events
        return {name: _table(events, s) for s, name in enumerate("lr")}


def _table(events, stream):
    own = [e for e in events if e.stream == stream and e.values is not None]
    columns = {
        "ts": [e.ts for e in own],
        **{c: [e.values[n] for e in own] for n, c in enumerate(("k", "x", "rank"))},
        "n": [e.arrival for e in own],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def kind_of(data, hows=KINDS, complete=False):
    """The case that some bytes stand for; zero is always the plainest choice."""
    head, body = data[:12], data[12:]
    how = hows[head[1] % len(hows)]
    delays, lead = _DELAYS[head[2] % len(_DELAYS)], _LEADS[head[3] % len(_LEADS)]
    clock, events = 0, []
    for number in range(head[0] % (_MOST + 1)):
        stream, step, delay, value = body[4 * number : 4 * number + 4]
        clock += _STEPS[step % len(_STEPS)] if step < 250 else 100
        s = stream % 2
        ts = max(0, clock + lead * s - (delay % delays if delay >= 96 else 0))
        k = None if value >= 250 else value % 2
        x = None if value % 32 == 31 else value // 4 % 4
        events.append(Event(ts, s, number, (k, x, number * 7 % 5)))
    slack = 10**6 if complete else _SLACKS[head[4] % len(_SLACKS)]
    return Kind(
        events,
        how,
        ("ordered", "eager")[head[5] % 2],
        (head[6] % 9, head[7] % 9),
        slack,
        10**6 if complete else _KEEPS[head[8] % len(_KEEPS)],
        DIRECTIONS[head[9] % 3] if how == "asof" else "backward",
        head[10] % 3 == 2,
    )


SIZE = 12 + 4 * _MOST


@st.composite
def kinds(draw, hows=KINDS, complete=False):
    """Joins of all kinds with their arrivals."""
    return kind_of(draw(st.binary(min_size=SIZE, max_size=SIZE)), hows, complete)


# ---- answers that can be compared


def plain(rows):
    """Rows of the oracle as numbers."""
    number = lambda e: -1 if e is None else e.arrival  # noqa: E731
    return sorted((r.ts, number(r.left), number(r.right), r.change, r.late) for r in rows)


def given(table):
    """Rows of the engine in the same form."""
    names = {"result_ts": None, "l_n": None, "r_n": None, "change": "insert", "late": False}
    none = -1
    columns = []
    for name, default in names.items():
        values = table[name].to_pylist() if name in table.schema.names else [default] * len(table)
        columns.append([none if v is None else v for v in values])
    return list(zip(*columns, strict=True))


def fed(query, batch, sizes=(10**6,), restart=False, as_engine=False, **options):
    """Feed batches of these sizes and flush, restarting from a snapshot after each if asked."""
    options = {"limits": FEW_BUCKETS} | options
    engine = join_engine(query, schemas(query, batch), **options)
    outputs = []
    for part in batches(batch, sizes):
        outputs.append(engine.feed(part))
        assert engine.metrics().is_balanced
        if restart:
            fresh = join_engine(query, schemas(query, batch), **options)
            engine = restored(engine.snapshot(), fresh)
    outputs.append(engine.flush())
    return engine if as_engine else answers(engine, outputs)


def in_batches(query, batch, sizes):
    """Feed batches of these sizes and flush; yield output, metrics and number of rows of each."""
    engine = join_engine(query, schemas(query, batch), limits=FEW_BUCKETS)
    for part in batches(batch, sizes):
        output = engine.feed(part)
        yield output, engine.metrics(), len(part.stream)
    output = engine.flush()
    yield output, engine.metrics(), 0


def batch_of(case, **options):
    """The query and its arrivals."""
    query = case.query(**options)
    return query, recorded(query, case.tables(), "n")[0]


def shard_batches(case, n):
    """What arrives at each of n shards, as batches: events by key, and ticks of those elsewhere."""
    arriving, local = [[] for _ in range(n)], {}
    for e in case.arrivals:
        moves = e.ts > local.get(e.stream, e.ts - 1)
        local |= {e.stream: e.ts} if moves else {}
        for shard, own in enumerate(arriving):
            if (e.values[0] or 0) % n == shard:
                own.append(e)
            elif moves:
                own.append(e._replace(values=None))
    for own in arriving:
        ticks = [[e.ts for e in own if e.values is None and e.stream == s] for s in (0, 1)]
        yield Batch(
            tuple(case.tables(own).values()),
            np.array([e.stream + 2 * (e.values is None) for e in own], np.uint8),
            np.array([e.arrival for e in own], np.int64),
            tuple(np.array(times, np.int64) for times in ticks),
        )
