"""What a comparison with the truth gives, and what its parts share."""

from __future__ import annotations

from typing import Any, NamedTuple

from slackwater.jobs.measurement import Measurement
from slackwater.jobs.sink_files import Columns
from slackwater.jobs.toml_table import JobFileError

EXAMPLES = 3  # rows that are shown of each fault


class Verification(NamedTuple):
    """The result of a comparison."""

    measurements: list[Measurement]
    examples: dict[str, list[dict[str, Any]]]  # rows of the output, by fault
    notes: list[str]
    oracle: str = ""  # what computed the truth

    @property
    def ok(self) -> bool:
        """Whether all measurements are within their limits."""
        return all(measured.ok for measured in self.measurements)


def needed(columns: Columns, result: str) -> str:
    """Return the name of a result column in the output; raise if it is not there unchanged."""
    name = columns.named(result)
    if name is None:
        msg = f"the output must have {result} unchanged, got {', '.join(columns.names)}"
        raise JobFileError(msg)
    return name
