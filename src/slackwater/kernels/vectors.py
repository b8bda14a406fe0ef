"""Functions of two vectors, and the norms that intake keeps beside them.

A vector is its event's place in `Arrivals.vectors`, the offset of its first component there and its
length n; its Euclidean norm lies right behind its components.
"""

from __future__ import annotations

import math

from slackwater.kernels.jit import kernel, part, summing


@summing
def dot(vectors, a, first_a, b, first_b, n):
    """The sum of the products of their components."""
    total = 0.0
    for i in range(n):  # floats, so that plain Python does not warn where a sum overflows
        total += float(vectors[a, first_a + i]) * float(vectors[b, first_b + i])
    return total


@summing
def _square_distance(vectors, a, first_a, b, first_b, n):
    total = 0.0
    for i in range(n):
        difference = float(vectors[a, first_a + i]) - float(vectors[b, first_b + i])
        total += difference * difference
    return total


@part
def l2(vectors, a, first_a, b, first_b, n):
    """Their Euclidean distance."""
    return math.sqrt(_square_distance(vectors, a, first_a, b, first_b, n))


@part
def cosine(vectors, a, first_a, b, first_b, n):
    """The cosine of the angle between them; 0 where one of them is zero and has no direction."""
    norms = float(vectors[a, first_a + n]) * float(vectors[b, first_b + n])
    if norms == 0.0:
        return 0.0
    return dot(vectors, a, first_a, b, first_b, n) / norms


@kernel
def add_norms(vectors, first, n):
    """Write the norm of each row's vector behind it."""
    for row in range(vectors.shape[0]):
        vectors[row, first + n] = math.sqrt(dot(vectors, row, first, row, first, n))
