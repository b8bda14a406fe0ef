"""Aggregates of one group's window as two stacks, slot by slot.

Counts and sums of integers run along, exact. What cannot be taken back (smallest, largest, sums of
floats, moments) is kept twice: the front stack has the aggregate from each of its events to its
end, the back one that of all its events. When the front is used up, the back becomes the front:
each event is moved once, and no float is ever subtracted.

A NaN is larger than every number, as in Spark and DuckDB.
"""

from __future__ import annotations

from math import isnan

from slackwater.kernels.jit import part
from slackwater.kernels.records import EVENT

# what a slot does
COUNT = 0  # values that are not null; kept as the number of those that are: mostly none
SUM_INT = 1
MIN_INT = 2
MAX_INT = 3
SUM_FLOAT = 4
MIN_FLOAT = 5
MAX_FLOAT = 6
MOMENTS_INT = 7  # three rows: count, mean, sum of squared deviations
MOMENTS_FLOAT = 8

# columns of `Groups.ring`
OFFSET = 0  # of its block
ROOM = 1  # length of the block, a power of two or 0
HEAD = 2  # first event; these three only grow, and are taken modulo ROOM
MID = 3  # first event of the back stack
TAIL = 4  # behind the last event
SEEN = 5  # events so far
NULLS = 6  # events in the ring that have any null
RING_LENGTH = 7

OVERFLOW = 0  # place in `ctl`: 1 if a sum of integers left the range of 64 bits

LEAST = -(2**63)
MOST = 2**63 - 1


@part
def _is_null(slot, nulls, slots):
    """Whether the value of a slot is among the `nulls` of an event."""
    return (nulls >> slots.null_bit[slot]) & 1 == 1


@part
def _is_less(a, b):
    return a < b or (isnan(b) and not isnan(a))


@part
def _combined(op, a, b):
    """The sum of floats, or the smaller or larger of them."""
    if op == SUM_FLOAT:
        return a + b
    if op == MIN_FLOAT:
        return a if _is_less(a, b) else b
    return a if _is_less(b, a) else b


@part
def _checked_sum(a, b, ctl):
    """A + b; notes when that is no 64-bit number."""
    if (b > 0 and a > MOST - b) or (b < 0 and a < LEAST - b):
        ctl[OVERFLOW] = 1
        return a
    return a + b


@part
def clear(slot, g, slots, groups):
    """An empty back stack."""
    op = slots.op[slot]
    row = slots.row[slot]
    if op == MIN_INT:
        groups.ints[row, g] = MOST
    elif op == MAX_INT:
        groups.ints[row, g] = LEAST
    elif op == SUM_FLOAT:
        groups.floats[row, g] = 0.0
    elif op == MIN_FLOAT:
        groups.floats[row, g] = float("nan")
    elif op == MAX_FLOAT:
        groups.floats[row, g] = -float("inf")
    elif op >= MOMENTS_INT:
        groups.floats[row, g] = 0.0
        groups.floats[row + 1, g] = 0.0
        groups.floats[row + 2, g] = 0.0


@part
def _moments(n, mean, squares, m, other_mean, other_squares):
    """Both together (Chan et al.)."""
    both = n + m
    if both == 0.0:
        return 0.0, 0.0, 0.0
    away = other_mean - mean
    return both, mean + away * m / both, squares + other_squares + away * away * n * m / both


@part
def _float_at(op, column, place, arrivals):
    if op == MOMENTS_INT:
        return float(arrivals.ints[column, place])
    return arrivals.floats[column, place]


@part
def put_value(slot, g, place, nulls, slots, groups, arrivals, ctl):
    """Add the value of an event to the back stack, or to what runs along."""
    op = slots.op[slot]
    row = slots.row[slot]
    column = slots.column[slot]
    if nulls != 0 and _is_null(slot, nulls, slots):
        if op == COUNT:
            groups.ints[row, g] += 1
        return
    if op == COUNT:
        return
    if op == SUM_INT:
        groups.ints[row, g] = _checked_sum(groups.ints[row, g], arrivals.ints[column, place], ctl)
    elif op == MIN_INT:
        groups.ints[row, g] = min(groups.ints[row, g], arrivals.ints[column, place])
    elif op == MAX_INT:
        groups.ints[row, g] = max(groups.ints[row, g], arrivals.ints[column, place])
    elif op == SUM_FLOAT:
        groups.floats[row, g] += arrivals.floats[column, place]
    elif op == MIN_FLOAT:
        if _is_less(arrivals.floats[column, place], groups.floats[row, g]):
            groups.floats[row, g] = arrivals.floats[column, place]
    elif op == MAX_FLOAT:
        if _is_less(groups.floats[row, g], arrivals.floats[column, place]):
            groups.floats[row, g] = arrivals.floats[column, place]
    else:
        n, mean, squares = _moments(
            groups.floats[row, g], groups.floats[row + 1, g], groups.floats[row + 2, g],
            1.0, _float_at(op, column, place, arrivals), 0.0,
        )  # fmt: skip
        groups.floats[row, g] = n
        groups.floats[row + 1, g] = mean
        groups.floats[row + 2, g] = squares


@part
def take_value(slot, g, place, nulls, slots, groups, arrivals, ctl):
    """Take back the value of an event from what runs along."""
    op = slots.op[slot]
    row = slots.row[slot]
    null = nulls != 0 and _is_null(slot, nulls, slots)
    if op == COUNT and null:
        groups.ints[row, g] -= 1
    elif op == SUM_INT and not null:
        value = arrivals.ints[slots.column[slot], place]
        if value == LEAST:
            ctl[OVERFLOW] = 1
        else:
            groups.ints[row, g] = _checked_sum(groups.ints[row, g], -value, ctl)


@part
def place_of(i, g, groups):
    """Where the entry with the running number `i` of a group lies."""
    return groups.ring[g, OFFSET] + (i & (groups.ring[g, ROOM] - 1))


@part
def turn(slot, g, slots, groups, arrivals):
    """The back stack becomes the front stack: aggregates from each event to the end."""
    op = slots.op[slot]
    row = slots.row[slot]
    column = slots.column[slot]
    if op <= SUM_INT:
        return
    has_nulls = groups.ring[g, NULLS] > 0
    clear(slot, g, slots, groups)  # its emptiness is where the front stack ends
    for i in range(groups.ring[g, TAIL] - 1, groups.ring[g, HEAD] - 1, -1):
        at = place_of(i, g, groups)
        place = groups.entry[at, EVENT] - arrivals.base
        null = has_nulls and _is_null(slot, arrivals.ints[0, place], slots)
        if op in (MIN_INT, MAX_INT):
            best = groups.ints[row, g]
            if not null:
                value = arrivals.ints[column, place]
                best = min(best, value) if op == MIN_INT else max(best, value)
            groups.ints[row, g] = best
            groups.int_suffix[row, at] = best
        elif op >= MOMENTS_INT:
            if not null:
                n, mean, squares = _moments(
                    1.0, _float_at(op, column, place, arrivals), 0.0,
                    groups.floats[row, g], groups.floats[row + 1, g], groups.floats[row + 2, g],
                )  # fmt: skip
                groups.floats[row, g] = n
                groups.floats[row + 1, g] = mean
                groups.floats[row + 2, g] = squares
            for part_of in range(3):
                groups.float_suffix[row + part_of, at] = groups.floats[row + part_of, g]
        else:
            total = groups.floats[row, g]
            if not null:
                total = _combined(op, arrivals.floats[column, place], total)
            groups.floats[row, g] = total
            groups.float_suffix[row, at] = total
    clear(slot, g, slots, groups)


@part
def write_value(slot, n, g, slots, groups, found):
    """Write the aggregate of both stacks to the result `n`, whose size is known."""
    op = slots.op[slot]
    row = slots.row[slot]
    has_front = groups.ring[g, HEAD] < groups.ring[g, MID]
    head = place_of(groups.ring[g, HEAD], g, groups)
    if op <= MAX_INT:
        whole = groups.ints[row, g]
        if op == COUNT:
            whole = found.size[n] - whole
        elif has_front and op == MIN_INT:
            whole = min(groups.int_suffix[row, head], whole)
        elif has_front and op == MAX_INT:
            whole = max(groups.int_suffix[row, head], whole)
        found.ints[slot, n] = whole
    elif op >= MOMENTS_INT:
        squares = groups.floats[row + 2, g]
        if has_front:
            _, _, squares = _moments(
                groups.float_suffix[row, head], groups.float_suffix[row + 1, head],
                groups.float_suffix[row + 2, head],
                groups.floats[row, g], groups.floats[row + 1, g], squares,
            )  # fmt: skip
        found.floats[slot, n] = squares
    else:
        total = groups.floats[row, g]
        if has_front:
            total = _combined(op, groups.float_suffix[row, head], total)
        found.floats[slot, n] = total
