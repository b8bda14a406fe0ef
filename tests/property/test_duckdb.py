"""A second, independent oracle: SQL of DuckDB, which answers thousands of cases in one query.

Every table has the number of its case in column n. Cases are drawn from the seed of the run
(--hypothesis-seed); of those that fail, the smallest is made smaller and shown.
"""

import random
from collections import defaultdict
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import naive_aggregates
import naive_windows
import profiles
import slackwater as sw
from helpers import COLUMNS, NAMES, emitted, engine_run, true_results
from kinds_of_joins import SIZE as KIND_SIZE
from kinds_of_joins import batch_of, given, kind_of
from kinds_of_joins import fed as kinds_fed
from naive import Tuples
from naive_aggregates import Asked
from naive_kinds import truth as kinds_truth
from property.strategies import SIZE, case_of, examples
from property.test_aggregates import in_turn, query_of, rows_of, tables_of
from property.test_windows import asked as window_query
from property.test_windows import table_of

AT_ONCE = 5_000
TIMES = 4 if profiles.PROFILE == "trust" else 1  # together 100,000 cases
pytestmark = pytest.mark.differential


@pytest.fixture
def check(request, record_property):
    """Compare `answers`, each a function of a case, with what DuckDB says of many."""
    seed = int(request.config.getoption("hypothesis_seed") or 0)

    def compare(draw, answers, duckdb_says, n, same=lambda found, expected: found == expected):
        def differs(case, expected):
            return not all(same(answer(case), expected) for answer in answers)

        rng, tried = random.Random(seed), 0
        while tried < n:
            cases = [draw(rng) for _ in range(min(AT_ONCE, n - tried))]
            pairs = zip(cases, duckdb_says(cases), strict=True)
            wrong = [case for case, expected in pairs if differs(case, expected)]
            if wrong:
                case = min(wrong, key=lambda case: len(case.events))
                case = shrunk(case, lambda case: differs(case, *duckdb_says([case])))
                found = [answer(case) for answer in answers]
                pytest.fail(f"seed {seed}: {case}\n{found}\nDuckDB: {duckdb_says([case])}")
            tried += len(cases)
        record_property("examples", tried)

    return compare


def shrunk(case, fails):
    """The case without the events that it fails without."""
    for event in case.events:
        smaller = case._replace(events=[e for e in case.events if e is not event])
        case = smaller if fails(smaller) else case
    return case


def asked_of_duckdb(sql, **tables):
    """The rows of each case, without its number."""
    found = defaultdict(list)
    with duckdb.connect() as db:
        for name, (columns, rows) in tables.items():
            values = zip(*rows, strict=True) if rows else [()] * len(columns)
            db.register(name, pa.table(dict(zip(columns, map(list, values), strict=True))))
        for n, *row in db.sql(sql).fetchall():
            found[n].append(tuple(row))
    return found


# ---- joins

SQL_KINDS = ("key", "cross", "star", "chain", "keys", "theta", "key and theta")


def join_by_sql(kind, m, cases):
    """The results of cases that differ in events, windows, bounds and slide."""
    names, graph = NAMES[:m], cases[0][1].graph
    seen = [f"count(*) filter (stream = {s}) over past as seen_{s}" for s in range(m)]
    numbered = (
        f"select *, row_number() over past as place, {', '.join(seen)} from events "
        "window past as (partition by n order by ts, stream, id rows unbounded preceding)"
    )
    where = [
        f"last.n = asked.n and last.place = greatest({', '.join(f'{n}.place' for n in names)})"
    ]
    for s, name in enumerate(names):
        where.append(f"{name}.n = asked.n and {name}.stream = {s}")
        where.append(
            f"case when asked.tuples_{s} then last.seen_{s} - {name}.seen_{s} < asked.window_{s} "
            f"else {name}.ts - asked.open_begin >= "
            f"(last.ts + asked.up) // asked.slide * asked.slide - asked.window_{s} end"
        )
    for condition in [graph.on] if isinstance(graph.on, str) else graph.on or []:
        shared = [f"{names[0]}.{condition} = {n}.{condition}" for n in names[1:]]
        where += [condition] if "=" in condition else shared
    where += [f"({graph.where})"] if graph.where else []
    tables = ", ".join(f"numbered {name}" for name in [*names, "last"])
    sql = (
        f"with numbered as ({numbered}) select asked.n, last.ts, "
        f"{', '.join(f'{n}.id' for n in names)} from asked, {tables} where {' and '.join(where)}"
    )
    windows = [f"{what}_{s}" for what in ("tuples", "window") for s in range(m)]
    asked = [
        (n, c.slide or 1, (c.slide or 1) - (c.bounds != "[)"), int(c.bounds == "(]"),
         *(isinstance(w, Tuples) for w in c.windows), *map(int, c.windows))
        for n, c in cases
    ]  # fmt: skip
    events = [(n, e.ts, e.stream, e.arrival, *e.values) for n, c in cases for e in c.valid]
    found = asked_of_duckdb(
        sql,
        asked=(("n", "slide", "up", "open_begin", *windows), asked),
        events=(("n", "ts", "stream", "id", *COLUMNS), events),
    )
    return {n: sorted((ts, tuple(ids)) for ts, *ids in rows) for n, rows in found.items()}


def joins_by_sql(cases):
    alike = defaultdict(list)  # one statement for each condition
    for n, case in enumerate(cases):
        alike[case.kind, case.m].append((n, case))
    found = {}
    for (kind, m), own in alike.items():
        found |= join_by_sql(kind, m, own)
    return [found.get(n, []) for n in range(len(cases))]


@pytest.mark.parametrize("windows", ["time", "tuples", "mixed"])
def test_joins(check, windows):
    check(
        lambda rng: case_of(rng.randbytes(SIZE), windows, "complete", SQL_KINDS),
        [lambda case: sorted(emitted(engine_run(case), case.m)), true_results],
        joins_by_sql,
        TIMES * examples(0.25 if windows == "time" else 0.125),
    )


# ---- kinds of joins

HOW_BY_SQL = {"inner": "join", "left": "left join", "right": "right join", "full": "full join",
              "semi": "semi join", "anti": "anti join"}  # fmt: skip


def kinds_by_sql(cases):
    """What each join is in the truth, as DuckDB joins the sides."""
    sides = [("n", "ts", "k", "x", "rank", "id")] * 2
    rows = [[(n, e.ts, *e.values, e.arrival) for n, c in enumerate(cases) for e in c.arrivals
             if e.stream == s] for s in (0, 1)]  # fmt: skip
    asked = [(n, c.how, *map(int, c.oracle.windows), c.has_where) for n, c in enumerate(cases)]
    found = {}
    for how in {c.how for c in cases}:
        side = "(select * from {0} join asked using (n) where how = '{1}') {0}"
        holds = (
            "l.n = r.n and l.k = r.k and r.ts between l.ts - l.w_r and l.ts + l.w_l "
            "and (not l.has_where or abs(l.x - r.x) <= 1)"
        )
        if how == "asof":
            order = "-abs(l.ts - r.ts), r.ts <= l.ts, r.rank, r.id"
            sql = (
                f"select l.n, l.ts + any_value(l.w_l), l.id, arg_max(r.id, row({order})) "
                f"from {side.format('l', how)} left join r on {holds} group by l.n, l.ts, l.id"
            )
        elif how in ("semi", "anti"):
            sql = (
                f"select l.n, null, l.id, null from {side.format('l', how)} "
                f"{HOW_BY_SQL[how]} r on {holds}"
            )
        else:
            sql = (
                "select coalesce(l.n, r.n), case when r.n is null then l.ts + l.w_l "
                "when l.n is null then r.ts + r.w_r else greatest(l.ts, r.ts) end, l.id, r.id "
                f"from {side.format('l', how)} {HOW_BY_SQL[how]} {side.format('r', how)} on {holds}"
            )
        tables = {"l": (sides[0], rows[0]), "r": (sides[1], rows[1])}
        columns = ("n", "how", "w_l", "w_r", "has_where")
        found |= asked_of_duckdb(sql, asked=(columns, asked), **tables)
    return [compared(found.get(n, [])) for n in range(len(cases))]


def compared(rows):
    """Rows that can be sorted; -1 where there is no event, or no time to compare."""
    return sorted(tuple(-1 if v is None else v for v in row) for row in rows)


def test_kinds_of_joins(check):
    def times(case, rows):
        """DuckDB is not asked for the times of semi and anti joins."""
        return [(-1, *r[1:]) for r in rows] if case.how in ("semi", "anti") else rows

    def engine(case):
        query, batch = batch_of(case, late="count")
        return compared(times(case, [row[:3] for row in given(kinds_fed(query, batch)[0])]))

    def oracle(case):
        ids = [
            (t, *(None if e is None else e.arrival for e in members))
            for t, *members in kinds_truth(case.oracle, case.arrivals)
        ]
        return compared(times(case, ids))

    check(
        lambda rng: kind_of(rng.randbytes(KIND_SIZE), complete=True),
        [engine, oracle],
        kinds_by_sql,
        TIMES * examples(0.25),
    )


# ---- aggregates over joined windows


class AggregateCase(NamedTuple):
    asked: Asked
    events: list


def aggregate_case(rng):
    """With all late events awaited, so that each window is told exactly at last."""
    m, step, now = rng.choice([2, 2, 3]), rng.randint(1, 8), rng.choice([0, -5, 10**12])
    length = step * rng.randint(1, 3) + rng.choice([0, 0, 1])
    asked = Asked(m, length, step, rng.randint(1, 20), None, 10**6, rng.random() < 0.5, emits=True)
    events = []
    for _ in range(rng.randint(0, 25)):
        now += rng.choice([0, 0, 1, 1, 2, 3, 9])
        ts = now - rng.choice([0, 0, 1, 2, 5, 12])
        values = rng.randrange(3), rng.randint(-3, 9)
        events.append(naive_aggregates.Event(rng.randrange(m), ts, now, *values))
    return AggregateCase(asked, events)


def aggregates_by_sql(cases):
    sql = """
        with inside as (
          select *, unnest(range(floor(ts / step)::bigint * step, ts - length, -step)) as start
          from events join asked using (n)
        ), met as (
          select n, start, k, by_key, count(*) filter (stream = 0) as first,
            count(*) filter (stream = 1)
              * case when m = 3 then count(*) filter (stream = 2) else 1 end as others,
            coalesce(sum(v) filter (stream = 0), 0) as total
          from inside group by n, start, k, by_key, m
        )
        select n, start, case when by_key then k end as own, sum(first * others)::bigint,
          sum(total * others)::bigint
        from met where first > 0 or not by_key group by n, start, own
    """
    asked = [(n, *c.asked[:3], c.asked.by_key) for n, c in enumerate(cases)]
    events = [(n, e.stream, e.ts, e.key, e.value) for n, c in enumerate(cases) for e in c.events]
    found = asked_of_duckdb(
        sql,
        asked=(("n", "m", "length", "step", "by_key"), asked),
        events=(("n", "stream", "ts", "k", "v"), events),
    )
    rows = [found[n] for n in range(len(cases))]
    return [sorted((s, () if k is None else (k,), *rest) for s, k, *rest in own) for own in rows]


def exact(rows):
    return sorted((*row[:-1],) for row in rows if row[-1])


def test_aggregates_over_joined_windows(check):
    def engine(case):
        query, tables = query_of(case.asked), tables_of(case.asked, case.events)
        return exact(rows_of(query.replay(tables, "arrival").results))

    def oracle(case):
        return exact(naive_aggregates.told(in_turn(case.asked, case.events), case.asked)[0])

    check(aggregate_case, [engine, oracle], aggregates_by_sql, TIMES * examples(0.25))


# ---- windows of one stream

FUNCTIONS = ("count", "sum", "min", "max", "avg", "stddev")


class WindowCase(NamedTuple):
    events: list
    length: int
    slide: int | None
    kind: str  # time, or tuples
    bounds: str
    distance: int  # of the heartbeat
    grouped: bool


def window_case(rng):
    length = rng.randint(1, 25)
    slide = rng.choice([None, length, rng.randint(1, 25)])
    events = [
        naive_windows.Event(
            rng.randint(0, 60), rng.choice([None, *range(-9, 10)]), rng.randrange(3)
        )
        for _ in range(rng.randint(1, 40))
    ]
    kind, bounds = rng.choice(["units", "tuples"]), rng.choice(["(]", "[)"])
    return WindowCase(events, length, slide, kind, bounds, rng.randint(0, 30), rng.random() < 0.5)


def windows_by_sql(cases):
    told = f"count(*) {{over}}, {', '.join(f'{f}(v) {{over}}' for f in FUNCTIONS)}"
    at_each = f"select n, ts, k, {told.format(over='over w')} from released join asked using (n)"
    sql = f"""
        {at_each} where kind = 'units' and slide is null
        window w as (partition by n, k order by ts * 1000 + i
                     range (length - 1) * 1000 + i preceding)
        union all
        {at_each} where kind = 'tuples'
        window w as (partition by n, k order by i rows length - 1 preceding),
               past as (partition by n, k order by i)
        qualify row_number() over past % coalesce(slide, 1) = 0
        union all
        select n, stop, k, {told.format(over="")} from (
          select *, unnest(
            case when bounds = '[)' then range((ts // slide + 1) * slide, ts + length + 1, slide)
            else range((ts + slide - 1) // slide * slide, ts + length, slide) end) as stop
          from released join asked using (n) where kind = 'units' and slide is not null
        ) group by n, stop, k
    """
    released = [
        (n, i, e.ts, e.group if c.grouped else 0, e.value)
        for n, c in enumerate(cases)
        for i, e in enumerate(c.events[j] for j in naive_windows.beats(c.events, c.distance)[0])
    ]
    found = asked_of_duckdb(
        sql,
        asked=(("n", "length", "slide", "kind", "bounds"),
               [(n, *c[1:5]) for n, c in enumerate(cases)]),
        released=(("n", "i", "ts", "k", "v"), released),
    )  # fmt: skip
    return [in_order(found[n]) for n in range(len(cases))]


def in_order(rows):
    """Rows of numbers that can be compared; a null is below all numbers."""
    return np.array(sorted(tuple(-99.0 if v is None else float(v) for v in row) for row in rows))


def test_windows_of_one_stream(check):
    def engine(case):
        bounds = {"bounds": case.bounds} if case.slide and case.kind == "units" else {}
        kind = sw.Sliding if case.kind == "units" else sw.Tuples
        query = window_query(
            {"window": kind(case.length, case.slide or None)} | bounds,
            sw.Slack(case.distance), case.grouped, FUNCTIONS,
        )  # fmt: skip
        found = query.replay(table_of(case.events, "double")).results
        columns = ("result_ts", *(["k"] if case.grouped else []), "n", *FUNCTIONS)
        rows = [tuple(row[c] for c in columns) for row in found.to_pylist()]
        return in_order(rows if case.grouped else [(r[0], 0, *r[1:]) for r in rows])

    def same(found, expected):
        return found.shape == expected.shape and np.allclose(found, expected, 1e-9, 1e-9)

    check(window_case, [engine], windows_by_sql, TIMES * examples(0.5), same)
