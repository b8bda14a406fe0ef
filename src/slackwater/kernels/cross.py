"""What each event meets in the windows, whatever the join condition (n-cross of ICDE16 IV-B).

Each stream has a row of sorted times, those in its window, between two positions. An event in order
goes to the end; a late one is sorted in. The caller sees to it that there is room behind the end.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part

# columns of `bounds`
BEGIN = 0
END = 1

# rows of `maps`, by delay
CROSSED = 0  # combinations met by events in order
JOINED = 1  # results made by them
LATE = 2  # late events
N_MAPS = 3


@part
def _insert(t, row, bounds, s):
    """Sort the time `t` into the row of `s`."""
    i = bounds[s, END]
    while i > bounds[s, BEGIN] and row[s, i - 1] > t:
        row[s, i] = row[s, i - 1]
        i -= 1
    row[s, i] = t
    bounds[s, END] += 1


@part
def _forget(end, window, tuples, row, bounds, s):
    """Drop from the row of `s` what its window, which ends at `end`, does not hold."""
    begin = max(bounds[s, BEGIN], bounds[s, END] - tuples)
    while begin < bounds[s, END] and row[s, begin] < end - window:
        begin += 1
    bounds[s, BEGIN] = begin


@kernel
def profile(
    stream, ts, bucket, made, late, grid_shift, slide, window, tuples, row, bounds, maps, most
):
    """Add events that went through the join to `maps`, and to `most` the largest of those in order.

    `window` and `tuples` are what the windows hold: so many time units, so many events. The sums
    are those of one event after the other, so that they do not depend on how the events were cut.
    """
    m = window.shape[0]
    for n in range(stream.shape[0]):
        s = stream[n]
        if late[n]:
            maps[LATE, bucket[n]] += 1.0
            _insert(ts[n], row, bounds, s)
            continue
        end = (ts[n] + grid_shift) // slide * slide
        met = 1.0  # a float: a product of many windows may be beyond the integers
        for other in range(m):
            _forget(end, window[other], tuples[other], row, bounds, other)
            if other != s:
                met *= bounds[other, END] - bounds[other, BEGIN]
        maps[CROSSED, bucket[n]] += met
        maps[JOINED, bucket[n]] += made[n]
        most[CROSSED] = max(most[CROSSED], met)
        most[JOINED] = max(most[JOINED], float(made[n]))
        _insert(ts[n], row, bounds, s)
