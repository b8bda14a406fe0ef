"""What every Python worker of Spark should do once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from zipimport import zipimporter

from slackwater.errors import SlackwaterError


@cache
def settle() -> None:
    """Keep what is loaded by now out of what Spark's workers do before and after every task.

    After it they collect garbage. With numba loaded that takes some 50 ms, more than a small task
    itself; of what is loaded, nothing is garbage. Before it they make Python look again at every
    archive from which something was imported. PySpark is one, and takes as long; a forgotten
    archive is opened again when it is needed.
    """
    gc.collect()
    gc.freeze()
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


@contextmanager
def brief_errors() -> Iterator[None]:
    """Errors of our own say all in one line: leave the stack out of Spark's log and exception.

    Spark repeats it for each task, and again for the query. The worker ends with the error.
    """
    try:
        yield
    except SlackwaterError:
        sys.tracebacklimit = 0
        raise
