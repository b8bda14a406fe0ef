"""What `explain` writes about aggregates over joined windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.jobs.query_text import equal_keys, retention_text, selected
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.stream import Stream
from slackwater.query.windows import Tumbling


@dataclass(frozen=True)
class AggregateText:
    """The sentences about aggregates over joined windows."""

    query: AggregateQuery
    kind: str = "aggregate"
    one_shard_reason: str = "there are no groups to split events by"

    def summary(self) -> str:
        """Describe the results."""
        named = ", ".join(self.query.names)
        return f"Aggregates over the join of {named} in each window{selected(self.query)}."

    def window_of(self, stream: Stream) -> str:
        """Return nothing: all streams share one window."""
        return ""

    def condition(self) -> list[str]:
        """Describe which events belong together."""
        return [
            *equal_keys(self.query.names, self.query.keys[:1]),
            "No pairs are enumerated: events are counted by key and the counts are multiplied.",
        ]

    def rows(self) -> list[str]:
        """Nothing: the windows say it."""
        return []

    def indexes(self) -> list[str]:
        """Describe the windows and how events in them are found."""
        window = self.query.window
        kind = "side by side" if isinstance(window, Tumbling) else f"each {window.slide}"
        return [f"{window.length} long, {kind}; events are kept in panes that windows share."]

    def sharding(self, shards: int) -> list[str]:
        """Describe how shards are added up."""
        if shards == 1:
            return []
        return ["Each shard counts its keys; one task adds up the counts of all shards."]

    def goal(self) -> list[str]:
        """Nothing of its own."""
        return []

    def goal_details(self) -> list[str]:
        """Describe compensation, where it is on."""
        query = self.query
        if not query.compensate:
            return []
        by = "ours" if query.compensate is True else str(query.compensate)
        return [
            f"What has not arrived by then is estimated ({by}), between low and high in "
            f"{query.confidence:.0%} of the windows."
        ]

    def state(self) -> str:
        """Describe which events are kept, and for how long."""
        return (
            "Events that K holds back, and those in the windows; they are awaited for "
            f"{retention_text(self.query)} (retention)."
        )

    def late_rows(self) -> list[str]:
        """Describe what happens to late events."""
        if self.query.late == "emit":
            return ["For events after the deadline of a window, the exact value follows later."]
        return ["Events after the deadline of a window do not change its result."]

    def silent_streams(self, idle_after: Any) -> list[str]:
        """Return nothing: a deadline does not wait for a stream."""
        return []
