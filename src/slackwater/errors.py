"""One family of errors. Each names what was wrong, what was given and what is allowed."""

from __future__ import annotations


class SlackwaterError(Exception):
    """The base of all errors that this package raises on purpose."""


class QueryError(SlackwaterError, ValueError):
    """A query was described in a way that cannot be run."""


class DataError(SlackwaterError, ValueError):
    """The given data does not fit the query."""


class ConditionError(SlackwaterError, ArithmeticError):
    """The `where` condition raised for a pair of events; the run was stopped."""


class SnapshotError(SlackwaterError, ValueError):
    """A snapshot cannot be restored: damaged, of another version, or of another query."""


class SparkError(SlackwaterError, ValueError):
    """The Spark session or the DataFrames cannot be used like this."""


class EngineStoppedError(SlackwaterError, RuntimeError):
    """The engine failed in the middle of a batch and must be restored from a snapshot."""
