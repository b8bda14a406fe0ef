"""The recall model of ICDE16 IV-A: which share of the results a slack of K would produce.

All in buckets of g, the granularity of delays, of K and of basic windows (b = g: finer basic
windows have nothing to distinguish). With running sums of the delay distributions, the recall of
one K takes a few additions and products; it does not fall with K, so the smallest sufficient K is
found by bisection.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part


@kernel
def running_sums(histogram, share, fill):
    """Sum up delay histograms, [stream, d].

    `share` becomes the share of events with a delay of at most d, which are in order behind a
    buffer of d; `fill` the sum of `share` below d. A stream of which nothing is known counts as in
    order.
    """
    m, buckets = share.shape  # of the histogram's; there is nothing in the others
    for s in range(m):
        total = 0
        for d in range(buckets):
            total += histogram[s, d]
        so_far = 0
        fill[s, 0] = 0.0
        for d in range(buckets):
            so_far += histogram[s, d]
            share[s, d] = so_far / total if total > 0 else 1.0
            fill[s, d + 1] = fill[s, d] + share[s, d]


@part
def _up_to(d, fill, s):
    """The sum of `share` below `d`, also where `d` lies behind the histogram (share 1 there)."""
    buckets = fill.shape[1] - 1
    if d <= buckets:
        return fill[s, d]
    return fill[s, buckets] + (d - buckets)


@part
def _in_order(d, share, s):
    """Eq. (2) at 0: the share of `s` that a buffer of `d` buckets puts in order."""
    return share[s, min(d, share.shape[1] - 1)]


@part
def _window_fill(d, window, share, fill, s):
    """Eq. (3) summed up: how much of the window of `s` (in buckets) has arrived, as a length."""
    whole = int(window)
    have = _up_to(d + whole, fill, s) - _up_to(d, fill, s)
    return have + (window - whole) * _in_order(d + whole, share, s)


@kernel
def recall_at(k, lead, window, share, fill):
    """Eq. (5) with equal selectivities: the share of results that K = `k` buckets produces."""
    m = share.shape[0]
    produced = 0.0
    true = 0.0
    for i in range(m):
        here = _in_order(k + lead[i], share, i)
        all_of_it = 1.0
        for j in range(m):
            if j != i:
                here *= _window_fill(k + lead[j], window[j], share, fill, j)
                all_of_it *= window[j]
        produced += here
        true += all_of_it
    return produced / true if true > 0 else 1.0


@kernel
def recall_curve(lead, window, share, fill, curve):
    """Fill `curve` with the recall of K = 0, 1, ... buckets."""
    for k in range(curve.shape[0]):
        curve[k] = recall_at(k, lead, window, share, fill)


@kernel
def smallest_slack(wanted, most, lead, window, share, fill):
    """The smallest K of 0 to `most` buckets whose recall is at least `wanted`; else `most`."""
    low = 0
    high = most
    while low < high:
        middle = (low + high) // 2
        if recall_at(middle, lead, window, share, fill) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def deviations(lost, expected, true, block, in_period):
    """Of all periods of `in_period` blocks: (mean expected loss, mean squared deviation from it).

    Both as shares of the true results of the period. A period's deviation is that of its blocks,
    added up as squares. Where there are fewer blocks than a period has, it is taken to go on so.
    """
    blocks = true.shape[0] // block
    first = true.shape[0] - blocks * block
    n = min(blocks, in_period)
    periods = 0
    mean = 0.0
    squares = 0.0
    for begin in range(blocks - n + 1):
        results = 0.0
        loss = 0.0
        off = 0.0
        for number in range(begin, begin + n):
            away = 0.0
            for i in range(first + number * block, first + (number + 1) * block):
                results += true[i]
                loss += expected[i]
                away += lost[i] - expected[i]
            off += away * away
        if results > 0.0:
            periods += 1
            mean += loss / results
            squares += off / (results * results)
    if periods == 0:
        return 0.0, 0.0
    return mean / periods, squares / periods * n / in_period
