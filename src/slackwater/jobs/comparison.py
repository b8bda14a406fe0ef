"""Compare results with the true ones: which are missing, extra, or doubled.

>>> true = pa.table({"result_ts": [1, 1, 2], "k": [7, 7, 8]})
>>> found = pa.table({"result_ts": [1, 1, 1, 3], "k": [7, 7, 7, 9]})
>>> counts = compare_rows(true, found)
>>> counts.missing, counts.extra, counts.doubled, round(counts.recall, 3)
(1, 1, 1, 0.667)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.engine.report import recall_series
from slackwater.events.batch import time_in_units
from slackwater.kernels.records import I64
from slackwater.query.units import TimeUnit

_TRUE, _FOUND, _IN_TIME, _PLACE = "#true", "#found", "#in time", "#place"
_CLOSE = 1e-9  # sums of floats depend on their order


# ---- results of a join: bags of rows


@dataclass(frozen=True)
class RowComparison:
    """The distinct rows, and how often each is expected and found."""

    rows: pa.Table
    true: I64
    found: I64
    in_time: I64  # found and not marked as late

    @property
    def missing(self) -> int:
        """True results that are not found."""
        return int(np.maximum(self.true - self.found, 0).sum())

    @property
    def extra(self) -> int:
        """Results that are not true."""
        return int(self.found[self.true == 0].sum())

    @property
    def doubled(self) -> int:
        """Results found more often than they are true."""
        is_true = self.true > 0
        return int(np.maximum(self.found - self.true, 0)[is_true].sum())

    @property
    def recall(self) -> float:
        """The share of the true results that is found; 1.0 if there are no true results."""
        return self._share(self.found)

    @property
    def recall_in_time(self) -> float:
        """The recall without results that are marked as late."""
        return self._share(self.in_time)

    def _share(self, found: I64) -> float:
        total = int(self.true.sum())
        return int(np.minimum(self.true, found).sum()) / total if total else 1.0

    def examples(self, n: int) -> dict[str, list[dict[str, Any]]]:
        """Return the first `n` rows of each fault."""
        faults = {
            "missing": self.true > self.found,
            "extra": (self.true == 0) & (self.found > 0),
            "doubled": (self.true > 0) & (self.found > self.true),
        }
        return {
            what: self.rows.take(np.flatnonzero(here)[:n]).to_pylist()
            for what, here in faults.items()
            if here.any()
        }

    def series(
        self, ts: str, unit: TimeUnit, begin: int, end: int, p: int, step: int
    ) -> NDArray[np.float64]:
        """Return the recall in time over the last `p`, each `step` of the time in column `ts`."""
        times = self.rows.column(ts)
        made = np.minimum(self.true, self.in_time)
        return shares_over(times, unit, made, self.true, begin, end, p, step)


def shares_over(
    times: pa.ChunkedArray, unit: TimeUnit, some: I64, of: I64, begin: int, end: int, p: int,
    step: int,
) -> NDArray[np.float64]:  # fmt: skip
    """Return which share `some` is of `of`, numbers of rows with these times, over each `p`."""
    units, good = time_in_units(times.combine_chunks(), unit)
    order = np.argsort(units[good], kind="stable")
    at, part, whole = units[good][order], some[good][order], of[good][order]
    shares = recall_series(at, part, at, whole, begin + p, end, p, step)
    return np.asarray(shares.column("recall").to_numpy())


def compare_rows(
    true: pa.Table, found: pa.Table, late: Any = None, weight: str | None = None
) -> RowComparison:
    """Compare two tables of the same columns as bags of rows.

    Parameters
    ----------
    true, found
        The expected rows, and those of the output.
    late
        Which rows of `found` are marked as late; None means none.
    weight
        The column with the number of results that a row stands for; None means one each.
    """
    names = [name for name in true.column_names if name != weight]
    n_found = _weights(found, weight)
    in_time = n_found if late is None else n_found * ~np.asarray(late, bool)
    rows, sums = distinct_rows(
        true.select(names),
        found.select(names),
        {_TRUE: _weights(true, weight)},
        {_FOUND: n_found, _IN_TIME: in_time},
    )
    return RowComparison(rows, *(sums[name] for name in (_TRUE, _FOUND, _IN_TIME)))


def distinct_rows(
    true: pa.Table, found: pa.Table, of_true: Mapping[str, Any], of_found: Mapping[str, Any]
) -> tuple[pa.Table, dict[str, I64]]:
    """Return the distinct rows of two tables of the same columns, and sums for each of them.

    `of_true` has numbers of the rows of `true`, by name, and `of_found` those of `found`.
    """
    names = true.column_names
    both = pa.concat_tables([plain(true), plain(found)])
    none = np.zeros(true.num_rows, np.int64), np.zeros(found.num_rows, np.int64)
    counted = both.append_column(_PLACE, pa.array(np.arange(both.num_rows)))
    for name, numbers in of_true.items():
        counted = counted.append_column(name, pa.array(np.concatenate([numbers, none[1]])))
    for name, numbers in of_found.items():
        counted = counted.append_column(name, pa.array(np.concatenate([none[0], numbers])))
    summed = [*of_true, *of_found]
    counted = (
        counted.group_by(names)
        .aggregate([(_PLACE, "min"), *((name, "sum") for name in summed)])
        .sort_by(f"{_PLACE}_min")
    )
    original = pa.concat_tables([true, found.cast(_of(true, names))])
    sums = {name: counted.column(f"{name}_sum").to_numpy() for name in summed}
    return original.take(counted.column(f"{_PLACE}_min")), sums


def _weights(table: pa.Table, weight: str | None) -> I64:
    if weight is None:
        return np.ones(table.num_rows, np.int64)
    return np.asarray(table.column(weight).to_numpy(), np.int64)


def _of(table: pa.Table, names: Sequence[str]) -> pa.Schema:
    return pa.schema([table.schema.field(name) for name in names])


def plain(table: pa.Table) -> pa.Table:
    """Return columns whose values can be compared: times as numbers, nested values as text."""
    columns = [_plain(column) for column in table.columns]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_nested(kind):
        texts = [None if v is None else json.dumps(v, default=str) for v in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    return column.cast(pa.int64()) if pa.types.is_integer(kind) else column


# ---- windows: rows by key, and their values


@dataclass(frozen=True)
class WindowComparison:
    """The windows of the output against all true ones."""

    rows: RowComparison  # by their keys alone
    error: NDArray[np.float64]  # of each window that is once in both: the largest, relative
    wrong: pa.Table  # keys and values of those that differ

    @property
    def compared(self) -> int:
        """Windows that are once in both."""
        return len(self.error)

    def within(self, bound: float) -> float:
        """The share of the compared windows whose error is at most `bound`."""
        return float(np.mean(self.error <= bound)) if len(self.error) else 1.0


def compare_windows(
    true: pa.Table, found: pa.Table, keys: Sequence[str], values: Sequence[str]
) -> WindowComparison:
    """Compare two tables window by window; `keys` identify the window of a row."""
    by_key = compare_rows(true.select(keys), found.select(keys))
    ours, theirs = _by_key(true, keys), _by_key(found, keys)
    same = [key for key, rows in ours.items() if len(rows) == 1 == len(theirs.get(key, ()))]
    left = true.take(np.array([ours[key][0] for key in same], np.int64))
    right = found.take(np.array([theirs[key][0] for key in same], np.int64))
    error = np.zeros(len(same))
    for name in values:
        error = np.maximum(error, relative_error(left.column(name), right.column(name)))
    error[error <= _CLOSE] = 0
    is_wrong = np.flatnonzero(error > 0)
    shown = right.select([*keys, *values]).take(is_wrong)
    for name in values:
        shown = shown.append_column(f"true {name}", left.column(name).take(is_wrong))
    return WindowComparison(by_key, error, shown)


def _by_key(table: pa.Table, keys: Sequence[str]) -> Mapping[Any, list[int]]:
    """The rows of each key."""
    found: dict[Any, list[int]] = {}
    columns = (column.to_pylist() for column in plain(table.select(keys)).columns)
    for row, key in enumerate(zip(*columns, strict=True)):
        found.setdefault(key, []).append(row)
    return found


def relative_error(true: pa.ChunkedArray, found: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the error of each value relative to the true one; 1 where one of them is null.

    >>> relative_error(pa.chunked_array([[2.0, 0.0, None]]), pa.chunked_array([[3.0, 0.0, 1.0]]))
    array([0.5, 0. , 1. ])
    """
    kind = true.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        same = pc.fill_null(pc.equal(_plain(true), _plain(found)), fill_value=False)
        same = pc.or_(same, pc.and_(true.is_null(), found.is_null()))
        return np.where(np.asarray(same), 0.0, 1.0)
    a, b = (_floats(column) for column in (true, found))
    size = np.maximum(np.abs(a), np.finfo(float).tiny)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.where(a == b, 0.0, np.abs(a - b) / size)
    neither = np.isnan(a) & np.isnan(b)
    return np.asarray(np.where(neither, 0.0, np.where(np.isnan(off), 1.0, off)))


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
