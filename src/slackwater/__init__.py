"""Slackwater joins out-of-order data streams with a quality target instead of a guessed delay."""

from slackwater.errors import (
    ConditionError,
    DataError,
    EngineStoppedError,
    QueryError,
    SlackwaterError,
    SnapshotError,
)
from slackwater.query import MaxSlack, NoSlack, Query, Slack, Stream, Tuples, join

__all__ = [
    "ConditionError",
    "DataError",
    "EngineStoppedError",
    "MaxSlack",
    "NoSlack",
    "Query",
    "QueryError",
    "Slack",
    "SlackwaterError",
    "SnapshotError",
    "Stream",
    "Tuples",
    "join",
]
