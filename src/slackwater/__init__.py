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
from slackwater.query.aggregate import AggregateQuery, aggregate
from slackwater.query.expression import col
from slackwater.query.functions import Aggregate, avg, count, first, last, stddev
from slackwater.query.goals import InputQuantile, Latency, MaxSlack, NoSlack, Recall, Slack
from slackwater.query.join import JoinQuery, join
from slackwater.query.shedding import Harvest, RandomDrop, TailDrop
from slackwater.query.stream import Stream
from slackwater.query.window import WindowQuery, window
from slackwater.query.window_goals import Deadline, DropRatio, ErrorBound
from slackwater.query.windows import Sliding, Tumbling, Tuples
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
    "__version__",
    "aggregate",
    "avg",
    "col",
    "count",
    "first",
    "functions",
    "join",
    "last",
    "rejects",
    "results",
    "stddev",
    "sql",
    "window",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # reading the metadata of packages takes as long as all the rest
        from importlib.metadata import version

        return version("slackwater")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def results(output: DataFrame) -> DataFrame:
    """The results of a query that was streamed with ``rejects=True``.

    Parameters
    ----------
    output
        What ``query.stream(..., rejects=True)`` returned.

    Returns
    -------
    DataFrame
        The same columns as without ``rejects=True``.

    Examples
    --------
    >>> matches = results(query.stream(frames, rejects=True))  # doctest: +SKIP
    """
    from slackwater.spark import api

    return api.results(output)


def rejects(output: DataFrame) -> DataFrame:
    """The rejected rows of a query that was streamed with ``rejects=True``.

    Parameters
    ----------
    output
        What ``query.stream(..., rejects=True)`` returned.

    Returns
    -------
    DataFrame
        Columns: stream, reason, row (JSON).

    Examples
    --------
    >>> rejected = rejects(query.stream(frames, rejects=True))  # doctest: +SKIP
    """
    from slackwater.spark import api

    return api.rejects(output)
