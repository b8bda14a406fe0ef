"""Every kind of engine does with small fixed inputs what it did when that was recorded.

**Recorded numbers do not prove that they are right.** They show that something changed. What is
right is said by the oracles (`naive`, `naive_windows`, `naive_aggregates`), with which the
properties compare the same engines, and by the other golden tests, whose numbers a reader can
check. Where an oracle can answer a case of this file, it is asked here too.

A case is also run from a snapshot that is taken half way, and must go on as if nothing had
happened. `behaviour` says how to record anew after a change that is intended; read the difference
before you commit it. The cases of the default controller of `Recall` have a file of their own,
because it changes more often.
"""

import json

import pyarrow.compute as pc
import pytest

import slackwater as sw
from golden.behaviour import Case, batch_of, file_of, started
from golden.behaviour_cases import ALL, CASES, JOINS, joined
from naive import Event, clocked, pipeline
from naive import Tuples as NaiveTuples

FILES = {file: json.loads(file.read_text()) for file in {file_of(name) for name in ALL}}


def close(found, wanted):
    """Whole numbers are equal; others depend a little on how a library adds."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, float) or isinstance(found, float):
        return found == pytest.approx(wanted, rel=1e-6, abs=1e-7)
    return found == wanted


@pytest.mark.parametrize("name", ALL)
def test_it_does_what_was_recorded(name):
    found = json.loads(json.dumps(ALL[name]()))
    wanted = FILES[file_of(name)][name]
    names = found.keys() | wanted.keys()
    absent = object()
    changed = {
        fact: (wanted.get(fact), found.get(fact))
        for fact in sorted(names)
        if found.get(fact, absent) is absent
        or wanted.get(fact, absent) is absent
        or not close(found[fact], wanted[fact])
    }
    assert not changed


def test_there_is_no_record_without_a_case():
    assert {name for entries in FILES.values() for name in entries} == set(ALL)


# ---- the same cases, by the oracle

KEYED = [
    name
    for name, case in JOINS.items()
    if case.query.on == "k"
    and case.query.where is None
    and case.query.between is None
    and isinstance(case.query.goal, sw.Slack | sw.NoSlack | sw.MaxSlack)
    and case.query.synchronizes
    and case.query.select != "count"
    and case.columns is None
    and case.each is None
    and not case.options
    and len(case.query.names) < 4
    and not case.query.listed
]


def events_of(case):
    """The oracle's events, in the order of their arrival."""
    batch, _ = batch_of(case)
    at, events = [0] * len(batch.tables), []
    rows = [t.select(["ts", "k"]).to_pydict() for t in batch.tables]
    for n, s in enumerate(batch.stream.tolist()):
        ts, k = rows[s]["ts"][at[s]], rows[s]["k"][at[s]]
        events.append(Event(ts, s, n, (k,)))
        at[s] += 1
    return events, batch


@pytest.mark.parametrize("name", KEYED)
def test_the_oracle_produces_as_many_results(name):
    case = CASES[name]._replace(n=28)  # it tries every combination
    query = case.query
    events, batch = events_of(case)
    windows = [
        NaiveTuples(s.window.count) if isinstance(s.window, sw.Tuples) else s.window
        for s in query.streams
    ]
    rule = windows, lambda *r: len({e.values for e in r}) == 1, query.bounds, query.slide or 1
    slack, follow = query.slack, isinstance(query.goal, sw.MaxSlack)
    if query.is_clocked:
        results, late = clocked(events, *rule, ks=[slack] * len(events), follow=follow)
    else:
        more = {"late_probe": query.late_probe, "overdue": query.overdue}
        results, late = pipeline(events, *rule, ks=[slack] * len(windows), follow=follow, **more)
    engine = started(case, batch)
    output = engine.feed(batch)
    output.extend(engine.flush())
    in_time = output.table if query.late != "emit" else output.table.filter(on_time(output))
    assert sorted(in_time["result_ts"].to_pylist()) == sorted(max(r).ts for r in results)
    metrics = engine.metrics()
    assert metrics.produced == len(results)
    assert metrics.late_kept + metrics.late_dropped == len(late)


def on_time(output):
    return pc.invert(output.table["late"])


def test_the_oracle_is_asked_often():
    assert len(KEYED) > 15
    assert Case(joined()).query.is_clocked
