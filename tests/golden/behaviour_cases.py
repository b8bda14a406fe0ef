"""The cases whose behaviour is recorded, by name; `behaviour` runs them."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa

import slackwater as sw
from golden.behaviour import SMALL, Case, batch_of, columns, facts, flat, table
from helpers import Case as Plain
from lockstep import Lockstep, micro_batches
from naive import Event
from slackwater.engine.commands import Command
from slackwater.engine.factory import join_engine
from slackwater.engine.lateness_curve import lateness_curve
from slackwater.engine.replay import schemas_of
from slackwater.engine.report import columns as made_columns
from slackwater.engine.report import truth
from slackwater.engine.shard_report import _plain as _plain_report
from slackwater.engine.wait_curve import wait_curves
from slackwater.events.hashing import hash_rows
from slackwater.query.functions import avg, count, first, last, max, min, stddev, sum
from slackwater.query.goals import InputQuantile, Latency
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound
from slackwater.stats.sampling import Sampling

NAMES = "abcd"
FEW = (12, 7, 10)  # sizes of batches with which the log never becomes large
FAR = (0, 0, 0, 0, 5, 30, 90, 700)  # delays beyond what retention covers

SLOW = (0, 0, 0, 0, 0, 90, 400, 2_100)  # over seconds


def joined(m=2, windows=(60, 90, 50, 70), goal=None, on="k", **options):
    streams = [sw.Stream(n, "ts", w) for n, w in zip(NAMES[:m], windows, strict=False)]
    return sw.join(*streams, on=on, goal=goal or sw.Slack(20), **options)


def windowed(window, goal=None, **options):
    select = options.pop("select", SELECT)
    return sw.window(sw.Stream("a", "ts"), window=window, select=select, goal=goal, **options)


def aggregated(m=2, window=None, **options):
    select = options.pop("select", {"n": count(), "total": sum("a.v"), "mean": avg("b.f")})
    given = {"on": "k", "window": window or sw.Tumbling(50), "select": select, "deadline": 70}
    return sw.aggregate(*(sw.Stream(n, "ts") for n in NAMES[:m]), **given | options)


SELECT = {
    "n": count(), "known": count("v"), "total": sum("v"), "mean": avg("f"), "spread": stddev("v"),
    "least": min("v"), "most": max("f"), "begin": first("id"), "end": last("s"),
}  # fmt: skip

# ---- what happens on the way


def commands(engine, n):
    if n == 2:
        engine.set_slack(35)
    if n == 4:
        engine.finish(0)


def other_target(engine, n):
    if n == 2:
        engine.set_goal(replace(engine.query.goal, target=0.99))


def other_ratio(engine, n):
    if n == 2:
        engine.set_goal(replace(engine.query.goal, ratio=0.1))


def busy(engine, n):
    """Each batch takes 0.06 s of a machine, the first ones more."""
    engine.measured(0.2 if n < 3 else 0.06, engine.reorder.top)


def clock_of_others(engine, n):
    engine.tick(80 * n)


# ---- other columns


def as_text(made):
    return made.set_column(1, "k", pa.array([f"k{k}" for k in made["k"].to_pylist()]))


def as_bytes(made):
    return made.set_column(1, "k", pa.array([b"\x00\xff" * 7 + bytes([k]) for k in ks(made)]))


def as_floats(made):
    return made.set_column(1, "k", pa.array([k / 4 if k else -0.0 for k in ks(made)]))


def with_nulls(made):
    return made.set_column(1, "k", pa.array([k if i % 9 else None for i, k in enumerate(ks(made))]))


def as_decimals(made):
    return made.set_column(1, "k", pa.array([Decimal(k) / 4 for k in ks(made)]))


def as_dates(made):
    return made.set_column(1, "k", pa.array(ks(made), pa.int32()).cast(pa.date32()))


def as_coded(made):
    return made.set_column(1, "k", as_text(made)["k"].combine_chunks().dictionary_encode())


def as_unsigned(made):
    return made.set_column(1, "k", pa.array([2**63 + k for k in ks(made)], pa.uint64()))


def as_moments(made):
    return made.set_column(1, "k", pa.array(ks(made), pa.timestamp("s", "UTC")))


def as_truth(made):
    return made.set_column(1, "k", pa.array([k > 1 for k in ks(made)]))


def passing(made):
    """Keys that come and go."""
    return made.set_column(1, "k", pa.array([number // 3 for number in made["id"].to_pylist()]))


def passing_text(made):
    return as_text(passing(made))


def with_null_numbers(made):
    numbers = [x if i % 7 else None for i, x in enumerate(made["x"].to_pylist())]
    return made.set_column(2, "x", pa.array(numbers, pa.int64()))


def with_bad_times(made):
    ts = [t if i % 11 else None for i, t in enumerate(made["ts"].to_pylist())]
    return made.set_column(0, "ts", pa.array(ts, pa.int64()))


def as_timestamps(made):
    return made.set_column(0, "ts", made["ts"].cast(pa.timestamp("ms")))


def with_vectors(made):
    xs, ys = made["x"].to_pylist(), made["y"].to_pylist()
    vectors = [[x - 4, y - 4, 1] for x, y in zip(xs, ys, strict=True)]
    return made.append_column("w", pa.array(vectors, pa.list_(pa.float64())))


def ks(made):
    return made["k"].to_pylist()


# ---- joins

PAPERS = {"pipeline": "icde16"}
LEARNS = {"over": 300, "every": 50, "granularity": 5}
NEAR = "abs(a.x - b.x) <= 1"

JOINS = {
    "two streams": Case(joined(late="emit"), report=True),
    "count, no slack": Case(joined(goal=sw.NoSlack(), select="count"), seed=2, report=True),
    "largest delay": Case(joined(goal=sw.MaxSlack()), seed=3),
    "three streams": Case(joined(3, late="emit"), n=70, seed=4),
    "four streams": Case(joined(4, goal=sw.Slack(5)), n=36, seed=5, keys=3),
    "late are dropped": Case(joined(late="drop", goal=sw.NoSlack()), seed=6),
    "papers": Case(joined(**PAPERS, late="emit"), seed=7, report=True),
    "papers, three streams": Case(joined(3, **PAPERS), n=70, seed=8),
    "papers, overdue now": Case(joined(**PAPERS, overdue="now", goal=sw.Slack(8)), seed=9),
    "papers, late probe": Case(joined(**PAPERS, late_probe="window-end", goal=sw.NoSlack())),
    "papers, largest delay": Case(joined(**PAPERS, goal=sw.MaxSlack()), seed=10),
    "not synchronized": Case(joined(goal=sw.NoSlack(synchronize=False)), seed=11),
    "condition": Case(joined(on=None, where=NEAR, late="emit"), seed=12, n=80),
    "condition and key": Case(joined(3, where="a.x + b.y > c.x"), seed=13, n=60),
    "function": Case(joined(where=lambda a, b: a.x <= b.y), seed=14, n=70),
    "vectors": Case(
        sw.join(
            *(sw.Stream(n, "ts", 40, vectors={"w": 3}) for n in "ab"),
            where="cosine(a.w, b.w) > 0.6 and l2(a.w, b.w) < 4 and dot(a.w, b.w) > 2",
            goal=sw.Slack(10),
        ),
        n=50,
        columns=with_vectors,
    ),
    "composite key": Case(joined(on=["k", "x"], late="emit"), seed=15),
    "star": Case(joined(3, on=["a.k = b.k", "a.x = c.y"]), seed=16, n=70),
    "no key": Case(joined(on=None, windows=(15, 25)), seed=17, n=60),
    "slide": Case(joined(slide=20, bounds="[)"), seed=18),
    "open start": Case(joined(bounds="(]", late="emit"), seed=19),
    "tuple windows": Case(joined(windows=(sw.Tuples(5), 60)), seed=20, report=True),
    "tuple windows, three": Case(joined(3, windows=(sw.Tuples(4), sw.Tuples(6), 40)), n=60),
    "selected columns": Case(joined(select={"k": "a.k", "gap": "a.x - b.y", "t": "b.ts"})),
    "short retention": Case(joined(retention=30, goal=sw.NoSlack()), seed=21, delays=FAR),
    "long retention": Case(joined(retention=900, goal=sw.NoSlack()), seed=21, delays=FAR),
    "longer sample": Case(joined(windows=(15, 20), goal=sw.NoSlack()), seed=22, delays=FAR),
    "longer sample, three": Case(
        joined(3, windows=(15, 20, 25), goal=sw.NoSlack()), seed=23, delays=FAR, n=90, keys=2
    ),
    "longer sample, all": Case(
        joined(goal=sw.NoSlack(), windows=(10, 10)), delays=FAR, sampling=Sampling(1.0, 4)
    ),
    "retention learns": Case(
        joined(windows=(300, 400), goal=sw.Slack(50)), step=60, delays=SLOW, n=170
    ),
    "retention learns, three": Case(
        joined(3, windows=(300, 400, 200), late="emit"), step=90, delays=SLOW, n=90, seed=2
    ),
    "retention learns, papers": Case(
        joined(windows=(300, 400), **PAPERS), step=60, delays=SLOW, n=150, seed=3
    ),
    "commands": Case(joined(late="emit"), seed=24, each=commands),
    "idle": Case(joined(), seed=25, gap=(1, 300, 800), options={"idle_after": 80}),
    "idle, papers": Case(joined(**PAPERS), seed=26, gap=(0, 200, 700), options={"idle_after": 60}),
    "silent stream": Case(joined(3), seed=27, n=60, gap=(2, 100, 500)),
    "ticks": Case(joined(), seed=28, ticks=True, options={"common_clock": True}),
    "ticks, papers": Case(joined(**PAPERS), seed=29, ticks=True, options={"common_clock": True}),
    "text keys": Case(joined(), seed=30, columns=as_text, keys=30),
    "bytes keys": Case(joined(), seed=31, columns=as_bytes, keys=30),
    "float keys": Case(joined(), seed=32, columns=as_floats),
    "null keys": Case(joined(), seed=33, columns=with_nulls),
    "decimal keys": Case(joined(), seed=51, columns=as_decimals, n=60),
    "date keys": Case(joined(), seed=52, columns=as_dates, n=60),
    "coded keys": Case(joined(late="emit"), seed=53, columns=as_coded, keys=30),
    "unsigned keys": Case(joined(), seed=54, columns=as_unsigned, n=60),
    "moments as keys": Case(joined(), seed=55, columns=as_moments, n=60),
    "truth as key": Case(joined(windows=(20, 30)), seed=56, columns=as_truth, n=60),
    "three key columns": Case(joined(on=["k", "x", "s"], windows=(300, 300)), seed=57, n=150),
    "text and number as key": Case(joined(on=["s", "f"], windows=(300, 300)), seed=58, n=150),
    "star by two columns": Case(
        joined(3, on=["a.k = b.k", "a.s = c.s", "a.x = c.y"], windows=(200, 200, 200)), n=90
    ),
    "chain, count": Case(joined(3, on=["a.k = b.k", "b.x = c.y"], select="count"), n=80, seed=59),
    "four streams, count": Case(joined(4, select="count"), n=60, seed=60),
    "keys come and go": Case(joined(late="emit"), seed=62, columns=passing, sizes=FEW),
    "keys come and go, text": Case(joined(late="emit"), seed=63, columns=passing_text, sizes=FEW),
    "keys come and go, papers": Case(joined(**PAPERS), seed=64, columns=passing, sizes=FEW),
    "keys come and go, two columns": Case(
        joined(on=["k", "s", "x"]), seed=65, columns=passing, sizes=FEW
    ),
    "keys come and go, longer sample": Case(
        joined(3, windows=(15, 20, 25), goal=sw.NoSlack()),
        seed=66,
        delays=FAR,
        columns=passing,
        sizes=FEW,
    ),
    "keys come and go, count": Case(joined(3, select="count"), seed=67, columns=passing, sizes=FEW),
    "null numbers": Case(joined(where="a.x < b.x or b.x is null"), columns=with_null_numbers),
    "null numbers, needed": Case(joined(where="a.x < b.x"), columns=with_null_numbers, seed=61),
    "text condition": Case(
        joined(on=None, windows=(30, 20), where="a.s = b.s and length(a.s) > 5 or a.x = b.y"), n=60
    ),
    "interval": Case(
        sw.join(
            *(sw.Stream(n, "ts") for n in "ab"),
            on="k",
            between=(-30, 45),
            goal=sw.Slack(20),
            late="emit",
        )
    ),
    "interval, later": Case(
        sw.join(
            *(sw.Stream(n, "ts") for n in "ab"),
            on="k",
            between=(5, 60),
            goal=sw.Slack(20),
            late="emit",
        )
    ),
    "bad times": Case(joined(), seed=34, columns=with_bad_times, n=60),
    "timestamps": Case(joined(windows=("60 ms", "50 ms")), seed=35, columns=as_timestamps),
    "many keys": Case(joined(windows=(200, 200)), seed=36, keys=60, n=140),
}

GOALS = {
    "quantile": Case(joined(goal=InputQuantile(0.9, every=50, granularity=5))),
    "quantile, papers": Case(joined(goal=InputQuantile(0.8, every=40, granularity=7), **PAPERS)),
    "latency": Case(joined(goal=Latency(40, every=50, granularity=5)), seed=2),
    "latency, papers": Case(joined(goal=Latency(30, every=50, granularity=4), **PAPERS), seed=3),
    **{
        f"recall {model}": Case(
            joined(goal=sw.Recall(0.9, model=model, **LEARNS), **PAPERS), seed=4, n=140
        )
        for model in ("measured", "eqsel", "noneqsel", "late-degree", "pd")
    },
    **{
        f"recall {model}, three streams": Case(
            joined(3, goal=sw.Recall(0.8, model=model, **LEARNS), **PAPERS), seed=5, n=70
        )
        for model in ("measured", "noneqsel")
    },
    "recall measured, clocked": Case(
        joined(goal=sw.Recall(0.85, model="measured", at_least=10, **LEARNS)), seed=6, delays=FAR
    ),
    "recall measured, tuples": Case(
        joined(windows=(sw.Tuples(4), 40), goal=sw.Recall(0.9, model="measured", **LEARNS)), seed=7
    ),
    "recall late-degree, overall": Case(
        joined(goal=sw.Recall(0.9, model="late-degree", overall=True, decay=0.5, **LEARNS)), seed=8
    ),
    "recall pd, overall": Case(
        joined(goal=sw.Recall(0.9, model="pd", overall=True, gains=(90, 40), **LEARNS)), seed=9
    ),
    "recall pd, down": Case(
        joined(goal=sw.Recall(0.5, model="pd", gains=(900, 700), **LEARNS)), seed=10
    ),
    "recall measured, new target": Case(
        joined(goal=sw.Recall(0.7, model="measured", **LEARNS)), seed=11, each=other_target
    ),
}

DEFAULT = {
    "default recall": Case(joined(goal=sw.Recall(0.9, over=300, every=50)), n=140),
    "default recall, three streams": Case(
        joined(3, goal=sw.Recall(0.8, over=200, every=40)), n=60, seed=2
    ),
    "default recall, new target": Case(
        joined(goal=sw.Recall(0.7, over=300, every=50)), seed=3, each=other_target
    ),
    "default recall, floor": Case(
        joined(goal=sw.Recall(0.8, over=300, every=60, at_least=25)), seed=4, delays=FAR
    ),
}

# ---- joins of other kinds, and eager ones

EVERY_KIND = ("left", "right", "full", "semi", "anti", "asof", "inner")


def kind(how, emit="ordered", **options):
    """A join of two streams; its late rows are shown where there can be any."""
    is_asof, shows_late = how == "asof", emit == "ordered" or how not in ("inner", "semi")
    given = {"late": "emit" if shows_late else "count", "tolerance": 70 if is_asof else None}
    windows = (None, None) if is_asof else options.pop("windows", (40, 25))
    ids = options.pop("ids", ())
    return sw.join(
        *(sw.Stream(n, "ts", w, id=ids) for n, w in zip("ab", windows, strict=True)),
        how=how,
        emit=emit,
        **{"on": "k", "goal": sw.Slack(20)} | given | options,
    )


def sparse_keys(made):
    """Many keys, so that rows without partner are not rare, and some without any."""
    keys = [(7 * k + x) % 9 if i % 10 else None for i, (k, x) in enumerate(key_and_x(made))]
    return made.set_column(1, "k", pa.array(keys, pa.int64()))


def key_and_x(made):
    return zip(ks(made), made["x"].to_pylist(), strict=True)


def keyed(query, **options):
    return Case(query, **{"columns": sparse_keys, "keys": 9, "n": 90} | options)


RIGHT = {"over": 200, "every": 40}

KINDS = {
    **{
        f"{how}, {emit}": keyed(kind(how, emit), seed=n, report=how in ("left", "full"))
        for n, how in enumerate(EVERY_KIND)
        for emit in ("ordered", "eager")
        if (how, emit) != ("inner", "ordered")
    },
    **{
        f"{how}, {emit}, recall": keyed(
            kind(how, emit, goal=sw.Recall(0.8, **RIGHT)), seed=10 + n, n=130, each=other_target
        )
        for n, how in enumerate(EVERY_KIND)
        for emit in ("ordered", "eager")
        if (how, emit) != ("inner", "ordered")
    },
    **{
        f"{how}, {emit}, right rows": keyed(
            kind(how, emit, goal=sw.Recall(0.8, unmatched=0.9, **RIGHT)), seed=20, n=130
        )
        for how in ("left", "full")
        for emit in ("ordered", "eager")
    },
    "left, no slack": keyed(kind("left", goal=sw.NoSlack()), seed=30),
    "anti, largest delay": keyed(kind("anti", goal=sw.MaxSlack()), seed=31, delays=FAR),
    "full, short retention": keyed(
        kind("full", "eager", goal=sw.Slack(5), retention=10), seed=32, delays=FAR
    ),
    "semi, short retention": keyed(
        kind("semi", goal=sw.NoSlack(), retention=0), seed=33, delays=FAR, keys=3
    ),
    "left, condition": keyed(kind("left", where="a.x + 2 > b.y"), seed=34, columns=None),
    "anti, condition": keyed(kind("anti", on=None, where=NEAR, windows=(9, 15)), columns=None),
    "semi, eager, condition": keyed(kind("semi", "eager", where="a.x >= b.y"), columns=None),
    "asof, forward": keyed(kind("asof", direction="forward"), seed=35),
    "asof, nearest": keyed(kind("asof", direction="nearest"), seed=36),
    "asof, nearest, eager": keyed(
        kind("asof", "eager", direction="nearest", ids="id", goal=sw.Slack(3)), seed=37, keys=2
    ),
    "asof, condition": keyed(kind("asof", where="a.x >= b.y"), seed=38, columns=None),
    "left, ids": keyed(kind("left", ids="id", result_id=True), seed=39),
    "full, eager, ids": keyed(kind("full", "eager", result_id=True), seed=40),
    "ids": Case(joined(result_id=True, late="emit"), seed=41, n=50),
    "left, idle": keyed(kind("left"), seed=42, gap=(1, 300, 700), options={"idle_after": 60}),
    "semi, idle": keyed(kind("semi"), seed=43, gap=(0, 300, 700), options={"idle_after": 60}),
    "left, commands": keyed(kind("left"), seed=44, each=commands),
    "full, eager, commands": keyed(kind("full", "eager"), seed=45, each=commands),
    "semi, commands": keyed(kind("semi"), seed=46, each=commands),
    "asof, commands": keyed(kind("asof"), seed=47, each=commands),
    "right, selected": keyed(
        kind("right", select={"k": "b.k", "x": "a.x", "gap": "b.y - a.x", "t": "a.ts"}), seed=48
    ),
    "anti, text keys": keyed(kind("anti"), seed=49, columns=as_text, keys=30),
    "left, many keys": keyed(kind("left", windows=(200, 100)), keys=60, columns=None, n=140),
    "left, keys come and go": keyed(kind("left"), seed=68, columns=passing, n=120, sizes=FEW),
    "full, eager, keys come and go": keyed(
        kind("full", "eager", goal=sw.Recall(0.8, **RIGHT)),
        seed=69,
        columns=passing_text,
        n=120,
        sizes=FEW,
    ),
    "three at once": Case(joined(3, emit="eager"), seed=70, report=True),
    "three at once, counted": Case(joined(3, emit="eager", select="count"), seed=71),
    "three at once, recall": Case(
        joined(3, emit="eager", goal=sw.Recall(0.8, **RIGHT)), seed=72, each=other_target
    ),
    "three at once, counted, recall": Case(
        joined(3, emit="eager", select="count", goal=sw.Recall(0.8, **RIGHT)), seed=72
    ),
    "four at once, chain": Case(
        joined(4, on=["a.k = b.k", "b.x = c.k", "c.y = d.x"], emit="eager", retention=30),
        seed=73,
        delays=FAR,
        keys=9,
    ),
    "three at once, condition": Case(
        joined(3, on=None, where="a.x + b.y = c.x", emit="eager"), n=60, seed=74
    ),
    "three at once, commands": Case(joined(3, emit="eager"), seed=75, each=commands),
    "three at once, idle": Case(
        joined(3, emit="eager"), seed=76, gap=(1, 300, 700), options={"idle_after": 60}
    ),
    "three at once, ids": Case(joined(3, emit="eager", result_id=True), seed=77, n=60),
    "three at once, keys come and go": Case(
        joined(3, emit="eager", goal=sw.Recall(0.8, **RIGHT)),
        seed=78,
        columns=passing_text,
        n=120,
        sizes=FEW,
    ),
    "asof, keys come and go": keyed(
        kind("asof", ids="x"), seed=70, columns=passing, n=120, sizes=FEW
    ),
    "left, bad times": keyed(kind("left"), seed=50, columns=with_bad_times, n=60),
}

# ---- load shedding

SHEDS = {"windows": (150, 120), "goal": sw.Slack(10)}


def shedding(kind, **options):
    given = SHEDS | options
    m = given.pop("m", 2)
    return joined(m, shed=kind, **given)


def harvest(**options):
    return sw.Harvest(**{"every": 100, "sample": 0.25, "buffer": 80, "budget": 500.0} | options)


SHEDDING = {
    "harvest": Case(shedding(harvest())),
    "harvest, rates": Case(shedding(harvest(throttle="rates", boost=1.5)), seed=2),
    "harvest, backlog": Case(shedding(harvest(throttle="backlog")), seed=3),
    "harvest, per stream": Case(
        shedding(harvest(scores="per-stream"), m=3, windows=(90, 80, 70)), n=60
    ),
    "harvest, three streams": Case(
        shedding(harvest(budget=300.0, basic_window=20), m=3, windows=(90, 80, 70)), n=70, seed=4
    ),
    "harvest, four streams": Case(
        shedding(harvest(budget=900.0), m=4, windows=(60, 60, 60, 60)), n=36, seed=5
    ),
    "harvest, fraction": Case(shedding(harvest(fraction=0.4)), seed=6),
    "harvest, memory": Case(shedding(harvest(memory=2_000, fraction=0.7)), seed=7),
    "harvest, sorted windows": Case(
        shedding(harvest(fraction=0.5), on=None, where=NEAR, windows=(60, 50)), n=70, seed=8
    ),
    "harvest, not sorted": Case(
        shedding(harvest(fraction=0.5, index="none"), on=None, where=NEAR, windows=(60, 50)), n=70
    ),
    "harvest, recall": Case(
        shedding(harvest(), goal=sw.Recall(0.8, model="measured", **LEARNS)), seed=9
    ),
    **{
        f"harvest, search {search}": Case(
            shedding(
                harvest(search=search, fraction=0.3, metric=metric, basic_window=30),
                m=3,
                windows=(90, 60, 60),
            ),
            n=50,
            seed=10,
        )
        for search, metric in [
            ("double-sided", "output"),
            ("greedy", "output per cost"),
            ("reverse", "gain per cost"),
            ("exhaustive", "output"),
        ]
    },
    "harvest, measured load": Case(shedding(harvest(budget=None)), seed=11, each=busy),
    "random drop": Case(
        shedding(sw.RandomDrop(budget=300.0, every=100, sample=0.2, buffer=100)), seed=12
    ),
    "random drop, three streams": Case(
        shedding(sw.RandomDrop(fraction=0.4, every=60, sample=0.3), m=3, windows=(60, 50, 40)), n=60
    ),
    "harvest, keys come and go": Case(
        shedding(harvest(fraction=0.6)), columns=passing, sizes=FEW, seed=15
    ),
    "tail drop": Case(shedding(sw.TailDrop(budget=300.0, every=100, buffer=60)), seed=13),
    "tail drop, measured load": Case(
        shedding(sw.TailDrop(every=100, buffer=60)), seed=14, each=busy
    ),
}

# ---- windows of one stream

PERIOD = {"every": sw.Tuples(40), "recent": sw.Tuples(10)}

WINDOWS = {
    "tumbling": Case(windowed(sw.Tumbling(70)), n=220),
    "sliding": Case(windowed(sw.Sliding(90, 30), sw.Slack(20)), n=200, seed=2),
    "sliding, gaps": Case(windowed(sw.Sliding(30, 80), sw.Slack(20)), n=200, seed=3),
    "sliding with each event": Case(windowed(sw.Sliding(60), sw.MaxSlack()), n=150, seed=4),
    "last tuples": Case(windowed(sw.Tuples(6), sw.Slack(30)), n=150, seed=5),
    "last tuples, slide": Case(windowed(sw.Tuples(7, slide=3), sw.NoSlack()), n=180, seed=6),
    "groups": Case(windowed(sw.Sliding(80, 40), sw.Slack(15), by=["k", "s"]), n=180, seed=7),
    "groups of tuples": Case(
        windowed(sw.Tuples(4, slide=2), sw.Slack(40), by="k", select={"n": count(), "m": avg("v")}),
        n=180,
        seed=8,
    ),
    "groups, each event": Case(windowed(sw.Sliding(60), sw.Slack(15), by="k"), n=120, seed=9),
    "open end": Case(windowed(sw.Sliding(60, 20), sw.Slack(15), bounds="[)"), n=150, seed=10),
    "groups come and go": Case(
        windowed(sw.Sliding(60, 20), sw.Slack(15), by="id"), n=150, sizes=FEW
    ),
    "groups come and go, each event": Case(
        windowed(sw.Sliding(60), sw.Slack(15), by=["s", "k"]),
        n=150,
        columns=passing_text,
    ),
    "groups come and go, tuples": Case(
        windowed(sw.Tuples(2), sw.Slack(15), by="k"), n=150, columns=passing, sizes=FEW
    ),
    "own slack": Case(windowed(sw.Tumbling(50), sw.Slack(5)), seed=11, n=150, each=commands),
    **{
        f"heartbeat {name}": Case(
            windowed(sw.Sliding(60, 20), DropRatio(0.0, name, **PERIOD)), n=220, seed=12
        )
        for name in ("largest", "mean", "max-delay", "adaptive")
    },
    **{
        f"heartbeat {name}, ratio": Case(
            windowed(sw.Tumbling(40), DropRatio(0.05, name, **PERIOD)), n=260, seed=13
        )
        for name in ("largest", "mean")
    },
    "new ratio": Case(
        windowed(sw.Tumbling(40), DropRatio(0.02, **PERIOD)), n=220, seed=14, each=other_ratio
    ),
    "error bound": Case(windowed(sw.Sliding(80, 40), ErrorBound(0.1, **PERIOD)), n=240, seed=15),
    "error bound, each event": Case(
        windowed(sw.Sliding(50), ErrorBound(0.05, 0.9, **PERIOD), select={"n": count()}), n=200
    ),
    "error bound, open end": Case(
        windowed(
            sw.Tumbling(60), ErrorBound(0.2, 0.8, **PERIOD), select={"m": avg("v"), "s": sum("f")}
        ),
        n=220,
        seed=16,
    ),
}

# ---- aggregates with a deadline

AGGREGATES = {
    "aggregates": Case(aggregated()),
    "aggregates, two groups": Case(
        aggregated(by=["a.s", "a.x"], compensate=True, late="emit"), n=60, seed=12
    ),
    "aggregates, gap": Case(aggregated(late="emit"), seed=13, gap=(1, 300, 700)),
    "aggregates, nulls": Case(aggregated(late="emit"), seed=14, columns=with_nulls, n=60),
    "aggregates, emit": Case(aggregated(late="emit"), seed=2),
    "aggregates, sliding": Case(aggregated(window=sw.Sliding(60, 20), late="emit"), n=70, seed=3),
    "aggregates, groups": Case(aggregated(by="a.s", compensate=True, late="emit"), n=80, seed=4),
    "aggregates, by key": Case(aggregated(by="k", compensate="aema"), n=80, seed=5),
    "aggregates, slack": Case(
        aggregated(deadline=Deadline(20, "end", slack=15), compensate=True), seed=6
    ),
    "aggregates, retention": Case(aggregated(retention=60, late="emit"), seed=7),
    "aggregates, three streams": Case(
        aggregated(3, compensate=True, select={"n": count(), "t": sum("c.v")}), n=60, seed=8
    ),
    "aggregates, partial": Case(
        aggregated(compensate=True),
        n=60,
        seed=9,
        options={"common_clock": True},
        each=clock_of_others,
    ),
    "aggregates, delays far": Case(
        aggregated(compensate=True, confidence=0.8), seed=10, delays=FAR
    ),
    **{
        f"aggregates, {kind}": Case(
            aggregated(compensate=kind, late="emit", window=sw.Tumbling(30)), n=90, seed=11
        )
        for kind in ("delays", "aema", "svi", "mlp", "mlp-elbo")
    },
}

# ---- other answers


def curve(case, over, every):
    """What every fixed slack would have given."""
    batch, _ = batch_of(case)
    known = made_columns(truth(case.query, batch)[0].made)[:2]
    return of_curve(lateness_curve(case.query, batch, known, over, every))


def of_curve(found):
    answers = {
        "late": [column.tolist() for column in found.late],
        "intervals": [column.tolist() for column in found.intervals],
        "on time": [column.tolist() for column in found.on_time()],
        "slacks": found.slacks().tolist(),
        "width": [found.width, found.over, found.every],
    }
    told = flat(answers)
    for slack in (0, 5, 17, 40, 128, 700):
        told |= columns(f"series {slack}", found.series(slack))
        told |= flat(
            {
                f"recall {slack}": found.recall(slack),
                f"phi {slack}": found.phi(slack, 0.9),
                f"latency {slack}": found.average_latency(slack),
            }
        )
    for target, wanted in [(0.5, 0.5), (0.8, 0.9), (0.9, 0.97), (1.0, 1.0)]:
        told[f"smallest slack {target} {wanted}"] = found.smallest_slack(target, wanted)
    return told


def waits(case, over, every):
    """What every fixed wait would have given for the rows of a kind of join."""
    batch, _ = batch_of(case)
    found = wait_curves(case.query, batch, over, every)
    told = flat({"partner": found.partner, "has partner": [*found.has_partner]})
    for name, one in (("kept", found.kept), ("alone", found.alone)):
        if one is not None:
            told |= {f"{name}, {key}": value for key, value in of_curve(one).items()}
    return told


class Shards(Lockstep):
    """Shards of a join of any kind."""

    def new(self, shard, batch):
        options = {"limits": SMALL, **{k: v for k, v in self.options.items() if k != "limits"}}
        if self.query.is_matched:
            options.pop("common_clock")
        return join_engine(self.query, schemas_of(self.query, batch), **options)


def shared(n, query, commands=None, idle_after=None, sizes=(41, 23, 64), seed=1):
    """What shards that share K report, how far they come and what they give out."""
    arriving = []
    for s in range(len(query.names)):
        made = table(Case(query, n=75, seed=seed, keys=7), s)
        arriving += [
            (at, ts, s, (k, x, y))
            for at, ts, k, x, y in zip(
                *(made[c].to_pylist() for c in ("arrival", "ts", "k", "x", "y")), strict=True
            )
            if idle_after is None or s == 0 or not 300 <= ts < 600
        ]
    events = [Event(ts, s, i, v) for i, (_, ts, s, v) in enumerate(sorted(arriving))]
    case = Plain(events, [1] * len(query.names), pipeline="clocked")
    lockstep = Shards(query, case, n, restart=True, idle_after=idle_after)
    told = {}
    for number, own in enumerate(micro_batches(events, sizes)):
        given = len(lockstep.results)
        lockstep.run(own, (commands or {}).get(number, ()))
        new = lockstep.results[given:]
        told[f"batch {number}"] = [*lockstep.reached, *lockstep.slacks, len(new)]
        told |= flat({f"rows {number}": [[ts, *of] for ts, of in new]})
        told |= flat({f"reports {number}": [
            [r.slack, r.sync_time, [[n, *_plain_report(one)] for n, one in own.items()]]
            for r in lockstep.reports
            for own in [r.intervals[0] if r.intervals else {}]
        ]})  # fmt: skip
    lockstep.run([], [Command(flush=True)])
    lost = [engine.metrics().lost for engine in lockstep.engines]
    return told | flat({"results": len(lockstep.results), "lost": lost})


BY_COMMAND = {
    1: [Command(slack=60)],
    2: [Command(recall=0.5, finished=("a",))],
    3: [Command(flush=True)],
}
SHARDS = {
    "shards, slack": (2, joined(goal=sw.Slack(20))),
    "shards, largest": (3, joined(goal=sw.MaxSlack())),
    "shards, recall": (2, joined(goal=sw.Recall(0.8, over=200, every=40))),
    "shards, recall, four": (4, joined(3, goal=sw.Recall(0.9, over=200, every=40))),
    "shards, measured": (2, joined(goal=sw.Recall(0.9, model="measured", **LEARNS))),
    "shards, latency": (2, joined(goal=Latency(60, every=50, granularity=5))),
    "shards, left": (2, kind("left", goal=sw.Recall(0.8, **RIGHT), late="count")),
    "shards, left, right rows": (
        2, kind("left", goal=sw.Recall(0.8, unmatched=0.9, **RIGHT), late="count")
    ),
    "shards, full, eager": (2, kind("full", "eager", goal=sw.Recall(0.8, **RIGHT), late="count")),
    "shards, three at once": (3, joined(3, emit="eager", goal=sw.Recall(0.8, **RIGHT))),
    "shards, asof": (3, kind("asof", goal=sw.Recall(0.8, **RIGHT), late="count")),
    "shards, left, slack": (2, kind("left", late="count")),
}  # fmt: skip


def hashes(change=None, names=("k",)):
    """Hashes decide who meets whom and who is sampled: they must not change by accident."""
    made = table(Case(joined(), n=12), 0)
    made = made if change is None else change(made)
    return {"hashes": [str(h) for h in hash_rows([made[n] for n in names]).tolist()]}


def arrays_of_hashes():
    kinds = {
        "bool": pa.array([True, None, False]),
        "date": pa.array([3, None, 7], pa.date32()),
        "list": pa.array([[1, 2], None, []]),
        "fixed": pa.array([[1.0, 2.0], None, [3.0, -0.0]], pa.list_(pa.float64(), 2)),
        "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "a long text of words"}]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "words": pa.array(["a", None, "b"]).dictionary_encode(),
        "none": pa.nulls(3),
        "small": pa.array(np.array([1, 2, 3], np.int8)),
        "long": pa.array(["x" * n for n in (7, 8, 9, 16, 17)]),
    }
    return {kind: [str(h) for h in hash_rows([a]).tolist()] for kind, a in kinds.items()}


OTHERS = {
    **{name: partial(shared, n, query) for name, (n, query) in SHARDS.items()},
    **{
        f"{name}, commands": partial(shared, n, query, BY_COMMAND, seed=2)
        for name, (n, query) in SHARDS.items()
        if name not in ("shards, latency", "shards, recall, four", "shards, left")
    },
    **{
        f"{name}, idle": partial(shared, n, query, None, 60, seed=3)
        for name, (n, query) in SHARDS.items()
        if name in ("shards, largest", "shards, recall", "shards, left", "shards, asof")
    },
    "curve": partial(curve, Case(joined(goal=sw.Slack(0), select="count")), 200, 50),
    "curve, slide": partial(
        curve, Case(joined(goal=sw.Slack(0), slide=20, bounds="[)"), seed=2), 100, 30
    ),
    "curve, three streams": partial(curve, Case(joined(3), n=50, seed=3, delays=FAR), 120, 40),
    **{
        f"waits, {how}, {emit}": partial(waits, keyed(kind(how, emit), seed=60, n=60), 200, 50)
        for how in EVERY_KIND
        for emit in ("ordered", "eager")
        if (how, emit) != ("inner", "ordered")
    },
    "waits, three at once": partial(
        waits, Case(joined(3, emit="eager", goal=sw.Slack(0)), n=60, seed=62), 150, 50
    ),
    "waits, asof, nearest": partial(
        waits, keyed(kind("asof", direction="nearest"), seed=61, n=60), 150, 50
    ),
    "hashes of numbers": partial(hashes, None, ("k", "x", "f")),
    "hashes of text": partial(hashes, as_text, ("k", "s")),
    "hashes of bytes": partial(hashes, as_bytes),
    "hashes of other types": arrays_of_hashes,
}

CASES = JOINS | KINDS | GOALS | SHEDDING | WINDOWS | AGGREGATES | DEFAULT
ALL = {name: partial(facts, case) for name, case in CASES.items()} | OTHERS
