"""Where the shards of a query leave their reports for each other (decision 24).

``<folder>/<query>/<micro-batch>/<shard>``. A shard writes its report at the end of a micro-batch;
in the next one every shard reads those of all. What is in a file follows from the checkpoint and
the rows, so a repeated micro-batch writes the same bytes again, and nothing is ever locked.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from slackwater.engine.shard_report import Reports, ShardReport
from slackwater.errors import QueryError, SnapshotError
from slackwater.spark.shard import Shard
from slackwater.spark.task import Task

_URI = re.compile(r"[A-Za-z][\w+.-]*:/")
_KEPT = 100  # micro-batches, as many as Spark keeps versions of its state
_CLEAN_EVERY = 10  # micro-batches


def located(folder: str) -> str:
    """The folder as every executor can find it; raises if nothing can be written to such a place.

    >>> located("file:/var/reports/")
    '/var/reports'
    """
    place = folder.removeprefix("file:").rstrip("/")
    if not _URI.match(place):
        place = str(Path(place).absolute())
    try:
        _file_system(place)
    except (pa.ArrowException, OSError) as error:
        msg = (
            "shared must be a path or URI of a file system that pyarrow.fs knows, "
            f"got {folder!r}: {error}"
        )
        raise QueryError(msg) from error
    return place


class SharedFolder:
    """The reports of one query.

    Parameters
    ----------
    folder
        As `located` gives it.
    task
        The task that reads and writes.
    """

    def __init__(self, folder: str, task: Task) -> None:
        self._folder = f"{folder}/{task.query}"
        self._task = task

    def reports_for(self, shard: Shard) -> Reports:
        """The reports of all shards on the last micro-batch in which they had work."""
        last, shards = shard.notes.last_report, shard.job.partitioning.shards
        return Reports() if last is None else _reports(self._folder, self._task.run, last, shards)

    def report_of(self, shard: Shard) -> int:
        """Leave the report of a shard on this micro-batch, whose number is returned."""
        assert shard.engine.common_slack is not None
        data = shard.engine.common_slack.report().to_bytes()
        batch, last = self._task.batch, shard.notes.last_report
        files, path = _file_system(self._folder)
        files.create_dir(f"{path}/{batch}", recursive=True)
        end = f"{path}/{batch}/{shard.number}"
        if _content(files, end) != data:
            # attempts are numbered anew after each start; one from before may still be at work
            new = f"{path}/{batch}/.{shard.number}.{self._task.run}.{self._task.attempt}"
            with files.open_output_stream(new) as out:
                out.write(data)
            files.move(new, end)
        # not each micro-batch has rows: perhaps those with odd numbers only
        if shard.number == 0 and last is not None and batch // _CLEAN_EVERY > last // _CLEAN_EVERY:
            # a repetition of this micro-batch needs the last report again
            self._forget(min(batch - _KEPT, last))
        return batch

    def _forget(self, before: int) -> None:
        """Remove the reports on micro-batches before this one."""
        files, path = _file_system(self._folder)
        for found in files.get_file_info(fs.FileSelector(path)):
            if found.base_name.isdigit() and int(found.base_name) < before:
                with suppress(FileNotFoundError):  # a second attempt of this task was faster
                    files.delete_dir(found.path)


@lru_cache(maxsize=4)  # a worker reads them once for all of its shards
def _reports(folder: str, run: str, batch: int, shards: int) -> Reports:  # noqa: ARG001
    files, path = _file_system(folder)
    reports = []
    for shard in range(shards):
        data = _content(files, f"{path}/{batch}/{shard}")
        if data is None:
            msg = (
                f"the report of shard {shard} on micro-batch {batch} is missing in {folder}; "
                "without it the shards cannot have one K. shared= must be the folder that this "
                "checkpoint was used with, where all executors can write and read. If its files "
                "are lost, run once with slack_scope='shard', then as before"
            )
            raise SnapshotError(msg)
        reports.append(ShardReport.from_bytes(data))
    return Reports(reports)


def _content(files: fs.FileSystem, path: str) -> bytes | None:
    """What is in a file; None: there is none."""
    try:
        with files.open_input_stream(path) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None


@lru_cache(maxsize=8)
def _file_system(folder: str) -> tuple[fs.FileSystem, str]:
    files, path = fs.FileSystem.from_uri(folder)
    return files, path
