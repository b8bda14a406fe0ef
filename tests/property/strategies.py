"""Small queries over small disordered streams, drawn as one string of bytes.

One draw of bytes per case instead of a tree of strategies keeps a case cheap to generate (many
thousands a minute) and shrinks well: every byte shrinks towards zero, and zero always means the
plainest choice (two streams, no event, no delay, the same key).
"""

from hypothesis import settings
from hypothesis import strategies as st

import profiles
from helpers import Case
from naive import Event, Tuples

# Cases per property. Together the properties try more than 20,000 cases in `make test-all`.
CASES = {"ci": 200, "all": 800, "nojit": 30, "mutants": 15, "trust": 20_000}[profiles.PROFILE]

KINDS = ("key", "cross", "star", "chain", "keys", "theta", "key and theta", "function", "vectors")

_STREAMS = (2, 2, 2, 2, 3, 3, 3, 4, 4, 5)
_MOST_EVENTS = {1: 24, 2: 24, 3: 24, 4: 24, 5: 20}  # the oracle tries all combinations
_STEPS = (0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 3, 5, 9)
_GAPS = {253: 200, 254: 1_000, 255: 5_000_000}  # the last is more than the buckets there may be
_ORIGINS = (0, 0, 0, 7, 1_700_000_000_000)
_DELAYS = (4, 12, 31, 31, 70)
_SLACKS = (0, 0, 0, 0, 0, 1, 2, 3, 5, 8, 13, 31)
_LEADS = (0, 0, 0, 0, 3, 9, 40)

_HEAD = 20
_PER_EVENT = 4
SIZE = _HEAD + _PER_EVENT * max(_MOST_EVENTS.values())
_BYTES = st.binary(min_size=SIZE, max_size=SIZE)


def examples(fraction=1.0, trust=None):
    """How many cases a property tries; `trust` is the fraction of `make trust`, if another."""
    if profiles.PROFILE == "trust" and trust is not None:
        fraction = trust
    return max(1, round(CASES * fraction))


def tried(fraction=1.0, trust=None):
    """`examples`, as settings."""
    return settings(max_examples=examples(fraction, trust))


def _events(head, body, m, keys):
    """Events in arrival order."""
    n = min(head[0] % 64, _MOST_EVENTS[m])
    origin = _ORIGINS[head[1] % len(_ORIGINS)]
    delays = _DELAYS[head[2] % len(_DELAYS)]
    lead = _LEADS[head[3] % len(_LEADS)]  # of the last stream over the first
    clock, events = origin, []
    for number in range(n):
        stream, step, delay, value = body[_PER_EVENT * number : _PER_EVENT * (number + 1)]
        s = stream % m
        clock += _GAPS.get(step, _STEPS[step % len(_STEPS)])
        behind = delay % delays if delay >= 96 else 0
        ts = max(origin, clock + lead * s // m - behind)
        k = None if value >= 252 else value % keys
        events.append(Event(ts, s, number, (k, value // 8 % keys, value // 64 % 3)))
    return events


def largest_delay(events):
    """The largest delay of any event behind the local time of its stream."""
    local, largest = {}, 0
    for e in events:
        local[e.stream] = max(local.get(e.stream, e.ts), e.ts)
        largest = max(largest, local[e.stream] - e.ts)
    return largest


def _window(choice, byte):
    return Tuples(1 + byte % 5) if choice else byte % 31


def case_of(data, windows="time", slack="any", kinds=KINDS, options=True):
    """The query and arrivals that `SIZE` bytes stand for; see `cases`."""
    head, body = data[:_HEAD], data[_HEAD:]
    m = _STREAMS[head[0] % len(_STREAMS)]
    events = _events(head[1:5], body, m, keys=1 + head[5] % (4 if m == 2 else 2))
    tuples = {"time": 0, "tuples": 0b11111, "mixed": head[6]}[windows]
    sizes = [_window(tuples >> j & 1, head[7 + j]) for j in range(m)]
    possible = [kind for kind in kinds if m <= _widest(kind)]
    case = Case(events, sizes, possible[head[12] % len(possible)])
    if slack == "complete":
        case = case._replace(slack=largest_delay(case.valid) + head[13] % 3)
    elif slack == "any":
        k = None if head[13] >= 240 else _SLACKS[head[13] % len(_SLACKS)]
        case = case._replace(slack=k)
    return _with_options(case, head[14:18], windows == "time") if options else case


def _with_options(case, head, all_time_windows):
    case = case._replace(pipeline=("clocked", "icde16")[head[0] % 2])
    if not case.is_clocked:
        case = case._replace(overdue=("advance", "now")[head[0] // 2 % 2])
    if all_time_windows:  # with tuple-count windows the engine refuses these two
        case = case._replace(slide=(None, None, 1, 3, 7)[head[1] % 5])
        if not case.is_clocked:
            case = case._replace(late_probe=("none", "window-end")[head[2] % 2])
    choices = ("[]", "(]", "[)") if case.slide else ("[]", "(]")
    bounds = choices[head[3] % len(choices)]
    if bounds == "(]":  # a window of 0 would be empty
        sizes = [w if isinstance(w, Tuples) else max(1, w) for w in case.windows]
        case = case._replace(windows=sizes)
    return case._replace(bounds=bounds)


def _widest(kind):
    return {"theta": 3, "key and theta": 3, "function": 2, "vectors": 3}.get(kind, 5)


@st.composite
def cases(draw, windows="time", slack="any", kinds=KINDS, options=True):
    """Queries with their arrivals.

    `windows` is "time", "tuples" or "mixed"; `slack` is "any" (also following the largest delay)
    or "complete" (no smaller than every delay); `options` varies bounds, slide, overdue and
    late_probe.
    """
    return case_of(draw(_BYTES), windows, slack, kinds, options)


def _stage(data, streams):
    head, body = data[:_HEAD], data[_HEAD:]
    m = streams[head[0] % len(streams)]
    events = _events(head[1:5], body, m, keys=1)
    options = {
        "follow": head[6] % 3 == 2,
        "overdue": ("advance", "now")[head[7] % 2],
        "common_clock": head[9] % 3 == 2,
        "idle_after": (None, None, 1, 5, 20, 60)[head[10] % 6],
        "slide": (1, 1, 3, 7)[head[12] % 4],
        "open_end": bool(head[13] % 2),
    }
    options["hold_ties"] = bool(m > 1 and head[8] % 2 and not options["common_clock"])
    if options["common_clock"]:  # some arrivals are events of other shards
        ticks = head[11]
        events = [e._replace(values=None) if ticks >> e.arrival % 8 & 1 else e for e in events]
    return m, events, head[5] % 40, options


@st.composite
def stages(draw, streams=(1, 2, 2, 3, 4, 5)):
    """(number of streams, arrivals, K, options) for the reordering stage alone."""
    return _stage(draw(_BYTES), streams)
