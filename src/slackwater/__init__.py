"""Slackwater joins out-of-order data streams with a quality target instead of a guessed delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.errors import (
    ConditionError,
    DataError,
    EngineStoppedError,
    QueryError,
    SlackwaterError,
    SnapshotError,
    SparkError,
)
from slackwater.goal import InputQuantile, Latency, MaxSlack, NoSlack, Recall, Slack
from slackwater.query import Query, Stream, Tuples, join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "ConditionError",
    "DataError",
    "EngineStoppedError",
    "InputQuantile",
    "Latency",
    "MaxSlack",
    "NoSlack",
    "Query",
    "QueryError",
    "Recall",
    "Slack",
    "SlackwaterError",
    "SnapshotError",
    "SparkError",
    "Stream",
    "Tuples",
    "join",
    "rejects",
    "results",
]


def results(tagged: DataFrame) -> DataFrame:
    """The results of a query that was streamed with ``rejects=True``."""
    from slackwater.spark import api

    return api.results(tagged)


def rejects(tagged: DataFrame) -> DataFrame:
    """The rejected rows of a query streamed with ``rejects=True``: stream, reason, row (JSON)."""
    from slackwater.spark import api

    return api.rejects(tagged)
