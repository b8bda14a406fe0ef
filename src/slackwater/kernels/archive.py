"""Where compiled kernels are kept when the package was imported from an archive.

`spark-submit --py-files` puts a zip into a new folder for each executor. Numba names its cache by
the path of the source, so every executor would compile everything once more, and in an archive it
ignores ``NUMBA_CACHE_DIR``. Here the folder is named by the source of the kernels, all
of them: one that calls a changed kernel is compiled anew as well.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile
from zipimport import zipimporter

import numba
from numba.core.caching import _CacheLocator
from numba.misc.appdirs import AppDirs


class ArchiveLocator(_CacheLocator):  # type: ignore[misc]
    """Gives numba the folder of a kernel; numba calls it by the name in `LOCATOR`."""

    def __init__(self, function: Any, source: bytes, folder: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._source = source
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> ArchiveLocator | None:
        """None where the folder cannot be written: nothing is cached then."""
        loader = py_func.__globals__["__loader__"]
        home = numba.config.CACHE_DIR or AppDirs(appname="numba", appauthor=False).user_cache_dir
        folder = Path(home) / f"slackwater_{_content(loader.archive)}"
        locator = cls(py_func, loader.get_data(py_file), str(folder))
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator

    def get_cache_path(self) -> str:
        """In ``NUMBA_CACHE_DIR``, or else in the user's cache folder."""
        return self._folder

    def get_source_stamp(self) -> bytes:
        """The same as beside a file, so that what was compiled there can be copied here."""
        return sha256(self._source).digest()

    def get_disambiguator(self) -> str:
        """The line distinguishes functions of one name."""
        return str(self._line)


LOCATOR = f"{ArchiveLocator.__module__}.{ArchiveLocator.__qualname__}"


def is_archived(function: Any) -> bool:
    """Whether `function` was imported from a zip or a wheel."""
    return isinstance(function.__globals__.get("__loader__"), zipimporter)


@cache
def _content(archive: str) -> str:
    digest = sha256()
    with ZipFile(archive) as packed:
        for name in sorted(packed.namelist()):
            if name.startswith("slackwater/kernels/") and name.endswith(".py"):
                digest.update(packed.read(name))
    return digest.hexdigest()[:16]
