"""What `explain` writes about a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.jobs.query_text import equal_keys, length_text, listed
from slackwater.query.join import JoinQuery
from slackwater.query.shedding import Harvest
from slackwater.query.stream import Stream
from slackwater.query.windows import Tuples


@dataclass(frozen=True)
class JoinText:
    """The sentences about a join."""

    query: JoinQuery
    kind: str = "join"
    one_shard_reason: str = "tuples are counted over all events"

    def summary(self) -> str:
        """Describe the results."""
        query = self.query
        what = "the number of results by time" if query.select == "count" else "all columns of all"
        if query.listed:
            what = f"the columns {listed([name for name, _ in query.listed])}"
        named = ", ".join(query.names)
        return f"A join of {len(query.streams)} streams, {named}; results have {what}."

    def window_of(self, stream: Stream) -> str:
        """Describe the window of a stream."""
        return f"; an event finds partners for {length_text(stream.window)}"

    def condition(self) -> list[str]:
        """Describe which events belong together."""
        return [*equal_keys(self.query.names, self.query.keys), *self._where()]

    def _where(self) -> list[str]:
        query = self.query
        if query.where is None:
            counts = query.select == "count"
            return ["No further condition: results are counted, not visited."] if counts else []
        if query.condition is None:
            return ["where is a function; it is compiled to native code."]
        parts = [
            f"  {part.source} ({listed(sorted(part.streams, key=query.names.index))})"
            for part in query.condition.parts
        ]
        compiled = "where is compiled to native code; a part is tested as soon as its streams have "
        return [compiled + "an event:", *parts]

    def indexes(self) -> list[str]:
        """Describe the windows and how events in them are found."""
        query = self.query
        sentences = []
        for s, stream in enumerate(query.streams):
            keys = [", ".join(key.columns[s]) for key in query.keys if any(key.columns.get(s, ()))]
            if keys:
                by = " and ".join(f"key ({key})" for key in keys)
                index = f"a hash table by {by}, its events sorted by time"
            elif column := self._sorted_by(stream.name):
                index = f"basic windows sorted by {column}: partners by bisection"
            else:
                index = "one run sorted by time: every event in the window is tested"
            if isinstance(stream.window, Tuples):
                index += ", and a timeline of all its events to count tuples"
            length = length_text(stream.window)
            sentences.append(f"{stream.name}: {length}, bounds {query.bounds}; {index}.")
        if query.slide is not None:
            sentences.append(f"Members are in windows that end at a multiple of {query.slide}.")
        return sentences

    def _sorted_by(self, stream: str) -> str | None:
        """Return the column by which a stream is sorted; None without such an index."""
        query = self.query
        harvest = query.shedding
        keyless = len(query.keys) == 1 and not any(query.keys[0].columns.values())
        if not isinstance(harvest, Harvest) or harvest.index != "sorted" or not keyless:
            return None
        parts = query.condition.parts if query.condition else ()
        ends = [end for part in parts if part.band for end in (part.band.left, part.band.right)]
        return next((column for name, column in ends if name == stream), None)

    def sharding(self) -> list[str]:
        """Nothing beyond what all kinds share."""
        return []

    def goal_details(self) -> list[str]:
        """Describe load shedding, where it is on."""
        if self.query.shedding is None:
            return []
        name = type(self.query.shedding).__name__
        return [f"Under overload, {name} skips work and counts the results that this costs."]

    def state(self) -> str:
        """Describe which events are kept, and for how long."""
        chosen = self.query.retention
        kept = "as long as all but a few late events need" if chosen is None else str(chosen)
        return (
            "Events that K holds back, and those in the windows; they are kept beyond their window "
            f"for {kept} (retention)."
        )

    def late_rows(self) -> list[str]:
        """Describe what happens to late events."""
        return {
            "count": ["The results that late events cost are counted (lost), not emitted."],
            "emit": ["Late results are emitted too, marked in the column late."],
            "drop": ["Late events are dropped at once: the results they cost are not known."],
        }[self.query.late]

    def silent_streams(self, idle_after: Any) -> list[str]:
        """Describe what happens if a stream sends nothing."""
        if idle_after is None:
            return ["The join waits for a silent stream without limit (idle_after is not set)."]
        return [f"The join stops waiting for a stream after {idle_after} of silence, in the time "
                "of the others."]  # fmt: skip
