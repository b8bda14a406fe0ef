"""Counts the events of a joined window: from the log to a `Tally`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.compensation.observation import cells_for
from slackwater.compensation.tally import Events, Group, Tally, in_order
from slackwater.compensation.values import Values
from slackwater.engine.rows import Rows
from slackwater.events.log import Log
from slackwater.joins.visit_order import key_columns
from slackwater.kernels.records import I64
from slackwater.query.aggregate import AggregateQuery


class WindowTally:
    """Makes the tallies of a query.

    Parameters
    ----------
    query
        Windows, key and groups.
    values
        The values that aggregates are computed from.
    log, rows
        Where the engine has its events, and their rows by stream.
    """

    def __init__(
        self, query: AggregateQuery, values: Values, log: Log, rows: Sequence[Rows]
    ) -> None:
        m = len(query.streams)
        self._length = query.length
        self._shape = (m, cells_for(m), values.n)
        self._values, self._log, self._rows = values, log, rows
        self._by = query.group_stream
        self._group_names = query.group_columns
        self._group_column = 0
        if self._by is not None:
            self._group_column = key_columns(query.keys, m)[self._by].index(1)

    def tally(self, start: int, numbers: I64, until: I64 | None) -> Tally:
        """Count these events of the window at `start`.

        `until` has the last time of each stream that counts; None: all events do.
        """
        log = self._log
        place = numbers - log.base
        stream, ts = log.stream[place], log.ts[place]
        if until is not None:
            out = ts <= until[stream]
            place, stream, ts = place[out], stream[out], ts[out]
        group, groups = self._groups(place, stream)
        arrival = log.arrival[place]
        events = Events(
            stream,
            (ts - start) * self._shape[1] // self._length,
            log.keys[place, 0],
            group,
            log.records().floats[:, place],
            (arrival - ts).astype(float),
            (arrival - start).astype(float),
        )
        return Tally.of(events, self._shape, self._values.streams, self._by, groups)

    def _groups(self, place: I64, stream: I64) -> tuple[I64, list[Group]]:
        """Return the group of each event, and the values that make the groups."""
        group = np.zeros(len(place), np.int64)
        if self._by is None:
            return group, [()]
        own = np.flatnonzero(stream == self._by)
        codes, first, inverse = np.unique(
            self._log.keys[place[own], self._group_column], return_index=True, return_inverse=True
        )
        table = self._rows[self._by].take(self._log.row[place[own[first]]])
        columns = [table.column(name).to_pylist() for name in self._group_names]
        named = list(zip(*columns, strict=True))
        order = sorted(range(len(codes)), key=lambda i: in_order(named[i]))
        rank = np.empty(len(codes), np.int64)
        rank[order] = np.arange(len(codes))
        group[own] = rank[inverse]
        return group, [named[i] for i in order]
