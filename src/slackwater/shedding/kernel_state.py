"""The state that the shedder shares with the join kernel, and its initial values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slackwater.kernels import shed as fields
from slackwater.kernels.records import BEFORE, I64, Shed
from slackwater.query.join import JoinQuery
from slackwater.query.shedding import Shedding
from slackwater.query.units import to_units

_MOST_STARTS = 1024  # events of which it is known when the virtual server begins them
_BASIC_WINDOWS = 20  # of the longest window, unless the length of one is given

# What a snapshot has of it, beside the statistics of the sample.
SAVED_FIELDS = (
    "ctl", "number", "keep", "share", "dropped", "thinned", "starts", "n_segments", "segment",
)  # fmt: skip


class AccessPaths(NamedTuple):
    """How the join finds partners, as far as it matters to shedding."""

    orders: list[list[int]]  # [start]: the other streams, in the order in which they are searched
    direct: I64  # [start, stream, 3]: how to search it first; see `Shed.direct`
    lookup: I64  # [start, stream]: cost of finding the events with the right key
    counted: I64  # [start, stream]: 1 where events are counted, not compared one by one
    linked: I64  # [bound, stream]: 1 where it is sorted by a value that is near one of `bound`
    tied: list[set[int]]  # [stream]: those that share a key with it
    any_order: bool  # whether the orders may be changed
    short_cut: bool  # whether there is a faster path while nothing is shed


def basic_windows(query: JoinQuery, shedding: Shedding) -> tuple[I64, I64]:
    """Return the length of basic windows, and how many there are, of each stream."""
    lengths = [length for length in query.lengths if length is not None]
    basic = shedding.basic_window_in(query.unit)
    if basic is None:
        basic = max(1, math.ceil(max(lengths) / _BASIC_WINDOWS))
    n = [max(1, math.ceil(length / basic)) for length in lengths]
    return np.full(len(lengths), basic, np.int64), np.array(n, np.int64)


def new_shed(query: JoinQuery, shedding: Shedding, paths: AccessPaths) -> Shed:
    """Return the initial state: nothing is shed and nothing is known."""
    lengths = [length for length in query.lengths if length is not None]
    m = len(lengths)
    second = to_units("1 second", query.unit)
    basic, n = basic_windows(query, shedding)
    most = int(n.max())
    ctl = np.zeros(fields.CTL_LENGTH, np.int64)
    ctl[fields.PER_STREAM] = shedding.scores_per_stream
    number = np.zeros(fields.NUMBER_LENGTH)
    number[[fields.FIRST_FRACTION, fields.LATER_FRACTION]] = 1.0
    number[fields.SAMPLE] = shedding.sample_rate
    number[fields.BUFFER] = to_units(shedding.buffer, query.unit)
    number[fields.COMPARISON] = 0.0 if shedding.budget is None else second / shedding.budget
    number[fields.FREE_AT] = BEFORE
    counts = shedding.counts_events and not shedding.uses_measured_load
    lookup = np.array([[paths.lookup[i, s] for s in order] for i, order in enumerate(paths.orders)])
    return Shed(
        ctl, number,
        keep=np.ones(m),
        share=np.ones(m),
        basic=basic,
        n=n,
        n_segments=np.zeros((m, m - 1), np.int64),
        segment=np.zeros((m, m - 1, 2 * most + 2), np.int64),
        lookup=lookup.astype(np.int64),
        direct=paths.direct,
        dropped=np.zeros(m, np.int64),
        starts=np.full(_MOST_STARTS if counts else 0, float(BEFORE)),
        thinned=np.zeros(m, np.int64),
        entered=np.zeros((2, m, m)),
        offered=np.zeros((2, m, m)),
        compared=np.zeros((2, m, m)),
        passed=np.zeros((2, m, m, most)),
        joined=np.zeros((m, m, most)),
        lags=np.zeros((m, _lag_buckets(lengths, basic) if ctl[fields.PER_STREAM] else 0)),
    )  # fmt: skip


def _lag_buckets(lengths: Sequence[int], basic: I64) -> int:
    """Return how many buckets hold all lags from minus a window to the first stream's window."""
    widths: list[int] = [fields.lag_width(int(length)) for length in basic]
    return max((own + lengths[0]) // w + 1 for own, w in zip(lengths, widths, strict=True))
