"""Lateness of results: how far the common clock has passed a result when its last member arrives.

With C the common clock at the arrival of the last member x and t the time of the result, the
lateness is max(0, C - t), or one more if x is not the newest member. With a fixed K, the result is
produced iff K is at least its lateness (`clocked`). So the histogram of lateness is the recall for
every K at once, measured: with all that ties delays to keys and to the number of partners.

Only arrivals behind C can complete results that are late at all. Each of them is probed once, among
all events that have arrived, those in the reorder buffer included. Where that takes too many steps,
a share of the arrivals is probed, and each of them counts for the others. No result is later than
the arrival that completes it; so arrivals that are far behind, which are few and decide what a
large K is worth, are probed one and all.
"""

from __future__ import annotations

from slackwater.kernels.histogram import bucket_of
from slackwater.kernels.jit import part
from slackwater.kernels.shed import mixed

# places in `Lateness.ctl`
ONE_IN = 0  # one in so many arrivals that are not far behind is probed; 0: none at all
TURN = 1  # arrivals so far
STEPS = 2  # taken by probes since the last boundary
PROBED = 3  # arrivals since the last boundary
LOST = 4  # results that were lost since then, and are in the histogram
EVERY = 5  # length of a bin of result time
CLOCK = 6  # C at the arrival in work
JOINED = 7  # the join's clock before it
OF = 8  # its time
ORIGIN = 9  # where a bin of result time begins
FAR = 10  # how far behind the common clock is far
FAR_STEPS = 11  # of the steps, those of arrivals that are far behind
FAR_PROBED = 12  # of the arrivals
WEIGHT = 13  # how many arrivals the one in work counts for
CTL_LENGTH = 14

BINS = 4096  # of `Lateness.caught`, whose length is a power of two


@part
def is_probed(behind, lateness):
    """Whether an arrival so far behind the common clock is probed."""
    ctl = lateness.ctl
    if ctl[ONE_IN] == 0:
        return False
    ctl[TURN] += 1
    if behind == 0:
        return False
    if ctl[ONE_IN] == 1 or behind >= ctl[FAR]:
        return True
    return mixed(ctl[TURN]) * ctl[ONE_IN] < 1.0


@part
def begin_probe(t, behind, joined, lateness):
    """The arrival in work has time `t`; `joined` is the join's clock before it."""
    ctl = lateness.ctl
    ctl[OF] = t
    ctl[CLOCK] = t + behind
    ctl[JOINED] = joined
    ctl[PROBED] += 1
    is_far = behind >= ctl[FAR]
    ctl[FAR_PROBED] += is_far
    ctl[WEIGHT] = 1 if is_far else ctl[ONE_IN]


@part
def note_results(t, n, lateness):
    """The arrival in work completes `n` results of time `t`."""
    ctl = lateness.ctl
    ctl[STEPS] += 1
    ctl[FAR_STEPS] += ctl[CLOCK] - ctl[OF] >= ctl[FAR]
    late = ctl[CLOCK] - t
    if t > ctl[OF]:
        late += 1
    if n > 0 and late > 0:
        n *= ctl[WEIGHT]
        bin_of_time = (t - ctl[ORIGIN]) // ctl[EVERY]
        row = 0 if lateness.counts.shape[0] == 1 else bin_of_time % lateness.counts.shape[0]
        lateness.counts[row, bucket_of(late)] += n
        if t < ctl[JOINED] or (t == ctl[JOINED] and t > ctl[OF]):
            ctl[LOST] += n
        else:
            lateness.caught[bin_of_time & (lateness.caught.shape[0] - 1)] += n
