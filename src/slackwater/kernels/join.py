"""The m-way sliding window join over what leaves the reordering stage (ICDE16 Alg. 2).

An event at or past the join's clock is in order: it moves the clock, makes its results and is
stored. A late event makes none (lines 9, 10), but it is stored, and one probe finds exactly which
results are lost with it, as long as retention covers its lateness.

Where the lateness of results is measured, events are stored when they arrive, before they are
released. The kernel then goes through arrivals and releases side by side: each arrival is stored
before the events that it releases are joined. Further arrivals may be stored before that as well,
as long as none of them is late: those that are not are behind all released events in (ts, number)
order, so that an event that is joined does not see them.
"""

from __future__ import annotations

from slackwater.kernels.arrival import reserve_all, reserve_one, store_event, store_until
from slackwater.kernels.basic_windows import try_another
from slackwater.kernels.count import count
from slackwater.kernels.fetch import AHEAD, fetch_ends, fetch_stored, fetch_windows
from slackwater.kernels.frame import (
    AT_ARRIVAL,
    COUNT_ONLY,
    CURRENT,
    FIRST,
    HAS_TUPLE_WINDOWS,
    HAS_WHERE,
    LATE,
    LOST_SO_FAR,
    MADE_SO_FAR,
    N_LATE,
    N_MADE,
    N_RESULTS,
    POSITION,
    TIME,
    UNTIL,
    WALKING,
    WINDOW_END,
    can_join,
    grid,
    horizon,
    tuple_window,
)
from slackwater.kernels.jit import kernel, part, rare
from slackwater.kernels.records import EVENT, KEY, NONE, SHED, STREAM, TS
from slackwater.kernels.shed import (
    FULL,
    IDLE,
    LEARN,
    MODE,
    SHEDDING,
    SHRED,
    TURN,
    charge,
    estimated_loss,
    is_admitted,
    mode_of,
    note_sampled,
    searches,
)
from slackwater.kernels.shed_count import count_in_order
from slackwater.kernels.walk import COMPLETE, walk
from slackwater.kernels.windows import (
    END,
    LIMIT,
    place_behind,
    put,
    window_start,
)

# what became of a late event
LATE_KEPT = 1  # it can still be part of results to come
LATE_DROPPED = 2
LOSS_UNKNOWN = 4  # added: retention did not cover its lateness
LOSS_ESTIMATED = 8  # added: under load shedding only a sample of late events is looked at

# why a run stopped
DONE = 0
NO_ROOM = 1
RESULTS_FULL = 2


@part
def _still_in_window(event, s, frame, plan, store, arrivals):
    """Alg. 2 line 9: a late event can be part of results to come."""
    t = arrivals.event[event - arrivals.base, TS]
    if frame.length[s] != NONE:
        return t >= grid(frame.ctl[TIME], frame.ctl) - frame.length[s]
    low_ts, low_event = tuple_window(s, frame, store, plan.width)
    return t > low_ts or (t == low_ts and event > low_event)


@part
def _loss_is_exact(t, s, frame, plan, store):
    """Whether a late event was probed, and everything it could have joined is still stored."""
    if frame.ctl[HAS_TUPLE_WINDOWS] == 1:
        return False
    if frame.ctl[LATE] == 0 and frame.ctl[WINDOW_END] == 0:
        return False
    for other in range(frame.length.shape[0]):
        needed = grid(t, frame.ctl) - frame.length[other]
        if other != s and needed < horizon(other, frame, store, plan.width):
            return False
    return True


@part
def _finish_late(event, s, frame, plan, store, arrivals, late, shed):
    """Record a late event and store it as long as others may join it."""
    ctl = frame.ctl
    t = arrivals.event[event - arrivals.base, TS]
    n = ctl[N_LATE]
    late.position[n] = ctl[POSITION]
    late.by[n] = ctl[TIME] - t
    late.lost[n] = ctl[LOST_SO_FAR]
    late.fate[n] = LATE_DROPPED
    if _still_in_window(event, s, frame, plan, store, arrivals):
        late.fate[n] = LATE_KEPT
    if not _loss_is_exact(t, s, frame, plan, store):
        late.fate[n] += LOSS_UNKNOWN
    if shed is not None:
        late.lost[n] = estimated_loss(ctl[LOST_SO_FAR], shed)
        if shed.ctl[SHEDDING] == 1:
            late.fate[n] += LOSS_ESTIMATED
    ctl[N_LATE] = n + 1
    if ctl[AT_ARRIVAL] == 0 and t >= horizon(s, frame, store, plan.width):
        store_event(event, s, frame, plan, store, arrivals)


@part
def _first_late(begin, end, released):
    """The first of these that is late, or `end`."""
    i = begin
    while i < end and released.clock[i] <= released.ts[i]:
        i += 1
    return i


@rare
def _in_order_by_shared_key(
    at, released, behind, clocks, frame, plan, store, arrivals, results, made, scratch, lateness
):
    """The common case made short: events in order, one key that all streams share.

    Does what `_in_general` does, up to the first event it cannot take: a late one, or one without
    room for its entry or its results. Returns the position of that event.
    """
    ctl = frame.ctl
    emit = ctl[COUNT_ONLY] == 0
    now = ctl[TIME]
    n_made = ctl[N_MADE]
    n_results = ctl[N_RESULTS]
    ready = at  # events before this one have what they need: in the cache, and stored
    i = at
    while i < released.event.shape[0]:
        if i == ready:
            if lateness is None:
                ready = min(i + AHEAD, released.event.shape[0])
                scratch.state[1] = fetch_ends(i, ready, released, plan, store)
            else:
                ready = _first_late(i, min(i + AHEAD, released.event.shape[0]), released)
                if ready == i:
                    break
                ctl[TIME] = now
                if not store_until(
                    released.during[ready - 1], behind, clocks, None, frame, plan, store, scratch,
                    arrivals, results, lateness,
                ):  # fmt: skip
                    break
                scratch.state[1] = fetch_windows(i, ready, released, plan, store)
        event = released.event[i]
        t = released.ts[i]
        s = released.stream[i]
        if t < max(now, released.clock[i]):
            break
        first = released.key[i] * plan.width
        own = first + s
        if lateness is None:
            if store.runs[own, END] == store.runs[own, LIMIT]:
                ctl[TIME] = t
                if not reserve_one(own, frame, plan, store):
                    break
        edge = grid(t, ctl)
        n = 1 if can_join(t, s, frame) else 0
        begin = 0
        for place in range(plan.width):
            if place != s:
                begin = window_start(first + place, edge - frame.length[place], NONE, store)
                end = store.runs[first + place, END]
                if lateness is not None:
                    end = place_behind(first + place, t, event, store)
                n *= end - begin
        if emit and n > 0:
            if n_results + n > results.ts.shape[0]:
                break
            row = arrivals.row[event - arrivals.base]
            for entry in range(begin, begin + n):
                other = store.entry[entry, EVENT]
                results.row[s, n_results] = row
                results.row[1 - s, n_results] = arrivals.row[other - arrivals.base]
                results.ts[n_results] = t
                results.position[n_results] = i
                results.last[n_results] = max(event, other)
                results.late[n_results] = 0
                n_results += 1
        if n > 0:
            made.position[n_made] = i
            made.ts[n_made] = t
            made.n[n_made] = n
            n_made += 1
        if lateness is None:
            put(own, t, event, store)
        now = t
        i += 1
    ctl[TIME] = now
    ctl[N_MADE] = n_made
    ctl[N_RESULTS] = n_results
    return i


@rare
def _in_general(
    event, clock, scan, frame, plan, store, scratch, arrivals, results, late, shed, index, sampled
):
    """Process one event in any kind of join; return why it ended.

    `clock` is the join's clock for it.
    """
    ctl = frame.ctl
    t = arrivals.event[event - arrivals.base, TS]
    s = arrivals.event[event - arrivals.base, STREAM]
    is_late = t < max(clock, ctl[TIME])
    at_arrival = ctl[AT_ARRIVAL] == 1
    emit = ctl[COUNT_ONLY] == 0
    has_where = ctl[HAS_WHERE] == 1
    probe = not is_late
    by_walk = emit or has_where
    if is_late:
        probe = (ctl[LATE] > 0 or ctl[WINDOW_END] == 1) and ctl[HAS_TUPLE_WINDOWS] == 0
        by_walk = has_where or ctl[LATE] == 2 or (ctl[WINDOW_END] == 1 and emit)
    probe = probe and can_join(t, s, frame)
    if ctl[WALKING] == 0 and not at_arrival:
        if not reserve_all(event, s, frame, plan, store, arrivals):
            return NO_ROOM
    ctl[TIME] = max(ctl[TIME], clock)
    ctl[UNTIL] = ctl[TIME]
    mode = FULL
    if shed is not None:
        if ctl[WALKING] == 0:
            shed.ctl[MODE] = mode_of(is_late, shed)
        mode = shed.ctl[MODE]
        probe = probe and searches(s, is_late, mode, shed)
    if probe and by_walk:
        ended = walk(
            event, s, is_late, mode, emit, scan, frame, plan, store, scratch, arrivals, results,
            shed, index, None,
        )  # fmt: skip
        if ended != COMPLETE:
            return RESULTS_FULL
    elif probe and not is_late and shed is not None:
        ctl[MADE_SO_FAR] = count_in_order(
            event, s, mode, frame, plan, store, scratch, arrivals, shed
        )
    elif probe:
        total, at_clock = count(event, s, is_late, frame, plan, store, scratch, arrivals, None)
        if not is_late:
            ctl[MADE_SO_FAR] = total
        else:
            ctl[MADE_SO_FAR] = at_clock if ctl[WINDOW_END] == 1 else 0
            ctl[LOST_SO_FAR] = total - ctl[MADE_SO_FAR]
    if shed is not None and mode & LEARN:
        if probe and by_walk:
            try_another(s, scan, frame, plan, store, scratch, arrivals, shed, index)
        if mode == SHRED:
            note_sampled(ctl[POSITION], ctl[MADE_SO_FAR], not by_walk, mode, shed, sampled)
    if is_late:
        _finish_late(event, s, frame, plan, store, arrivals, late, shed)
    elif not at_arrival:
        store_event(event, s, frame, plan, store, arrivals)
    return DONE


@kernel
def run(
    at,
    released,
    behind,
    clocks,
    scan,
    frame,
    plan,
    store,
    scratch,
    arrivals,
    results,
    made,
    late,
    shed,
    index,
    sampled,
    lateness,
):
    """Process what was released, from position `at`; return (next position, why it stopped).

    `behind` is how far each arrival of the step is behind the common clock, `clocks` has the join's
    clock before it. `shed` is None where there is no load shedding, `lateness` where events are
    stored when they are joined: what belongs to them costs nothing then.
    """
    ctl = frame.ctl
    last = ctl[FIRST] + behind.shape[0] - 1
    short_cut = plan.shared == 1 and (ctl[COUNT_ONLY] == 1 or plan.width == 2)
    if shed is not None:
        short_cut = short_cut and shed.ctl[IDLE] == 1
    i = at
    while True:
        if short_cut and ctl[WALKING] == 0:
            i = _in_order_by_shared_key(
                i, released, behind, clocks, frame, plan, store, arrivals, results, made, scratch,
                lateness,
            )  # fmt: skip
        if lateness is not None:
            upto = last if i == released.event.shape[0] else released.during[i]
            if not store_until(
                upto, behind, clocks, scan, frame, plan, store, scratch, arrivals, results, lateness
            ):
                return i, NO_ROOM
        if i == released.event.shape[0]:
            return i, DONE
        event = released.event[i]
        if ctl[WALKING] == 0:
            if shed is not None:
                if not is_admitted(released.stream[i], released.top[i], shed):
                    arrivals.event[event - arrivals.base, KEY] = SHED
                    shed.ctl[TURN] += 1
                    i += 1
                    continue
            ctl[CURRENT] = event
            ctl[POSITION] = i
            ctl[MADE_SO_FAR] = 0
            ctl[LOST_SO_FAR] = 0
        ended = _in_general(
            event, released.clock[i], scan, frame, plan, store, scratch, arrivals, results, late,
            shed, index, sampled,
        )  # fmt: skip
        if ended != DONE:
            return i, ended
        if shed is not None:
            charge(released.top[i], shed)
            shed.ctl[TURN] += 1
        if ctl[MADE_SO_FAR] > 0:
            made.position[ctl[N_MADE]] = i
            made.ts[ctl[N_MADE]] = ctl[TIME]
            made.n[ctl[N_MADE]] = ctl[MADE_SO_FAR]
            ctl[N_MADE] += 1
        i += 1


@kernel
def put_back(at, events, frame, plan, store, scratch, arrivals):
    """Store `events` from position `at`, after a restart; return where room ran out, or the end."""
    ready = at
    for i in range(at, events.shape[0]):
        if i == ready and plan.shared == 1:
            ready = min(i + AHEAD, events.shape[0])
            scratch.state[1] = fetch_stored(events[i:ready], plan, store, arrivals)
        s = arrivals.event[events[i] - arrivals.base, STREAM]
        if not reserve_all(events[i], s, frame, plan, store, arrivals):
            return i
        store_event(events[i], s, frame, plan, store, arrivals)
    return events.shape[0]
