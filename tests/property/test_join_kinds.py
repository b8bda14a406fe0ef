"""Joins of all kinds, in order and eager, against the oracle: truth, corrections, identities."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import slackwater as sw
from kinds_of_joins import batch_of, fed, given, in_batches, kinds, plain, shard_batches
from naive_kinds import accounts, truth
from property.strategies import tried
from slackwater.kernels.histogram import bucket_of

SILENCE = st.sampled_from([None, None, 5, 40])
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=8)


@pytest.mark.differential
@tried(2, trust=1)
@drawn(kinds(), SILENCE)
def test_rows_and_corrections_are_those_of_the_oracle(case, idle_after):
    query, batch = batch_of(case)
    found = given(fed(query, batch, idle_after=idle_after)[0])
    assert sorted(found) == plain(g.row for g in case.play(idle_after=idle_after).given())


@tried(0.5, trust=1)
@drawn(kinds())
def test_without_late_rows_there_are_those_in_time(case):
    query, batch = batch_of(case, late="count")
    found = given(fed(query, batch)[0])
    assert sorted(found) == plain(g.row for g in case.play().given() if not g.row.late)


@pytest.mark.differential
@tried(0.5, trust=1)
@drawn(kinds(complete=True))
def test_complete_slack_gives_the_truth(case):
    query, batch = batch_of(case)
    table = fed(query, batch)[0]
    found = [(ts, a, b) for ts, a, b, change, late in given(table) if not late]
    assert len(found) == table.num_rows
    number = lambda e: -1 if e is None else e.arrival  # noqa: E731
    true = [(t, number(a), number(b)) for t, a, b in truth(case.oracle, case.arrivals)]
    if case.how == "semi" and case.emit == "eager":  # its time is that of the first pair to come
        found, true = [row[1:] for row in found], [row[1:] for row in true]
    assert sorted(found) == sorted(true)


@tried(0.5, trust=1)
@drawn(kinds(), SILENCE)
def test_what_is_in_time_is_in_order(case, idle_after):
    case = case._replace(emit="ordered")
    query, batch = batch_of(case)
    times = [
        ts for ts, _, _, _, late in given(fed(query, batch, idle_after=idle_after)[0]) if not late
    ]
    assert times == sorted(times)


@pytest.mark.determinism
@tried(0.5, trust=1)
@drawn(kinds(), CUTS, st.booleans(), SILENCE)
def test_cuts_and_restarts_change_nothing(case, sizes, restart, idle_after):
    query, batch = batch_of(case, ids=(), result_id=True)
    whole = fed(query, batch, idle_after=idle_after)
    assert fed(query, batch, sizes, restart, idle_after=idle_after) == whole


@tried(0.5, trust=1)
@drawn(kinds(hows=("left", "right", "full", "anti")))
def test_rows_without_partner_are_true_or_withdrawn(case):
    """E + EL = U + F, as long as nothing is forgotten."""
    case = case._replace(keep=10**6)
    query, batch = batch_of(case)
    rows = given(fed(query, batch)[0])
    alone = Counter(change for _, a, b, change, _ in rows if -1 in (a, b))
    members = [row[1:] for row in truth(case.oracle, case.arrivals)]
    assert alone["insert"] == sum(None in pair for pair in members) + alone["delete"]
    wanted, metrics = accounts(case.play()), fed(query, batch)[-1]
    assert alone["delete"] == wanted["withdrawn"] == metrics.withdrawn_rows
    assert (wanted["in time"], wanted["late"]) == (
        metrics.unmatched_rows,
        metrics.unmatched_rows_late,
    )


@tried(0.5, trust=1)
@drawn(kinds(hows=("asof",)))
def test_the_last_version_of_an_as_of_row_is_true(case):
    case = case._replace(keep=10**6)
    query, batch = batch_of(case)
    last = {}
    for _, left, right, change, _ in given(fed(query, batch)[0]):
        assert (change == "insert") == (left not in last)
        last[left] = right
    true = {
        a.arrival: -1 if b is None else b.arrival for _, a, b in truth(case.oracle, case.arrivals)
    }
    assert last == true


@pytest.mark.determinism
@tried(0.5, trust=1)
@drawn(kinds(), st.integers(1, 8), SILENCE, CUTS, st.booleans())
def test_shards_give_the_same_rows_together(case, n, idle_after, sizes, restart):
    case = case._replace(slack=case.slack or 0)  # each shard would follow the delays of its own
    rows = []
    for batch in shard_batches(case, n):
        options = {"common_clock": True, "idle_after": idle_after}
        rows += given(fed(case.query(), batch, sizes, restart, **options)[0])
    assert sorted(rows) == plain(g.row for g in case.play(idle_after=idle_after).given())


# ---- the waits that rows needed


def needed(case):
    """By the oracle: how long rows must wait, or events be kept, if that is above 0."""
    play, how = case.play(), case.how
    when = play.common
    if case.emit == "eager" and how == "inner":
        first = lambda p: min(p, key=play.place.get)  # noqa: E731
        return [when[play.last(*p)] - play.join.due(first(p)) for p in play.pairs]
    if how == "asof":
        waits = []
        for _, left, right in truth(play.join, play.events):
            wait = when[play.place[left]] if case.emit == "ordered" else 0
            if right is not None and play.place[right] > play.place[left]:
                wait = max(wait, when[play.place[right]])
            waits.append(wait - play.join.due(left))
        return waits
    waits = []
    for e in (e for e in play.events if e.stream in play.join.preserved):
        matched = min((play.last(*p) for p in play.pairs if e in p), default=None)
        if matched is not None and matched > play.place[e]:
            waits.append(when[matched] - play.join.due(e))
    return waits


@pytest.mark.differential
@tried(0.5, trust=1)
@drawn(kinds(hows=("left", "full", "anti", "asof", "inner")))
def test_the_waits_that_rows_needed_are_known(case):
    case = case._replace(keep=10**6, emit="eager" if case.how == "inner" else case.emit)
    query, batch = batch_of(case)
    engine = fed(query, batch, as_engine=True)
    matcher = engine.alone.matcher if getattr(engine, "alone", None) else engine.matcher
    found = matcher.record.keeps if case.how == "inner" else matcher.record.needs
    wanted = Counter(int(bucket_of(wait)) for wait in needed(case) if wait > 0)
    assert {int(b): int(found[b]) for b in found.nonzero()[0]} == wanted


GOAL = {"over": 40, "every": 4}


@pytest.mark.determinism
@tried(0.3, trust=1)
@drawn(kinds(), CUTS, st.booleans())
def test_cuts_and_restarts_change_nothing_with_a_goal(case, sizes, restart):
    has_alone = case.how in ("left", "right", "full", "anti")
    goal = sw.Recall(0.9, **GOAL, unmatched=0.8 if has_alone else None)
    query, batch = batch_of(case)
    query = replace(query, goal=goal, retention=None)
    assert fed(query, batch, sizes, restart) == fed(query, batch)


# ---- the identities of DESIGN 14 after every micro-batch


def standing(rows):
    """The rows without partner that are not taken back, by their event."""
    left = Counter()
    for _, a, b, change, _ in rows:
        if -1 in (a, b):
            left[max(a, b)] += -1 if change == "delete" else 1
    return left


def check_identities(case, rows, metrics, arrived):
    """What holds among the rows so far, for the events that have arrived so far."""
    join = case.oracle
    pairs = [(a.arrival, b.arrival) for a, b in join.pairs(arrived)]
    matched = {e for pair in pairs for e in pair}
    changes = Counter(change for *_, change, _ in rows)
    if case.how == "asof":
        last = {a: b for _, a, b, *_ in rows}
        rights = [e for e in arrived if e.stream == 1]
        best = {e.arrival: join.best(e, rights) for e in arrived if e.arrival in last}
        assert last == {a: -1 if b is None else b.arrival for a, b in best.items()}
        assert metrics.unmatched_rows + metrics.unmatched_rows_late == len(last)
        assert metrics.withdrawn_rows == changes["update"]
        return
    if case.how == "semi":
        events = [a for _, a, *_ in rows]
        assert len(events) == len(set(events))  # never twice
        assert set(events) <= matched
        assert case.emit == "ordered" or set(events) == {a for a, _ in pairs}
        return
    found = [(a, b) for _, a, b, *_ in rows if -1 not in (a, b)]
    assert len(found) == len(set(found))
    assert set(found) <= set(pairs)
    assert case.emit == "ordered" or case.how == "anti" or len(found) == len(pairs)
    if case.how == "inner":
        return
    alone = standing(rows)
    assert set(alone.values()) <= {0, 1}
    assert not {e for e, n in alone.items() if n} & matched  # E + EL = U + F
    given_out = metrics.unmatched_rows + metrics.unmatched_rows_late
    assert given_out - metrics.withdrawn_rows == alone.total()
    assert metrics.withdrawn_rows == changes["delete"]


@tried(0.5, trust=1)
@drawn(kinds(), CUTS)
def test_the_identities_hold_after_every_batch(case, sizes):
    case = case._replace(keep=10**6)
    query, batch = batch_of(case)
    rows, n = [], 0
    for output, metrics, taken in in_batches(query, batch, sizes):
        rows += given(output.table)
        n += taken
        arrived = [e for e in case.arrivals if e.arrival < n]
        check_identities(case, rows, metrics, arrived)
    if case.how in ("inner", "left", "right", "full"):  # pairs: produced + lost = true
        assert metrics.produced + metrics.lost == len(case.oracle.pairs(case.arrivals))
    if case.how == "semi":
        assert metrics.produced + metrics.lost == len(rows)
        assert len(rows) == len({a for a, _ in case.oracle.pairs(case.arrivals)})
