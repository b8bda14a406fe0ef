"""In which order the streams are visited when an event looks for partners.

From the starting stream the join tree is walked breadth first, so that each stream is reached by a
key of a stream visited before. Streams with nothing behind them come last: they are the leaves,
which counting multiplies and need not visit.

>>> from slackwater.graph import keys_of
>>> star = keys_of(["a.x = b.x", "a.y = c.y"], ("a", "b", "c"))
>>> [step.stream for step in steps_from(0, star)], [step.stream for step in steps_from(1, star)]
([1, 2], [0, 2])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.graph import Key
from slackwater.kernels.records import NONE, Plan
from slackwater.query import Query


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


def build_plan(query: Query, site_of: Callable[[frozenset[int], int], int]) -> Plan:
    """The plan for every starting stream; `site_of` tells which condition a step can apply.

    It is given the streams bound before the step and the stream found in it.
    """
    keys, n_streams = query.keys, len(query.streams)
    columns = key_columns(keys, n_streams)
    shape = (n_streams, n_streams - 1)
    stream, parent, column, place, site = (np.full(shape, NONE, np.int64) for _ in range(5))
    inner = np.zeros(n_streams, np.int64)
    for start in range(n_streams):
        bound = {start}
        for i, step in enumerate(steps_from(start, keys)):
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
    shared = int(len(keys) == 1 and not query.where and not query.has_tuple_windows)
    return Plan(width, shared, inner, stream, parent, column, place, site, n_keys, own_place)
