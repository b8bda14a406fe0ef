"""Recorded streams with real disorder, read in place from a folder; nothing of it is kept here.

Each file has `event_us`, `arrival_us` (microseconds) and keys. A `Recording` says which files are
joined, on what, and over which period recall is asked for. A folder may have recordings of its own:
its `recordings.toml` names them, and without one all its files are joined on the column they share.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.errors import DataError
from slackwater.query.join import JoinQuery, join
from slackwater.query.stream import Stream

FOLDER = "SLACKWATER_RECORDINGS"  # the variable with the folder
FILE = "recordings.toml"

_TIMES = ("event_us", "arrival_us")
Files = dict[str, tuple[str, tuple[int, ...]]]  # by stream: a file, and which `event_id`; (): all

_WINDOW, _OVER = "10 s", "1 minute"  # where nothing is said

_COVENANT, _SECURITY = "wef_covenant_sysmon", "wef_covenant_security"
_BINANCE = "binance_20240808"

_MBTA: Files = {"positions": ("mbta_vehicle_positions", ()), "updates": ("mbta_trip_updates", ())}
_NEZHA: Files = {"spans": ("nezha_2023-01-29_spans", ()), "logs": ("nezha_2023-01-29_logs", ())}
_REGISTRY, _IMAGES, _ACCESS, _FILES = (12, 13), (7,), (10,), (11, 23)  # event_id


@dataclass(frozen=True)
class Recording:
    """Files that are joined."""

    name: str
    files: Files
    key: str
    window: str
    over: str  # P
    resolution_ms: int = 1  # of its times

    @property
    def query(self) -> JoinQuery:
        """The join, counted."""
        streams = (Stream(name, ts="ts", window=self.window) for name in self.files)
        return join(*streams, on="key", select="count")

    def is_in(self, folder: Path) -> bool:
        """Whether all of its files are there."""
        return all((folder / f"{file}.parquet").exists() for file, _ in self.files.values())

    def rows(self, folder: Path) -> int:
        """How many rows its files have."""
        files = {file for file, _ in self.files.values()}
        return sum(pq.read_metadata(folder / f"{file}.parquet").num_rows for file in files)

    def tables(self, folder: Path) -> dict[str, pa.Table]:
        """The streams of (ts, key, arrival), times in ms from the first event on."""
        read = {
            name: _rows(folder / f"{file}.parquet", self.key, wanted)
            for name, (file, wanted) in self.files.items()
        }
        first = min(int(table["ts"].to_numpy().min()) for table in read.values())
        return {
            name: table.set_column(0, "ts", pa.array(table["ts"].to_numpy() - first))
            for name, table in read.items()
        }


def _rows(path: Path, key: str, wanted: tuple[int, ...]) -> pa.Table:
    table = pq.read_table(path)
    if wanted:
        table = table.filter(pc.is_in(table["event_id"], pa.array(wanted)))
    return pa.table({
        "ts": table["event_us"].to_numpy() // 1000,
        "key": table[key],
        "arrival": table["arrival_us"].to_numpy(),
    })  # fmt: skip


RECORDINGS = {
    recording.name: recording
    for recording in (
        # constants were chosen on these (decision 26) ...
        Recording("mbta", _MBTA, "trip", "10 s", "5 minutes", resolution_ms=1000),
        Recording(
            "covenant",
            {"registry": (_COVENANT, _REGISTRY), "images": (_COVENANT, _IMAGES)},
            "process_guid", "2 s", "30 s",
        ),
        Recording(
            "binance",
            {"trades": (f"{_BINANCE}_usdm_trades", ()), "book": (f"{_BINANCE}_usdm_book", ())},
            "symbol", "20 ms", "10 s",
        ),
        Recording(
            "binance-3",
            {
                "trades": (f"{_BINANCE}_usdm_trades", ()),
                "spot": (f"{_BINANCE}_spot_trades", ()),
                "coin": (f"{_BINANCE}_cm_trades", ()),
            },
            "symbol", "100 ms", "10 s",
        ),
        Recording("nezha", _NEZHA, "span", "20 s", "1 minute"),
        # ... and, since decision 26, on these
        Recording(
            "binance-spot",
            {"trades": (f"{_BINANCE}_usdm_trades", ()), "spot": (f"{_BINANCE}_spot_trades", ())},
            "symbol", "50 ms", "10 s",
        ),
        Recording(
            "binance-coin",
            {"spot": (f"{_BINANCE}_spot_trades", ()), "coin": (f"{_BINANCE}_cm_trades", ())},
            "symbol", "100 ms", "10 s",
        ),
        Recording(
            "binance-book",
            {"book": (f"{_BINANCE}_usdm_book", ()), "coin": (f"{_BINANCE}_cm_trades", ())},
            "symbol", "20 ms", "10 s",
        ),
        Recording(
            "sysmon-files",
            {"files": (_COVENANT, _FILES), "registry": (_COVENANT, _REGISTRY)},
            "process_guid", "5 s", "30 s",
        ),
        Recording(
            "sysmon-host",
            {"access": (_COVENANT, _ACCESS), "images": (_COVENANT, _IMAGES)},
            "host", "1 s", "30 s",
        ),
        Recording(
            "security", {"sysmon": (_COVENANT, ()), "security": (_SECURITY, ())},
            "host", "1 s", "30 s",
        ),
        Recording("mbta-stop", _MBTA, "stop", "30 s", "5 minutes", resolution_ms=1000),
        Recording(
            "mbta-route",
            {"positions": ("mbta_vehicle_positions", ()), "others": ("mbta_vehicle_positions", ())},
            "route", "10 s", "5 minutes", resolution_ms=1000,
        ),
        Recording("nezha-trace", _NEZHA, "trace", "5 s", "1 minute"),
        Recording("nezha-pod", _NEZHA, "pod", "1 s", "10 s"),
    )
}  # fmt: skip


def folder_of(given: Path | None) -> Path:
    """The folder that was given, or $SLACKWATER_RECORDINGS, or the one beside this checkout.

    Raises
    ------
    DataError
        If there is none.
    """
    beside = Path(__file__).resolve().parents[4] / "shared" / "data" / "real"
    named = given or (Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None)
    folder = named or beside
    if not folder.is_dir():
        where = f"got {named}" if named else "none was given"
        msg = (
            f"recorded streams need a folder, as --data or in the variable {FOLDER}; {where}. "
            "docs/lab.md says what must be in it"
        )
        raise DataError(msg)
    return folder


def recordings_in(folder: Path) -> dict[str, Recording]:
    """The recordings of a folder, by name.

    Raises
    ------
    DataError
        If there are none.
    """
    if (folder / FILE).exists():
        listed = tomllib.loads((folder / FILE).read_text(encoding="utf-8")).get("recording", [])
        if not listed:
            msg = f"{folder / FILE} has no recording; each needs a table [[recording]]"
            raise DataError(msg)
        found = [_described(folder, entry) for entry in listed]
    else:
        found = [recording for recording in RECORDINGS.values() if recording.is_in(folder)]
        found = found or [_all_files(folder)]
    return {recording.name: recording for recording in found}


def _described(folder: Path, entry: dict[str, Any]) -> Recording:
    """A recording of `recordings.toml`."""
    missing = [name for name in ("name", "key", "files") if name not in entry]
    unknown = sorted(set(entry) - {"name", "key", "files", "window", "over", "resolution_ms"})
    if missing or unknown:
        what = f"misses {', '.join(missing)}" if missing else f"has no {', '.join(unknown)}"
        msg = f"{folder / FILE}: a [[recording]] {what}; it has name, key, files, window, over"
        raise DataError(msg)
    files = entry["files"]
    by_stream = _by_stream(files)
    recording = Recording(
        entry["name"], by_stream, entry["key"], entry.get("window", _WINDOW),
        entry.get("over", _OVER), entry.get("resolution_ms", 1),
    )  # fmt: skip
    if not recording.is_in(folder):
        listed = ", ".join(f"{file}.parquet" for file, _ in by_stream.values())
        msg = f"recording {recording.name!r} needs the files {listed} in {folder}"
        raise DataError(msg)
    return recording


def _all_files(folder: Path) -> Recording:
    """All files, joined on the one column that they share."""
    schemas = {path.stem: pq.read_schema(path).names for path in sorted(folder.glob("*.parquet"))}
    streams = [name for name, columns in schemas.items() if set(_TIMES) <= set(columns)]
    if len(streams) < 2:  # noqa: PLR2004
        msg = (
            f"{folder} has no {FILE}, and {len(streams)} Parquet files with event_us and "
            "arrival_us: at least two are needed"
        )
        raise DataError(msg)
    shared = set.intersection(*(set(schemas[name]) for name in streams)) - set(_TIMES)
    if len(shared) != 1:
        msg = (
            f"{folder} has no {FILE}, so its files must share one column beside event_us and "
            f"arrival_us, got {', '.join(sorted(shared)) or 'none'}"
        )
        raise DataError(msg)
    return Recording(folder.resolve().name, _by_stream(streams), shared.pop(), _WINDOW, _OVER)


def _by_stream(files: list[str]) -> Files:
    """Streams with the names of their files, where these can be names."""
    names = [file if file.isidentifier() else f"s{n}" for n, file in enumerate(files, 1)]
    return {name: (file, ()) for name, file in zip(names, files, strict=True)}
