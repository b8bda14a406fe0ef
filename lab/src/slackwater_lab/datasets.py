"""Named datasets with a query over them, and the exact truth, kept in a folder.

A dataset is made once for a name, a seed and a length. Beside its streams lie the number of true
results by result time, and some facts about its disorder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.engine.output import counts
from slackwater.engine.replay import recorded
from slackwater.engine.report import truth
from slackwater.errors import QueryError
from slackwater.kernels.records import I64
from slackwater.query.join import JoinQuery, join
from slackwater.query.stream import Stream
from slackwater.testing.workloads import soccer
from slackwater_lab.moving_streams import FAMILIES, moving_streams
from slackwater_lab.synthetic import drifting_streams, star_streams, zipf_streams

VERSION = 2  # of how datasets are made; another one, other files
FOLDER = "SLACKWATER_LAB"  # the variable with the folder they are kept in

Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Dataset:
    """How streams are made, and the query over them."""

    name: str
    title: str
    minutes: float
    query: JoinQuery
    make: Callable[[float, int], Tables]  # minutes, seed


def _streams(windows: dict[str, str]) -> list[Stream]:
    return [Stream(name, ts="ts", window=window) for name, window in windows.items()]


_DISTANCE = join(
    *_streams({"a": "5 seconds", "b": "5 seconds"}),
    where="dist(a.x, a.y, b.x, b.y) < 5",
    select="count",
)
_SHARED_KEY = join(*_streams(dict.fromkeys(("s1", "s2", "s3"), "5 s")), on="a1", select="count")
_STAR = join(
    *_streams(dict.fromkeys(("s1", "s2", "s3", "s4"), "3 s")),
    on=["s1.a1 = s2.a1", "s1.a2 = s3.a2", "s1.a3 = s4.a3"],
    select="count",
)
_KEEP = join(  # Thesis 6.3.1, and its own join logic (3.1.1, 4.2)
    *_streams({"a": "2 s", "b": "3 s"}),
    bounds="(]",
    slide="10 ms",
    pipeline="icde16",
    overdue="now",
    late_probe="window-end",
    select="count",
)

_MOVING = join(*_streams({"a": "2 s", "b": "2 s"}), on="k", select="count")


def _soccer(
    minutes: float, seed: int, rate_per_s: float, first_seed: int = 0, bursts: bool = True
) -> Tables:
    return soccer(60 * minutes, first_seed + seed, rate_per_s, bursts)


def _drifting(minutes: float, seed: int, drift: str) -> Tables:
    return drifting_streams(minutes, seed, drift)  # type: ignore[arg-type]


_STEPS_MS = (20, 50)  # of delays, other than the usual 10

_DRIFTS = {
    "step": "D×3, disorder much worse from half time on",
    "ramp": "D×3, disorder grows",
    "burst": "D×3, bad phases (a quarter of the time)",
    "lag": "D×3, s3 falls behind by 10 s",
    "keyed": "D×3, frequent values badly delayed",
}

DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("dx2", "D×2, soccer-like", 23, _DISTANCE, partial(_soccer, rate_per_s=325)),
        Dataset("dx3", "D×3", 30, _SHARED_KEY, zipf_streams),
        Dataset("dx4", "D×4", 30, _STAR, star_streams),
        *(
            Dataset(f"dx3-{drift}", title, 30, _SHARED_KEY, partial(_drifting, drift=drift))
            for drift, title in _DRIFTS.items()
        ),
        *(
            Dataset(f"{name}-{ms}ms", f"{title}, {ms} ms", 30, q, partial(make, delay_step_ms=ms))
            for name, title, q, make in (
                ("dx3", "D×3", _SHARED_KEY, zipf_streams),
                ("dx4", "D×4", _STAR, star_streams),
            )
            for ms in _STEPS_MS
        ),
        *(
            Dataset(
                f"{name}{end}",
                f"{title}{what}",
                minutes,
                _KEEP,
                partial(_soccer, rate_per_s=rate, first_seed=first_seed, bursts=not end),
            )
            for name, title, minutes, rate, first_seed in (
                ("soccer16", "Soccer-16min", 16.5, 330, 1000),
                ("soccer23", "Soccer-23min", 23.9, 270, 2000),
            )
            for end, what in (("", ""), ("-calm", " without bursts"))
        ),
        *(
            Dataset(f"moving-{family}", family, 30, _MOVING, partial(moving_streams, family=family))
            for family in FAMILIES
        ),
    )
}


@dataclass(frozen=True)
class Facts:
    """What a dataset is like; times in ms."""

    rows: int
    true: int  # results
    largest_delay: int
    lead: float  # of the fastest stream over the slowest, on average


@dataclass(frozen=True)
class Recorded:
    """A dataset that has been made."""

    dataset: Dataset
    folder: Path

    def tables(self) -> Tables:
        """The streams, each in arrival order."""
        names = self.dataset.query.names
        return {name: pq.read_table(self.folder / f"{name}.parquet") for name in names}

    def truth(self) -> tuple[I64, I64]:
        """How many true results each result time has."""
        table = pq.read_table(self.folder / "truth.parquet")
        return table["result_ts"].to_numpy(), table["n"].to_numpy()

    def facts(self) -> Facts:
        """What it is like."""
        return Facts(**json.loads((self.folder / "facts.json").read_text()))


def default_folder() -> Path:
    """Where datasets are kept: $SLACKWATER_LAB, or the user's cache."""
    if given := os.environ.get(FOLDER):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slackwater" / "lab"


def dataset(name: str) -> Dataset:
    """The dataset of that name."""
    if name not in DATASETS:
        msg = f"there is no dataset {name!r}; there are {', '.join(DATASETS)}"
        raise QueryError(msg)
    return DATASETS[name]


def get(name: str, seed: int, minutes: float, folder: Path) -> Recorded:
    """A dataset from the folder; it is made if it is not there."""
    own = folder / f"{name}-{minutes:g}min-seed{seed}-v{VERSION}"
    found = Recorded(dataset(name), own)
    if not own.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = Path(mkdtemp(prefix=f".{own.name}-", dir=folder))
        _make(Recorded(found.dataset, unfinished), seed, minutes)
        try:
            unfinished.rename(own)
        except OSError:  # another process was faster
            rmtree(unfinished)
    return found


def _make(recorded_here: Recorded, seed: int, minutes: float) -> None:
    query, folder = recorded_here.dataset.query, recorded_here.folder
    tables = recorded_here.dataset.make(minutes, seed)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    batch, _ = recorded(query, tables, "arrival")
    made = counts(truth(query, batch)[0].made, _TRUTH)
    pq.write_table(made, folder / "truth.parquet")
    facts = facts_of(tables, int(made["n"].to_numpy().sum()))
    (folder / "facts.json").write_text(json.dumps(asdict(facts)))


def facts_of(tables: Tables, true: int) -> Facts:
    """What streams with so many true results are like."""
    return Facts(
        rows=sum(len(table) for table in tables.values()),
        true=true,
        largest_delay=max(int(delays(table).max()) for table in tables.values()),
        lead=float(np.mean(leads(tables))),
    )


def delays(table: pa.Table) -> I64:
    """How far each event of a stream is behind its local time."""
    ts = table["ts"].to_numpy()
    return np.asarray(np.maximum.accumulate(ts) - ts)


def leads(tables: Tables) -> I64:
    """By how much the fastest stream leads the slowest, at each arrival after their first ones."""
    local = local_times(tables)
    return np.asarray(local.max(axis=0) - local.min(axis=0))


def local_times(tables: Tables) -> I64:
    """Local time of each stream (rows) at each arrival of any, once all have begun."""
    arrival = np.concatenate([table["arrival"].to_numpy() for table in tables.values()])
    stream = np.repeat(np.arange(len(tables)), [len(table) for table in tables.values()])
    ts = np.concatenate([table["ts"].to_numpy() for table in tables.values()])
    order = np.argsort(arrival, kind="stable")
    stream, ts = stream[order], ts[order]
    nothing = np.iinfo(np.int64).min
    own = [np.where(stream == s, ts, nothing) for s in range(len(tables))]
    local = np.maximum.accumulate(np.array(own), axis=1)
    return local[:, (local > nothing).all(axis=0)]


_TRUTH = pa.schema([("result_ts", pa.int64()), ("n", pa.int64())])
