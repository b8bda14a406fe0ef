"""An open-addressing table from 64-bit values to small codes."""

from __future__ import annotations

from slackwater.kernels.jit import kernel
from slackwater.kernels.records import NONE


@kernel
def encode(at, values, slots, keys, codes, next_code, room, out):
    """Codes of `values` from position `at` on; unknown values get `next_code`, `next_code` + 1, ...

    `slots` is where each value's search begins. Stops when `room` new values were added, so that
    the caller can enlarge the table; returns (position, next code).
    """
    mask = keys.shape[0] - 1
    for i in range(at, values.shape[0]):
        slot = slots[i]
        value = values[i]
        while codes[slot] != NONE and keys[slot] != value:
            slot = (slot + 1) & mask
        if codes[slot] == NONE:
            if room == 0:
                return i, next_code
            keys[slot] = value
            codes[slot] = next_code
            next_code += 1
            room -= 1
        out[i] = codes[slot]
    return values.shape[0], next_code
