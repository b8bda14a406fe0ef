"""What late events lost beyond the sight of the join, counted in a sample that is kept longer.

The arrivals of the sample are stored in order. One that is too late for the join to count its loss
is probed before that: among what the sample holds, which results does it complete that are lost,
and have a member that the join does not see any more? The join has counted the others itself.

Two streams are sampled by event: the partner of the late event is in the sample or not. So each
result is walked, and its partner remembers how often it was hit, for the variance. More streams are
sampled by clusters of results, panes of result time: there counts are enough, one for each of the
two panes that the results of an event can lie in.
"""

from __future__ import annotations

from slackwater.kernels.arrival import probe_in_general, reserve_all, store_event
from slackwater.kernels.frame import (
    CURRENT,
    N_RESULTS,
    TIME,
    UNTIL,
    WALKING,
    can_join,
)
from slackwater.kernels.jit import kernel, part, rare
from slackwater.kernels.lateness import begin_probe
from slackwater.kernels.records import BEFORE, NONE, STREAM, TS
from slackwater.kernels.shed import FULL
from slackwater.kernels.walk import COMPLETE, walk

# columns of `found`, for two streams; for more they are the panes of even and of odd number
RESULTS = 0
SQUARES = 1  # by how much the sum of squares over all partners grew

PANES = 2


@rare
def _find_pairs(event, s, seen, scan, frame, plan, store, scratch, arrivals, results, found):
    """Count the pairs with a partner before `seen`.

    The `delay` of an event in the sample is how often it was hit, its `row` is its own number.
    """
    ctl = frame.ctl
    ended = NONE
    while ended != COMPLETE:
        ctl[N_RESULTS] = 0
        ended = walk(
            event, s, True, FULL, True, scan, frame, plan, store, scratch, arrivals, results,
            None, None, None,
        )  # fmt: skip
        for i in range(ctl[N_RESULTS]):
            partner = results.row[1 - s, i] - arrivals.base
            if arrivals.event[partner, TS] < seen[1 - s]:
                hits = arrivals.delay[partner]
                arrivals.delay[partner] = hits + 1
                found[RESULTS] += 1
                found[SQUARES] += 2 * hits + 1
    ctl[N_RESULTS] = 0


@rare
def _find_by_pane(
    event, s, clock, seen, scan, frame, plan, store, scratch, arrivals, results, lateness, found
):
    """Count what the sample sees, less what the join sees, for the panes of even and odd number.

    All results up to `clock` are lost, so they count as late here; with a join's clock before all
    times `note_results` puts them into `caught`, by pane.
    """
    t = arrivals.event[event - arrivals.base, TS]
    begin_probe(t, clock - t, BEFORE, lateness)
    for pane in range(PANES):
        lateness.caught[pane] = 0
    probe_in_general(event, s, scan, frame, plan, store, scratch, arrivals, results, lateness)
    for pane in range(PANES):
        found[pane] = lateness.caught[pane]
        lateness.caught[pane] = 0
    _look_from(seen, frame)
    probe_in_general(event, s, scan, frame, plan, store, scratch, arrivals, results, lateness)
    for pane in range(PANES):
        found[pane] -= lateness.caught[pane]


@part
def _look_from(horizons, frame):
    """Let nothing before these times be seen."""
    for s in range(horizons.shape[0]):
        frame.held[s] = horizons[s]


@kernel
def run(
    at,
    first,
    kept,
    probe,
    clock,
    reach,
    seen,
    stored_from,
    scan,
    frame,
    plan,
    store,
    scratch,
    arrivals,
    results,
    lateness,
    found,
):
    """Take in the events from number ``first + at`` on; return where room ran out, or the end.

    Of each event `kept` says whether it belongs to the sample, `probe` which of the probes it
    makes, or NONE. Of each probe, `clock` is the join's clock, `reach` and `seen` from which times
    on the sample and the join see events; `found` gets what it found. `stored_from` is from which
    times on the sample has events at all.
    """
    ctl = frame.ctl
    for i in range(at, kept.shape[0]):
        event = first + i
        s = arrivals.event[event - arrivals.base, STREAM]
        t = arrivals.event[event - arrivals.base, TS]
        if kept[i] == 1 and not reserve_all(event, s, frame, plan, store, arrivals):
            return i
        k = probe[i]
        if k != NONE and can_join(t, s, frame):
            ctl[CURRENT] = event
            ctl[TIME] = clock[k]
            ctl[UNTIL] = clock[k]
            ctl[WALKING] = 0
            _look_from(reach[k], frame)
            if plan.stream.shape[1] == 1:
                _find_pairs(
                    event, s, seen[k], scan, frame, plan, store, scratch, arrivals, results,
                    found[k],
                )  # fmt: skip
            else:
                _find_by_pane(
                    event, s, clock[k], seen[k], scan, frame, plan, store, scratch, arrivals,
                    results, lateness, found[k],
                )  # fmt: skip
            _look_from(stored_from, frame)
        if kept[i] == 1:
            store_event(event, s, frame, plan, store, arrivals)
    return kept.shape[0]
