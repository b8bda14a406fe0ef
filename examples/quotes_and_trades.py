"""Join quotes and trades from files; late results are marked, rejected rows are listed.

Run it with ``.venv/bin/python examples/quotes_and_trades.py``.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.spark import session

OPENING = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
SCHEMA = "time timestamp, symbol string, price double"


def write(directory: Path, *files: list[tuple[int, str | None, float]]) -> None:
    """Write rows (seconds after the opening, symbol, price); files are in order of arrival."""
    directory.mkdir()
    for n, rows in enumerate(files):
        seconds, symbols, prices = zip(*rows, strict=True)
        times = [OPENING + timedelta(seconds=s) for s in seconds]
        table = pa.table({"time": times, "symbol": symbols, "price": prices})
        pq.write_table(table, directory / f"{n}.parquet")
        os.utime(directory / f"{n}.parquet", (n, n))  # Spark reads the oldest file first


spark = session("quotes and trades", cores=2)
with TemporaryDirectory() as scratch:
    here = Path(scratch)
    # In the second file of quotes, one row is ten seconds late and one has no symbol.
    write(here / "quotes", [(0, "ACME", 10.0), (5, "ZINC", 7.5), (14, "ACME", 10.3)],
          [(20, "ZINC", 7.4), (4, "ACME", 10.1), (21, None, 9.9)])  # fmt: skip
    write(here / "trades", [(1, "ACME", 10.0), (6, "ZINC", 7.6), (15, "ACME", 10.2)],
          [(21, "ZINC", 7.3), (30, "ACME", 10.4)])  # fmt: skip
    query = sw.join(
        *(sw.Stream(name, ts="time", window="5 seconds") for name in ("quotes", "trades")),
        on="symbol",
        goal=sw.Slack("1 second"),
        late="emit",
        retention="1 minute",  # rows that are so late are still matched
    )
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    quotes, trades = read.parquet(f"{here}/quotes"), read.parquet(f"{here}/trades")
    joined = query.stream(quotes=quotes, trades=trades, at_end="flush", rejects=True)
    writer = joined.writeStream.format("parquet").option("path", f"{here}/out")
    writer = writer.option("checkpointLocation", f"{here}/state").trigger(availableNow=True)
    writer.start().awaitTermination()

    out = spark.read.parquet(f"{here}/out")
    for row in sw.results(out).orderBy("result_ts", "quotes_price").collect():
        move = f"{row.quotes_price} -> {row.trades_price}" + ("  (late)" if row.late else "")
        print(f"{row.result_ts:%H:%M:%S} {row.quotes_symbol} {move}")
    for row in sw.rejects(out).collect():
        print(f"rejected from {row.stream}: {row.reason}, {row.row}")
