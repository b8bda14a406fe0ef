"""A histogram of whole numbers of any size: buckets of equal width at first, then of equal ratio.

Numbers below 64 have a bucket each; above, every factor of two is cut into 32 buckets, so the edge
of a bucket is never more than 1/32 beyond the number. No width has to be chosen.
"""

from __future__ import annotations

import numpy as np

from slackwater.kernels.jit import part
from slackwater.kernels.records import I64

EXACT = 64  # numbers below have a bucket each; a power of two
_PER_OCTAVE = 32
BUCKETS = EXACT + 55 * _PER_OCTAVE


@part
def bucket_of(number):
    """The bucket of `number`; what is below 0 is in bucket 0."""
    if number < EXACT:
        return max(number, 0)
    octave = 0
    while number >> (octave + 1) >= EXACT:
        octave += 1
    within = (number >> (octave + 1)) - _PER_OCTAVE
    return min(EXACT + octave * _PER_OCTAVE + within, BUCKETS - 1)


def buckets_of(numbers: I64) -> I64:
    """The same for an array.

    >>> buckets_of(np.array([-1, 63, 64, 65, 66])).tolist()
    [0, 63, 64, 64, 65]
    """
    fraction, exponent = np.frexp(np.maximum(numbers, 1).astype(np.float64))
    within = ((2.0 * fraction - 1.0) * _PER_OCTAVE).astype(np.int64)
    above = EXACT + (exponent.astype(np.int64) - 7) * _PER_OCTAVE + within
    return np.where(numbers < EXACT, np.maximum(numbers, 0), np.minimum(above, BUCKETS - 1))


def upper_edges() -> I64:
    """The largest number of each bucket."""
    exact = np.arange(EXACT, dtype=np.int64)
    octave = np.arange(BUCKETS - EXACT, dtype=np.int64) // _PER_OCTAVE
    within = np.arange(BUCKETS - EXACT, dtype=np.int64) % _PER_OCTAVE
    width = np.int64(1) << (octave + 1)
    return np.concatenate([exact, (EXACT << octave) + (within + 1) * width - 1])
