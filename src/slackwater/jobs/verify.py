"""Compare the output of a job with the exact results of its recorded streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.result_schema import CHANGE, LATE, RESULT_ID, RESULT_TS
from slackwater.jobs.comparison import RowComparison, compare_rows, compare_windows
from slackwater.jobs.job import JobFile
from slackwater.jobs.measurement import Measurement
from slackwater.jobs.recordings import of_job
from slackwater.jobs.sink_files import Columns, columns_of, read_output
from slackwater.jobs.toml_table import JobFileError
from slackwater.jobs.verification import EXAMPLES, Verification, needed
from slackwater.jobs.verify_kinds import compare_kind
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.goals import Recall
from slackwater.query.join import JoinQuery
from slackwater.query.units import to_units
from slackwater.query.window import WindowQuery
from slackwater.query.window_goals import ErrorBound
from slackwater.query.windows import Tuples
from slackwater.testing.oracle import Exact, exact

_EVERY = "1 second"  # recall is measured each second

STEPS = ("reading the streams", "computing the truth", "reading the output", "comparing")


def verify(
    job: JobFile,
    outputs: Sequence[Path] = (),
    on_step: Callable[[str, int, int], None] = lambda *_: None,
) -> Verification:
    """Compare the output of a job with the exact results.

    Parameters
    ----------
    job
        The job; its sources must be files.
    outputs
        Files or directories of the output; by default those of the sink.
    on_step
        Called with the current step, its number, and the number of steps.

    Returns
    -------
    Verification
        Numbers, rows that are wrong, and notes.

    Raises
    ------
    JobFileError
        If the streams or the output cannot be read or compared.
    """
    paths = outputs or [_sink_path(job)]
    on_step(STEPS[0], 0, len(STEPS))
    recording = of_job(job)
    on_step(STEPS[1], 1, len(STEPS))
    true = exact(job.query, recording.tables)
    on_step(STEPS[2], 2, len(STEPS))
    columns = columns_of(job.sink, true.table, marks_of(job.query))
    found = read_output(paths, job.sink, columns)
    on_step(STEPS[3], 3, len(STEPS))
    verification = compare(job.query, true, columns, found)
    if job.options["at_end"] == "hold":
        verification.notes.append(
            'With at_end = "hold" events may still wait: their results count as missing.'
        )
    return verification._replace(oracle=true.oracle)


def _sink_path(job: JobFile) -> Path:
    if job.sink.path is None or "://" in job.sink.path:
        msg = f"{job.file}: [sink] has no files on this machine; name the output"
        raise JobFileError(msg)
    return Path(job.sink.path)


def marks_of(query: AnyQuery) -> list[str]:
    """Return the columns of results that are no part of the truth."""
    if not isinstance(query, JoinQuery) or query.select == "count":
        return []
    marks = [RESULT_ID] if query.result_id else []
    if query.late == "emit":
        marks += [LATE, CHANGE] if any(query.preserved) else [LATE]
    return marks


@singledispatch
def compare(query: AnyQuery, exact: Exact, columns: Columns, found: pa.Table) -> Verification:
    """Compare `found`, the output in these columns, with the truth."""
    raise NotImplementedError(type(query))


# ---- joins


@compare.register
def _(query: JoinQuery, exact: Exact, columns: Columns, found: pa.Table) -> Verification:
    notes = []
    if columns.unknown:
        notes.append(f"Only Spark can compute these; not compared: {', '.join(columns.unknown)}")
    if not columns.true.num_columns:
        msg = "no column of the output can be computed without Spark; select one unchanged"
        raise JobFileError(msg)
    if query.how != "inner":
        return compare_kind(query, exact, columns, found, notes)
    weight = None
    if query.select == "count":
        weight = needed(columns, "n")
    late_name = columns.named(LATE)
    late = None if late_name is None else np.asarray(found.column(late_name))
    if query.late == "emit" and late_name is None and query.select != "count":
        notes.append("The output does not mark late results: all count as in time.")
    compared = compare_rows(columns.true, found.select(columns.true.column_names), late, weight)
    subset = not query.has_tuple_windows
    if not subset:
        notes.append("Windows in tuples: where events are late, results need not be true.")
    lines = [
        Measurement("true results", int(compared.true.sum()), "results"),
        Measurement("results in the output", int(compared.found.sum()), "results"),
        *_faults(compared, "results", subset),
        *_recalls(query, exact, columns, compared, late is not None),
    ]
    return Verification(lines, compared.examples(EXAMPLES), notes)


def _faults(compared: RowComparison, of: str, subset: bool) -> list[Measurement]:
    most = 0 if subset else None
    return [
        Measurement(f"missing {of}", compared.missing, of),
        Measurement(f"extra {of}", compared.extra, of, ceiling=most),
        Measurement(f"doubled {of}", compared.doubled, of, ceiling=most),
    ]


def _recalls(
    query: JoinQuery, exact: Exact, columns: Columns, compared: RowComparison, knows_late: bool
) -> list[Measurement]:
    goal = query.goal
    target = goal.target if isinstance(goal, Recall) else None
    lines = []
    if knows_late:
        late = int((compared.found - compared.in_time).sum())
        lines = [
            Measurement("late results", late, "results"),
            Measurement("recall, late ones too", round(compared.recall, 6), "share"),
        ]
    in_time = compared.recall_in_time
    lines.append(
        Measurement("recall in time" if knows_late else "recall", in_time, "share", floor=target)
    )
    ts = columns.named(RESULT_TS)
    if ts is None or not isinstance(goal, Recall):
        return lines
    p, step = to_units(goal.over, query.unit, "over"), to_units(_EVERY, query.unit)
    recalls = compared.series(ts, query.unit, exact.begin, exact.end, p, step)
    if len(recalls) == 0:  # the recording is shorter than the period
        return lines
    share = float(np.mean(recalls >= goal.target))
    return [
        *lines,
        Measurement(f"Φ({goal.target:g}) over {goal.over}", round(share, 6), "share"),
        Measurement(f"smallest recall over {goal.over}", round(float(recalls.min()), 6), "share"),
    ]


# ---- windows of one stream


@compare.register
def _(query: WindowQuery, exact: Exact, columns: Columns, found: pa.Table) -> Verification:
    keys = [needed(columns, name) for name in (RESULT_TS, *query.by)]
    values = [name for result in query.select if (name := columns.named(result)) is not None]
    compared = compare_windows(columns.true, found, keys, values)
    in_tuples = isinstance(query.length, Tuples)
    notes = _not_compared([n for n in query.select if columns.named(n) is None])
    if in_tuples:
        notes.append("Windows in tuples: where events are dropped, others end in their place.")
    lines = [
        Measurement("true windows", int(compared.rows.true.sum()), "windows"),
        Measurement("windows in the output", int(compared.rows.found.sum()), "windows"),
        *_faults(compared.rows, "windows", not in_tuples),
        Measurement("recall", compared.rows.recall, "share"),
        Measurement("windows compared", compared.compared, "windows"),
        Measurement("windows that differ", compared.wrong.num_rows, "windows"),
        Measurement("largest error", round(float(compared.error.max(initial=0)), 6), "share"),
    ]
    if isinstance(query.goal, ErrorBound):
        name = f"windows wrong by at most {query.goal.bound:g}"
        share = compared.within(query.goal.bound)
        lines.append(Measurement(name, share, "share", floor=query.goal.confidence))
    examples = compared.rows.examples(EXAMPLES)
    if compared.wrong.num_rows:
        examples["different"] = compared.wrong.slice(0, EXAMPLES).to_pylist()
    return Verification(lines, examples, notes)


# ---- aggregates over joined windows


@compare.register
def _(query: AggregateQuery, exact: Exact, columns: Columns, found: pa.Table) -> Verification:
    keys = [needed(columns, name) for name in ("window_start", *query.group_columns)]
    values = [name for result in query.select if (name := columns.named(result)) is not None]
    flag = needed(columns, "exact")
    true = columns.true
    early = found.filter(pc.invert(found.column(flag)))
    final = found.filter(found.column(flag))
    in_any = compare_rows(true.select(keys), found.select(keys).group_by(keys).aggregate([]))
    of_early, of_final = (compare_windows(true, rows, keys, values) for rows in (early, final))
    doubled = of_early.rows.doubled + of_final.rows.doubled
    lines = [
        Measurement("true windows", true.num_rows, "windows"),
        Measurement("windows in the output", int(in_any.found.sum()), "windows"),
        Measurement("missing windows", in_any.missing, "windows"),
        Measurement("extra windows", in_any.extra, "windows", ceiling=0),
        Measurement("doubled windows", doubled, "windows", ceiling=0),
        Measurement("recall", in_any.recall, "share"),
        Measurement("early answers", early.num_rows, "rows"),
        Measurement("error of early answers", round(_mean(of_early.error), 6), "share"),
        *_coverage(query, columns, early, keys),
        Measurement("exact answers", final.num_rows, "rows"),
        Measurement("exact answers that differ", of_final.wrong.num_rows, "rows"),
    ]
    examples = in_any.examples(EXAMPLES)
    for part in (of_early, of_final):
        for row in part.rows.examples(EXAMPLES).get("doubled", []):
            examples.setdefault("doubled", []).append(row)
    if of_final.wrong.num_rows:
        examples["different"] = of_final.wrong.slice(0, EXAMPLES).to_pylist()
    return Verification(
        lines, examples, _not_compared([n for n in query.select if n not in values])
    )


def _coverage(
    query: AggregateQuery, columns: Columns, early: pa.Table, keys: Sequence[str]
) -> list[Measurement]:
    """Measure how often the truth lies between low and high."""
    if not query.compensate:
        return []
    inside: list[float] = []
    for name in query.select:
        ends = [columns.named(f"{name}_{end}") for end in ("low", "high")]
        value = columns.named(name)
        if value is None or None in ends:
            continue
        held = early.select([*keys, *ends]).join(columns.true.select([*keys, value]), keys)
        low, high, true = (held.column(column).to_numpy() for column in (*ends, value))
        known = ~np.isnan(low)
        inside += ((low <= true) & (true <= high))[known].tolist()
    return [Measurement("intervals that hold the truth", round(_mean(inside), 6), "share")]


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else 0.0


# ---- columns


def _not_compared(names: Sequence[str]) -> list[str]:
    return [f"Not unchanged in the output; not compared: {', '.join(names)}"] if names else []
