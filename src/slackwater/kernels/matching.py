"""Which events of two streams find a partner, and when: one pass over arrivals.

Each arrival is stored, in runs sorted by time, and looks for partners among all that have arrived
and are still kept. For an event x of stream s they are one range of the other stream's run: times
from x.ts - W_other to x.ts + W_s, and `where` chooses among them. That gives

- the pairs of eager emission, with the arrival of their last member;
- of each event of a preserved stream, whether it has a partner yet. Those that have none wait in a
  second run of their key, and leave it with the first partner: every event once;
- as-of partners, looked up when the row is due.

Rows without a partner, and as-of rows, are due at an arrival that depends on the clocks alone
(`joins.undecided`): `due` lists them in that order. A partner that comes behind the decision takes
the row back.

An event e is forgotten once e.ts + reach < F. F never falls and depends on arrivals alone; what
else is still in memory makes no difference.
"""

from __future__ import annotations

from slackwater.kernels.asof import look_up, put_ranked
from slackwater.kernels.histogram import bucket_of
from slackwater.kernels.jit import kernel, part
from slackwater.kernels.partners import (
    ASOF,
    DUE,
    EAGER,
    FETCHED,
    FORGET,
    GIVEN,
    GIVEN_TO,
    IN_TIME,
    INSERT,
    LATE,
    LATE_PAIRS,
    LOST,
    MATCHED,
    N_ARRIVALS,
    N_ROWS,
    NEEDED,
    NEXT,
    PARTNER,
    READ,
    SEMI,
    SITE,
    STATE,
    TAKEN,
    UNKNOWN,
    VALUE,
    WAITING,
    WIDTH,
    between,
    correct,
    find_pairs,
    forget_with,
    give,
    give_alone,
    kept_from,
    match_waiting,
    note_need,
    reserve_one,
)
from slackwater.kernels.records import KEY, NONE, STREAM, TICK, TS
from slackwater.kernels.windows import END, START, put

AHEAD = 32  # arrivals whose memory is fetched together

# why a run stopped
DONE = 0
NO_ROOM = 1
ROWS_FULL = 2
TOO_FEW = 3  # rows or hits: the event in work needs NEEDED


@part
def _take(event, clock, common, scan, matching, store, arrivals, rows):
    """Store an arrival and find its partners; return why it could not be done, or DONE."""
    ctl = matching.ctl
    place = event - arrivals.base
    s = arrivals.event[place, STREAM]
    other = 1 - s
    t = arrivals.event[place, TS]
    first = arrivals.event[place, KEY] * matching.ctl[WIDTH]
    begin = end = 0
    needed = 1
    if matching.kept[other] == 1 and ctl[ASOF] == 0:
        low = max(t - matching.length[other], kept_from(other, matching))
        begin, end = between(first + other, low, t + matching.length[s], store)
        needed += end - begin
    if matching.waits[other] == 1:
        needed += (
            store.runs[first + WAITING + other, END] - store.runs[first + WAITING + other, START]
        )
    if ctl[ASOF] > 0 and s == 1:
        needed += store.runs[first, END] - store.runs[first, START]
    if needed > matching.hits.shape[0] or needed > rows.ts.shape[0] - ctl[N_ROWS]:
        ctl[NEEDED] = needed
        return ROWS_FULL if ctl[N_ROWS] > 0 else TOO_FEW
    is_kept = t >= kept_from(s, matching)
    if is_kept and matching.kept[s] == 1 and not reserve_one(first + s, s, matching, store):
        return NO_ROOM
    if is_kept and matching.waits[s] == 1:
        if not reserve_one(first + WAITING + s, s, matching, store):
            return NO_ROOM
    ctl[N_ARRIVALS] += 1
    if t < ctl[FORGET]:
        ctl[UNKNOWN] += 1
        matching.unseen[bucket_of(common - t)] += 1
    matching.at[s] = event
    if matching.waits[s] == 1 or ctl[ASOF] > 0:
        arrivals.marks[place, STATE] = 0
        arrivals.marks[place, VALUE] = common
        arrivals.marks[place, PARTNER] = NONE
    if ctl[ASOF] > 0:
        if is_kept and s == 1:
            put_ranked(first + 1, t, event, store, arrivals)
        elif is_kept:
            put(first, t, event, store)
        if s == 1:
            correct(event, t, common, scan, matching, store, arrivals, rows)
        return DONE
    n = 0
    if matching.kept[other] == 1:
        n = find_pairs(
            event, s, t, clock, common, begin, end, scan, matching, store, arrivals, rows
        )
    if matching.waits[other] == 1:
        match_waiting(event, s, t, clock, common, scan, matching, store, arrivals, rows)
    if is_kept and matching.kept[s] == 1:
        put(first + s, t, event, store)
    if matching.waits[s] == 1:
        if ctl[SEMI] == 0 and n > 0:
            arrivals.marks[place, STATE] = MATCHED
        elif is_kept and is_waiting(place, matching, arrivals):
            put(first + WAITING + s, t, event, store)
    return DONE


@part
def is_waiting(place, matching, arrivals):
    """Whether the next partner of an event makes a difference."""
    if not arrivals.marks[place, STATE] & MATCHED:
        return True
    ctl = matching.ctl
    if ctl[SEMI] == 0 or ctl[EAGER] == 1:
        return False
    return arrivals.marks[place, VALUE] > arrivals.event[place, TS]


@part
def _decide(event, at, late, scan, matching, store, arrivals, rows):
    """The row of `event` is due at arrival `at`; `late`: its turn had passed when it came."""
    ctl = matching.ctl
    place = event - arrivals.base
    s = arrivals.event[place, STREAM]
    due = arrivals.event[place, TS] + matching.length[s]
    state = arrivals.marks[place, STATE]
    arrivals.marks[place, STATE] = state | GIVEN
    if ctl[SEMI] == 1:
        if state & LOST and not state & MATCHED:
            ctl[LATE_PAIRS] += 1
            give(event, NONE, arrivals.marks[place, VALUE], at, INSERT, 1, matching, rows)
        return
    if state & MATCHED:
        return
    if late:
        ctl[LATE] += 1
    else:
        ctl[IN_TIME] += 1
    right = NONE
    if ctl[ASOF] > 0:
        run = arrivals.event[place, KEY] * matching.ctl[WIDTH] + 1
        ctl[GIVEN_TO] = max(ctl[GIVEN_TO], due)
        matching.at[0] = event
        right = look_up(
            event, run, kept_from(1, matching), ctl[ASOF], ctl[SITE], scan, matching, store,
            arrivals,
        )  # fmt: skip
        wait = 0
        if right > event:
            wait = arrivals.marks[right - arrivals.base, VALUE] - due
        if ctl[EAGER] == 0:  # and it must not come late itself
            wait = max(wait, arrivals.marks[place, VALUE] - due)
        note_need(wait, 1, matching)
        arrivals.marks[place, VALUE] = wait
        arrivals.marks[place, PARTNER] = right
    if ctl[ASOF] > 0:
        give(event, right, due, at, INSERT, late, matching, rows)
    else:
        give_alone(event, s, due, at, INSERT, late, matching, rows)


@part
def _is_late(event, due, first, before, matching):
    """Whether the turn of `event`, which arrived in this step, had passed when it came."""
    return matching.ctl[EAGER] == 0 and event >= first and due < before[event - first]


@part
def _fetch(begin, end, due, due_at, matching, store, arrivals):
    """Read what the next arrivals and decisions need: misses of the cache overlap, not add up."""
    read = 0
    width = matching.ctl[WIDTH]
    last = matching.ctl[DUE]
    while last < due.shape[0] and due_at[last] < end:
        event = due[last]
        read += store.runs[max(0, arrivals.event[event - arrivals.base, KEY]) * width, END]
        read += arrivals.marks[event - arrivals.base, STATE]
        last += 1
    for event in range(begin, end):
        read += store.runs[max(0, arrivals.event[event - arrivals.base, KEY]) * width, END]
    for event in range(begin, end):
        first = max(0, arrivals.event[event - arrivals.base, KEY]) * width
        for run in range(first, first + width):
            read += store.entry[max(0, store.runs[run, END] - 1), TS]
    for i in range(matching.ctl[DUE], last):
        run = max(0, arrivals.event[due[i] - arrivals.base, KEY]) * width + 1
        read += store.entry[max(0, store.runs[run, END] - 1), TS]
    return read


@kernel
def run(end, first, before, after, common, due, due_at, scan, matching, store, arrivals, rows):
    """Take in arrivals up to number `end`, of a step that begins with `first`; return why it ended.

    `before` and `after` are the join's clock around each arrival of the step, `common` the common
    clock with it. `due` are the events whose rows are due, at the arrivals `due_at`.
    """
    ctl = matching.ctl
    for event in range(ctl[NEXT], end):
        i = event - first
        place = event - arrivals.base
        if event >= ctl[FETCHED]:
            ctl[FETCHED] = min(event + AHEAD, end)
            ctl[READ] = _fetch(event, ctl[FETCHED], due, due_at, matching, store, arrivals)
        if ctl[TAKEN] < event:
            ctl[FORGET] = forget_with(i, before, after, common, ctl[FORGET], ctl)
            if arrivals.event[place, KEY] != TICK:
                ended = _take(event, before[i], common[i], scan, matching, store, arrivals, rows)
                if ended != DONE:
                    return ended
            ctl[TAKEN] = event
        while ctl[DUE] < due.shape[0] and due_at[ctl[DUE]] == event:
            if ctl[N_ROWS] == rows.ts.shape[0]:
                return ROWS_FULL
            row = due[ctl[DUE]]
            time = arrivals.event[row - arrivals.base, TS]
            time += matching.length[arrivals.event[row - arrivals.base, STREAM]]
            late = 1 if _is_late(row, time, first, before, matching) else 0
            _decide(row, event, late, scan, matching, store, arrivals, rows)
            ctl[DUE] += 1
        ctl[NEXT] = event + 1
    return DONE


@kernel
def flush(at, due, scan, matching, store, arrivals, rows):
    """End of input: decide the rows that are left, from position `at`; return where it ended."""
    for i in range(at, due.shape[0]):
        if matching.ctl[N_ROWS] == rows.ts.shape[0]:
            return i
        _decide(due[i], matching.ctl[TAKEN], 0, scan, matching, store, arrivals, rows)
    return due.shape[0]


@kernel
def members(rows, arrivals, row, last, late):
    """What `Results` have of these rows: the members' rows or NONE, the last one, whether late."""
    for i in range(rows.ts.shape[0]):
        left = rows.left[i]
        right = rows.right[i]
        row[0, i] = NONE if left == NONE else arrivals.row[left - arrivals.base]
        row[1, i] = NONE if right == NONE else arrivals.row[right - arrivals.base]
        last[i] = max(left, right)
        late[i] = rows.late[i]


@kernel
def put_back(at, events, matching, store, arrivals):
    """Store `events` from position `at`, after a restart; return where room ran out, or the end."""
    for i in range(at, events.shape[0]):
        place = events[i] - arrivals.base
        s = arrivals.event[place, STREAM]
        t = arrivals.event[place, TS]
        first = arrivals.event[place, KEY] * matching.ctl[WIDTH]
        if matching.kept[s] == 1 and not reserve_one(first + s, s, matching, store):
            return i
        if matching.waits[s] == 1 and not reserve_one(first + WAITING + s, s, matching, store):
            return i
        if matching.ctl[ASOF] > 0 and s == 1:
            put_ranked(first + 1, t, events[i], store, arrivals)
        elif matching.kept[s] == 1:
            put(first + s, t, events[i], store)
        if matching.waits[s] == 1 and is_waiting(place, matching, arrivals):
            put(first + WAITING + s, t, events[i], store)
    return events.shape[0]
