"""Hashes of column values, row by row; the same in every process and version."""

from __future__ import annotations

import numpy as np

from slackwater.kernels.jit import kernel, part

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_MULTIPLY = np.uint64(0xBF58476D1CE4E5B9)  # of the finaliser of splitmix64
_SHIFT = np.uint64(29)
_BYTE = np.uint64(8)


@part
def _mixed(state, value):
    """`state` with a further `value` in it; every bit of both counts."""
    state = (state ^ value) * _MULTIPLY
    return (state ^ (state >> _SHIFT)) + _ODD


@kernel
def mix(state, values):
    """Mix a value into the state of each row."""
    for i in range(state.shape[0]):
        state[i] = _mixed(state[i], values[i])


@kernel
def below(first, rounds, seed, bound, shift, chosen):
    """Whether each number in a row, from `first` on, has a hash below `bound`.

    A number is mixed into `seed` so many times; the hash is without its last `shift` bits.
    """
    for i in range(chosen.shape[0]):
        state = seed
        for _ in range(rounds):
            state = _mixed(state, first + np.uint64(i))
        chosen[i] = state >> shift < bound


@part
def _hash_of_two(first, second, rounds, seed):
    state = seed
    for _ in range(rounds):
        state = _mixed(_mixed(state, first), second)
    return state


@kernel
def either_below(keys, ts, lengths, stream, pane, rounds, seed, bound, shift, chosen):
    """Whether the hash of an event's key with one of its two panes is below `bound`.

    The panes are those that hold its time and the end of its window, which has the length of its
    stream. Rounds, seed and shift as in `below`.
    """
    first = 0
    last = 0
    for i in range(chosen.shape[0]):
        t = ts[i]
        if t < first * pane or t >= (first + 1) * pane:  # a division takes as long as a hash
            first = t // pane
        t += lengths[stream[i]]
        if t < last * pane or t >= (last + 1) * pane:
            last = t // pane
        state = _hash_of_two(keys[i], np.uint64(first), rounds, seed)
        if last != first and state >> shift >= bound:
            state = _hash_of_two(keys[i], np.uint64(last), rounds, seed)
        chosen[i] = state >> shift < bound


@kernel
def mix_runs(state, ends, values):
    """Mix ``values[ends[i] : ends[i + 1]]`` into the state of row i, and how many there are."""
    for i in range(state.shape[0]):
        now = state[i]
        for place in range(ends[i], ends[i + 1]):
            now = _mixed(now, values[place])
        state[i] = _mixed(now, np.uint64(ends[i + 1] - ends[i]))


@kernel
def sort_runs(begin, end, rank, order):
    """Sort `order` by `rank` within each run ``begin[i] <= place < end[i]``; runs are short."""
    for i in range(begin.shape[0]):
        for place in range(begin[i], end[i]):
            moving_rank = rank[place]
            moving = order[place]
            at = place
            while at > begin[i] and rank[at - 1] > moving_rank:
                rank[at] = rank[at - 1]
                order[at] = order[at - 1]
                at -= 1
            rank[at] = moving_rank
            order[at] = moving


@kernel
def mix_bytes(state, ends, data):
    """The same with bytes, eight at a time."""
    for i in range(state.shape[0]):
        now = state[i]
        word = np.uint64(0)
        filled = 0
        for place in range(ends[i], ends[i + 1]):
            word = (word << _BYTE) | np.uint64(data[place])
            filled += 1
            if filled == 8:
                now = _mixed(now, word)
                word = np.uint64(0)
                filled = 0
        state[i] = _mixed(_mixed(now, word), np.uint64(ends[i + 1] - ends[i]))
