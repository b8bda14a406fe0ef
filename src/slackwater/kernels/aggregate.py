"""Aggregates over windows of one stream, group by group, in constant time per event.

Each group has its events in a ring. Counts and sums of integers run along, exact. For what cannot
be taken back (smallest, largest, sums of floats, moments) the ring is two stacks: the front one
knows the aggregate from each of its events to its end, the back one that of all its events. When
the front is used up, the back becomes the front: each event is moved once. No window is ever
rescanned, and no float is ever subtracted.

A NaN is larger than every number, as in Spark and DuckDB.
"""

from __future__ import annotations

from math import isnan

from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import EVENT, NONE, TS

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

# places in `ctl`
CLOCK = 0  # the heartbeat; an event before it is late
NEXT_END = 1  # of the windows that are still open, the first end
SLIDE = 2  # windows end at multiples of this; 0: at every event
RANGE = 3  # length of a window in units; NONE: it is counted in tuples
TUPLES = 4  # length of a window in tuples
EVERY = 5  # emit at every so many events of a group
OPEN_END = 6  # 1: a window does not contain its end, but its beginning
N_ACTIVE = 7  # groups in `Groups.active`
N_FOUND = 8
N_LATE = 9
OVERFLOW = 10  # 1: a sum of integers left the range of 64 bits
FREE = 11  # entries from here on belong to no group
HAS_SUMS = 12  # 1: some slot is a SUM_INT
CTL_LENGTH = 13

SMALLEST_RING = 4

DONE = 0
NO_ROOM = 1
FULL = 2

LEAST = -(2**63)
MOST = 2**63 - 1


# ---- values


@part
def _is_null(slot, nulls, slots):
    """Whether the value of a slot is among the `nulls` of an event."""
    return (nulls >> slots.null_bit[slot]) & 1 == 1


@part
def _less(a, b):
    return a < b or (isnan(b) and not isnan(a))


@part
def _sum(a, b, ctl):
    """A + b; notes when that is no 64-bit number."""
    if (b > 0 and a > MOST - b) or (b < 0 and a < LEAST - b):
        ctl[OVERFLOW] = 1
        return a
    return a + b


@part
def _clear(slot, g, slots, groups):
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
def _put(slot, g, place, nulls, slots, groups, arrivals, ctl):
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
        groups.ints[row, g] = _sum(groups.ints[row, g], arrivals.ints[column, place], ctl)
    elif op == MIN_INT:
        groups.ints[row, g] = min(groups.ints[row, g], arrivals.ints[column, place])
    elif op == MAX_INT:
        groups.ints[row, g] = max(groups.ints[row, g], arrivals.ints[column, place])
    elif op == SUM_FLOAT:
        groups.floats[row, g] += arrivals.floats[column, place]
    elif op == MIN_FLOAT:
        if _less(arrivals.floats[column, place], groups.floats[row, g]):
            groups.floats[row, g] = arrivals.floats[column, place]
    elif op == MAX_FLOAT:
        if _less(groups.floats[row, g], arrivals.floats[column, place]):
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
def _take(slot, g, place, nulls, slots, groups, arrivals, ctl):
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
            groups.ints[row, g] = _sum(groups.ints[row, g], -value, ctl)


@part
def _at(i, g, groups):
    return groups.ring[g, OFFSET] + (i & (groups.ring[g, ROOM] - 1))


@part
def _turn(slot, g, slots, groups, arrivals):
    """The back stack becomes the front stack: aggregates from each event to the end."""
    op = slots.op[slot]
    row = slots.row[slot]
    column = slots.column[slot]
    if op <= SUM_INT:
        return
    has_nulls = groups.ring[g, NULLS] > 0
    _clear(slot, g, slots, groups)  # its emptiness is where the front stack ends
    for i in range(groups.ring[g, TAIL] - 1, groups.ring[g, HEAD] - 1, -1):
        at = _at(i, g, groups)
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
                value = arrivals.floats[column, place]
                if op == SUM_FLOAT:
                    total = value + total
                elif op == MIN_FLOAT:
                    total = value if _less(value, total) else total
                else:
                    total = value if _less(total, value) else total
            groups.floats[row, g] = total
            groups.float_suffix[row, at] = total
    _clear(slot, g, slots, groups)


# ---- windows


@part
def _pop(g, slots, groups, arrivals, ctl):
    """Forget the first event of a group."""
    ring = groups.ring
    if ring[g, HEAD] == ring[g, MID]:
        for slot in range(slots.op.shape[0]):
            _turn(slot, g, slots, groups, arrivals)
        ring[g, MID] = ring[g, TAIL]
    if ctl[HAS_SUMS] == 1 or ring[g, NULLS] > 0:
        place = groups.entry[_at(ring[g, HEAD], g, groups), EVENT] - arrivals.base
        nulls = arrivals.ints[0, place]
        if nulls != 0:
            ring[g, NULLS] -= 1
        for slot in range(slots.op.shape[0]):
            _take(slot, g, place, nulls, slots, groups, arrivals, ctl)
    ring[g, HEAD] += 1


@part
def _evict(g, bound, slots, groups, arrivals, ctl):
    """Forget the events of a group up to the time `bound`."""
    ring = groups.ring
    while ring[g, HEAD] < ring[g, TAIL]:
        if groups.entry[_at(ring[g, HEAD], g, groups), TS] > bound:
            return
        _pop(g, slots, groups, arrivals, ctl)


@part
def _activate(g, slots, groups, ctl):
    """A group has an event again."""
    if groups.place[g] == NONE:
        groups.active[ctl[N_ACTIVE]] = g
        groups.place[g] = ctl[N_ACTIVE]
        ctl[N_ACTIVE] += 1
        groups.ring[g, MID] = groups.ring[g, HEAD]
        groups.ring[g, NULLS] = 0
        for slot in range(slots.op.shape[0]):
            _clear(slot, g, slots, groups)
            if slots.op[slot] <= SUM_INT:
                groups.ints[slots.row[slot], g] = 0


@part
def _deactivate(g, groups, ctl):
    """A group has no more events."""
    ctl[N_ACTIVE] -= 1
    last = groups.active[ctl[N_ACTIVE]]
    groups.active[groups.place[g]] = last
    groups.place[last] = groups.place[g]
    groups.place[g] = NONE


@part
def _copy(frm, to, groups_from, groups_to):
    """Copy an entry and its aggregates."""
    groups_to.entry[to, TS] = groups_from.entry[frm, TS]
    groups_to.entry[to, EVENT] = groups_from.entry[frm, EVENT]
    for row in range(groups_from.int_suffix.shape[0]):
        groups_to.int_suffix[row, to] = groups_from.int_suffix[row, frm]
    for row in range(groups_from.float_suffix.shape[0]):
        groups_to.float_suffix[row, to] = groups_from.float_suffix[row, frm]


@part
def _reserve(g, groups, ctl):
    """Have room for one more event of a group; return whether there is any."""
    ring = groups.ring
    if ring[g, TAIL] - ring[g, HEAD] < ring[g, ROOM]:
        return True
    room = max(SMALLEST_RING, 2 * ring[g, ROOM])
    begin = ctl[FREE]
    if begin + room > groups.entry.shape[0]:
        return False
    for i in range(ring[g, HEAD], ring[g, TAIL]):
        _copy(_at(i, g, groups), begin + (i & (room - 1)), groups, groups)
    ring[g, OFFSET] = begin
    ring[g, ROOM] = room
    ctl[FREE] = begin + room
    return True


@part
def _push(event, t, g, slots, groups, arrivals, ctl):
    """Add an event to its group, which has room."""
    ring = groups.ring
    _activate(g, slots, groups, ctl)
    at = _at(ring[g, TAIL], g, groups)
    groups.entry[at, TS] = t
    groups.entry[at, EVENT] = event
    ring[g, TAIL] += 1
    nulls = arrivals.ints[0, event - arrivals.base]
    if nulls != 0:
        ring[g, NULLS] += 1
    for slot in range(slots.op.shape[0]):
        _put(slot, g, event - arrivals.base, nulls, slots, groups, arrivals, ctl)


@part
def _emit(ts, position, g, slots, groups, ctl, found):
    """The aggregate of a group as it is now."""
    ring = groups.ring
    n = ctl[N_FOUND]
    head = _at(ring[g, HEAD], g, groups)
    found.ts[n] = ts
    found.first[n] = groups.entry[head, EVENT]
    found.last[n] = groups.entry[_at(ring[g, TAIL] - 1, g, groups), EVENT]
    found.size[n] = ring[g, TAIL] - ring[g, HEAD]
    found.position[n] = position
    has_front = ring[g, HEAD] < ring[g, MID]
    for slot in range(slots.op.shape[0]):
        op = slots.op[slot]
        row = slots.row[slot]
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
                front = groups.float_suffix[row, head]
                if op == SUM_FLOAT:
                    total = front + total
                elif op == MIN_FLOAT:
                    total = front if _less(front, total) else total
                else:
                    total = front if _less(total, front) else total
            found.floats[slot, n] = total
    ctl[N_FOUND] = n + 1


@part
def _close(now, position, slots, groups, arrivals, ctl, found):
    """Emit the windows that end before `now`; return whether there was room for all of them."""
    shut = 1 - ctl[OPEN_END]
    while ctl[N_ACTIVE] > 0 and ctl[NEXT_END] <= now - shut:
        if ctl[N_FOUND] + ctl[N_ACTIVE] > found.ts.shape[0]:
            return False
        end = ctl[NEXT_END]
        i = 0
        while i < ctl[N_ACTIVE]:
            g = groups.active[i]
            _evict(g, end - ctl[RANGE] - ctl[OPEN_END], slots, groups, arrivals, ctl)
            if groups.ring[g, HEAD] == groups.ring[g, TAIL]:
                _deactivate(g, groups, ctl)  # another one is in its place now
            else:
                _emit(end, position, g, slots, groups, ctl, found)
                i += 1
        ctl[NEXT_END] = end + ctl[SLIDE]
    return True


@part
def _first_end(t, ctl):
    """The end of the first window that can contain `t`."""
    slide = ctl[SLIDE]
    return (t - 1 + ctl[OPEN_END]) // slide * slide + slide


@kernel
def run(at, released, ctl, slots, groups, arrivals, found, late):
    """Process what was released, from position `at`; return (next position, why it stopped)."""
    ring = groups.ring
    for i in range(at, released.event.shape[0]):
        event = released.event[i]
        t = released.ts[i]
        if event == NONE:  # a mark
            if ctl[SLIDE] > 0 and not _close(t, i, slots, groups, arrivals, ctl, found):
                return i, FULL
            ctl[CLOCK] = max(ctl[CLOCK], t)
            continue
        if t < ctl[CLOCK]:
            late.position[ctl[N_LATE]] = i
            late.by[ctl[N_LATE]] = ctl[CLOCK] - t
            late.lost[ctl[N_LATE]] = 0
            late.fate[ctl[N_LATE]] = 0
            ctl[N_LATE] += 1
            continue
        if ctl[SLIDE] > 0:
            if not _close(t, i, slots, groups, arrivals, ctl, found):
                return i, FULL
        elif ctl[N_FOUND] == found.ts.shape[0]:
            return i, FULL
        g = released.key[i]
        if ctl[SLIDE] == 0:
            if ctl[RANGE] != NONE:
                _evict(g, t - ctl[RANGE], slots, groups, arrivals, ctl)
            else:
                while ring[g, TAIL] - ring[g, HEAD] >= ctl[TUPLES]:
                    _pop(g, slots, groups, arrivals, ctl)
        if not _reserve(g, groups, ctl):
            return i, NO_ROOM
        if ctl[SLIDE] > 0 and ctl[N_ACTIVE] == 0:
            ctl[NEXT_END] = max(ctl[NEXT_END], _first_end(t, ctl))
        _push(event, t, g, slots, groups, arrivals, ctl)
        ring[g, SEEN] += 1
        if ctl[SLIDE] == 0 and ring[g, SEEN] % ctl[EVERY] == 0:
            _emit(t, i, g, slots, groups, ctl, found)
    return released.event.shape[0], DONE


@kernel
def close_all(ctl, slots, groups, arrivals, found, position):
    """End of input: the windows that have events end; returns whether there was room."""
    while ctl[N_ACTIVE] > 0:
        if not _close(ctl[NEXT_END] + 1, position, slots, groups, arrivals, ctl, found):
            return False
    return True


@kernel
def forget(bound, ctl, slots, groups, arrivals):
    """Forget the events of all groups up to the time `bound`: no window reaches back to them."""
    i = 0
    while i < ctl[N_ACTIVE]:
        g = groups.active[i]
        _evict(g, bound, slots, groups, arrivals, ctl)
        if groups.ring[g, HEAD] == groups.ring[g, TAIL]:
            _deactivate(g, groups, ctl)
        else:
            i += 1


@kernel
def put_back(events, is_front, slots, groups, arrivals, ctl, keys):
    """Add `events`, group by group in order, after a restart; there is room for them."""
    n = events.shape[0]
    for i in range(n):
        place = events[i] - arrivals.base
        g = keys[i]
        _push(events[i], arrivals.event[place, TS], g, slots, groups, arrivals, ctl)
        if is_front[i] and (i + 1 == n or keys[i + 1] != g or not is_front[i + 1]):
            for slot in range(slots.op.shape[0]):
                _turn(slot, g, slots, groups, arrivals)
            groups.ring[g, MID] = groups.ring[g, TAIL]


@kernel
def repack(n, old, new):
    """Copy the events of the first `n` groups, and their aggregates, from `old` to `new` blocks.

    The rings of `new` have their blocks; everything else of them is copied here.
    """
    for g in range(n):
        for column in range(HEAD, RING_LENGTH):
            new.ring[g, column] = old.ring[g, column]
        for i in range(old.ring[g, HEAD], old.ring[g, TAIL]):
            _copy(_at(i, g, old), _at(i, g, new), old, new)


@kernel
def contents(ctl, groups, events, is_front):
    """Write all events, group by group in order, and which are in front; return how many."""
    n = 0
    for i in range(ctl[N_ACTIVE]):
        g = groups.active[i]
        for k in range(groups.ring[g, HEAD], groups.ring[g, TAIL]):
            events[n] = groups.entry[_at(k, g, groups), EVENT]
            is_front[n] = k < groups.ring[g, MID]
            n += 1
    return n
