"""Basic windows sorted by value: an ε-join finds its partners by bisection (GrubJoin VII).

An index is a sorted copy of a basic window whose time is over, made when it is first looked at.
Nothing else depends on it: if late events came in since, it is made anew. The youngest basic
window, which still grows, is gone through as it is. Sorting is not charged, as insertion is not:
an engine that was restored has to do it again, and must not decide otherwise for that.
"""

from __future__ import annotations

import math

from slackwater.kernels.frame import TIME
from slackwater.kernels.jit import part, rare
from slackwater.kernels.records import EVENT, NONE, TS
from slackwater.kernels.shed import COMPARED
from slackwater.kernels.windows import position

# columns of `Index.column` and, behind PARENT, of `Index.band`
MATRIX = 0  # 0: integers, 1: floats
ROW = 1
PARENT = 0

# columns of `Index.slot` and `Index.room`
GRID = 0
BEGIN = 1
SIZE = 2
FIRST = 3  # its first event
ROOM_BEGIN = 0
ROOM_SIZE = 1
HEAD = 2

_TOLERANCE = 1e-9  # bands are looked for a little wider: the condition itself decides


@part
def number_of(event, matrix, row, arrivals):
    """A value of an event, as a float; NaN is beyond everything."""
    if matrix == 0:
        return float(arrivals.ints[row, event - arrivals.base])
    value = arrivals.floats[row, event - arrivals.base]
    return value if value == value else math.inf  # noqa: PLR0124  NaN is not itself


@part
def _sort(begin, n, index):
    """Shell sort by (value, event)."""
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, begin + n):
            value = index.value[i]
            t = index.entry[i, TS]
            event = index.entry[i, EVENT]
            j = i
            while j - gap >= begin and (
                index.value[j - gap] > value
                or (index.value[j - gap] == value and index.entry[j - gap, EVENT] > event)
            ):
                index.value[j] = index.value[j - gap]
                index.entry[j, TS] = index.entry[j - gap, TS]
                index.entry[j, EVENT] = index.entry[j - gap, EVENT]
                j -= gap
            index.value[j] = value
            index.entry[j, TS] = t
            index.entry[j, EVENT] = event
        gap //= 3


@part
def _allocate(s, n, index):
    """Room for `n` events, taken from what is there now; there is room for a whole log."""
    if index.room[s, HEAD] + n > index.room[s, ROOM_SIZE]:
        index.room[s, HEAD] = 0
    begin = index.room[s, ROOM_BEGIN] + index.room[s, HEAD]
    index.room[s, HEAD] += n
    for other in range(index.slot.shape[1]):
        first = index.slot[s, other, BEGIN]
        if first < begin + n and begin < first + index.slot[s, other, SIZE]:
            index.slot[s, other, GRID] = NONE
    return begin


@rare
def _make(s, g, first, n, index, store, arrivals):
    """Sort the basic window `g` of `s`; return its slot."""
    begin = _allocate(s, n, index)
    for i in range(n):
        event = store.entry[first + i, EVENT]
        index.entry[begin + i, TS] = store.entry[first + i, TS]
        index.entry[begin + i, EVENT] = event
        index.value[begin + i] = number_of(
            event, index.column[s, MATRIX], index.column[s, ROW], arrivals
        )
    _sort(begin, n, index)
    slot = g % index.slot.shape[1]
    index.slot[s, slot, GRID] = g
    index.slot[s, slot, BEGIN] = begin
    index.slot[s, slot, SIZE] = n
    index.slot[s, slot, FIRST] = store.entry[first, EVENT]
    return slot


@part
def _bisect(value, low, high, index):
    """First place between `low` and `high` whose value is not below `value`."""
    while low < high:
        middle = (low + high) >> 1
        if index.value[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@part
def near(start, step, s, g, run, frame, store, scratch, arrivals, shed, index):
    """Candidates in the basic window `g` of `s` that are near enough: (begin, end, sorted or not).

    Without an index, those are all of its events.
    """
    basic = shed.basic[s]
    first = position(run, g * basic, store)
    last = position(run, (g + 1) * basic, store)
    if first == last or (g + 1) * basic > frame.ctl[TIME]:
        return first, last, False
    slot = g % index.slot.shape[1]
    if (
        index.slot[s, slot, GRID] != g
        or index.slot[s, slot, SIZE] != last - first
        or index.slot[s, slot, FIRST] != store.entry[first, EVENT]
    ):
        slot = _make(s, g, first, last - first, index, store, arrivals)
    parent = index.band[start, step, PARENT]
    value = number_of(
        scratch.at[parent], index.band[start, step, 1 + MATRIX], index.band[start, step, 1 + ROW],
        arrivals,
    )  # fmt: skip
    off = index.width[start, step]
    off += _TOLERANCE * (1.0 + abs(value) + off)
    begin = index.slot[s, slot, BEGIN]
    end = begin + index.slot[s, slot, SIZE]
    shed.ctl[COMPARED] += 2 * int(math.log2(end - begin + 1))
    low = _bisect(value - off, begin, end, index)
    high = low
    while high < end and index.value[high] <= value + off:
        high += 1
    return low, high, True
