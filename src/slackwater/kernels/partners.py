"""What an arrival finds among the events of the other stream: pairs, and events without partner.

`kernels.matching` calls these parts for each arrival. A key has runs of the events of both streams,
sorted by time, and of those that have no partner yet.
"""

from __future__ import annotations

from slackwater.kernels.asof import BACKWARD, RANK, better, next_time
from slackwater.kernels.histogram import bucket_of
from slackwater.kernels.jit import part
from slackwater.kernels.records import EVENT, KEY, NONE, TS
from slackwater.kernels.windows import END, LIMIT, START, position, reserve

# places in `Matching.ctl`
NEXT = 0  # the next arrival to take in
TAKEN = 1  # the last one that was
DUE = 2  # the next row to decide
FREE = 3  # start of free space in the store
N_ROWS = 4  # rows in `MatchedRows`
FORGET = 5  # F
KEEP = 6  # how long events are kept behind the clock
NEEDED = 7  # room that the event in work needs
EAGER = 8
HAS_PAIRS = 9  # pairs are rows
SEMI = 10
ASOF = 11  # 0: no as-of join; else its direction
DECIDES = 12  # there are rows that are due at some time
IN_TIME = 13  # rows without partner, since the start
LATE = 14
WITHDRAWN = 15
UNKNOWN = 16  # arrivals that may have had partners which are forgotten
LATE_PAIRS = 17  # semi: left events with late pairs only
N_PAIRS = 18  # semi: left events that have any
SITE = 19  # of `where`, for partners of an event of stream 0; the next place has that of stream 1
N_ARRIVALS = 21
FETCHED = 22  # arrivals before this one have been fetched into the cache
READ = 23  # a sum that means nothing: it keeps the compiler from leaving fetches out
GIVEN_TO = 24  # as-of: rows that are due later than this are not given out yet
WIDTH = 25  # runs of a key
CTL_LENGTH = 26

# runs of a key: those of all events of both streams; then, if it matters, of those without partner
WAITING = 2

# columns of `Arrivals.marks`
STATE = 0
VALUE = 1  # semi: the time of its row; as-of: of a right event the clock when it came
PARTNER = 2  # as-of: the right event in the row that was given out, or NONE
MARKS = (
    RANK + 1
)  # as-of: the rank decides between right events of one time; semi: the wait of a row

# bits of STATE
MATCHED = 1  # it has a partner; semi: its row has a time
GIVEN = 2  # its row was given out
LOST = 4  # semi: it has a pair that was too late

# what a row does
INSERT = 0
DELETE = 1
UPDATE = 2
READY = 3  # semi: the row of `left` can be given out when the join's clock is at `ts`


@part
def forget_with(i, before, after, common, forget, ctl):
    """F with the i-th arrival of a step, if it was `forget` before it."""
    behind = before[i] - ctl[KEEP]
    if ctl[EAGER] == 1:
        held = before[i] if ctl[DECIDES] == 1 else after[i]
        behind = min(held, common[i] - ctl[KEEP])
    return max(forget, behind)


@part
def kept_from(s, matching):
    """Events of `s` before this time are forgotten."""
    return matching.ctl[FORGET] - matching.reach[s]


@part
def between(run, low, high, store):
    """Positions [begin, end) of the events with times from `low` to `high`."""
    end = store.runs[run, END]
    if end == store.runs[run, START] or store.entry[end - 1, TS] < low:
        return end, end
    begin = position(run, low, store)
    if store.entry[end - 1, TS] > high:
        end = max(begin, position(run, high + 1, store))
    return begin, end


@part
def give(left, right, t, during, change, late, matching, rows):
    """Write a row."""
    n = matching.ctl[N_ROWS]
    rows.left[n] = left
    rows.right[n] = right
    rows.ts[n] = t
    rows.during[n] = during
    rows.change[n] = change
    rows.late[n] = late
    matching.ctl[N_ROWS] = n + 1


@part
def give_alone(event, s, t, during, change, late, matching, rows):
    """Write the row of an event without partner."""
    if s == 0:
        give(event, NONE, t, during, change, late, matching, rows)
    else:
        give(NONE, event, t, during, change, late, matching, rows)


@part
def reserve_one(run, s, matching, store):
    """Room for one more event; False if the store must grow first."""
    if store.runs[run, END] < store.runs[run, LIMIT]:
        return True
    free = reserve(run, kept_from(s, matching), matching.ctl[FREE], store)
    if free < 0:
        return False
    matching.ctl[FREE] = free
    return True


@part
def _hits(site, begin, end, scan, matching, store, arrivals):
    """How many candidates pass the condition; `matching.hits` has their positions."""
    if scan is None:
        return end - begin
    return scan(site, begin, end, store.entry, matching.at, arrivals, matching.hits)


@part
def _hit(i, begin, scan, matching):
    """The position of a candidate that passed."""
    if scan is None:
        return begin + i
    return matching.hits[i]


@part
def note_need(wait, n, matching):
    """A row was right only with a wait longer than this."""
    if wait > 0:
        matching.needs[bucket_of(wait)] += n


@part
def note_keep(wait, matching):
    """A pair was found because its first member was kept longer than this."""
    if wait > 0:
        matching.keeps[bucket_of(wait)] += 1


@part
def _semi(left, t, in_time, need, during, matching, arrivals, rows):
    """A left event has a pair of time `t`, which needs such a wait; return whether it is enough."""
    place = left - arrivals.base
    ctl = matching.ctl
    state = arrivals.marks[place, STATE]
    is_first = not state & (MATCHED | LOST)
    if is_first:
        ctl[N_PAIRS] += 1
    if ctl[EAGER] == 1:
        note_keep(need, matching)
    elif is_first or need < arrivals.marks[place, RANK]:
        if not is_first:
            note_need(arrivals.marks[place, RANK], -1, matching)
        note_need(need, 1, matching)
        arrivals.marks[place, RANK] = need
    if ctl[EAGER] == 1:
        arrivals.marks[place, STATE] = MATCHED
        give(left, NONE, t, during, INSERT, 0, matching, rows)
        return True
    if in_time:
        if not state & MATCHED or t < arrivals.marks[place, VALUE]:
            arrivals.marks[place, STATE] = state | MATCHED
            arrivals.marks[place, VALUE] = t
            give(left, NONE, t, during, READY, 0, matching, rows)
    elif not state & MATCHED:
        if state & GIVEN:  # it had no pair when its turn was: this is its row
            if not state & LOST:
                ctl[LATE_PAIRS] += 1
                give(left, NONE, t, during, INSERT, 1, matching, rows)
        elif not state & LOST or t < arrivals.marks[place, VALUE]:
            arrivals.marks[place, VALUE] = t
        arrivals.marks[place, STATE] = state | LOST
    final = arrivals.marks[place, STATE] & MATCHED
    return final and arrivals.marks[place, VALUE] == arrivals.event[place, TS]


@part
def match_waiting(event, s, t, clock, common, scan, matching, store, arrivals, rows):
    """The arrival is a partner of events that may have none yet."""
    other = 1 - s
    run = arrivals.event[event - arrivals.base, KEY] * matching.ctl[WIDTH] + WAITING + other
    low = max(t - matching.length[other], kept_from(other, matching))
    begin, end = between(run, low, t + matching.length[s], store)
    if begin == end:
        return
    ctl = matching.ctl
    n = _hits(ctl[SITE + s], begin, end, scan, matching, store, arrivals)
    to = begin
    at = begin
    for i in range(n):
        hit = _hit(i, begin, scan, matching)
        while at < hit:  # these did not pass: they stay
            store.entry[to, TS] = store.entry[at, TS]
            store.entry[to, EVENT] = store.entry[at, EVENT]
            to += 1
            at += 1
        found = store.entry[hit, EVENT]
        u = store.entry[hit, TS]
        stays = False
        if ctl[SEMI] == 1:
            later = max(t, u)
            in_time = later > clock or (later == clock and t == clock)
            need = common - later + (1 if t < later else 0)
            if ctl[EAGER] == 1:
                need = common - u - matching.length[other]
            stays = not _semi(found, later, in_time, need, event, matching, arrivals, rows)
        else:
            place = found - arrivals.base
            due = u + matching.length[other]
            note_need(common - due, 1, matching)
            if arrivals.marks[place, STATE] & GIVEN:
                ctl[WITHDRAWN] += 1
                give_alone(found, other, due, event, DELETE, 1, matching, rows)
            arrivals.marks[place, STATE] |= MATCHED
        if stays:
            store.entry[to, TS] = u
            store.entry[to, EVENT] = found
            to += 1
        at = hit + 1
    if to < at:
        last = store.runs[run, END]
        for i in range(at, last):
            store.entry[to + i - at, TS] = store.entry[i, TS]
            store.entry[to + i - at, EVENT] = store.entry[i, EVENT]
        store.runs[run, END] = last - (at - to)


@part
def correct(event, t, common, scan, matching, store, arrivals, rows):
    """A right event may be a better as-of partner than the one in a row that was given out."""
    ctl = matching.ctl
    place = event - arrivals.base
    run = arrivals.event[place, KEY] * matching.ctl[WIDTH]
    low = max(t - matching.length[0], kept_from(0, matching))
    if low + matching.length[0] > ctl[GIVEN_TO]:  # as of most events in time
        return
    high = t + matching.length[1]
    if scan is None and ctl[ASOF] == BACKWARD:
        high = min(high, next_time(run + 1, t, event, store, arrivals) - 1)
    begin, end = between(run, low, high, store)
    if begin == end:
        return
    n = _hits(ctl[SITE + 1], begin, end, scan, matching, store, arrivals)
    for i in range(n):
        hit = _hit(i, begin, scan, matching)
        left = store.entry[hit, EVENT]
        at = left - arrivals.base
        if not arrivals.marks[at, STATE] & GIVEN:
            continue
        if not better(store.entry[hit, TS], event, arrivals.marks[at, PARTNER], arrivals):
            continue
        due = store.entry[hit, TS] + matching.length[0]
        note_need(arrivals.marks[at, VALUE], -1, matching)
        note_need(common - due, 1, matching)
        arrivals.marks[at, VALUE] = common - due
        arrivals.marks[at, PARTNER] = event
        ctl[WITHDRAWN] += 1
        give(left, event, due, event, UPDATE, 1, matching, rows)


@part
def find_pairs(event, s, t, clock, common, begin, end, scan, matching, store, arrivals, rows):
    """The arrival's partners among the other stream's events; return how many there are."""
    ctl = matching.ctl
    n = _hits(ctl[SITE + s], begin, end, scan, matching, store, arrivals)
    if ctl[HAS_PAIRS] == 1:
        for i in range(n):
            hit = _hit(i, begin, scan, matching)
            found = store.entry[hit, EVENT]
            later = max(t, store.entry[hit, TS])
            note_keep(common - store.entry[hit, TS] - matching.length[1 - s], matching)
            if s == 0:
                give(event, found, later, event, INSERT, 0, matching, rows)
            else:
                give(found, event, later, event, INSERT, 0, matching, rows)
        ctl[N_PAIRS] += n
    if ctl[SEMI] == 1 and s == 0:
        last = NONE
        for i in range(n):  # by rising time: all up to t give the same row
            hit = _hit(i, begin, scan, matching)
            later = max(t, store.entry[hit, TS])
            if later == last:
                continue
            last = later
            in_time = later > clock or (later == clock and t == clock)
            need = common - later + (1 if t < later else 0)
            if ctl[EAGER] == 1:  # the last of its partners is kept longest
                need = common - store.entry[_hit(n - 1, begin, scan, matching), TS]
                need -= matching.length[1]
            _semi(event, later, in_time, need, event, matching, arrivals, rows)
            if in_time or ctl[EAGER] == 1:
                break
    return n
