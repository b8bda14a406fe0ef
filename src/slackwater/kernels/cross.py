"""How many combinations each event meets in the windows, whatever the join condition (n of ICDE16).

Each stream has a row of sorted times, those in its window, between two positions. An event in order
goes to the end; a late one is sorted in. The caller sees to it that there is room behind the end.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part

BEGIN = 0
END = 1


@part
def _insert(t, row, bounds, s):
    """Sort the time `t` into the row of `s`."""
    i = bounds[s, END]
    while i > bounds[s, BEGIN] and row[s, i - 1] > t:
        row[s, i] = row[s, i - 1]
        i -= 1
    row[s, i] = t
    bounds[s, END] += 1


@kernel
def cross_sizes(stream, ts, late, window, row, bounds, sizes):
    """Fill `sizes` with the combinations that each event meets; 0 for late ones."""
    m = window.shape[0]
    for n in range(stream.shape[0]):
        s = stream[n]
        sizes[n] = 0
        if late[n]:
            _insert(ts[n], row, bounds, s)
            continue
        product = 1
        for other in range(m):
            begin = bounds[other, BEGIN]
            while begin < bounds[other, END] and row[other, begin] < ts[n] - window[other]:
                begin += 1
            bounds[other, BEGIN] = begin
            if other != s:
                product *= bounds[other, END] - begin
        sizes[n] = product
        _insert(ts[n], row, bounds, s)
