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
from slackwater.query import functions
from slackwater.query.aggregate import AggregateQuery, Sliding, Tumbling
from slackwater.query.expression import col
from slackwater.query.functions import Aggregate, avg, count, first, last, stddev
from slackwater.query.functions import largest as max  # noqa: A004  as SQL calls them
from slackwater.query.functions import smallest as min  # noqa: A004
from slackwater.query.functions import total as sum  # noqa: A004
from slackwater.query.goals import (
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
from slackwater.query.join import JoinQuery, Stream, Tuples
from slackwater.query.joining import join
from slackwater.query.shedding import Harvest, RandomDrop, TailDrop
from slackwater.query.window import WindowQuery, window
from slackwater.sql import sql

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
    "JoinQuery",
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
    "col",
    "count",
    "first",
    "functions",
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
