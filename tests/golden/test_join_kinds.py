"""Kinds of joins on stories that can be checked by eye, told by the oracle and by the engine.

Arrivals are written as a letter for the stream, l or r, and a time; a letter behind it is the key
(``l5x``), without one all keys are equal. Windows are 2: l1 and r3 are partners, l1 and r4 are not.
So l1 has no partner once nothing up to 3 can come any more.

A row of results is its time and its members. ``+`` gives a row out, ``-`` takes it back, ``~`` puts
it in place of the row of the same left event; ``!`` marks what comes later than its turn.
"""

import re
from typing import NamedTuple

import pyarrow as pa
import pytest

import slackwater as sw
from naive import Event
from naive_kinds import REACH, Join, Play, truth

WINDOW = 2


class Story(NamedTuple):
    claim: str
    how: str
    emit: str
    slack: int
    arrivals: str
    rows: str
    direction: str = "backward"
    keep: int = 1000


STORIES = [
    Story("a left event with partners has no other row",
          "left", "ordered", 0, "l1 r2 l5 r5", "+2 l1 r2 | +5 l5 r5"),
    Story("without a partner up to time 3 there is a row of time 3, once 3 is over",
          "left", "ordered", 0, "l1 r4 l4", "+3 l1 _ | +4 l4 r4"),
    Story("with slack 2 the same row comes when the clock is past 3 + 2",
          "left", "ordered", 2, "l1 r5 l5 r9 l9", "+3 l1 _ | +5 l5 r5 | +9 l9 r9"),
    Story("a partner that comes too late takes the row back",
          "left", "ordered", 0, "l1 r4 l4 r1", "+3 l1 _ | +4 l4 r4 | +!1 l1 r1 | -!3 l1 _"),
    Story("a late event whose turn has passed gets a late row",
          "left", "ordered", 0, "l9 r9 l1", "+9 l9 r9 | +!3 l1 _"),
    Story("a late event with a partner gets no row without one",
          "left", "ordered", 0, "r2 l9 r9 l1", "+9 l9 r9 | +!2 l1 r2"),
    Story("a right join has the rows of the right stream",
          "right", "ordered", 0, "l1 r1 r5 l9 r9", "+1 l1 r1 | +7 _ r5 | +9 l9 r9"),
    Story("a full join has both",
          "full", "ordered", 0, "l1 r5 l9 r9", "+3 l1 _ | +7 _ r5 | +9 l9 r9"),
    Story("a late pair takes back the row of its member that came first, never two rows",
          "full", "ordered", 0, "r1 l9 r9 l2", "+3 _ r1 | +9 l9 r9 | +!2 l2 r1 | -!3 _ r1"),
    Story("another key is no partner",
          "left", "ordered", 0, "l1x r1y l4 r4", "+3 l1x _ | +4 l4 r4"),
    Story("an anti join has only the rows without partner",
          "anti", "ordered", 0, "l1 r1 l5 l9 r9", "+7 l5 _"),
    Story("and takes them back",
          "anti", "ordered", 0, "l1 l9 r9 r1", "+3 l1 _ | -!3 l1 _"),
    Story("a semi join has each left event once, at the time of its first pair",
          "semi", "ordered", 0, "l1 r2 r3 l5 r5", "+2 l1 _ | +5 l5 _"),
    Story("the earlier pair counts, also if it comes second",
          "semi", "ordered", 5, "l1 r3 r2 l9 r9", "+2 l1 _ | +9 l9 _"),
    Story("a left event that has late pairs only is late itself",
          "semi", "ordered", 0, "l1 l9 r9 r1", "+9 l9 _ | +!1 l1 _"),
    Story("eager: a pair goes out with its second event, at any slack",
          "inner", "eager", 9, "l5 r4 r3 l1", "+5 l5 r4 | +5 l5 r3 | +3 l1 r3"),
    Story("eager: what is forgotten finds no partner; kept is what is less than 1 behind",
          "inner", "eager", 0, "l1 l9 r9 r1 r8", "+9 l9 r9 | +9 l9 r8", keep=0),
    Story("eager: only rows without partner wait",
          "left", "eager", 1, "l5 r4 r9 l9 r7", "+5 l5 r4 | +9 l9 r9 | +7 l5 r7 | +9 l9 r7"),
    Story("eager: a partner behind the decision takes the row back, and is a pair at once",
          "left", "eager", 1, "l1 r9 l9 r1", "+9 l9 r9 | +3 l1 _ | +1 l1 r1 | -!3 l1 _"),
    Story("eager: a semi join waits for nothing",
          "semi", "eager", 0, "l1 r3 r2 l5", "+3 l1 _ | +5 l5 _"),
    Story("as-of: the last right event that is not later",
          "asof", "ordered", 0, "r1 r2 l2 l3 r4 l9 r9", "+2 l2 r2 | +3 l3 r2 | +9 l9 r9"),
    Story("as-of: none within the tolerance",
          "asof", "ordered", 0, "r1 l4 l9 r9", "+4 l4 _ | +9 l9 r9"),
    Story("as-of: a better partner that comes late takes the place of the other",
          "asof", "ordered", 0, "r1 l3 r5 l5 r3 r2", "+3 l3 r1 | ~!3 l3 r3 | +5 l5 r5"),
    Story("as-of: with slack it comes in time",
          "asof", "ordered", 5, "r1 l3 r5 l5 r3 r2", "+3 l3 r3 | +5 l5 r5"),
    Story("as-of, eager: the row when the clock is past the slack, corrections at once",
          "asof", "eager", 1, "r1 l3 r5 l5 r3", "+3 l3 r1 | ~!3 l3 r3 | +5 l5 r5"),
    Story("as-of forward: the first right event that is not earlier",
          "asof", "ordered", 0, "l1 r2 r3 l9 r9", "+3 l1 r2 | +11 l9 r9", "forward"),
    Story("as-of nearest: the earlier one of two at equal distance",
          "asof", "ordered", 0, "r2 l3 r4 l9 r9", "+5 l3 r2 | +11 l9 r9", "nearest"),
]  # fmt: skip


def events_of(text):
    """The arrivals of a story."""
    parts = [re.fullmatch(r"([lr])(\d+)(\w*)", word).groups() for word in text.split()]
    return [
        Event(int(t), "lr".index(s), n, (sum(map(ord, k)), 0, 0))
        for n, (s, t, k) in enumerate(parts)
    ]


def spelt(rows, words):
    """Rows in the words of the story."""
    word = lambda e: "_" if e is None else words[e]  # noqa: E731
    signs = {"insert": "+", "delete": "-", "update": "~"}
    return " | ".join(
        f"{signs[change]}{'!' * late}{ts} {word(left)} {word(right)}"
        for ts, left, right, change, late in rows
    )


def join_of(story):
    """What the oracle joins."""
    reach = REACH[story.direction] if story.how == "asof" else (1, 1)
    windows = tuple(WINDOW * times for times in reach)
    return Join(windows, lambda a, b: a.values[0] == b.values[0], story.how, story.direction)


def by_oracle(story):
    events = events_of(story.arrivals)
    play = Play(
        join_of(story), events, [story.slack] * len(events), story.keep, story.emit == "eager"
    )
    given = sorted(play.given(), key=lambda g: (g.during, g.row.late, g.row.ts, g.row.change))
    number = lambda e: None if e is None else e.arrival  # noqa: E731
    return [(r.ts, number(r.left), number(r.right), r.change, r.late) for _, r in given]


def table_of(events, stream):
    """The rows of a stream; `n` is the number of the arrival."""
    own = [e for e in events if e.stream == stream]
    columns = {
        "ts": [e.ts for e in own],
        "k": [e.values[0] for e in own],
        "n": [e.arrival for e in own],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def query_of(story):
    is_asof = story.how == "asof"
    has_corrections = story.emit == "ordered" or story.how not in ("inner", "semi")
    return sw.join(
        *(sw.Stream(name, "ts", None if is_asof else WINDOW) for name in "lr"),
        on="k",
        how=story.how,
        emit=story.emit,
        goal=sw.Slack(story.slack),
        late="emit" if has_corrections else "count",
        retention=story.keep,
        tolerance=WINDOW if is_asof else None,
        direction=story.direction,
    )


def by_engine(story):
    events = events_of(story.arrivals)
    tables = {name: table_of(events, s) for s, name in enumerate("lr")}
    rows = query_of(story).replay(tables, arrival="n").results.to_pylist()
    return [
        (
            r["result_ts"],
            r.get("l_n"),
            r.get("r_n"),
            r.get("change", "insert"),
            r.get("late", False),
        )
        for r in rows
    ]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.claim)
def test_the_oracle_tells_the_story(story):
    told = spelt(by_oracle(story), story.arrivals.split())
    assert sorted(told.split(" | ")) == sorted(story.rows.split(" | "))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.claim)
def test_the_engine_tells_it_in_this_order(story):
    assert spelt(by_engine(story), story.arrivals.split()) == story.rows


def test_what_is_true_does_not_depend_on_the_order_of_arrival():
    for story in STORIES:
        events = events_of(story.arrivals)
        rows = truth(join_of(story), events)
        assert sorted(map(str, rows)) == sorted(map(str, truth(join_of(story), events[::-1])))
