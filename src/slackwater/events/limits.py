"""Sizes at which arrays grow, are cut into pieces or are cleaned up.

Results do not depend on them, only memory and time do. Tests make them so small that every limit is
reached all the time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one engine."""

    arrivals_at_once: int = 2**16  # per pass: small enough for the cache, large for the overhead
    results_at_once: int = 2**16  # of a join, before they become columns
    code_cleanup: int = 2**16  # key codes are cleaned up beyond this
    smallest_store: int = 4096  # entries of the join's windows
    smallest_table: int = 1024  # slots of a table of key codes
    fewest_buckets: int = 64  # of a ring of events that wait
    most_buckets: int = 2**20  # beyond this, buckets become wider instead of more
    chunk_bytes: int = 2 * 2**20  # of a snapshot, before compression


DEFAULT_LIMITS = Limits()
