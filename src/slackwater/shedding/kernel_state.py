"""What the shedder and the join kernel have in common, as it is in the beginning."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.kernels import shed as places
from slackwater.kernels.records import BEFORE, I64, Shed
from slackwater.query.join import JoinQuery
from slackwater.query.shedding import Harvest, RandomDrop, Shedding
from slackwater.query.units import to_units

_BASIC_WINDOWS = 20  # of the longest window, unless the length of one is given

# What must be saved of it, beside what is learnt.
LASTING = (
    "ctl", "number", "keep", "share", "dropped", "thinned", "n_segments", "segment",
)  # fmt: skip


class Ways(NamedTuple):
    """How the join finds partners, as far as shedding has to know."""

    orders: list[list[int]]  # [start]: the other streams, in the order in which they are found
    direct: I64  # [start, stream, 3]: how to find it first; see `Shed.direct`
    lookup: I64  # [start, stream]: cost of finding the events with the right key
    counted: I64  # [start, stream]: 1 where events are counted, not looked at one by one
    linked: I64  # [bound, stream]: 1 where it is sorted by a value that is near one of `bound`
    tied: list[set[int]]  # [stream]: those that share a key with it
    any_order: bool  # whether the orders may be changed
    short_cut: bool  # whether there is a faster way as long as nothing is shed


def basic_windows(query: JoinQuery, asked: Shedding) -> tuple[I64, I64]:
    """Their length, and how many there are, of each stream."""
    lengths = [length for length in query.lengths if length is not None]
    given = asked.basic_window if isinstance(asked, Harvest) else None
    basic = (
        max(1, math.ceil(max(lengths) / _BASIC_WINDOWS))
        if given is None
        else to_units(given, query.unit)
    )
    n = [max(1, math.ceil(length / basic)) for length in lengths]
    return np.full(len(lengths), basic, np.int64), np.array(n, np.int64)


def new_shed(query: JoinQuery, asked: Shedding, ways: Ways) -> Shed:
    """Nothing is shed and nothing is known."""
    lengths = [length for length in query.lengths if length is not None]
    m = len(lengths)
    second = to_units("1 second", query.unit)
    basic, n = basic_windows(query, asked)
    most = int(n.max())
    ctl = np.zeros(places.CTL_LENGTH, np.int64)
    ctl[places.PER_STREAM] = isinstance(asked, Harvest) and asked.scores == "per-stream"
    number = np.zeros(places.NUMBER_LENGTH)
    number[[places.FIRST_FRACTION, places.LATER_FRACTION]] = 1.0
    number[places.SAMPLE] = asked.sample if isinstance(asked, RandomDrop) else 0.0
    number[places.BUFFER] = to_units(asked.buffer, query.unit)
    number[places.COMPARISON] = 0.0 if asked.budget is None else second / asked.budget
    number[places.FREE_AT] = BEFORE
    buckets = 4 * (most + int(n[0])) + 8 if ctl[places.PER_STREAM] else 0
    lookup = np.array([[ways.lookup[i, s] for s in order] for i, order in enumerate(ways.orders)])
    return Shed(
        ctl, number,
        keep=np.ones(m),
        share=np.ones(m),
        basic=basic,
        n=n,
        n_segments=np.zeros((m, m - 1), np.int64),
        segment=np.zeros((m, m - 1, 2 * most + 2), np.int64),
        lookup=lookup.astype(np.int64),
        direct=ways.direct,
        dropped=np.zeros(m, np.int64),
        thinned=np.zeros(m, np.int64),
        entered=np.zeros((2, m, m)),
        offered=np.zeros((2, m, m)),
        compared=np.zeros((2, m, m)),
        passed=np.zeros((2, m, m, most)),
        joined=np.zeros((m, m, most)),
        lags=np.zeros((m, buckets)),
    )  # fmt: skip
