"""Results of any number of streams at once: each with the arrival that completes it.

To the window join every arrival here is a late event: its partners may be older or newer, and all
of them were stored when they arrived. The join's clock is F of `kernels.matching`, and retention is
0: so an event e is out of sight once e.ts + window < F. `run` walks through what an arrival finds.
Where one key is all there is to a join, `count` multiplies numbers of events instead.
"""

from __future__ import annotations

from slackwater.kernels.arrival import reserve_all, reserve_one, store_event
from slackwater.kernels.frame import FIRST, N_MADE, NEXT, POSITION, TIME, horizon
from slackwater.kernels.histogram import bucket_of
from slackwater.kernels.jit import kernel, part
from slackwater.kernels.partners import NEEDED
from slackwater.kernels.records import KEY, STREAM, TICK, TS
from slackwater.kernels.shed import FULL
from slackwater.kernels.walk import COMPLETE, walk
from slackwater.kernels.windows import END, START, position, put

AHEAD = 32  # arrivals whose memory is fetched together

# why a run stopped
DONE = 0
NO_ROOM = 1  # for events
RESULTS_FULL = 2  # or numbers of results; one arrival needs room for NEEDED


@kernel
def run(end, forgets, scan, frame, plan, store, scratch, arrivals, results):
    """Take in arrivals up to number `end`; `forgets` has F with each of the step; why it ended."""
    ctl = frame.ctl
    for event in range(ctl[NEXT], end):
        ctl[NEXT] = event
        place = event - arrivals.base
        if arrivals.event[place, KEY] == TICK:
            continue
        s = arrivals.event[place, STREAM]
        ctl[TIME] = forgets[event - ctl[FIRST]]
        is_kept = arrivals.event[place, TS] >= horizon(s, frame, store, plan.width)
        if is_kept and not reserve_all(event, s, frame, plan, store, arrivals):
            return NO_ROOM
        ctl[POSITION] = event
        ended = walk(
            event, s, True, FULL, True, scan, frame, plan, store, scratch, arrivals, results, None,
            None, None,
        )  # fmt: skip
        if ended != COMPLETE:
            return RESULTS_FULL
        if is_kept:
            store_event(event, s, frame, plan, store, arrivals)
    ctl[NEXT] = end
    return DONE


@part
def _behind(run, t, store):
    """Position behind the last event of `run` that is not later than `t`."""
    end = store.runs[run, END]
    if end == store.runs[run, START] or store.entry[end - 1, TS] <= t:
        return end
    return position(run, t + 1, store)


@part
def _product(own, owner, scratch, width):
    """Combinations of events between `cursor` and `stop`, of the streams but these two."""
    n = 1
    for other in range(width):
        if other not in (own, owner):
            n *= scratch.stop[other] - scratch.cursor[other]
    return n


@part
def _write(event, t, n, ctl, made):
    """The arrival completes `n` results of time `t`."""
    if n > 0:
        made.position[ctl[N_MADE]] = event
        made.ts[ctl[N_MADE]] = t
        made.n[ctl[N_MADE]] = n
        ctl[N_MADE] += 1


@part
def _pass_ended(first, own, but, since, frame, plan, store, scratch):
    """Let `cursor` pass events whose windows end before `since`, but not in stream `but`."""
    for other in range(plan.width):
        if other not in (own, but):
            low = since - frame.length[other]
            i = scratch.cursor[other]
            while i < scratch.stop[other] and store.entry[i, TS] < low:
                i += 1
            scratch.cursor[other] = i


@part
def _count(event, s, t, first, frame, plan, store, scratch, made):
    """Write how many results of which times an arrival completes.

    Each belongs to its last member in (ts, stream) order: the arrival, or a later event. `cursor`
    and `stop` hold what is in the windows that end there; they follow that member.
    """
    ctl = frame.ctl
    since = max(t, ctl[TIME])
    has_later = False
    for other in range(plan.width):
        if other != s:
            run = first + other
            begin = position(run, since - frame.length[other], store)
            scratch.cursor[other] = begin
            scratch.stop[other] = max(begin, _behind(run, t, store))
            has_later |= scratch.stop[other] < store.runs[run, END]
    _write(event, t, _product(s, s, scratch, plan.width), ctl, made)
    while has_later:
        owner = s
        last = t + frame.length[s]
        for other in range(plan.width):  # the next event; of equal times the first stream's
            at = scratch.stop[other]
            if other != s and at < store.runs[first + other, END] and store.entry[at, TS] <= last:
                if owner == s or store.entry[at, TS] < last:
                    owner = other
                    last = store.entry[at, TS]
        if owner == s:
            break
        _pass_ended(first, s, owner, last, frame, plan, store, scratch)
        _write(event, last, _product(s, owner, scratch, plan.width), ctl, made)
        scratch.stop[owner] += 1


@part
def _note_keeps(s, t, common, first, frame, plan, store, scratch, matching):
    """Note how long the partners of an arrival had to be kept, if that is beyond their windows.

    Each result belongs to the partner whose window ends first; of several, to the first stream's.
    """
    reach = t + frame.length[s]
    since = max(t, frame.ctl[TIME])
    for other in range(plan.width):
        if other != s:
            scratch.cursor[other] = position(first + other, since - frame.length[other], store)
            scratch.stop[other] = scratch.cursor[other]
    while True:
        owner = s
        ends = common
        for other in range(plan.width):
            at = scratch.cursor[other]
            if other != s and at < store.runs[first + other, END]:
                if store.entry[at, TS] + frame.length[other] < ends:
                    owner = other
                    ends = store.entry[at, TS] + frame.length[other]
        if owner == s:
            return
        last = min(ends, reach)
        for other in range(plan.width):
            if other not in (s, owner):
                i = max(scratch.stop[other], scratch.cursor[other])
                while i < store.runs[first + other, END] and store.entry[i, TS] <= last:
                    i += 1
                scratch.stop[other] = i
        if ends - frame.length[owner] <= reach:
            n = _product(s, owner, scratch, plan.width)
            matching.keeps[bucket_of(common - ends)] += n
        scratch.cursor[owner] += 1


@part
def _fetch(begin, end, plan, store, arrivals):
    """Read what the next arrivals need: misses of the cache overlap, not add up."""
    read = 0
    for event in range(begin, end):
        read += store.runs[max(0, arrivals.event[event - arrivals.base, KEY]) * plan.width, END]
    for event in range(begin, end):
        first = max(0, arrivals.event[event - arrivals.base, KEY]) * plan.width
        for run in range(first, first + plan.width):
            read += store.entry[max(0, store.runs[run, END] - 1), TS]
    return read


@kernel
def count(end, forgets, common, frame, plan, store, scratch, arrivals, made, matching):
    """The same where one key is all there is to the join: write only how many results there are.

    `common` is the common clock with each arrival of the step; empty: how long partners had to be
    kept is of no interest.
    """
    ctl = frame.ctl
    fetched = ctl[NEXT]
    for event in range(ctl[NEXT], end):
        ctl[NEXT] = event
        place = event - arrivals.base
        if event >= fetched:
            fetched = min(event + AHEAD, end)
            scratch.state[1] = _fetch(event, fetched, plan, store, arrivals)
        if arrivals.event[place, KEY] == TICK:
            continue
        s = arrivals.event[place, STREAM]
        t = arrivals.event[place, TS]
        first = arrivals.event[place, KEY] * plan.width
        i = event - ctl[FIRST]
        ctl[TIME] = forgets[i]
        needed = 1
        for run in range(first, first + plan.width):
            needed += store.runs[run, END] - store.runs[run, START]
        if ctl[N_MADE] + needed > made.n.shape[0]:
            matching.ctl[NEEDED] = needed
            return RESULTS_FULL
        is_kept = t >= horizon(s, frame, store, plan.width)
        if is_kept and not reserve_one(first + s, frame, plan, store):
            return NO_ROOM
        _count(event, s, t, first, frame, plan, store, scratch, made)
        if common.shape[0] > 0 and t < common[i]:
            _note_keeps(s, t, common[i], first, frame, plan, store, scratch, matching)
        if is_kept:
            put(first + s, t, event, store)
    ctl[NEXT] = end
    return DONE
