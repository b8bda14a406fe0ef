"""Write results to one file: Parquet, CSV or lines of JSON, by its suffix."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from slackwater.jobs.toml_table import JobFileError

_SUFFIXES = (".parquet", ".csv", ".json", ".jsonl")


def check_suffix(file: Path) -> None:
    """Raise if the suffix is not one that can be written."""
    if file.suffix not in _SUFFIXES:
        msg = f"--out must be a file that ends in {', '.join(_SUFFIXES)}, got {file}"
        raise JobFileError(msg)


def write(table: pa.Table, file: Path) -> None:
    """Write `table`, and create its directory where needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, file)
    elif file.suffix == ".csv":
        from pyarrow import csv

        try:
            csv.write_csv(table, file)
        except pa.ArrowInvalid as error:
            msg = f"CSV cannot hold these columns ({str(error).splitlines()[0]}); write .parquet"
            raise JobFileError(msg) from error
    else:
        with file.open("w", encoding="utf-8") as lines:
            for batch in table.to_batches():
                for row in batch.to_pylist():
                    lines.write(json.dumps(row, default=str, ensure_ascii=False) + "\n")
