"""What `explain` writes about windows of one stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.jobs.query_text import length_and_slide, selected
from slackwater.query.stream import Stream
from slackwater.query.window import WindowQuery


@dataclass(frozen=True)
class WindowText:
    """The sentences about windows of one stream."""

    query: WindowQuery
    kind: str = "window"
    one_shard_reason: str = "there are no groups to split events by"

    def summary(self) -> str:
        """Describe the results."""
        [name] = self.query.names
        return f"Aggregates over windows of the stream {name}{selected(self.query)}."

    def window_of(self, stream: Stream) -> str:
        """Return nothing: the stream has no window of its own."""
        return ""

    def condition(self) -> list[str]:
        """Describe which events belong together."""
        return ["None: every row with a usable time takes part."]

    def rows(self) -> list[str]:
        """Nothing: the windows say it."""
        return []

    def indexes(self) -> list[str]:
        """Describe the windows and how events in them are found."""
        query = self.query
        length, slide = length_and_slide(query.window)
        ends = "at each event" if slide is None else f"each {slide}"
        return [
            f"{length} long, ending {ends}, bounds {query.bounds}.",
            "A ring of its events, as two stacks: an event is moved once, no window is scanned.",
        ]

    def sharding(self, shards: int) -> list[str]:  # noqa: ARG002
        """Nothing beyond what all kinds share."""
        return []

    def goal(self) -> list[str]:
        """Nothing of its own."""
        return []

    def goal_details(self) -> list[str]:
        """Nothing stands beside the goal."""
        return []

    def state(self) -> str:
        """Describe which events are kept."""
        return "Events that K holds back, and those in the windows."

    def late_rows(self) -> list[str]:
        """Describe what happens to late events."""
        return ["Late events are dropped and counted; rejects=True in a program returns them."]

    def silent_streams(self, idle_after: Any) -> list[str]:
        """Return nothing: there is no other stream."""
        return []
