"""What has arrived of a window, as counts and products by cell; tallies of shards are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.compensation.observation import Truth, WindowObservation
from slackwater.kernels import products as kernels
from slackwater.kernels.records import F64, I64

Group = tuple[Any, ...]


class Events(NamedTuple):
    """Some events of a window, in arrival order."""

    stream: I64
    cell: I64
    key: I64
    group: I64  # 0 without groups
    values: F64  # [value, event]
    delay: F64
    arrival: F64  # from the start of the window


class Tally(NamedTuple):
    """A window, or a shard's share of it."""

    counts: F64  # [stream, cell]
    products: F64  # [group, value, combination of cells]
    groups: list[Group]
    delay: F64  # [stream]
    latest: F64  # [stream]

    @classmethod
    def of(
        cls,
        events: Events,
        shape: tuple[int, int, int],
        value_of: I64,
        by: int | None,
        groups: list[Group],
    ) -> Tally:
        """Count `events`; `shape` is the number of streams, cells and values."""
        m, cells, n_values = shape
        n, n_groups = len(events.stream), max(1, len(groups))
        counts = np.zeros((m, cells))
        delay, latest = np.zeros(m), np.zeros(m)
        kernels.count_cells(
            events.stream, events.cell, events.delay, events.arrival, counts, delay, latest
        )
        rank = (events.key * m + events.stream) * n_groups + events.group
        order = np.argsort(rank * cells + events.cell, kind="stable")
        found = np.zeros((n_groups, n_values, cells**m))
        kernels.cell_products(
            order, events.key, events.stream, events.group, events.cell, events.values, value_of,
            0 if by is None else by, cells, m,
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty((n_values - 1, n)),
            np.zeros(m + 1, np.int64), np.zeros(m, np.int64), found,
        )  # fmt: skip
        return cls(counts, found[: len(groups)], groups, delay, latest)

    def observation(self, length: int) -> WindowObservation:
        """Return the observation of a window of this length, all groups together."""
        m, cells = self.counts.shape
        whole = self.products.sum(axis=0).reshape(-1, *(cells,) * m)
        return WindowObservation(self.counts, whole, self.delay, self.latest, float(length))

    @property
    def truth(self) -> Truth:
        """The window as what estimators learn from, all groups together."""
        cells = self.counts.shape[1]
        whole = self.products.sum(axis=0)
        return Truth(self.counts, whole.reshape(len(whole), cells, -1).sum(axis=2))

    @property
    def values(self) -> F64:
        """The values of each group: [group, value]."""
        return np.asarray(self.products.sum(axis=2))

    def tensor(self, group: int) -> F64:
        """Return the products of one group: [value, cell, cell, ...]."""
        m, cells = self.counts.shape
        return np.asarray(self.products[group].reshape(-1, *(cells,) * m))


def added_up(parts: Sequence[Tally]) -> Tally:
    """Return the sum of the tallies of all shards."""
    if len(parts) == 1:
        return parts[0]
    groups = sorted({group for part in parts for group in part.groups}, key=in_order)
    place = {group: i for i, group in enumerate(groups)}
    found = np.zeros((len(groups), *parts[0].products.shape[1:]))
    for part in parts:
        for i, group in enumerate(part.groups):
            found[place[group]] += part.products[i]
    counts = sum((part.counts for part in parts), np.zeros_like(parts[0].counts))
    share = np.stack([part.counts.sum(axis=1) for part in parts])
    delay = (share * np.stack([part.delay for part in parts])).sum(axis=0)
    delay /= np.maximum(share.sum(axis=0), 1.0)
    latest = np.stack([part.latest for part in parts]).max(axis=0)
    return Tally(counts, found, groups, delay, latest)


def in_order(group: Group) -> tuple[tuple[bool, Any], ...]:
    """Return the sort key of a group; nulls come last."""
    return tuple((value is None, 0 if value is None else value) for value in group)
