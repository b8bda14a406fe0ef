"""Seeded faults on Spark: ``python -m faults --faults 200 --seed 1``, from the folder of tests.

Prints a table and why queries were refused. Ends with 1 if a row was lost or doubled.
"""

import argparse
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from faults.bench import Bench, Run
from faults.disk import MOUNTED
from faults.families import FAMILIES
from faults.judge import Verdict
from faults.kinds import KINDS, USUAL
from faults.lives import ALIVE, LAST
from faults.table import as_dict, brief, table

SHARE = {"file": 7, "worker": 5, "driver": 4, "disk": 3, "executor": 2}  # in a round, of each kind


def runs_of(kind, families, turns, seed, folder):
    """All runs of one kind."""
    runs = []
    with Bench(kind, folder, seed) as bench:
        for turn in turns:
            for family in families:
                began = time.monotonic()
                try:
                    run = bench.run(family, FAMILIES[family], SHARE[family], turn)
                except Exception:  # the other runs are worth having
                    bench.kill()
                    run = Run(kind, family, [], Verdict(0, 0, traceback.format_exc()))
                runs.append(run)
                told, seconds = run.verdict, time.monotonic() - began
                say(f"{kind}, {family}: {len(run.faults)} faults, {told}, {seconds:.0f} s")
                for fault in run.faults:
                    say(f"  {fault.what}{': ' * bool(fault.refused)}{brief(fault.refused)}")
    return runs


def say(text):
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def main():
    asked = argparse.ArgumentParser(prog="faults", description=__doc__)
    asked.add_argument("--faults", type=int, default=200, help="at least so many")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--jobs", type=int, default=2, help="kinds at a time")
    asked.add_argument("--kind", action="append", choices=KINDS, help="default: one of each")
    asked.add_argument("--family", action="append", choices=FAMILIES, help="default: all")
    asked.add_argument("--out", type=Path, help="the table as Markdown goes here too")
    asked.add_argument("--json", action="store_true", help="print one object at the end, no table")
    options = asked.parse_args()
    kinds, families = options.kind or USUAL, options.family or list(SHARE)
    rounds = math.ceil(options.faults / sum(SHARE[f] for f in families) / len(kinds))

    def runs(number):
        turns = range(number, rounds * len(kinds), len(kinds))
        return runs_of(kinds[number], families, turns, options.seed, folder / str(number))

    def stop(*_):
        """Leave nothing behind: threads wait for drivers, and would start others."""
        LAST.set()
        for left in [*ALIVE, *MOUNTED]:
            with suppress(Exception):  # its own thread may be closing it
                left.close()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    folder = Path(tempfile.mkdtemp(prefix="faults"))
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            found = [run for own in pool.map(runs, range(len(kinds))) for run in own]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = table(found)
    print(json.dumps(as_dict(options.seed, found)) if options.json else text)  # noqa: T201
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    sys.exit(0 if all(run.verdict.ok for run in found) else 1)


if __name__ == "__main__":
    main()
