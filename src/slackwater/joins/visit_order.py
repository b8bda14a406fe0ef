"""In which order the streams are visited when an event looks for partners.

From the starting stream the join tree is walked breadth first, so that each stream is reached by a
key of a stream visited before. Streams with nothing behind them come last: they are the leaves,
which counting multiplies and need not visit.

>>> from slackwater.query.keys import keys_of
>>> star = keys_of(["a.x = b.x", "a.y = c.y"], ("a", "b", "c"))
>>> [step.stream for step in steps_from(0, star)], [step.stream for step in steps_from(1, star)]
([1, 2], [0, 2])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.kernels.records import I64, NONE, Plan
from slackwater.query.join import JoinQuery
from slackwater.query.keys import Key


@dataclass(frozen=True)
class Step:
    """Find events of `stream` that share `key` with the event chosen for `parent`."""

    stream: int
    parent: int
    key: int
    inner: bool  # further steps start from this one


def key_columns(keys: Sequence[Key], n_streams: int) -> list[list[int]]:
    """For each stream the keys it takes part in; their order is that of its key columns."""
    return [[k for k, key in enumerate(keys) if s in key.columns] for s in range(n_streams)]


def steps_from(start: int, keys: Sequence[Key]) -> list[Step]:
    """The steps from an event of stream `start` to all other streams, inner ones first."""
    steps: list[Step] = []
    frontier: list[tuple[int, int]] = [(start, NONE)]
    while frontier:
        parent, came_by = frontier.pop(0)
        for k, key in enumerate(keys):
            if k == came_by or parent not in key.columns:
                continue
            for stream in key.streams:
                if stream != parent:
                    leads_on = any(
                        j != k and stream in other.columns for j, other in enumerate(keys)
                    )
                    steps.append(Step(stream, parent, k, leads_on))
                    frontier.append((stream, k))
    return sorted(steps, key=lambda step: not step.inner)  # stable: parents stay before children


def steps_along(start: int, order: Sequence[int], keys: Sequence[Key]) -> list[Step]:
    """The same steps in another order, in which each stream is tied to one before it.

    >>> from slackwater.query.keys import keys_of
    >>> shared = keys_of("k", ("a", "b", "c"))
    >>> [step.stream for step in steps_along(0, [2, 1], shared)]
    [2, 1]
    """
    own = {step.stream: step for step in steps_from(start, keys)}
    bound, steps = [start], []
    for stream in order:
        key = own[stream].key
        parent = next(s for s in bound if s in keys[key].columns)
        steps.append(Step(stream, parent, key, own[stream].inner))
        bound.append(stream)
    return steps


def build_plan(
    query: JoinQuery,
    site_of: Callable[[frozenset[int], int], int],
    orders: Sequence[Sequence[int]] | None = None,
) -> Plan:
    """The plan for every starting stream; `site_of` finds the condition that a step can apply.

    It is given the streams bound before the step and the stream found in it. `orders` has, for each
    starting stream, the order of the others, where it is not that of `steps_from`.
    """
    keys, n_streams = query.keys, len(query.streams)
    columns = key_columns(keys, n_streams)
    shape = (n_streams, n_streams - 1)
    stream, parent, column, place, site = (np.full(shape, NONE, np.int64) for _ in range(5))
    inner = np.zeros(n_streams, np.int64)
    for start in range(n_streams):
        bound = {start}
        steps = steps_from(start, keys)
        if orders is not None:
            steps = steps_along(start, orders[start], keys)
        for i, step in enumerate(steps):
            inner[start] += step.inner
            stream[start, i] = step.stream
            parent[start, i] = step.parent
            column[start, i] = columns[step.parent].index(step.key)
            place[start, i] = keys[step.key].streams.index(step.stream)
            site[start, i] = site_of(frozenset(bound), step.stream)
            bound.add(step.stream)
    widest = max(len(own) for own in columns)
    own_place = np.full((n_streams, widest), NONE, np.int64)
    for s, own in enumerate(columns):
        own_place[s, : len(own)] = [keys[k].streams.index(s) for k in own]
    n_keys = np.array([len(own) for own in columns], np.int64)
    width = max(len(key.streams) for key in keys)
    shared = int(len(keys) == 1 and not query.has_condition and not query.has_tuple_windows)
    return Plan(width, shared, inner, stream, parent, column, place, site, n_keys, own_place)


def direct_steps(query: JoinQuery, site_of: Callable[[frozenset[int], int], int]) -> I64:
    """How to find each stream first: [start, stream, key column / place / site]; NONE: not at all.

    See `kernels.shed` for the columns.
    """
    keys, n_streams = query.keys, len(query.streams)
    columns = key_columns(keys, n_streams)
    direct = np.full((n_streams, n_streams, 3), NONE, np.int64)
    for start in range(n_streams):
        for step in steps_from(start, keys):
            if start in keys[step.key].columns:
                direct[start, step.stream] = (
                    columns[start].index(step.key),
                    keys[step.key].streams.index(step.stream),
                    site_of(frozenset([start]), step.stream),
                )
    return direct


def lookups(query: JoinQuery) -> I64:
    """What finding the events with the right key costs, in comparisons: [start, stream]."""
    keys, n_streams = query.keys, len(query.streams)
    cost = np.zeros((n_streams, n_streams), np.int64)
    for start in range(n_streams):
        for step in steps_from(start, keys):
            cost[start, step.stream] = len(keys[step.key].columns[step.stream]) > 0
    return cost


def counted(query: JoinQuery) -> I64:
    """Which streams are only counted: the leaves, where nothing is walked; [start, stream]."""
    keys, n_streams = query.keys, len(query.streams)
    leaves = np.zeros((n_streams, n_streams), np.int64)
    if query.select == "count" and not query.has_condition:
        for start in range(n_streams):
            for step in steps_from(start, keys):
                leaves[start, step.stream] = not step.inner
    return leaves


def tied(query: JoinQuery) -> list[set[int]]:
    """For each stream, those that a key ties it to."""
    return [
        {s for key in query.keys if start in key.columns for s in key.streams} - {start}
        for start in range(len(query.streams))
    ]
