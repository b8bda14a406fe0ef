"""Kim's circular bucket array: events sorted by time in constant time per event.

A *ring* is a row of buckets. The bucket of an event is ``ts >> shift``, taken modulo the length of
the row, and holds a linked list in (ts, number) order. With ``shift == 0`` a bucket is one
timestamp, as in Kim section 3, and every insert appends. Wider buckets exist so that a day between
two timestamps does not allocate a day of buckets; an insert may then walk within its bucket.
"""

from __future__ import annotations

from slackwater.kernels.jit import kernel, part
from slackwater.kernels.records import LINK, NONE, TS


@part
def comes_before(a, b, arrivals):
    """Whether event `a` precedes `b` in (ts, number) order."""
    ts_a = arrivals.event[a - arrivals.base, TS]
    ts_b = arrivals.event[b - arrivals.base, TS]
    return ts_a < ts_b or (ts_a == ts_b and a < b)


@part
def link_after(event, first, last, arrivals):
    """Put `event` into the sorted list `first`..`last`; return the new ends.

    Appending is the common case; only overdue events and wide buckets ever walk.
    """
    if last == NONE:
        arrivals.event[event - arrivals.base, LINK] = NONE
        return event, event
    if comes_before(last, event, arrivals):
        arrivals.event[event - arrivals.base, LINK] = NONE
        arrivals.event[last - arrivals.base, LINK] = event
        return first, event
    if comes_before(event, first, arrivals):
        arrivals.event[event - arrivals.base, LINK] = first
        return event, last
    before = first
    after = arrivals.event[first - arrivals.base, LINK]
    while comes_before(after, event, arrivals):
        before = after
        after = arrivals.event[after - arrivals.base, LINK]
    arrivals.event[before - arrivals.base, LINK] = event
    arrivals.event[event - arrivals.base, LINK] = after
    return first, last


@part
def _count_in(bucket, n, ring, rings):
    """Note that `n` more events are in `bucket`."""
    if rings.size[ring] == 0:
        rings.low[ring] = bucket
        rings.high[ring] = bucket
    else:
        rings.low[ring] = min(rings.low[ring], bucket)
        rings.high[ring] = max(rings.high[ring], bucket)
    rings.size[ring] += n


@part
def insert(event, ring, shift, rings, arrivals):
    """Put `event` into `ring`; the caller made sure that the ring's span has room for it."""
    bucket = arrivals.event[event - arrivals.base, TS] >> shift
    _count_in(bucket, 1, ring, rings)
    slot = bucket & (rings.head.shape[1] - 1)
    first, last = link_after(event, rings.head[ring, slot], rings.tail[ring, slot], arrivals)
    rings.head[ring, slot] = first
    rings.tail[ring, slot] = last


@part
def earliest(ring, rings):
    """The earliest event of `ring`, or NONE; moves `low` over empty buckets."""
    if rings.size[ring] == 0:
        return NONE
    mask = rings.head.shape[1] - 1
    while rings.head[ring, rings.low[ring] & mask] == NONE:
        rings.low[ring] += 1
    return rings.head[ring, rings.low[ring] & mask]


@part
def remove_earliest(ring, rings, arrivals):
    """Take out the event that `earliest` has just found."""
    slot = rings.low[ring] & (rings.head.shape[1] - 1)
    event = rings.head[ring, slot]
    rings.head[ring, slot] = arrivals.event[event - arrivals.base, LINK]
    if rings.head[ring, slot] == NONE:
        rings.tail[ring, slot] = NONE
    rings.size[ring] -= 1


@part
def take_bucket(ring, rings, arrivals):
    """Take out the bucket that `earliest` has just found, as a list: (first, last, how many)."""
    slot = rings.low[ring] & (rings.head.shape[1] - 1)
    first = rings.head[ring, slot]
    last = rings.tail[ring, slot]
    rings.head[ring, slot] = NONE
    rings.tail[ring, slot] = NONE
    n = 1
    event = first
    while event != last:
        event = arrivals.event[event - arrivals.base, LINK]
        n += 1
    rings.size[ring] -= n
    return first, last, n


@part
def append_bucket(first, last, n, bucket, ring, rings, arrivals):
    """Append a list to a bucket of `ring`; return False if that would not keep it sorted."""
    slot = bucket & (rings.head.shape[1] - 1)
    before = rings.tail[ring, slot]
    if before > first:
        return False
    if before == NONE:
        rings.head[ring, slot] = first
    else:
        arrivals.event[before - arrivals.base, LINK] = first
    rings.tail[ring, slot] = last
    _count_in(bucket, n, ring, rings)
    return True


@kernel
def insert_all(events, ring, shift, rings, arrivals):
    """Put `events` into `ring`; its span has room for them."""
    for event in events:
        insert(event, ring, shift, rings, arrivals)


@kernel
def contents(ring, rings, arrivals, out):
    """Write the events of `ring` to `out`, earliest first; return how many there are."""
    n = 0
    if rings.size[ring] > 0:
        for bucket in range(rings.low[ring], rings.high[ring] + 1):
            event = rings.head[ring, bucket & (rings.head.shape[1] - 1)]
            while event != NONE:
                out[n] = event
                n += 1
                event = arrivals.event[event - arrivals.base, LINK]
    return n
