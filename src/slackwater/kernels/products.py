"""The join of a window as products per key, by the cells of the window that the members lie in.

The window is cut into cells of equal length. For each combination of cells, one per stream, is
given how many results have their members there, and what the values in them add up to. Counts per
key and cell are multiplied, no result is ever looked at: a key with a million events costs no more
than one with an event in each cell.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel


@kernel
def cell_products(
    order, key, stream, group, cell, values, value_of, by, cells, n_streams,
    entry_cell, entry_group, entry_count, entry_sum, begin, cursor, out,
):  # fmt: skip
    """Add the products of all keys to `out`, [group, value, combination of cells].

    `order` sorts the events by (key, stream, group, cell). ``value_of[v]`` is the stream that has
    ``values[v]``; value 0 is the number of results itself. `by` is the stream that makes groups.
    """
    n, n_values = order.shape[0], values.shape[0]
    at = 0
    while at < n:
        first = at
        n_entries = 0
        for s in range(n_streams + 1):
            begin[s] = 0
        while at < n and key[order[at]] == key[order[first]]:
            i = order[at]
            s = stream[i]
            last = n_entries - 1
            is_new = begin[s + 1] == 0
            if not is_new:
                is_new = entry_cell[last] != cell[i] or entry_group[last] != group[i]
            if is_new:
                last = n_entries
                n_entries += 1
                begin[s + 1] = n_entries
                entry_cell[last] = cell[i]
                entry_group[last] = group[i]
                entry_count[last] = 0.0
                for v in range(n_values):
                    entry_sum[v, last] = 0.0
            entry_count[last] += 1.0
            for v in range(n_values):
                if value_of[v] == s:
                    entry_sum[v, last] += values[v, i]
            begin[s + 1] = n_entries
            at += 1
        joins = True
        for s in range(n_streams):
            if begin[s + 1] == 0:
                joins = False
        if joins:
            _combine(
                n_streams, n_values, value_of, by, cells, entry_cell, entry_group, entry_count,
                entry_sum, begin, cursor, out,
            )  # fmt: skip


@kernel
def _combine(
    n_streams, n_values, value_of, by, cells, entry_cell, entry_group, entry_count, entry_sum,
    begin, cursor, out,
):  # fmt: skip
    """All combinations of the entries of a key, one of each stream."""
    for s in range(n_streams):
        cursor[s] = begin[s]
    while True:
        place = 0
        product = 1.0
        for s in range(n_streams):
            place = place * cells + entry_cell[cursor[s]]
            product *= entry_count[cursor[s]]
        g = entry_group[cursor[by]]
        out[g, 0, place] += product
        for v in range(n_values):
            e = cursor[value_of[v]]
            out[g, 1 + v, place] += product / entry_count[e] * entry_sum[v, e]
        s = n_streams - 1
        while s >= 0:
            cursor[s] += 1
            if cursor[s] < begin[s + 1]:
                break
            cursor[s] = begin[s]
            s -= 1
        if s < 0:
            return


@kernel
def count_cells(stream, cell, delay, arrival, counts, mean_delay, latest):
    """Events by stream and cell; how late they are, each new one counting an eighth; the last."""
    for i in range(stream.shape[0]):
        s = stream[i]
        counts[s, cell[i]] += 1.0
        if latest[s] == 0.0 and mean_delay[s] == 0.0:
            mean_delay[s] = delay[i]
        else:
            mean_delay[s] += (delay[i] - mean_delay[s]) / 8.0
        latest[s] = max(latest[s], arrival[i])
