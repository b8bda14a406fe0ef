"""What `explain` writes about a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.jobs.explain_kinds import name_of, what_the_goal_sets, when_rows_come
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
        shown = "all" if all(map(query.shows, range(len(query.streams)))) else query.names[0]
        what = f"all columns of {shown}"
        if query.select == "count":
            what = "the number of results by time"
        if query.listed:
            what = f"the columns {listed([name for name, _ in query.listed])}"
        named = ", ".join(query.names)
        kind = name_of(query)
        return f"{kind} of {len(query.streams)} streams, {named}; results have {what}."

    def window_of(self, stream: Stream) -> str:
        """Describe the window of a stream."""
        if self.query.how == "asof":
            return ""
        return f"; an event finds partners for {length_text(stream.window)}"

    def rows(self) -> list[str]:
        """Describe when rows come."""
        return when_rows_come(self.query)

    def condition(self) -> list[str]:
        """Describe which events belong together."""
        return [*equal_keys(self.query.names, self.query.keys), *self._where()]

    def _where(self) -> list[str]:
        query = self.query
        if query.gap is not None:
            left, right = query.names
            low, high = query.gap
            return [f"{right} is {low} to {high} {query.unit} later than {left}.", *self._tests()]
        return self._tests()

    def _tests(self) -> list[str]:
        query = self.query
        if not query.has_condition:
            counts = query.select == "count" and (query.emit == "ordered" or len(query.keys) == 1)
            return ["No further condition: results are counted, not visited."] if counts else []
        if query.where is None:
            return []
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
            is_asof = query.how == "asof"
            length = f"tolerance {query.tolerance}" if is_asof else length_text(stream.window)
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

    def sharding(self, shards: int) -> list[str]:
        """Describe who has a K, and what follows for the order of results."""
        query = self.query
        is_one = shards == 1 or query.shares_slack
        if query.emit == "eager":
            order = "Rows are in no order."
        elif is_one:
            order = "Results in time are above complete_through of every earlier micro-batch."
        else:
            order = "Results of several shards are not in order from one micro-batch to the next."
        if shards > 1:
            whose = "All shards have one K" if is_one else "Each shard chooses its own K"
            order = f"{whose}. {order}"
        if shards == 1 or not query.shares_slack or query.has_fixed_slack:
            cuts = "Any cuts into micro-batches give the same results, given an arrival column."
        else:
            cuts = "The same cuts into micro-batches give the same results; a retry repeats them."
        return [order, cuts]

    def goal(self) -> list[str]:
        """Describe what the goal sets, where it is not K for pairs in order alone."""
        return what_the_goal_sets(self.query)

    def goal_details(self) -> list[str]:
        """Describe load shedding, where it is on."""
        if self.query.shedding is None:
            return []
        name = type(self.query.shedding).__name__
        return [f"Under overload, {name} skips work and counts the results that this costs."]

    def state(self) -> str:
        """Describe which events are kept, and for how long."""
        chosen, is_eager = self.query.retention, self.query.emit == "eager"
        if is_eager and chosen is None and not any(self.query.preserved):
            return "Events in the windows, and beyond them as long as the goal asks for."
        kept = "as long as all but a few late events need" if chosen is None else str(chosen)
        return (
            "Events that K holds back, and those in the windows; they are kept beyond their window "
            f"for {kept} (retention)."
        )

    def late_rows(self) -> list[str]:
        """Describe what happens to late events."""
        if self.query.emit == "eager":
            return ["Nothing is late: a late event still finds what is kept."]
        return {
            "count": ["The results that late events cost are counted (lost), not emitted."],
            "emit": ["Late results are emitted too, marked in the column late."],
            "drop": ["Late events are dropped at once: the results they cost are not known."],
        }[self.query.late]

    def silent_streams(self, idle_after: Any) -> list[str]:
        """Describe what happens if a stream sends nothing."""
        if idle_after is None and any(self.query.preserved):
            return ["While a stream is silent, nothing is decided: idle_after is not set."]
        if idle_after is None and not self.query.is_matched:
            return ["The join waits for a silent stream without limit (idle_after is not set)."]
        if idle_after is None and self.query.emit == "eager":
            return ["While a stream is silent, nothing is forgotten: idle_after is not set."]
        if idle_after is None:
            return []
        return [f"The join stops waiting for a stream after {idle_after} of silence, in the time "
                "of the others."]  # fmt: skip
