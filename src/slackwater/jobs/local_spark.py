"""A local Spark session whose output goes to a file, and Spark's errors as one line."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any

from slackwater.errors import SlackwaterError, SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OUR_ERROR = re.compile(r"slackwater\.[\w.]+Error: (?P<message>[^\n]+)")
_CLASS_NAME = re.compile(r"^(?:[a-z]\w*\.)+\w+: ")


class FailedError(Exception):
    """A query ran and failed."""


@contextmanager
def local_spark(
    name: str, cores: int | None, settings: Mapping[str, Any], may_print: bool = False
) -> Iterator[SparkSession]:
    """Yield the active session, or create a local one and stop it at the end.

    The output of the JVM and its workers goes to a file, which is kept if the block fails.
    `may_print` leaves them the standard output, for Spark's console sink.
    """
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # They repeat as log lines what is raised as an error.
    for logger in (logging.getLogger("py4j"), PySparkLogger.getLogger("SQLQueryContextLogger")):
        logger.setLevel(logging.CRITICAL)
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    log, is_needed = _new_log(), False
    try:
        spark = _start(name, cores, settings, log, may_print)
        try:
            yield spark
        except SlackwaterError:
            raise  # our own message; Spark's log adds nothing
        except Exception as error:
            is_needed = True
            error.add_note(f"Spark's own log: {log}")
            raise
        finally:
            spark.stop()
    finally:
        if not is_needed:
            log.unlink()


def error_text(error: BaseException | str) -> str:
    """Return an error in one line: our own message if it contains one, else Spark's first line."""
    text = str(getattr(error, "java_exception", error))
    ours = _OUR_ERROR.search(text)
    if ours:
        return ours["message"]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _CLASS_NAME.sub("", lines[0]) if lines else type(error).__name__


def _start(
    name: str, cores: int | None, settings: Mapping[str, Any], log: Path, may_print: bool
) -> SparkSession:
    from slackwater.spark.session import session

    try:
        with _inherited_output(log, may_print):
            return session(name, cores, dict(settings))
    except Exception as error:
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        msg = f"Spark did not start: {' | '.join(last) or error_text(error)}"
        raise SparkError(msg) from error


def _new_log() -> Path:
    handle, path = mkstemp(prefix="slackwater-spark-", suffix=".log")
    os.close(handle)
    return Path(path)


@contextmanager
def _inherited_output(log: Path, may_print: bool) -> Iterator[None]:
    """Redirect the output of processes that start in this block, such as the JVM, to `log`."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptors = (2,) if may_print else (1, 2)
    kept = [os.dup(descriptor) for descriptor in descriptors]
    with log.open("ab") as target:
        for descriptor in descriptors:
            os.dup2(target.fileno(), descriptor)
    try:
        yield
    finally:
        for descriptor, old in zip(descriptors, kept, strict=True):
            os.dup2(old, descriptor)
            os.close(old)
