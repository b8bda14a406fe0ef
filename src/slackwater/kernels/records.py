"""Named groups of arrays that kernels work on. Plain data: no method, no default, no policy.

An event is known by its *number*: its place in arrival order since the beginning, all streams
together. ``number - base`` is its place in the arrays of `Arrivals`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]

NEVER = 2**62  # beyond every time
BEFORE = -(2**62)  # before every time
NONE = -1  # no event

# columns of `Arrivals.event`
TS = 0
LINK = 1  # next event in the same bucket
STREAM = 2
KEY = 3  # the first key, as a small integer, or one of the two marks below; further keys follow

# marks in place of the first key: such a row is in no window (codes of real keys are >= 0)
TICK = -1  # no event: only says how far the stream is elsewhere
SHED = -2  # an event that load shedding dropped; it has arrived, but is never stored

# columns of `Store.entry`, behind TS
EVENT = 1


class Arrivals(NamedTuple):
    """What is known of each event that may still matter, by ``number - base``."""

    base: int
    event: I64  # [event, TS / LINK / STREAM / KEY + key column]: what the kernels read together
    row: I64  # place among all rows of its stream
    arrival: I64
    delay: I64
    ints: I64  # [column, event]: integer columns that `where` reads
    floats: F64  # [column, event]
    vectors: F64  # [event, component]: its vectors side by side, each with its norm behind it
    marks: I64  # [event, mark]: what became of it, in joins that need to know


class RawRows(NamedTuple):
    """Rows of all streams, stream after stream."""

    ts: I64
    reason: U8  # why a row cannot take part; 0: it can
    code: I32  # [key column, row]
    ints: I64  # [column, row]
    floats: F64  # [column, row]
    vectors: F64  # [row, component]


class Rings(NamedTuple):
    """Bucket arrays, one row per ring; all rows have the same power-of-two length."""

    head: I64
    tail: I64
    low: I64  # per ring: lowest bucket that may be in use
    high: I64  # per ring: highest
    size: I64  # per ring: number of events


class Buffers(NamedTuple):
    """The state of the reordering stage, by stream; `ctl` holds its scalars."""

    ctl: I64
    local: I64  # local time
    newest: I64  # largest time that entered the Synchronizer; with a common clock: left K-slack
    moved: I64  # the largest local time of all when the stream's own last advanced; or FINISHED
    overdue: I64  # first of the events that leave with the next advance
    overdue_last: I64
    waiting: I64  # events in the buffer of the clocked stage


class Released(NamedTuple):
    """What left the reordering stage, in order; the join reads it from front to back."""

    event: I64
    during: I64  # the arrival that made it leave
    top: I64  # the largest local time then
    ts: I64
    stream: I64
    key: I64  # its first key
    clock: I64  # the join's clock for it: its own time, or a later one if it is late


class ClockSeries(NamedTuple):
    """The clocks around each arrival of a step."""

    before: I64  # the join's clock before it
    after: I64  # and behind it
    common: I64  # the common clock with it


class Store(NamedTuple):
    """The windows: for every (key, stream) one run of events sorted by (ts, number).

    Row ``code * width + place`` of `runs` has where the run of one stream of one key lies in
    `entry`. Both arrays begin on a cache line; four runs share one, and so do four entries.
    """

    runs: I32
    entry: I64  # [i, TS] and [i, EVENT]


class Plan(NamedTuple):
    """How to walk from an event of each stream to its partners (one row per starting stream)."""

    width: int  # rows of `Store.runs` per key
    shared: int  # 1: time windows, no condition but one key that all streams share
    inner: I64  # [start]: how many steps have further steps behind them; these come first
    stream: I64  # [start, step]: the stream found in this step
    parent: I64  # [start, step]: the stream whose event gives the key
    column: I64  # [start, step]: the key column of the parent
    place: I64  # [start, step]: place of the found stream among the key's runs
    site: I64  # [start, step]: which compiled condition to apply; NONE: no condition
    n_keys: I64  # [stream]: number of its key columns
    own_place: I64  # [stream, key column]: place of its own run


class Frame(NamedTuple):
    """The clock of the join; `ctl` holds its scalars."""

    ctl: I64
    length: I64  # [stream]: members have ``ts >= grid(result time) - length``; NONE: tuple-count
    tuples: I64  # [stream]: the window is the last so many events in the total order; or NONE
    held: I64  # [stream]: nothing before this time is looked at any more


class Scratch(NamedTuple):
    """Work space of one walk, by depth; here so that a walk can stop and go on."""

    state: I64  # depth
    cursor: I64
    stop: I64
    newest: I64  # largest time among the members chosen so far
    reach: I64  # no member may be later than this
    at: I64  # [stream]: the chosen event
    hits: I64  # [depth, i]: candidates that passed the condition
    n_hits: I64
    next_hit: I64
    piece: I64  # pieces of the window that were opened; only with load shedding
    phase: I64  # what decides where the pieces of a shredded window lie
    block: I64  # the next basic window of a sorted one
    source: I64  # 1: the candidates are in `Index.entry`
    low: I64  # times between which they count there
    high: I64


class Matching(NamedTuple):
    """Two streams whose events look for partners when they arrive."""

    ctl: I64
    length: I64  # [stream]: of its window
    reach: I64  # [stream]: how long its events are kept, behind F
    kept: I64  # [stream]: 1: its events are there for those of the other stream
    waits: I64  # [stream]: 1: it matters which of its events have no partner
    at: I64  # [stream]: the event in work, for the condition
    hits: I64  # positions of candidates that passed the condition
    needs: I64  # [bucket of `histogram`]: rows that are right only with such a wait
    keeps: I64  # [bucket]: pairs that are found only if events are kept so long
    unseen: I64  # [bucket]: arrivals whose partners may be forgotten, by how late they are


class MatchedRows(NamedTuple):
    """Rows of results as event numbers: one member, or both."""

    left: I64
    right: I64
    ts: I64
    during: I64  # the arrival with which it is given out
    change: I64
    late: I64


class Results(NamedTuple):
    """Joined events: one row per result."""

    row: I64  # [stream, result]: rows of the members
    ts: I64  # result time
    position: I64  # which of the events in work completed it
    last: I64  # the member that arrived last
    late: U8

    def take(self, which: I64 | slice) -> Results:
        """Some of the results."""
        return Results(
            self.row[:, which], self.ts[which], self.position[which], self.last[which],
            self.late[which],
        )  # fmt: skip


class Made(NamedTuple):
    """Events that made results."""

    position: I64  # among the events in work
    ts: I64  # result time
    n: I64


class Late(NamedTuple):
    """Events behind the join's clock."""

    position: I64
    by: I64  # how far behind
    lost: I64  # results that were lost with it
    fate: I64


class Sampled(NamedTuple):
    """Sampled events in order, which represent others while the join sheds load."""

    position: I64
    n: I64  # results that they and the events they represent would have without shedding


class Slots(NamedTuple):
    """What is aggregated: one slot for each function of each column."""

    op: I64
    column: I64  # row of `Arrivals.ints` or `Arrivals.floats`
    null_bit: I64  # bit of the column in the first row of `Arrivals.ints`: set where it is null
    row: I64  # first row in `Groups.ints` or `Groups.floats`, and in the suffixes


class Groups(NamedTuple):
    """Windows of all groups: for each a ring of events in order, as two stacks.

    The front stack has, for each of its events, the aggregate from there to its end; the back one
    only its own aggregate.
    """

    ring: I64  # [group, OFFSET / ROOM / HEAD / MID / TAIL / SEEN]
    active: I64  # groups that have events
    place: I64  # [group]: its place there, or NONE
    entry: I64  # [i, TS] and [i, EVENT]
    ints: I64  # [row, group]: running sums, and the back stacks
    floats: F64  # [row, group]
    int_suffix: I64  # [row, i]: of the front stacks
    float_suffix: F64  # [row, i]


class Aggregated(NamedTuple):
    """Aggregates of windows: one row per result."""

    ts: I64  # end of the window
    first: I64  # its first and last event
    last: I64
    size: I64  # events in it
    position: I64  # which of the entries in work made it
    ints: I64  # [slot, result]
    floats: F64  # [slot, result]

    def take(self, which: I64 | slice) -> Aggregated:
        """Some of the results."""
        return Aggregated(
            self.ts[which], self.first[which], self.last[which], self.size[which],
            self.position[which], self.ints[:, which], self.floats[:, which],
        )  # fmt: skip


class Lateness(NamedTuple):
    """The lateness of the results that arrivals completed since the last boundary."""

    ctl: I64
    counts: I64  # [bin of result time, bucket of `histogram`]: results; those not late: none
    caught: I64  # [bin of result time, modulo its length]: late results that are produced


class Shed(NamedTuple):
    """What load shedding leaves out of the join, and the statistics of a sample of events.

    *First* steps search for partners of one event, *later* ones for partners of partial results.
    """

    ctl: I64
    number: F64
    keep: F64  # [stream]: share of its events that are admitted
    share: F64  # [start]: share of the events that search for partners
    basic: I64  # [stream]: length of a basic window
    n: I64  # [stream]: how many there are
    n_segments: I64  # [start, step]: segments of the window that are searched
    segment: I64  # [start, step, 2 k] and [2 k + 1]: from which age to which
    lookup: I64  # [start, step]: cost of finding the run
    direct: I64  # [start, stream, KEY_COLUMN / PLACE / SITE]: how to find it first, if possible
    dropped: I64  # [stream]: events that arrived while the buffer was full
    thinned: I64  # [stream]: events that were dropped at random
    starts: F64  # [place]: when the virtual server begins the latest events, in turn
    entered: F64  # [first / later, start, stream]: how often a step was begun
    offered: F64  # [first / later, start, stream]: candidates in the whole window
    compared: F64  # [first / later, start, stream]: candidates that were compared
    passed: F64  # [first / later, start, stream, basic window]: those that joined
    joined: F64  # [start, stream, basic window]: those in results
    lags: F64  # [stream, bucket]: time in results minus that of the first stream


class Index(NamedTuple):
    """Basic windows sorted by value, for conditions that want values near each other (ε-joins).

    The one of stream s that begins at time ``g * basic`` is in slot ``g`` modulo their number: a
    copy of its events in `entry`, by rising `value`. Only those whose time is over are there.
    """

    column: I64  # [stream, MATRIX / ROW]: the column it is sorted by; NONE: not sorted
    linked: I64  # [stream, other]: 1 where a band ties the column `other` is sorted by to it
    band: I64  # [start, step, PARENT / MATRIX / ROW]: whose value is looked for; NONE: no one's
    width: F64  # [start, step]: how far off a value may be
    slot: I64  # [stream, slot, GRID / BEGIN / SIZE / FIRST]
    room: I64  # [stream, BEGIN / SIZE / HEAD]: its part of `entry`, and where the next copy goes
    entry: I64  # [i, TS] and [i, EVENT]
    value: F64  # [i]


class HarvestModel(NamedTuple):
    """What a setting of harvest fractions costs and gives, by direction and step of its order."""

    rate: F64  # [direction]: events per time
    n: I64  # [direction, step]: basic windows of the stream found in this step
    entry: F64  # [direction, step]: cost of looking for partners at all
    each: F64  # [direction, step]: cost of one basic window more
    near: F64  # [direction, step]: cost of candidates that an index finds, where partners are
    matches: F64  # [direction, step]: partners found in the whole window
    passed: F64  # [direction, step, count]: share of them in so many of the best basic windows
    joined: F64  # [direction, step, count]: the same of partners that become results
