"""The scale of delays: steps of exactly g at first, then 32 buckets per factor of two.

A delay counts as its number of *steps* of g, rounded up. Up to `LINEAR` steps there is a bucket for
each: bucket 0 is no delay, bucket d reaches from (d - 1) g, not included, to d g. So the models of
the papers have the g that was asked for. Beyond, a bucket ends less than 1/32 above any delay in
it. The last bucket ends at 2**62 steps.

The bucket is a function of the delay alone. Counts can therefore be added whoever counted them and
however the input was cut, and no delay changes the resolution of the others.
"""

from __future__ import annotations

from math import frexp

import numpy as np

from slackwater.kernels.jit import part
from slackwater.kernels.records import I64

LINEAR = 4096  # steps that have a bucket each; 2**12
_LINEAR_BITS = 12
_OCTAVE_BITS = 5
_PER_OCTAVE = 32  # 2**5
BUCKETS = LINEAR + 50 * _PER_OCTAVE + 1


@part
def bucket_below(steps):
    """The last bucket that ends at `steps` or before: what a slack of so many steps covers."""
    if steps <= LINEAR:
        return steps
    # Rounded up to the next power of two, `within` is -1: still the right bucket.
    octave = frexp(float(steps))[1] - 1
    within = (steps - (1 << octave)) >> (octave - _OCTAVE_BITS)
    return min(LINEAR + (octave - _LINEAR_BITS) * _PER_OCTAVE + within, BUCKETS - 1)


@part
def bucket_of(steps):
    """The bucket of a delay of so many steps: the first that does not end before it."""
    if steps <= LINEAR:
        return steps
    return min(bucket_below(steps - 1) + 1, BUCKETS - 1)


@part
def end_of(bucket):
    """Where a bucket ends, in steps: its largest delay, which all its delays count as."""
    if bucket <= LINEAR:
        return bucket
    beyond = bucket - LINEAR
    octave = _LINEAR_BITS + beyond // _PER_OCTAVE
    return (1 << octave) + ((beyond % _PER_OCTAVE) << (octave - _OCTAVE_BITS))


def _ends() -> I64:
    beyond = np.arange(1, BUCKETS - LINEAR, dtype=np.int64)
    octave = _LINEAR_BITS + beyond // _PER_OCTAVE
    ends = (np.int64(1) << octave) + ((beyond % _PER_OCTAVE) << (octave - _OCTAVE_BITS))
    return np.concatenate([np.arange(LINEAR + 1, dtype=np.int64), ends])


ENDS: I64 = _ends()  # `end_of` each bucket


def buckets_of(delays: I64, granularity: int) -> I64:
    """The buckets of delays in units of time.

    >>> buckets_of(np.array([0, 1, 10, 11, 40_960, 40_961, 42_240, 42_241]), 10).tolist()
    [0, 1, 1, 2, 4096, 4097, 4097, 4098]
    """
    # Negated, or a delay close to 2**63 would overflow.
    return np.minimum(np.searchsorted(ENDS, -(-delays // granularity)), BUCKETS - 1)


def longest_delay(bucket: int, granularity: int) -> int:
    """The delay, in units of time, that all delays of a bucket count as.

    >>> longest_delay(4096, 10), longest_delay(4097, 10)
    (40960, 42240)
    """
    return int(ENDS[bucket]) * granularity
