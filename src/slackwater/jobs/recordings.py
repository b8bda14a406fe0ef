"""Read recorded streams from files, without Spark: those of a job, or plain files.

>>> arrow_types("ts timestamp, `bid price` decimal(10, 2), tags array<string>")
{'ts': TimestampType(timestamp[us, tz=UTC]), 'bid price': Decimal128Type(decimal128(10, 2)), \
'tags': None}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.jobs import spark_text
from slackwater.jobs.job import JobFile, Source, read_job
from slackwater.jobs.toml_table import JobFileError
from slackwater.query.any_query import AnyQuery
from slackwater.query.expression.names import QUOTED, unquoted
from slackwater.query.join import join
from slackwater.query.stream import Stream, by_stream

FORMATS = ("parquet", "csv", "json")
_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}
_TYPES = {
    "byte": pa.int8(), "tinyint": pa.int8(), "short": pa.int16(), "smallint": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(), "long": pa.int64(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"), "date": pa.date32(), "real": pa.float32(),
    "char": pa.string(), "varchar": pa.string(),
}  # fmt: skip
_DECIMALS = ("decimal", "dec", "numeric")
_COLUMN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>[^\s`:]+))\s*:?\s*(?P<type>\w+)\s*"
    r"(?P<more>\([^)]*\)|<.*>)?\s*(?:NOT\s+NULL\s*)?(?:COMMENT\s.*)?",
    re.DOTALL | re.IGNORECASE,
)
_TIME_ZONE = "spark.sql.session.timeZone"


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
    zone = job.settings.get(_TIME_ZONE, "UTC")
    tables = {source.name: _of_source(job.file, source, zone) for source in job.sources}
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
        if not file.exists():
            msg = f"{file} must be a job (.toml, .sql) or files of {_listed(FORMATS)} that exist"
            raise JobFileError(msg)
        found = data_files(file) if file.is_dir() else [file]
        form = _form_of(file, found)
        tables[file.stem] = _concatenated(str(file), found, partial(_read_plain, form=form))
    streams = [Stream(name, ts=ts, window=window) for name in tables]
    equal = on.split(",") if on is not None and "," in on else on
    return Recording(", ".join(tables), join(*streams, on=equal, where=where), tables, arrival)


def _form_of(file: Path, found: Sequence[Path]) -> str:
    """The format of files by their suffix; a folder has files of one."""
    suffixes = {_SUFFIXES.get(one.suffix, one.suffix) for one in found}
    if len(suffixes) > 1 or not suffixes <= set(FORMATS):
        got = ", ".join(sorted(suffix or "no suffix" for suffix in suffixes))
        msg = f"{file} must be a job (.toml, .sql) or files of {_listed(FORMATS)}, got {got}"
        raise JobFileError(msg)
    return suffixes.pop() if suffixes else FORMATS[0]


def _of_source(file: str, source: Source, zone: str) -> pa.Table:
    where = f"{file}: [[stream]] {source.name}:"
    if source.format not in FORMATS or source.path is None or "://" in source.path:
        msg = f"{where} without Spark only {_listed(FORMATS)} on this machine can be read, got "
        raise JobFileError(msg + f"{source.format} {source.path or ''}".rstrip())
    computed = [
        text for text in source.select if not text.isidentifier() and not QUOTED.fullmatch(text)
    ]
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
    read = _AS_SPARK[source.format]
    reading = partial(read, types=types, options=source.options, zone=zone)
    table = _concatenated(where, files, reading)
    return table.select(list(map(unquoted, source.select))) if source.select else table


def data_files(folder: Path) -> list[Path]:
    """Return the data files of a folder, as Spark reads them."""
    return [file for file in folder.rglob("*") if file.is_file() and file.name[0] not in "._"]


def _concatenated(where: str, files: Sequence[Path], read: Callable[[Path], pa.Table]) -> pa.Table:
    """Read files, the oldest first."""
    if not files:
        msg = f"{where} there are no files to read"
        raise JobFileError(msg)
    oldest_first = sorted(files, key=lambda file: (file.stat().st_mtime_ns, str(file)))
    try:
        return pa.concat_tables(map(read, oldest_first), promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError) as error:
        msg = f"{where} {str(error).splitlines()[0]}"
        raise JobFileError(msg) from error


def _read_parquet(
    file: Path, types: dict[str, Any], options: dict[str, str], zone: str
) -> pa.Table:
    """Read the columns of the schema by name, as Spark does: null where the file has none."""
    from pyarrow import parquet

    stored = parquet.ParquetFile(file)
    names = {name.lower(): name for name in stored.schema_arrow.names}
    table = stored.read([names[name.lower()] for name in types if name.lower() in names])
    columns = {}
    for name, kind in types.items():
        own = names.get(name.lower())
        columns[name] = table[own] if own else pa.nulls(table.num_rows, kind or pa.null())
    return pa.table(columns)


_AS_SPARK: dict[str, Callable[..., pa.Table]] = {
    "parquet": _read_parquet,
    "csv": spark_text.read_csv,
    "json": spark_text.read_json,
}


def _read_plain(file: Path, form: str) -> pa.Table:
    """Read a file that has no schema but its own; an empty field of CSV is null, as in Spark."""
    if form == "parquet":
        from pyarrow import parquet

        return parquet.ParquetFile(file).read()
    if form == "json":
        from pyarrow import json

        return json.read_json(file)
    from pyarrow import csv

    nulls = csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    return csv.read_csv(file, convert_options=nulls)


def arrow_types(schema: str) -> dict[str, Any]:
    """Return the columns of a Spark schema; None for a type that has no text form."""
    found = [match for match in map(_COLUMN.fullmatch, _parts(schema)) if match is not None]
    return {
        (match["quoted"] or "").replace("``", "`") or match["name"]: _arrow_type(match)
        for match in found
    }


def _parts(schema: str) -> list[str]:
    """The columns of a schema: between commas that are not in brackets or backticks."""
    depth, begins, quoted = 0, [0], False
    for at, sign in enumerate(schema):
        quoted ^= sign == "`"
        if not quoted:
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(sign, 0)
            begins += [at + 1] if sign == "," and depth == 0 else []
    ends = [*(begin - 1 for begin in begins[1:]), len(schema)]
    return [schema[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _arrow_type(match: re.Match[str]) -> pa.DataType | None:
    kind, more = match["type"].lower(), match["more"] or ""
    if kind in _DECIMALS:
        precision, _, scale = (more.strip("()") or "10").partition(",")
        return pa.decimal128(int(precision), int(scale or 0))
    return None if more.startswith("<") else _TYPES.get(kind)


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
