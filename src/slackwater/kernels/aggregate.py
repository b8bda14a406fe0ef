"""Aggregates over windows of one stream, group by group, in constant time per event.

Each group has its events in a ring, and its aggregates as two stacks (`stacks`): no window is ever
rescanned.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import EVENT, NONE, TS
from slackwater.kernels.stacks import (
    HEAD,
    MID,
    NULLS,
    OFFSET,
    RING_LENGTH,
    ROOM,
    SEEN,
    SUM_INT,
    TAIL,
    clear,
    place_of,
    put_value,
    take_value,
    turn,
    write_value,
)

# places in `ctl`, behind OVERFLOW
CLOCK = 1  # the heartbeat; an event before it is late
NEXT_END = 2  # of the windows that are still open, the first end
SLIDE = 3  # windows end at multiples of this; 0: at every event
RANGE = 4  # length of a window in units; NONE: it is counted in tuples
TUPLES = 5  # length of a window in tuples
EVERY = 6  # emit at every so many events of a group
OPEN_END = 7  # 1: a window does not contain its end, but its beginning
N_ACTIVE = 8  # groups in `Groups.active`
N_FOUND = 9
N_LATE = 10
FREE = 11  # entries from here on belong to no group
HAS_SUMS = 12  # 1: some slot is a SUM_INT
CTL_LENGTH = 13

SMALLEST_RING = 4

DONE = 0
NO_ROOM = 1
FULL = 2


@part
def _pop(g, slots, groups, arrivals, ctl):
    """Forget the first event of a group."""
    ring = groups.ring
    if ring[g, HEAD] == ring[g, MID]:
        for slot in range(slots.op.shape[0]):
            turn(slot, g, slots, groups, arrivals)
        ring[g, MID] = ring[g, TAIL]
    if ctl[HAS_SUMS] == 1 or ring[g, NULLS] > 0:
        place = groups.entry[place_of(ring[g, HEAD], g, groups), EVENT] - arrivals.base
        nulls = arrivals.ints[0, place]
        if nulls != 0:
            ring[g, NULLS] -= 1
        for slot in range(slots.op.shape[0]):
            take_value(slot, g, place, nulls, slots, groups, arrivals, ctl)
    ring[g, HEAD] += 1


@part
def _evict(g, bound, slots, groups, arrivals, ctl):
    """Forget the events of a group up to the time `bound`."""
    ring = groups.ring
    while ring[g, HEAD] < ring[g, TAIL]:
        if groups.entry[place_of(ring[g, HEAD], g, groups), TS] > bound:
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
            clear(slot, g, slots, groups)
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
        _copy(place_of(i, g, groups), begin + (i & (room - 1)), groups, groups)
    ring[g, OFFSET] = begin
    ring[g, ROOM] = room
    ctl[FREE] = begin + room
    return True


@part
def _push(event, t, g, slots, groups, arrivals, ctl):
    """Add an event to its group, which has room."""
    ring = groups.ring
    _activate(g, slots, groups, ctl)
    at = place_of(ring[g, TAIL], g, groups)
    groups.entry[at, TS] = t
    groups.entry[at, EVENT] = event
    ring[g, TAIL] += 1
    nulls = arrivals.ints[0, event - arrivals.base]
    if nulls != 0:
        ring[g, NULLS] += 1
    for slot in range(slots.op.shape[0]):
        put_value(slot, g, event - arrivals.base, nulls, slots, groups, arrivals, ctl)


@part
def _emit(ts, position, g, slots, groups, ctl, found):
    """The aggregate of a group as it is now."""
    ring = groups.ring
    n = ctl[N_FOUND]
    head = place_of(ring[g, HEAD], g, groups)
    found.ts[n] = ts
    found.first[n] = groups.entry[head, EVENT]
    found.last[n] = groups.entry[place_of(ring[g, TAIL] - 1, g, groups), EVENT]
    found.size[n] = ring[g, TAIL] - ring[g, HEAD]
    found.position[n] = position
    for slot in range(slots.op.shape[0]):
        write_value(slot, n, g, slots, groups, found)
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
                turn(slot, g, slots, groups, arrivals)
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
            _copy(place_of(i, g, old), place_of(i, g, new), old, new)


@kernel
def contents(ctl, groups, events, is_front):
    """Write all events, group by group in order, and which are in front; return how many."""
    n = 0
    for i in range(ctl[N_ACTIVE]):
        g = groups.active[i]
        for k in range(groups.ring[g, HEAD], groups.ring[g, TAIL]):
            events[n] = groups.entry[place_of(k, g, groups), EVENT]
            is_front[n] = k < groups.ring[g, MID]
            n += 1
    return n
