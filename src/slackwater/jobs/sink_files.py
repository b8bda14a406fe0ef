"""Read the files that the sink of a job has written, and work out their true columns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from slackwater.engine.result_schema import CHANGE, LATE
from slackwater.errors import SlackwaterError
from slackwater.jobs.job import Sink
from slackwater.jobs.recordings import FORMATS, data_files
from slackwater.jobs.toml_table import JobFileError
from slackwater.joins.arrow_values import evaluate
from slackwater.query.expression import Binary, Column, Literal, Node, parse, walk
from slackwater.query.expression.names import QUOTED, unquoted

_NAME = rf"\w+|{QUOTED.pattern}"
_SELECTED = re.compile(rf"\s*(?P<what>.+?)(?:\s+as\s+(?P<name>{_NAME}))?\s*", re.I | re.S)
_PLAIN = re.compile(_NAME)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_LOG = "_spark_metadata"  # which files Spark's sink has committed
_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}


# ---- columns


class Columns(NamedTuple):
    """The columns of the output: all names, and the true values where we know them."""

    names: list[str]
    true: pa.Table
    origin: dict[str, str]  # by result column, the output column that holds it unchanged
    unknown: list[str]  # SQL that only Spark can compute

    def named(self, result: str) -> str | None:
        """Return the name of a result column in the output; None if it is not there unchanged."""
        return self.origin.get(result)


def columns_of(sink: Sink, exact: pa.Table, marks: Sequence[str]) -> Columns:
    """Apply the select of a sink to the true results, and to `marks`, columns of results only."""
    available = [*exact.column_names, *marks]
    selected = [
        (what, alias)
        for text in sink.select or ("*",)
        for what, alias in ([(n, n) for n in available] if text.strip() == "*" else [_parsed(text)])
    ]
    names, columns, unknown = [], {}, []
    origin: dict[str, str] = {}
    for what, name in selected:
        names.append(name)
        own = unquoted(what)
        if own in available and (own == what or _PLAIN.fullmatch(what)):
            origin.setdefault(own, name)
            if own not in marks:
                columns[name] = exact.column(own)
            continue
        value = _computed(what, exact)
        if value is None:
            unknown.append(what)
        else:
            columns[name] = value
    return Columns(names, pa.table(columns), origin, unknown)


def _parsed(text: str) -> tuple[str, str]:
    """Split an expression from its alias; without one, Spark uses the expression as the name."""
    match = _SELECTED.fullmatch(text)
    assert match is not None  # it matches any text that is not empty; the job file refuses those
    return match["what"], unquoted(match["name"] or match["what"])


def _computed(what: str, table: pa.Table) -> Any | None:
    """Compute sums, differences and products of numbers, the same in all systems; else None."""

    def is_known(node: Node) -> bool:
        match node:
            case Column(_, name):
                return name in table.column_names and _is_number(table, name)
            case Literal(value):
                return not isinstance(value, bool)
        return isinstance(node, Binary) and node.operator in ("+", "-", "*")

    try:
        tree = parse(what, "select", stream="results")
        read = [node for node in walk(tree) if isinstance(node, Column)]
        if not read or not all(map(is_known, walk(tree))):
            return None
        return evaluate(tree, {column: table.column(column.name) for column in read}, "select")
    except SlackwaterError:
        return None


def _is_number(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_float64(kind))


# ---- files


def read_output(paths: Sequence[Path], sink: Sink, columns: Columns) -> pa.Table:
    """Read the output in files and directories, in the types of the true results."""
    kinds = {field.name: field.type for field in columns.true.schema}
    for mark, kind in ((LATE, pa.bool_()), (CHANGE, pa.string())):
        name = columns.named(mark)
        if name is not None:
            kinds[name] = kind
    schema = pa.schema(list(kinds.items()))
    parts = [
        _part(file, root, sink, columns.names, schema) for root in paths for file in _files(root)
    ]
    return pa.concat_tables([schema.empty_table(), *parts])


def _files(root: Path) -> list[Path]:
    """Return the files under a path; of Spark's file sink only the committed ones."""
    if not root.exists():
        msg = f"{root} must be the output of the job, a file or a directory that exists"
        raise JobFileError(msg)
    if root.is_file():
        return [root]
    log = root / _LOG
    inside = sorted(
        file
        for file in data_files(root)
        if not any(part[0] in "._" for part in file.relative_to(root).parts)
    )
    if not log.is_dir():
        return inside
    committed = _committed(log)
    return [file for file in inside if file.name in committed]


def _committed(log: Path) -> set[str]:
    """Return the file names in a sink's log; a compact file contains all earlier entries."""
    batches = sorted(
        (int(file.name.partition(".")[0]), file)
        for file in log.iterdir()
        if re.fullmatch(r"\d+(\.compact)?", file.name)
    )
    compact = [number for number, file in batches if file.suffix == ".compact"]
    begin = compact[-1] if compact else -1
    lines = [
        json.loads(line)
        for number, file in batches
        if number >= begin
        for line in file.read_text(encoding="utf-8").splitlines()[1:]
        if line.strip()
    ]
    return {unquote(line["path"]).rpartition("/")[2] for line in lines}


def _part(file: Path, root: Path, sink: Sink, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Read one file, with the columns that are in the names of its directories."""
    if file.stat().st_size == 0:
        return schema.empty_table()
    form = _SUFFIXES.get(file.suffix, sink.format)
    if form not in FORMATS:
        msg = f"{file}: the output must be Parquet, CSV or JSON files, got {form}"
        raise JobFileError(msg)
    in_path = dict(
        part.split("=", 1)
        for part in (file.relative_to(root).parts[:-1] if root != file else ())
        if "=" in part
    )
    inside = [name for name in names if name not in (in_path or sink.partition_by)]
    types = {} if form == "parquet" else {n: _text_type(schema, n) for n in inside}
    try:
        table = _read(file, form, types, sink.options)
        return pa.table([_column(table, in_path, field, form) for field in schema], schema=schema)
    except pa.ArrowException as error:
        msg = f"{file} is not an output of this job: {str(error).splitlines()[0]}"
        raise JobFileError(msg) from error


def _text_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Return the type to read from text; None for times, whose zone is read from the file."""
    kind = schema.field(name).type if name in schema.names else None
    return None if kind is None or pa.types.is_timestamp(kind) else kind


def _read(file: Path, form: str, types: dict[str, Any], options: dict[str, str]) -> pa.Table:
    """Read one file; `types` has its columns, with None where the type is read from the file."""
    known = {name: kind for name, kind in types.items() if kind is not None}
    if form == "parquet":
        from pyarrow import parquet

        return parquet.ParquetFile(file).read()
    if form == "json":
        from pyarrow import json

        schema = pa.schema(list(known.items())) if known else None
        return json.read_json(file, parse_options=json.ParseOptions(explicit_schema=schema))
    from pyarrow import csv

    reading = csv.ReadOptions(
        column_names=None if _has_header(file, [*types], options) else [*types]
    )
    parsing = csv.ParseOptions(delimiter=options.get("sep", options.get("delimiter", ",")))
    # A null is an empty field, and an empty text has quotes: so Spark writes them, and Arrow.
    converting = csv.ConvertOptions(
        column_types=known,
        null_values=[options.get("nullValue", "")],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return csv.read_csv(file, reading, parsing, converting)


def _has_header(file: Path, names: Sequence[str], options: dict[str, str]) -> bool:
    """Whether a CSV file begins with the names of its columns."""
    with file.open(encoding="utf-8") as lines:
        first = lines.readline().strip().replace('"', "").split(",")
    return first == list(names) or options.get("header", "").lower() == "true"


def _column(table: pa.Table, in_path: dict[str, str], field: pa.Field, form: str) -> pa.Array:
    if field.name in in_path:
        text = unquote(in_path[field.name])
        value = pa.nulls(table.num_rows, pa.string())
        if text != _NULL:
            value = pa.array([text] * table.num_rows, pa.string())
        return value.cast(field.type)
    if field.name not in table.column_names:
        if form == "json":  # Spark leaves out nulls
            return pa.nulls(table.num_rows, field.type)
        msg = f"there is no column {field.name}, only {', '.join(table.column_names)}"
        raise pa.ArrowInvalid(msg)
    column = table.column(field.name).combine_chunks()
    if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(column.type):
        # the same points in time, in any zone
        in_unit = column.cast(pa.timestamp(field.type.unit, column.type.tz), safe=False)
        return in_unit.cast(pa.int64()).cast(field.type)
    return column.cast(field.type)
