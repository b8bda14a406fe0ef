"""Spark's Python daemon with everything imported and joins compiled: its workers start ready.

Spark forks its Python workers from a daemon. A plain one makes each of them import numba and load
the kernels anew, about a second of CPU each, all of it in the first micro-batch. Other kernels are
loaded by the queries that need them: a query that does not shed should not wait until that is
compiled.
"""

from __future__ import annotations

from pyspark import daemon

from slackwater.engine.warm import warm
from slackwater.spark import operator, pack, processor, unpack  # noqa: F401  for the workers
from slackwater.spark.worker import settle

if __name__ == "__main__":
    warm(("joins",))
    settle()
    daemon.manager()
