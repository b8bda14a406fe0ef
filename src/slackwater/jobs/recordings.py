"""Read recorded streams from files, without Spark: those of a job, or plain files.

>>> arrow_types("ts timestamp, k long, price decimal(10, 2)")
{'ts': TimestampType(timestamp[us]), 'k': DataType(int64), 'price': None}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.jobs.job import JobFile, Source, read_job
from slackwater.jobs.toml_table import JobFileError
from slackwater.query.join import Stream, by_stream
from slackwater.query.joining import join
from slackwater.query.window import AnyQuery

FORMATS = ("parquet", "csv", "json")
_TYPES = {
    "byte": pa.int8(), "tinyint": pa.int8(), "short": pa.int16(), "smallint": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(), "long": pa.int64(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us"), "timestamp_ntz": pa.timestamp("us"), "date": pa.date32(),
}  # fmt: skip
_COLUMN = re.compile(r"\s*`?(?P<name>\w+)`?\s*:?\s*(?P<type>[\w]+)(?P<rest>.*)", re.DOTALL)


class Recording(NamedTuple):
    """Recorded streams, and the query over them."""

    title: str
    query: AnyQuery
    tables: dict[str, pa.Table]
    arrival: str | None


def recording_of(
    inputs: Sequence[Path],
    ts: str,
    window: str | None,
    on: str | None,
    where: str | None,
    arrival: str | None,
) -> Recording:
    """Return the recording that a command got: a job, or files and the options of a join."""
    if [file.suffix for file in inputs] not in ([".toml"], [".sql"]):
        return of_files(inputs, ts, window, on, where, arrival)
    if any(given is not None for given in (window, on, where, arrival)):
        msg = "a job has its own window, on, where and arrival; leave these options out"
        raise JobFileError(msg)
    return of_job(read_job(inputs[0]))


def of_job(job: JobFile) -> Recording:
    """Read the streams of a job."""
    tables = {source.name: _of_source(job.file, source) for source in job.sources}
    named = by_stream(job.query.streams, tables)
    return Recording(job.name, job.query, named, job.options["arrival"])


def of_files(
    files: Sequence[Path],
    ts: str,
    window: str | None,
    on: str | None,
    where: str | None,
    arrival: str | None,
) -> Recording:
    """Read plain files: each is a stream with the name of its file."""
    if window is None:
        msg = "files need --window, how long an event finds partners; a job (.toml) has its own"
        raise JobFileError(msg)
    tables = {}
    for file in files:
        form = file.suffix.removeprefix(".") if file.is_file() else "parquet"
        if form not in FORMATS or not file.exists():
            msg = (
                f"{file} must be a job (.toml, .sql) or files of {_listed(FORMATS)} that are there"
            )
            raise JobFileError(msg)
        tables[file.stem] = _read(
            str(file), [file] if file.is_file() else data_files(file), form, {}, {}
        )
    streams = [Stream(name, ts=ts, window=window) for name in tables]
    equal = on.split(",") if on is not None and "," in on else on
    return Recording(", ".join(tables), join(*streams, on=equal, where=where), tables, arrival)


def _of_source(file: str, source: Source) -> pa.Table:
    where = f"{file}: [[stream]] {source.name}:"
    if source.format not in FORMATS or source.path is None or "://" in source.path:
        msg = f"{where} without Spark only {_listed(FORMATS)} on this machine can be read, got "
        raise JobFileError(msg + f"{source.format} {source.path or ''}".rstrip())
    computed = [text for text in source.select if not text.isidentifier()]
    if source.where is not None or computed:
        msg = (
            f"{where} the files are read without Spark, which is needed for the SQL of "
            f"{'where' if source.where is not None else 'select'}; leave it out, or record "
            "its result"
        )
        raise JobFileError(msg)
    found = Path(source.path)
    files = data_files(found) if found.is_dir() else [Path(name) for name in glob(source.path)]
    types = arrow_types(source.schema or "")
    table = _read(where, files, source.format, types, source.options)
    return table.select(source.select) if source.select else table


def data_files(folder: Path) -> list[Path]:
    """Return the data files of a folder, as Spark reads them."""
    return [file for file in folder.rglob("*") if file.is_file() and file.name[0] not in "._"]


def _read(
    where: str, files: Sequence[Path], form: str, types: dict[str, Any], options: dict[str, str]
) -> pa.Table:
    if not files:
        msg = f"{where} there are no files to read"
        raise JobFileError(msg)
    oldest_first = sorted(files, key=lambda file: (file.stat().st_mtime_ns, str(file)))
    try:
        tables = [read_table(file, form, types, options) for file in oldest_first]
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError) as error:
        msg = f"{where} {str(error).splitlines()[0]}"
        raise JobFileError(msg) from error


def read_table(file: Path, form: str, types: dict[str, Any], options: dict[str, str]) -> pa.Table:
    """Read one file; `types` has its columns, with None where the type is read from the file."""
    known = {name: kind for name, kind in types.items() if kind is not None}
    if form == "parquet":
        from pyarrow import parquet

        return parquet.ParquetFile(file).read(list(types) or None)
    if form == "json":
        from pyarrow import json

        schema = pa.schema(list(known.items())) if known else None
        return json.read_json(file, parse_options=json.ParseOptions(explicit_schema=schema))
    from pyarrow import csv

    # Files of a job have a header only if an option says so, as in Spark; plain files always.
    has_header = not types or options.get("header", "").lower() == "true"
    reading = csv.ReadOptions(column_names=None if has_header else list(types))
    parsing = csv.ParseOptions(delimiter=options.get("sep", options.get("delimiter", ",")))
    # Arrow must know whether times have a zone; a Spark schema does not say it, the file does.
    plain = {name: kind for name, kind in known.items() if not pa.types.is_timestamp(kind)}
    converting = csv.ConvertOptions(column_types=plain)
    return csv.read_csv(file, reading, parsing, converting)


def arrow_types(schema: str) -> dict[str, Any]:
    """Return the columns of a Spark schema; None for a type that is read from the file."""
    columns = re.split(r",(?![^(<]*[)>])", schema)
    found = [match for match in map(_COLUMN.match, columns) if match is not None]
    return {
        match["name"]: None if match["rest"].strip() else _TYPES.get(match["type"].lower())
        for match in found
    }


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
