"""The recall model of ICDE16 IV-A: which share of the results a slack of K would produce.

All in steps of g, the granularity of delays and of K. Basic windows have `basic` of them; with
b = g, the default, running sums replace Eq. (3) (finer ones would have nothing to distinguish).
Delays are counted on the scale of `delay_scale`: a bucket for each
step, and from 4,096 steps on wider ones, whose delays all count as the longest. With running sums
of the delay distributions, the recall of one K takes a few additions and products; it does not fall
with K, so the smallest sufficient K is found by bisection. K is tried where a bucket ends.
"""

from __future__ import annotations

from slackwater.kernels.delay_scale import bucket_below, end_of
from slackwater.kernels.jit import kernel, part


@kernel
def running_sums(histogram, share, fill):
    """Sum up delay histograms, [stream, bucket].

    `share` becomes the share of events with a delay of at most the end of the bucket, which are in
    order behind a buffer of that; `fill` the sum of `share` over all steps below that end. A stream
    of which nothing is known counts as in order.
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
            fill[s, d + 1] = fill[s, d] + share[s, d] * (end_of(d + 1) - end_of(d))


@part
def _up_to(d, share, fill, s):
    """The sum of `share` over the steps below `d`, also behind the histogram (share 1 there)."""
    bucket = bucket_below(d)
    if bucket < share.shape[1]:
        return fill[s, bucket] + (d - end_of(bucket)) * share[s, bucket]
    last = share.shape[1]
    return fill[s, last] + (d - end_of(last))


@part
def _in_order(d, share, s):
    """Eq. (2) at 0: the share of `s` that a buffer of `d` steps puts in order."""
    return share[s, min(bucket_below(d), share.shape[1] - 1)]


@part
def _window_fill(d, window, basic, share, fill, s):
    """Eq. (3) summed up: how much of the window of `s` (in steps) has arrived, as a length.

    Of each basic window of `basic` steps there is what had arrived when it began.
    """
    if basic > 1:
        have = 0.0
        begin = 0
        while begin < window:
            have += min(basic, window - begin) * _in_order(d + begin, share, s)
            begin += basic
        return have
    whole = int(window)
    have = _up_to(d + whole, share, fill, s) - _up_to(d, share, fill, s)
    return have + (window - whole) * _in_order(d + whole, share, s)


@kernel
def recall_at(k, lead, window, basic, share, fill):
    """Eq. (5) with equal selectivities: the share of results that K = `k` steps produces."""
    produced = 0.0  # of the streams so far: each in order, by the windows of the others
    true = 0.0
    filled = 1.0  # all their windows
    whole = 1.0
    for i in range(share.shape[0]):
        there = _window_fill(k + lead[i], window[i], basic, share, fill, i)
        produced = produced * there + _in_order(k + lead[i], share, i) * filled
        true = true * window[i] + whole
        filled *= there
        whole *= window[i]
    return produced / true if true > 0 else 1.0


@kernel
def recall_curve(lead, window, basic, share, fill, curve):
    """Fill `curve` with the recall of a K at the end of bucket 0, 1, ..."""
    for bucket in range(curve.shape[0]):
        curve[bucket] = recall_at(end_of(bucket), lead, window, basic, share, fill)


@kernel
def smallest_slack(wanted, most, lead, window, basic, share, fill):
    """The first of the buckets 0 to `most` with a recall of at least `wanted`; else `most`."""
    low = 0
    high = most
    while low < high:
        middle = (low + high) // 2
        if recall_at(end_of(middle), lead, window, basic, share, fill) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def smallest_corrected(wanted, most, ratio, lead, window, basic, share, fill):
    """The same where the recall of each bucket is corrected by `ratio`, which may fall.

    Within a run of equal ratios the product does not fall: its last bucket shows whether any of
    them is enough.
    """
    begin = 0
    for bucket in range(most + 1):
        factor = ratio[bucket]
        if bucket < most and ratio[bucket + 1] == factor:
            continue
        if recall_at(end_of(bucket), lead, window, basic, share, fill) * factor >= wanted:
            low = begin
            high = bucket
            while low < high:
                middle = (low + high) // 2
                if recall_at(end_of(middle), lead, window, basic, share, fill) * factor >= wanted:
                    high = middle
                else:
                    low = middle + 1
            return low
        begin = bucket + 1
    return most


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
