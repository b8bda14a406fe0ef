"""Small recorded streams and jobs over them, for the tests of commands that need no Spark."""

import json

import pyarrow.parquet as pq
from typer.testing import CliRunner

from slackwater.cli import app
from slackwater.testing.workloads import uniform_keys

STREAM = """
[[stream]]
name = "{name}"
ts = "ts"
{window}
format = "parquet"
schema = "ts long, k long, v double, arrival long"
path = "{name}"
"""
KINDS = {
    "join": '[join]\non = "k"\ngoal = {slack = "300 ms"}',
    "window": '[window]\nwindow = {length = "2 s", slide = "1 s"}\nby = "k"\n'
    'select = {n = "count()", most = "max(v)"}\ngoal = {slack = "100 ms"}',
    "aggregate": '[aggregate]\non = "k"\nwindow = "1 s"\nlate = "emit"\ncompensate = true\n'
    'select = {n = "count()", total = "sum(a.v)"}\ndeadline = {limit = "200 ms", after = "end"}',
}


def tables(rows=2_000, names="ab"):
    """Ten seconds of streams, a third of it up to some 2 s late."""
    return {n: uniform_keys(rows, i, rate_per_s=200, keys=20) for i, n in enumerate(names, 1)}


def write_job(
    folder, kind="join", asked=None, sink='format = "parquet"\npath = "out"', more="", names=None
):
    """A job of this kind over the streams, whose files are in `folder`."""
    names = names or ("a" if kind == "window" else "ab")
    window = 'window = "1 second"' if kind == "join" else ""
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        pq.write_table(tables(names=names)[name], folder / name / "0.parquet")
    parts = [
        f'[job]\ncheckpoint = "state"\nat_end = "flush"\narrival = "arrival"\n{more}',
        KINDS[kind] if asked is None else asked,
        *(STREAM.format(name=name, window=window) for name in names),
        f"[sink]\n{sink}\n",
    ]
    file = folder / "job.toml"
    file.write_text("\n".join(parts), encoding="utf-8")
    return file


def slackwater(*arguments, **options):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def figures(result, command):
    """The figures of a command that was run with ``--json``."""
    sheet = json.loads(result.stdout)
    assert list(sheet)[:4] == ["command", "seed", "machine", "lines"]
    assert sheet["command"] == command
    return {line["name"]: line["value"] for line in sheet["lines"]}
