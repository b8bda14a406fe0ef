"""Slackwater joins out-of-order data streams with a quality target instead of a guessed delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.aggregate import Aggregate, avg, count, first, last, stddev
from slackwater.aggregate import largest as max  # noqa: A004  as SQL calls them
from slackwater.aggregate import smallest as min  # noqa: A004
from slackwater.aggregate import total as sum  # noqa: A004
from slackwater.aggregate_query import AggregateQuery, Sliding, Tumbling
from slackwater.errors import (
    ConditionError,
    DataError,
    EngineStoppedError,
    QueryError,
    SlackwaterError,
    SnapshotError,
    SparkError,
)
from slackwater.goal import (
    Deadline,
    DropRatio,
    ErrorBound,
    InputQuantile,
    Latency,
    MaxSlack,
    NoSlack,
    Recall,
    Slack,
)
from slackwater.joining import join
from slackwater.query import Query, Stream, Tuples
from slackwater.shed import Harvest, RandomDrop, TailDrop
from slackwater.sql import sql
from slackwater.window_query import WindowQuery, window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "Aggregate",
    "AggregateQuery",
    "ConditionError",
    "DataError",
    "Deadline",
    "DropRatio",
    "EngineStoppedError",
    "ErrorBound",
    "Harvest",
    "InputQuantile",
    "Latency",
    "MaxSlack",
    "NoSlack",
    "Query",
    "QueryError",
    "RandomDrop",
    "Recall",
    "Slack",
    "SlackwaterError",
    "Sliding",
    "SnapshotError",
    "SparkError",
    "Stream",
    "TailDrop",
    "Tumbling",
    "Tuples",
    "WindowQuery",
    "avg",
    "count",
    "first",
    "join",
    "last",
    "max",
    "min",
    "rejects",
    "results",
    "stddev",
    "sql",
    "sum",
    "window",
]


def results(tagged: DataFrame) -> DataFrame:
    """The results of a query that was streamed with ``rejects=True``."""
    from slackwater.spark import api

    return api.results(tagged)


def rejects(tagged: DataFrame) -> DataFrame:
    """The rejected rows of a query streamed with ``rejects=True``: stream, reason, row (JSON)."""
    from slackwater.spark import api

    return api.rejects(tagged)
