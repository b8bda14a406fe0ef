"""The Spark plan of a job: sources, the query, the sink; and what must not change of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slackwater.errors import SlackwaterError
from slackwater.jobs.job import WILD
from slackwater.jobs.local_spark import error_text
from slackwater.jobs.toml_table import JobFileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from slackwater.jobs.job import JobFile, Source

Made = TypeVar("Made")

PARTITIONS = "spark.sql.shuffle.partitions"
SHARED = "shared"  # in the checkpoint: where shards leave their reports
# What a source reads from; its other options may change between two runs.
_WHAT_IS_READ = ("subscribe", "subscribePattern", "assign", "host", "port")


class Planner:
    """Builds the Spark plan of a job; errors name the file and the table."""

    def __init__(self, job: JobFile, spark: SparkSession) -> None:
        self._job = job
        self._spark = spark
        self.frames = {source.name: self._frame(source) for source in job.sources}

    def _frame(self, source: Source) -> DataFrame:
        where = f"[[stream]] {source.name}:"
        reader = self._spark.readStream.format(source.format).options(**source.options)
        if source.schema is not None:
            reader = self._checked(f"{where} schema:", reader.schema, source.schema)
        frame = self._checked(where, reader.load, source.path)
        if source.select:
            frame = self._checked(f"{where} select:", frame.selectExpr, *source.select)
        if source.where is not None:
            frame = self._checked(f"{where} where:", frame.where, source.where)
        return frame

    def check_files(self) -> None:
        """Read a row of each source of files: Spark knows only then whether it can."""
        for source in self._job.sources:
            if source.path is None or source.schema is None or set(source.path) & WILD:
                continue
            reader = self._spark.read.format(source.format).options(**source.options)
            frame = reader.schema(source.schema).load(source.path)
            self._checked(f"[[stream]] {source.name}:", frame.limit(1).collect)

    def check_sink(self) -> None:
        """Raise if Spark does not have the format of the sink; nothing is written."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        form = self._job.sink.format
        try:
            self._spark.readStream.format(form).load()
        except (PySparkException, Py4JError) as error:  # a sink need not be a source
            if "DATA_SOURCE_NOT_" in error_text(error):
                self._checked("[sink]", _raise, error)

    def joined(self, may_write: bool) -> DataFrame:
        """Return the rows for the sink; without `may_write` no directory is created."""
        options = dict(self._job.options)
        control = Path(options.get("control", "."))
        if may_write:
            control.mkdir(parents=True, exist_ok=True)
        elif not control.exists():
            del options["control"]
        joined = self._checked("", lambda: self._results(options))
        if self._job.sink.select:
            joined = self._checked("[sink] select:", joined.selectExpr, *self._job.sink.select)
        return joined

    def _results(self, options: dict[str, Any]) -> DataFrame:
        shared = str(self._job.checkpoint / SHARED)
        return self._job.query.stream(self.frames, shared=shared, **options)

    def start(self, joined: DataFrame) -> StreamingQuery:
        """Start the query."""
        job = self._job
        writer = joined.writeStream.format(job.sink.format).queryName(job.name)
        writer = writer.options(**job.sink.options)
        writer = writer.option("checkpointLocation", str(job.checkpoint))
        if job.sink.partition_by:
            writer = writer.partitionBy(*job.sink.partition_by)
        if job.trigger_ms is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{job.trigger_ms} milliseconds")
        return self._checked("[sink]", writer.start, job.sink.path)

    def fingerprint(self) -> dict[str, Any]:
        """Return what must not change while the checkpoint exists."""
        from pyspark.sql.pandas.types import to_arrow_schema

        from slackwater.spark.partitioning import Partitioning

        job = self._job
        partitions = int(str(self._spark.conf.get(PARTITIONS)))
        shards = 1 if job.query.single_shard else job.options["shards"] or partitions
        columns = {}
        for name, frame in self.frames.items():
            where = f"[[stream]] {name}:"
            schema = self._checked(where, partial(to_arrow_schema, timezone="UTC"), frame.schema)
            columns[name] = ", ".join(f"{field.name} {field.type}" for field in schema)
        return known_before(job) | {
            "shards": shards,
            "shuffle_partitions": partitions,
            "partitioning": str(Partitioning.of(job.query, shards)),
            "columns": columns,
        }

    def _checked(self, where: str, make: Callable[..., Made], *given: Any) -> Made:
        """Call `make`; errors name the file and the table."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return make(*given)
        except (SlackwaterError, PySparkException, Py4JError) as error:
            words = (f"{self._job.file}:", where, error_text(error))
            raise JobFileError(" ".join(filter(None, words))) from error


def _raise(error: Exception) -> None:
    raise error


def known_before(job: JobFile) -> dict[str, Any]:
    """Return what must not change, as far as it is known without Spark."""
    from slackwater.query.fingerprint import fingerprint

    fixed, names = fingerprint(job.query, ()), job.query.names
    for by_stream in ("streams", "columns"):
        del fixed[by_stream]
    return fixed | {
        "times": {stream.name: stream.ts for stream in job.query.streams},
        "windows": dict(zip(names, fixed.get("windows", [None] * len(names)), strict=True)),
        "sources": {source.name: _read_by(source) for source in job.sources},
        "arrival": job.options["arrival"],
        "at_end": job.options["at_end"],
        "control": job.options.get("control"),
    }


def settings(job: JobFile, saved: Mapping[str, Any]) -> dict[str, str]:
    """Return Spark's settings; the number of partitions stays that of the checkpoint."""
    partitions = saved.get("shuffle_partitions")
    kept = {} if partitions is None else {PARTITIONS: str(partitions)}
    return kept | job.settings


def _read_by(source: Source) -> str:
    """Return what a source reads, and in which format."""
    options = (source.options.get(name) for name in _WHAT_IS_READ)
    return " ".join(filter(None, (source.format, source.path, *options)))
