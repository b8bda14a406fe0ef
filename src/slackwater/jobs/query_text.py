"""What `explain` writes about each kind of query: one class per kind, behind one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from slackwater.query.stream import Stream
from slackwater.query.windows import Tumbling, Tuples, Window


class QueryText(Protocol):
    """The sentences of `explain` that depend on the kind of the query."""

    kind: str  # the table of the job file: join, window or aggregate
    one_shard_reason: str  # why all events must be on one shard, where that is so

    def summary(self) -> str:
        """Describe the results."""
        ...

    def window_of(self, stream: Stream) -> str:
        """Describe the window of a stream, as the end of a sentence; may be empty."""
        ...

    def condition(self) -> list[str]:
        """Describe which events belong together."""
        ...

    def rows(self) -> list[str]:
        """Describe when rows come, where that is not said elsewhere."""
        ...

    def indexes(self) -> list[str]:
        """Describe the windows and how events in them are found."""
        ...

    def sharding(self, shards: int) -> list[str]:
        """Describe what follows from the number of shards, beyond what all kinds share."""
        ...

    def goal(self) -> list[str]:
        """Describe what the goal sets; empty: what it sets for every query."""
        ...

    def goal_details(self) -> list[str]:
        """Describe what stands beside the goal: compensation, load shedding."""
        ...

    def state(self) -> str:
        """Describe which events are kept, and for how long."""
        ...

    def late_rows(self) -> list[str]:
        """Describe what happens to late events."""
        ...

    def silent_streams(self, idle_after: Any) -> list[str]:
        """Describe what happens if a stream sends nothing."""
        ...


def length_text(window: Any) -> str:
    """Format the length of a window, in time or in tuples."""
    return f"{window.count} tuples" if isinstance(window, Tuples) else str(window)


def length_and_slide(window: Window) -> tuple[str, str | None]:
    """Format the length and the slide of a window of one stream; no slide: each event."""
    if isinstance(window, Tuples):
        return f"{window.count} tuples", None if window.slide is None else f"{window.slide} tuples"
    slide = window.length if isinstance(window, Tumbling) else window.slide
    return str(window.length), None if slide is None else str(slide)


def listed(words: Sequence[str]) -> str:
    """Join words for a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def equal_keys(names: Sequence[str], keys: Sequence[Any]) -> list[str]:
    """Describe the equalities between streams of these names."""
    sentences = []
    for key in keys:
        streams = [names[s] for s in key.streams]
        if not any(key.columns.values()):
            sentences.append(
                f"No key ties {listed(streams)}: all events in the windows are partners."
            )
            continue
        columns = {", ".join(c) for c in key.columns.values()}
        equal = (
            f"{listed(streams)} by {next(iter(columns))}"
            if len(columns) == 1
            else " = ".join(f"{names[s]}.{'+'.join(c)}" for s, c in key.columns.items())
        )
        sentences.append(f"Equal keys: {equal}.")
    return sentences


def selected(query: Any) -> str:
    """Format the aggregates of a query, and the groups they are for."""
    by = f", for each {listed(query.by)}" if query.by else ""
    values = ", ".join(f"{n} = {a.function}({a.column or ''})" for n, a in query.select.items())
    return f"{by}: {values}"


def retention_text(query: Any) -> str:
    """Format how long events are kept for late ones."""
    return "the largest lateness so far" if query.retention is None else str(query.retention)
