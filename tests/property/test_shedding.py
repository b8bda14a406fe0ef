"""Load shedding leaves out what it says it does, and nothing else."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import answers, emitted, engine_query, engine_run, fed, plain, schemas, tables
from naive import join, reorder
from property.strategies import cases, tried
from slackwater.engine.join import JoinEngine
from slackwater.engine.replay import recorded
from slackwater.kernels import shed as places

CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)
BITS = st.binary(min_size=25, max_size=25)  # of each pair of streams, which ages are looked at
PLENTY = 1e18  # comparisons per second


def basic_window(case):
    return max(1, min(case.windows) // 3)


def chosen_ages(case, bits):
    """Which basic windows of `s` an event of `i` looks at, as (i, s) -> ages."""
    b = basic_window(case)
    lengths = [w - (case.bounds == "(]") for w in case.windows]
    n = [max(1, -(-length // b)) for length in lengths]
    pairs = [(i, s) for i in range(case.m) for s in range(case.m) if i != s]
    return {
        (i, s): [k for k in range(n[s]) if bits[5 * i + s] >> (k % 8) & 1 or bits[5 * i + s] < 64]
        for i, s in pairs
    }


def harvest(case, ages, **options):
    """The engine looks at these ages only, and learns nothing meanwhile."""
    shed = sw.Harvest(budget=PLENTY, every=10**9, basic_window=basic_window(case))
    query = engine_query(case._replace(late_probe="none"), shed=shed, **options)
    batch, _ = recorded(query, tables(case), "arr")
    engine = JoinEngine(query, schemas(query, batch))
    shedder = engine.shedder
    shedder.shed.number[places.SAMPLE] = 0.0
    shedder.shed.ctl[places.SHEDDING] = 1
    for (i, s), looked_at in ages.items():
        shedder.segments.choose(i, s, looked_at)
    return engine, answers(engine, [engine.feed(batch), engine.flush()])


def oracle(case, ages):
    """Results whose other members are in the chosen ages, seen from the one that completes them."""
    b = basic_window(case)
    lengths = [w - (case.bounds == "(]") for w in case.windows]
    n = [max(1, -(-length // b)) for length in lengths]
    order = [e for left, *_ in reorder(case.valid, **case.disorder) for e in left]
    place = {e: number for number, e in enumerate(order)}
    results, _ = join(order, *case.query)
    for r in results:
        last = max(r, key=place.get)
        others = [e for e in r if e != last]
        if all(
            min((last.ts - e.ts) // b, n[e.stream] - 1) in ages[last.stream, e.stream]
            for e in others
        ):
            yield r


@pytest.mark.differential
@tried(0.5)
@given(cases(), BITS)
def test_only_the_chosen_basic_windows_are_harvested(case, bits):
    ages = chosen_ages(case, bits)
    case = case._replace(pipeline="icde16", late_probe="none")
    _, (table, *_) = harvest(case, ages)
    found = [table[f"{name}_id"].to_pylist() for name in "abcde"[: case.m]]
    got = sorted(zip(table["result_ts"].to_pylist(), zip(*found, strict=True), strict=True))
    assert got == plain(oracle(case, ages))


@tried(0.5)
@given(cases(), BITS)
def test_counting_harvests_what_materialising_does(case, bits):
    ages = chosen_ages(case, bits)
    _, (_, made, *_) = harvest(case, ages)
    _, (_, counted, *_) = harvest(case, ages, select="count")
    assert counted == made


@tried(0.25)
@given(cases(kinds=("cross",), options=False, slack="complete"), BITS)
def test_every_comparison_is_charged(case, bits):
    """In a cross join each step is entered by every combination of the steps before it."""
    ages, b = chosen_ages(case, bits), basic_window(case)
    engine, _ = harvest(case, ages)
    n = [max(1, -(-w // b)) for w in case.windows]
    order = [e for left, *_ in reorder(case.valid, **case.disorder) for e in left]
    expected = 0
    for number, e in enumerate(order):
        seen = [
            [
                x
                for x in order[:number]
                if x.stream == s
                and e.ts - x.ts <= case.windows[s]
                and min((e.ts - x.ts) // b, n[s] - 1) in ages[e.stream, s]
            ]
            for s in engine.shedder.orders[e.stream]
        ]
        expected += sum(prod(map(len, seen[: step + 1])) for step in range(len(seen)))
    assert engine.shedder.shed.ctl[places.COMPARED] == expected


@tried(0.25)
@given(cases())
def test_with_cpu_to_spare_nothing_is_different(case):
    """But for the order of results of the same time: the join may have found a better one."""
    case = case._replace(pipeline="icde16", late_probe="none")
    plain_run = engine_run(case, late="emit")
    run = engine_run(case, late="emit", shed=sw.Harvest(budget=PLENTY, every=5, sample=0.5))
    assert sorted(emitted(run, case.m)) == sorted(emitted(plain_run, case.m))
    assert run.produced == plain_run.produced
    assert run.late == plain_run.late
    assert run.metrics.streams == plain_run.metrics.streams
    assert (run.metrics.produced, run.metrics.lost) == (
        plain_run.metrics.produced,
        plain_run.metrics.lost,
    )
    assert run.metrics.shedding.missed == 0


def overloaded(kind, budget):
    """Shedding that has little of everything."""
    common = {"budget": budget, "every": 5, "buffer": 4}
    return {
        "harvest": sw.Harvest(sample=0.3, **common),
        "paper": sw.Harvest(
            sample=0.3, scores="per-stream", search="double-sided", throttle="rates", **common
        ),
        "memory": sw.Harvest(sample=0.3, memory=900, **common | {"budget": PLENTY}),
        "fixed": sw.Harvest(sample=0.3, fraction=0.3, **common),
        "random": sw.RandomDrop(sample=0.3, **common),
        "tail": sw.TailDrop(**common),
    }[kind]


SHEDDING = st.sampled_from(["harvest", "paper", "memory", "fixed", "random", "tail"])


@tried(0.25)
@given(cases(), SHEDDING, st.sampled_from([50.0, 400.0, 3000.0]))
def test_what_is_made_under_overload_is_true_and_all_is_accounted_for(case, kind, budget):
    case = case._replace(pipeline="icde16", late_probe="none")
    exact = set(emitted(engine_run(case._replace(slack=10**6)), case.m))
    run = engine_run(case, shed=overloaded(kind, budget))
    made = emitted(run, case.m)
    assert len(set(made)) == len(made)
    assert set(made) <= exact
    assert run.metrics.is_balanced
    assert run.metrics.produced == len(made)


@pytest.mark.determinism
@tried(0.25)
@given(cases(), SHEDDING, st.sampled_from([50.0, 400.0, 3000.0]), CUTS)
def test_cuts_and_restarts_change_nothing_under_overload(case, kind, budget, sizes):
    query = engine_query(
        case._replace(pipeline="icde16", late_probe="none"),
        late="emit",
        shed=overloaded(kind, budget),
    )
    batch, _ = recorded(query, tables(case), "arr")
    whole = fed(query, batch)
    assert fed(query, batch, sizes) == whole
    assert fed(query, batch, sizes, restart=True) == whole
