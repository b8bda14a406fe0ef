"""Compare the output of outer, semi, anti and as-of joins with the truth.

Their rows can be wrong when they are given out, and be taken back or corrected later. The order of
rows is not needed to know what is left in the end: a row that is deleted was inserted once, and an
as-of row gets better with each update, so it is right in the end if any version of it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.engine.result_schema import CHANGE, LATE, RESULT_TS
from slackwater.jobs.comparison import compare_rows, distinct_rows, shares_over
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.sink_files import Columns
from slackwater.jobs.verification import EXAMPLES, Verification, needed
from slackwater.kernels.records import I64
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.join_kinds import WITH_PAIRS, unmatched_target
from slackwater.query.units import to_units
from slackwater.testing.oracle import Exact

_EVERY = "1 second"


class Counted(NamedTuple):
    """Distinct rows, and how often each is true, and was given out, in which way."""

    rows: pa.Table
    pairs: I64  # true ones
    alone: I64  # true rows without partner
    in_time: I64  # inserted
    late: I64  # inserted out of order
    deleted: I64
    updated: I64

    @property
    def true(self) -> I64:
        """All true rows."""
        return self.pairs + self.alone

    @property
    def final(self) -> I64:
        """What is left when deletes are applied."""
        return self.in_time + self.late - self.deleted


def compare_kind(
    query: JoinQuery, exact: Exact, columns: Columns, found: pa.Table, notes: list[str]
) -> Verification:
    """Compare `found`, the output of a join that is not an inner one, with the truth."""
    late = columns.named(LATE)
    is_late = np.zeros(found.num_rows, bool)
    if late is not None:
        is_late = np.asarray(found.column(late).combine_chunks(), bool)
    elif query.late == "emit":
        notes.append("The output does not mark late results: all count as in time.")
    if query.how == "semi":
        return _semi(query, columns, found, is_late, notes)
    counted = _counted(query, exact, columns, found, is_late)
    if query.how == "asof":
        return _asof(query, exact, columns, counted, notes)
    return _with_rows_alone(query, exact, columns, counted, notes)


def _counted(
    query: JoinQuery, exact: Exact, columns: Columns, found: pa.Table, is_late: NDArray[np.bool_]
) -> Counted:
    change = pa.array(["insert"] * found.num_rows, pa.string())
    if query.late == "emit":
        change = found.column(needed(columns, CHANGE)).combine_chunks()
    inserted, deleted, updated = (
        np.asarray(pc.equal(change, name), bool) for name in ("insert", "delete", "update")
    )
    rows, sums = distinct_rows(
        columns.true,
        found.select(columns.true.column_names),
        {"#pairs": ~exact.alone * 1, "#alone": exact.alone * 1},
        {
            "#in_time": (inserted & ~is_late) * 1,
            "#late": (inserted & is_late) * 1,
            "#deleted": deleted * 1,
            "#updated": updated * 1,
        },
    )
    return Counted(rows, *sums.values())


# ---- rows that say that an event has no partner


def _with_rows_alone(
    query: JoinQuery, exact: Exact, columns: Columns, counted: Counted, notes: list[str]
) -> Verification:
    corrects = query.late == "emit"
    final, true, given = counted.final, counted.true, counted.in_time + counted.late
    is_true, looks_alone = true > 0, _looks_alone(query, columns, counted.rows)
    extra_pairs = final[~is_true & ~looks_alone].clip(0).sum()
    lines = [
        Measurement("true results", int(true.sum()), "results"),
        Measurement("true rows without partner", int(counted.alone.sum()), "results"),
        Measurement("results in the output", int(given.sum()), "results"),
    ]
    if corrects:
        lines.append(Measurement("results taken back", int(counted.deleted.sum()), "results"))
    in_the_end = " in the end" if corrects else ""
    wrong = int(final[~is_true & looks_alone].clip(0).sum())
    doubled = int((final - true)[is_true].clip(0).sum())
    lines += [
        Measurement(f"missing results{in_the_end}", int((true - final).clip(0).sum()), "results"),
        Measurement(f"wrong rows without partner{in_the_end}", wrong, "results"),
        Measurement("extra pairs", int(extra_pairs), "results", ceiling=0),
        Measurement("doubled results", doubled, "results", ceiling=0),
    ]
    if corrects:
        never = int((-final).clip(0).sum())
        lines.append(Measurement("taken back, never given", never, "results", ceiling=0))
    if query.how in WITH_PAIRS:
        lines += _recall_of_pairs(query, exact, columns, counted)
    lines += _share_of_right_rows(query, exact, columns, counted, looks_alone)
    faults = {
        "missing": true > final,
        "wrong": ~is_true & (final > 0),
        "doubled": is_true & (final > true),
    }
    return Verification(lines, _examples(counted.rows, faults), notes)


def _examples(rows: pa.Table, faults: dict[str, NDArray[np.bool_]]) -> dict[str, Any]:
    """Return the first rows of each fault."""
    return {
        what: rows.take(np.flatnonzero(here)[:EXAMPLES]).to_pylist()
        for what, here in faults.items()
        if here.any()
    }


def _looks_alone(query: JoinQuery, columns: Columns, rows: pa.Table) -> NDArray[np.bool_]:
    """Return which rows can be such of one event: the time of no member is null otherwise."""
    known = [name for s in range(2) if (name := _time_column(query, columns, s)) is not None]
    if query.how == "anti" or not known:
        return np.ones(rows.num_rows, bool)
    missing = np.zeros(rows.num_rows, bool)
    for name in known:
        missing |= np.asarray(rows.column(name).combine_chunks().is_null())
    return missing if len(known) == 2 or not all(query.preserved) else np.ones(rows.num_rows, bool)


def _time_column(query: JoinQuery, columns: Columns, s: int) -> str | None:
    """Return the column of the output with the time of a member of this stream."""
    stream = query.streams[s]
    if not query.listed:
        return columns.named(f"{stream.name}_{stream.ts}")
    names = {text: name for name, text in query.listed}
    return columns.named(names.get(f"{stream.name}.{stream.ts}", ""))


def _recall_of_pairs(
    query: JoinQuery, exact: Exact, columns: Columns, counted: Counted
) -> list[Measurement]:
    target = query.goal.target if isinstance(query.goal, Recall) else None
    of = counted.pairs
    made = np.minimum(of, counted.in_time)
    lines = []
    if counted.late.any():
        also = np.minimum(of, counted.in_time + counted.late)
        lines.append(Measurement("recall of pairs, late ones too", _share(also, of), "share"))
    lines.append(Measurement("recall of pairs in time", _share(made, of), "share", floor=target))
    return lines + _over_time(query, exact, columns, counted.rows, made, of, "recall", target)


def _share_of_right_rows(
    query: JoinQuery, exact: Exact, columns: Columns, counted: Counted, looks_alone: Any
) -> list[Measurement]:
    """Measure which share of the rows without partner was right when they were given out."""
    target = unmatched_target(query)
    is_alone = (counted.alone > 0) | ((counted.pairs == 0) & looks_alone)
    given = np.where(is_alone, counted.in_time, 0)
    right = np.minimum(counted.alone, given)
    return [
        Measurement("rows without partner, in time", int(given.sum()), "results"),
        Measurement("right rows without partner", _share(right, given), "share", floor=target),
        *_over_time(query, exact, columns, counted.rows, right, given, "right rows", target),
    ]


# ---- as-of rows


def _asof(
    query: JoinQuery, exact: Exact, columns: Columns, counted: Counted, notes: list[str]
) -> Verification:
    target = query.goal.target if isinstance(query.goal, Recall) else None
    true = counted.true
    given = counted.in_time + counted.late
    n_true, n_given = int(true.sum()), int(given.sum())
    at_once = np.minimum(true, counted.in_time)
    lines = [
        Measurement("true results", n_true, "results"),
        Measurement("results in the output", n_given, "results"),
        Measurement("missing results", max(0, n_true - n_given), "results"),
        Measurement("extra results", max(0, n_given - n_true), "results", ceiling=0),
    ]
    if query.late == "emit":
        in_the_end = np.minimum(true, given + counted.updated)
        lines += [
            Measurement("results late", int(counted.late.sum()), "results"),
            Measurement("corrections", int(counted.updated.sum()), "results"),
            Measurement("right in the end", _share(in_the_end, true), "share"),
        ]
    lines += [
        Measurement("right at once", _share(at_once, true), "share", floor=target),
        *_over_time(query, exact, columns, counted.rows, at_once, true, "right at once", target),
    ]
    wrong = (true == 0) & (given > 0)
    return Verification(lines, _examples(counted.rows, {"wrong when given": wrong}), notes)


# ---- semi joins


def _semi(
    query: JoinQuery,
    columns: Columns,
    found: pa.Table,
    is_late: NDArray[np.bool_],
    notes: list[str],
) -> Verification:
    """Compare rows without their time: it is that of the first pair that was known."""
    names = columns.true.column_names
    time = columns.named(RESULT_TS)
    kept = [name for name in names if name != time] or names
    true = columns.true.select(kept)
    compared = compare_rows(true, found.select(kept), is_late)
    target = query.goal.target if isinstance(query.goal, Recall) else None
    lines = [
        Measurement("true results", int(compared.true.sum()), "results"),
        Measurement("results in the output", int(compared.found.sum()), "results"),
        Measurement("missing results", compared.missing, "results"),
        Measurement("extra results", compared.extra, "results", ceiling=0),
        Measurement("doubled results", compared.doubled, "results", ceiling=0),
    ]
    if query.late == "emit":
        lines += [
            Measurement("late results", int(is_late.sum()), "results"),
            Measurement("recall, late ones too", round(compared.recall, 6), "share"),
        ]
    recall = round(compared.recall_in_time, 6)
    lines.append(Measurement("recall in time", recall, "share", floor=target))
    if time is not None and query.emit == "ordered":
        timed = compare_rows(columns.true, found.select(names))
        exact_time = int(np.minimum(timed.true, timed.found).sum()) / max(1, found.num_rows)
        name = "with the time of the first pair"
        lines.append(Measurement(name, round(exact_time, 6), "share"))
    return Verification(lines, compared.examples(EXAMPLES), notes)


# ---- shares


def _share(some: I64, of: I64) -> float:
    total = int(of.sum())
    return round(int(some.sum()) / total, 6) if total else 1.0


def _over_time(
    query: JoinQuery, exact: Exact, columns: Columns, rows: pa.Table, some: I64, of: I64, what: str,
    target: float | None,
) -> list[Measurement]:  # fmt: skip
    """Measure how often the share of the last period reached the target."""
    ts, goal = columns.named(RESULT_TS), query.goal
    if ts is None or target is None or not isinstance(goal, Recall):
        return []
    p, step = to_units(goal.over, query.unit, "over"), to_units(_EVERY, query.unit)
    shares = shares_over(rows.column(ts), query.unit, some, of, exact.begin, exact.end, p, step)
    if len(shares) == 0:
        return []
    held = round(float(np.mean(shares >= target)), 6)
    return [Measurement(f"Φ({target:g}) of {what} over {goal.over}", held, "share")]
