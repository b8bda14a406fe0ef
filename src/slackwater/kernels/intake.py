"""Rows of several streams, interleaved into the log in the order in which they arrived."""

from __future__ import annotations

from slackwater.kernels.jit import kernel
from slackwater.kernels.records import KEY, LINK, NONE, STREAM, TS


@kernel
def interleave(size, turns, arrival, at, first_row, rows, arrivals, bad):
    """Append the good rows to `arrivals` behind its first `size`; return (new size, bad rows).

    `turns` has the stream of each turn; `at` where in `rows` the next row of each stream lies, and
    `first_row` + `at` is its number. Positions of bad turns go to `bad`. Behind the turns of the
    streams come those of their ticks, which have no row of their own, nor a key.
    """
    n_bad = 0
    m = first_row.shape[0]
    for i in range(turns.shape[0]):
        s = turns[i]
        place = at[s]
        at[s] += 1
        if s >= m:
            s -= m
        if rows.reason[place] != 0:
            bad[n_bad] = i
            n_bad += 1
            continue
        arrivals.event[size, TS] = rows.ts[place]
        arrivals.event[size, LINK] = NONE
        arrivals.event[size, STREAM] = s
        for key in range(rows.code.shape[0]):
            arrivals.event[size, KEY + key] = rows.code[key, place]
        for column in range(rows.ints.shape[0]):
            arrivals.ints[column, size] = rows.ints[column, place]
        for column in range(rows.floats.shape[0]):
            arrivals.floats[column, size] = rows.floats[column, place]
        for component in range(rows.vectors.shape[1]):
            arrivals.vectors[size, component] = rows.vectors[place, component]
        arrivals.row[size] = first_row[s] + (at[s] if turns[i] >= m else place)
        if arrival.shape[0] > 0:
            arrivals.arrival[size] = arrival[i]
        size += 1
    return size, n_bad
