"""Results of three streams at once, on stories that can be checked by eye.

Arrivals are written as a letter for the stream, a, b or c, and a time. Windows are 2: a1, b2 and c3
are a result, a1 and c4 are in none. A result is its time and its members, and stands behind the
arrival that completes it. K is 0 and events are kept for `keep`: an event of time t is forgotten
when the slowest stream is beyond t + 2 + keep.
"""

import re
from typing import NamedTuple

import pyarrow as pa
import pytest

import slackwater as sw
from naive import Event
from naive_at_once import AtOnce

WINDOW = 2


class Story(NamedTuple):
    claim: str
    arrivals: str
    results: str  # a part for each arrival that completes some
    keep: int = 1000
    windows: tuple = (WINDOW, WINDOW, WINDOW)
    where: str | None = None


STORIES = [
    Story("a result comes with its last member",
          "a1 b2 c3", "c3: 3 a1 b2 c3"),
    Story("the last to come may be the oldest",
          "c3 b2 a1", "a1: 3 a1 b2 c3"),
    Story("or lie between the others",
          "a1 c3 b2", "b2: 3 a1 b2 c3"),
    Story("two of three are no result",
          "a1 b2 a9 b9 c9", "c9: 9 a9 b9 c9"),
    Story("all members lie in the windows that end at the newest: b2 and c3 fit, a0 and c3 do not",
          "a0 b2 c3", ""),
    Story("an arrival completes several results at once, of several times",
          "b1 b2 c2 c3 a1",
          "a1: 2 a1 b1 c2, 2 a1 b2 c2, 3 a1 b1 c3, 3 a1 b2 c3"),
    Story("a result is there once, whichever of equal times comes last",
          "a5 b5 c5 b5", "c5: 5 a5 b5 c5 | b5: 5 a5 b5 c5"),
    Story("nothing waits: the next arrival completes the next result",
          "a1 b1 c1 c2 c3", "c1: 1 a1 b1 c1 | c2: 2 a1 b1 c2 | c3: 3 a1 b1 c3"),
    Story("windows differ: b is there for 5, a and c only for their own time",
          "b1 c6 a6 c1 a1", "a6: 6 a6 b1 c6 | a1: 1 a1 b1 c1", windows=(0, 5, 0)),
    Story("the slowest stream says what is forgotten: without any c, nothing is",
          "a1 b1 a90 b90 c1", "c1: 1 a1 b1 c1", keep=0),
    Story("what is forgotten finds no others: at 9, a1 is beyond 1 + 2",
          "a1 b1 a9 b9 c9 c1", "c9: 9 a9 b9 c9", keep=0),
    Story("kept for 6 it does: 9 is not beyond 1 + 2 + 6",
          "a1 b1 a9 b9 c9 c1", "c9: 9 a9 b9 c9 | c1: 1 a1 b1 c1", keep=6),
    Story("but not for 5",
          "a1 b1 a9 b9 c9 c1", "c9: 9 a9 b9 c9", keep=5),
    Story("only the others must still be kept, not the one that comes: b3 and c3 are, a1 is not",
          "b3 c3 a9 b5 c5 a1", "a1: 3 a1 b3 c3", keep=0),
    Story("one forgotten member is enough: b3 is kept at 5, b2 at 5 is not",
          "b2 b3 c3 a9 b5 c5 a1", "a1: 3 a1 b3 c3", keep=0),
    Story("a condition may need all three",
          "a1 b2 c3 c2", "c3: 3 a1 b2 c3", where="a.ts + b.ts = c.ts"),
]  # fmt: skip


def events_of(text):
    parts = [re.fullmatch(r"([abc])(\d+)", word).groups() for word in text.split()]
    return [Event(int(t), "abc".index(s), n, (0,)) for n, (s, t) in enumerate(parts)]


def word(e):
    return f"{'abc'[e.stream]}{e.ts}"


def spelt(found):
    """Results, in the words of the story; `found` has (arrival, time, members)."""
    parts = {}
    for last, ts, members in sorted(found, key=lambda f: (f[0].arrival, f[1:])):
        parts.setdefault(last, []).append(f"{ts} {' '.join(map(word, members))}")
    return " | ".join(f"{word(last)}: {', '.join(results)}" for last, results in parts.items())


def by_oracle(story):
    events = events_of(story.arrivals)
    on = lambda a, b, c: story.where is None or a.ts + b.ts == c.ts  # noqa: E731
    for f in AtOnce(story.windows, on).play(events, keep=story.keep):
        yield events[f.during], f.ts, f.members


def query_of(story, **options):
    streams = (sw.Stream(n, "ts", w) for n, w in zip("abc", story.windows, strict=True))
    options = {"goal": sw.Slack(0), "retention": story.keep, "where": story.where} | options
    return sw.join(*streams, emit="eager", **options)


def tables_of(events):
    return {
        name: pa.table(
            {
                column: pa.array([getattr(e, field) for e in events if e.stream == s], pa.int64())
                for column, field in (("ts", "ts"), ("n", "arrival"))
            }
        )
        for s, name in enumerate("abc")
    }


def by_engine(story):
    events = events_of(story.arrivals)
    for row in query_of(story).replay(tables_of(events), arrival="n").results.to_pylist():
        members = tuple(events[row[f"{name}_n"]] for name in "abc")
        yield max(members, key=lambda e: e.arrival), row["result_ts"], members


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.claim)
@pytest.mark.parametrize("told_by", [by_oracle, by_engine])
def test_stories(story, told_by):
    assert spelt(told_by(story)) == story.results


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.claim)
def test_counted_they_are_as_many(story):
    tables = tables_of(events_of(story.arrivals))
    counted = query_of(story, select="count").replay(tables, arrival="n").results.to_pylist()
    times = [int(t) for t in re.findall(r"(\d+)(?: [abc]\d+){3}", story.results)]
    assert counted == [{"result_ts": t, "n": times.count(t)} for t in sorted(set(times))]
