"""What every Python worker of Spark should do once."""

from __future__ import annotations

import gc
import sys
from functools import cache
from zipimport import zipimporter


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
