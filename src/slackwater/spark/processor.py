"""The operator behind the shuffle as Spark calls it; its work is in `operator`.

When a query starts, Spark makes a Python process beside the driver only to find out which state
there will be. So this module and a pickled processor are light: neither imports numba. That process
does not get what `spark-submit --py-files` brings, so the classes themselves travel with the
processor.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

    from slackwater.spark.gather import Gathering
    from slackwater.spark.job import Job
    from slackwater.spark.operator import Operator
    from slackwater.spark.shard_cache import ShardCache


class ShardProcessor(StatefulProcessor):
    """Declares the state of a shard and hands on the calls.

    `cache` gives the cache of the worker that runs a call; None: each process has one.
    """

    def __init__(self, job: Job, cache: Callable[[], ShardCache] | None = None) -> None:
        self._pickled: bytes = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]
        self._cache = cache

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before anything else."""
        header = handle.getValueState("header", "data binary")
        chunks = handle.getMapState("chunks", "name string", "data binary")
        self._state = handle, header, chunks
        self._made: Operator | None = None

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """A micro-batch."""
        return self._operator.batch(key, rows, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """The end of the input."""
        return self._operator.end(key)

    def close(self) -> None:
        """Nothing is held that needs closing."""

    @property
    def _operator(self) -> Operator:
        from slackwater.spark.operator import Operator  # noqa: PLC0415  see above
        from slackwater.spark.shard_cache import process_cache  # noqa: PLC0415

        if self._made is None:
            cache = self._cache or process_cache
            self._made = Operator(pickle.loads(self._pickled), *self._state, cache=cache)
        return self._made


class GatherProcessor(StatefulProcessor):
    """The same for the place where the tallies of all shards are added up; see `gather`."""

    def __init__(self, job: Job) -> None:
        self._pickled: bytes = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before anything else."""
        self._state = handle.getValueState("gathered", "data binary")
        self._made: Gathering | None = None

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803, ARG002
    ) -> Iterator[pd.DataFrame]:
        """The output of all shards in a micro-batch."""
        return self._gathering.batch(rows)

    def close(self) -> None:
        """Nothing is held that needs closing."""

    @property
    def _gathering(self) -> Gathering:
        from slackwater.spark.gather import Gathering  # noqa: PLC0415  see above

        self._made = self._made or Gathering(pickle.loads(self._pickled), self._state)
        return self._made


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
