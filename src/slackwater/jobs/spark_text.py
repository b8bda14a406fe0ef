"""CSV and JSON files read as Spark reads them, without Spark.

A run reads its sources with Spark; `replay`, `advise` and `verify` must see the same rows. What is
known to be the same is read; what Spark may read in another way is refused.

>>> as_spark_reads(pa.array(["5", "", None, "x", "+7"]), pa.int32()).to_pylist()
[5, None, None, None, 7]
>>> as_spark_reads(pa.array(["1.5", "NaN", "1e3", "2,5"]), pa.float64()).to_pylist()
[1.5, nan, 1000.0, None]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.jobs.toml_table import JobFileError

UTC = "UTC"
# Options that say which files are read and when, or what is the default anyway.
_OF_FILES = {
    "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly",
    "cleansource", "sourcearchivedir", "maxcachedfiles", "enforceschema", "inferschema",
}  # fmt: skip
_OF_CSV = ("header", "sep", "delimiter", "nullvalue", "quote")
_DEFAULTS = {"mode": "permissive", "multiline": "false", "encoding": "utf-8", "charset": "utf-8"}

_WHOLE = r"^[+-]?[0-9]+$"
_FLOAT = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?\s*$"
_NAMED = {"NaN": "nan", "Inf": "inf", "-Inf": "-inf", "Infinity": "inf", "-Infinity": "-inf"}
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})([ T].*)?")
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r"\s?(Z|UTC|[+-]\d{2}:?\d{2})?)?"
)


def read_csv(
    file: Path, types: Mapping[str, Any], options: Mapping[str, str], zone: str = UTC
) -> pa.Table:
    """Read a CSV file whose columns have these types; `zone` is that of times without one."""
    from pyarrow import csv

    given = _checked(file, options, _OF_CSV)
    separator = given.get("sep", given.get("delimiter", ","))
    quote = given.get("quote", '"')
    with pa.input_stream(str(file), compression="detect") as stream:
        data = stream.read()
    _check_quotes(file, data, separator, quote)
    if not data.strip():
        empty = pa.table({name: pa.array([], pa.string()) for name in types})
        return _converted(file, empty, types, zone)
    texts = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=list(types), skip_rows=int(given.get("header", "") == "true")),
        csv.ParseOptions(delimiter=separator, quote_char=quote or False, double_quote=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(types, pa.string()),
            null_values=["", given.get("nullvalue", "")],
            strings_can_be_null=True,
        ),
    )
    return _converted(file, texts, types, zone)


def read_json(
    file: Path, types: Mapping[str, Any], options: Mapping[str, str], zone: str = UTC
) -> pa.Table:
    """Read a file of JSON, a line each, whose columns have these types."""
    from pyarrow import json

    _checked(file, options, ())
    texts = {name: pa.string() for name, kind in types.items() if _is_text_in_json(kind)}
    schema = pa.schema([(name, texts.get(name, kind)) for name, kind in types.items() if kind])
    others = "ignore" if len(schema) == len(types) else "infer"
    parsing = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others)
    table = json.read_json(file, parse_options=parsing)
    rows = table.num_rows
    columns = {
        name: table[name] if name in table.column_names else pa.nulls(rows, kind or pa.null())
        for name, kind in types.items()
    }
    for name in texts:
        columns[name] = _column(file, name, columns[name], types[name], zone)
    return pa.table(columns)


def _is_text_in_json(kind: Any) -> bool:
    return kind is not None and (pa.types.is_temporal(kind) or pa.types.is_decimal(kind))


def _checked(file: Path, options: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    """The options in small letters, as Spark takes them; those that are not known are refused."""
    given = {name.lower(): value for name, value in options.items()}
    for name, value in given.items():
        is_default = _DEFAULTS.get(name) == value.lower()
        if name not in (*known, *_OF_FILES) and not is_default:
            listed = f"; known are {', '.join(known)}" if known else ""
            msg = (
                f"{file}: the option {name} = {value!r} changes how Spark reads the file, and is "
                f"not known without Spark{listed}; record the stream as Parquet"
            )
            raise JobFileError(msg)
    for name in ("sep", "delimiter"):
        if len(given.get(name, ",")) != 1:
            msg = f"{file}: the option {name} must be one character, got {given[name]!r}"
            raise JobFileError(msg)
    return given | ({"header": given["header"].lower()} if "header" in given else {})


def _check_quotes(file: Path, data: bytes, separator: str, quote: str) -> None:
    """Raise if quotes stand where Spark takes them in a way of its own."""
    sign = quote.encode()
    if not sign or sign not in data:
        return
    at, sep = re.escape(sign), re.escape(separator.encode())
    strange = re.search(rb"(?<![\n" + sep + rb"])" + at + rb"(?![\r\n" + sep + rb"])", data[1:-1])
    in_pairs = all(line.count(sign) % 2 == 0 for line in data.split(b"\n"))
    if strange or not in_pairs or b"\\" in data:
        msg = (
            f"{file}: quotes inside of quotes, line breaks or backslashes beside quotes are read "
            "by rules of Spark's own, which are not known without Spark; record the stream as "
            "Parquet"
        )
        raise JobFileError(msg)


def _converted(file: Path, texts: pa.Table, types: Mapping[str, Any], zone: str) -> pa.Table:
    return pa.table(
        {name: _column(file, name, texts[name], kind, zone) for name, kind in types.items()}
    )


def _column(file: Path, name: str, texts: Any, kind: Any, zone: str) -> pa.Array:
    column = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    try:
        return as_spark_reads(column.cast(pa.string()), kind, zone)
    except ValueError as error:
        msg = f"{file}: column {name}: {error}; record the stream as Parquet"
        raise JobFileError(msg) from error


def as_spark_reads(texts: pa.Array, kind: Any, zone: str = UTC) -> pa.Array:
    """The values of texts, as Spark reads them: null where they are none of this type.

    Raises
    ------
    ValueError
        For texts of which it is not known what Spark makes of them, and types that texts are not
        read into.
    """
    if kind is not None and pa.types.is_string(kind):
        return texts
    for is_of, convert in _CONVERTERS:
        if kind is not None and is_of(kind):
            return convert(texts, kind, zone)
    msg = f"columns of type {kind or 'map, array or struct'} are not read from text without Spark"
    raise ValueError(msg)


def _wholes(texts: pa.Array, kind: pa.DataType, _zone: str) -> pa.Array:
    good = _where(texts, pc.match_substring_regex(texts, _WHOLE))
    if pc.any(pc.greater(pc.utf8_length(good), 18)).as_py():  # may be beyond 64 bits
        values = [None if text is None else int(text) for text in good.to_pylist()]
        numbers = pa.array([_in_64_bits(value) for value in values], pa.int64())
    else:
        numbers = pc.utf8_ltrim(good, characters="+").cast(pa.int64())
    ends = np.iinfo(kind.to_pandas_dtype())
    inside = pc.and_(
        pc.greater_equal(numbers, int(ends.min)), pc.less_equal(numbers, int(ends.max))
    )
    return _where(numbers, inside).cast(kind)


def _in_64_bits(value: int | None) -> int | None:
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _floats(texts: pa.Array, kind: pa.DataType, _zone: str) -> pa.Array:
    good = _where(texts, pc.match_substring_regex(texts, _FLOAT))
    numbers = pc.utf8_rtrim(pc.utf8_trim_whitespace(good), characters="dDfF")
    numbers = pc.utf8_ltrim(numbers, characters="+").cast(pa.float64())
    for name, value in _NAMED.items():
        is_named = pc.fill_null(pc.equal(texts, name), fill_value=False)
        numbers = pc.if_else(is_named, float(value), numbers)
    return numbers.cast(kind)


def _booleans(texts: pa.Array, _kind: pa.DataType, _zone: str) -> pa.Array:
    lower = pc.utf8_lower(texts)
    return _where(pc.equal(lower, "true"), pc.is_in(lower, pa.array(["true", "false"])))


def _decimals(texts: pa.Array, kind: pa.DataType, _zone: str) -> pa.Array:
    step, most = Decimal(1).scaleb(-kind.scale), Decimal(10) ** (kind.precision - kind.scale)

    def value(text: str) -> Decimal | None:
        try:
            number = Decimal(text)
            rounded = number.quantize(step, ROUND_HALF_UP) if number.is_finite() else None
        except InvalidOperation:
            return None
        is_plain = text == text.strip() and "_" not in text
        return rounded if is_plain and rounded is not None and abs(rounded) < most else None

    return _each(texts, value, kind)


def _dates(texts: pa.Array, kind: pa.DataType, _zone: str) -> pa.Array:
    def value(text: str) -> Any:
        match = _DATE.fullmatch(text)
        if match is None:
            return _no_time(text, "a date")
        moment = _moment(match[1])
        return None if moment is None else moment.date()

    return _each(texts, value, kind)


def _times(texts: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    try:
        own = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        msg = f"there is no time zone {zone!r}"
        raise ValueError(msg) from None

    def value(text: str) -> Any:
        match = _TIME.fullmatch(text)
        if match is None:
            return _no_time(text, "a time")
        day, hour, minute, second, fraction, offset = match.groups()
        clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}"
        moment = _moment(f"{day}T{clock}{_offset(offset)}")
        if moment is None:
            return None
        if kind.tz is None and offset is not None:
            return _no_time(text, "a time without a zone")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=own if kind.tz is not None else ZoneInfo(UTC))
        micros = (fraction or "").ljust(6, "0")[:6]
        since = moment - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
        return (since.days * 86_400 + since.seconds) * 1_000_000 + int(micros)

    return _each(texts, value, pa.int64()).cast(kind)


def _offset(offset: str | None) -> str:
    if offset in (None, ""):
        return ""
    if offset in ("Z", UTC):
        return "+00:00"
    return offset if ":" in offset else f"{offset[:3]}:{offset[3:]}"


def _moment(iso: str) -> datetime | None:
    """The time of a text of the right form; None if there is no such day or hour."""
    try:
        return datetime.fromisoformat(iso)
    except ValueError:
        return None


def _no_time(text: str, what: str) -> Any:
    """Null for what can be no time; raises for what Spark may take for one."""
    if any(sign.isdigit() for sign in text):
        msg = f"Spark may read {text!r} as {what}, in a way that is not known without Spark"
        raise ValueError(msg)
    return None


def _each(texts: pa.Array, value: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    """Convert each distinct text once."""
    distinct = texts.dictionary_encode()
    values = [None if text is None else value(text) for text in distinct.dictionary.to_pylist()]
    return pa.array(values, kind).take(distinct.indices)


def _where(values: Any, mask: Any) -> Any:
    """The values where the mask is true, else null."""
    return pc.if_else(mask, values, pa.scalar(None, values.type))


_CONVERTERS: tuple[tuple[Callable[[Any], bool], Callable[..., pa.Array]], ...] = (
    (pa.types.is_integer, _wholes),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_date, _dates),
    (pa.types.is_timestamp, _times),
)
