r"""Read a metrics log, complete or while it grows.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as scratch:
...     file = Path(scratch) / "metrics.jsonl"
...     _ = file.write_text('{"event": "batch"}\n{"event": "ba')
...     log = LogFile(file)
...     list(log.lines())
[{'event': 'batch'}]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any

_LOOK_S = 0.25


class LogFile:
    """Reads the lines that were added since the last read.

    A line without an end is still being written, and is left for the next read. A line that is no
    metrics line is counted and skipped. A file that was replaced or truncated is read from its
    start again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0  # lines that are no metrics lines
        self._place = 0
        self._inode: int | None = None

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the new lines."""
        with self.path.open("rb") as log:
            status = self.path.stat()
            if status.st_size < self._place or status.st_ino != (self._inode or status.st_ino):
                self._place = 0
            self._inode = status.st_ino
            log.seek(self._place)
            for raw in log:
                if not raw.endswith(b"\n"):
                    break
                self._place += len(raw)
                if (line := _line(raw)) is not None:
                    yield line
                elif raw.strip():
                    self.skipped += 1


def _line(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("event"), str) else None


class Follower:
    """A thread that passes on the lines added to a log, until the block ends."""

    def __init__(self, log: LogFile, take: Callable[[dict[str, Any]], None]) -> None:
        self._log = log
        self._take = take
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="slackwater-follow", daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            try:
                for line in self._log.lines():
                    self._take(line)
            except OSError:
                continue  # the file may be about to be replaced
