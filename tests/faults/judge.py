"""Whether the output of a disturbed run is that of an undisturbed one."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from faults.checkpoint import cuts
from faults.kinds import CLOCK, KINDS
from spark.streams import all_rows, by_batch, replayed


class Verdict(NamedTuple):
    """How the rows of a run differ from what they should be."""

    lost: int
    doubled: int  # or in the wrong place, or not true at all
    why: str = ""

    @property
    def ok(self):
        return not (self.lost or self.doubled or self.why)


def judged(kind, folder, answer, calm, again):
    """Compare a run with the undisturbed one, `calm`; `again` runs the query with other cuts."""
    if not answer["balanced"]:
        return Verdict(0, 0, "the accounting is not closed")
    arrived = sum(part.num_rows for parts in KINDS[kind]().parts.values() for part in parts)
    if answer["counts"]["arrivals"] != arrived:
        return Verdict(0, 0, f"{answer['counts']['arrivals']} rows arrived of {arrived}")
    if kind == CLOCK:
        return _accounted(kind, folder, answer["counts"])
    read = cuts(folder)
    expected = by_batch(calm if read == cuts(calm) else again(read))
    return compared(by_batch(folder), expected)


def compared(found, expected):
    lost = doubled = 0
    for batch in found.keys() | expected.keys():
        own, other = found.get(batch, Counter()), expected.get(batch, Counter())
        lost += (other - own).total()
        doubled += (own - other).total()
    return Verdict(lost, doubled)


def _accounted(kind, folder, counts):
    """By the wall clock no two runs shed the same: what was produced is there, true, and once."""
    trial, rows = KINDS[kind](), all_rows(folder)
    whole = replace(trial.query, shed="off")
    tables = {name: pa.concat_tables(parts) for name, parts in trial.parts.items()}
    true = replayed(whole, tables)
    return Verdict(max(0, counts["produced"] - rows.total()), (rows - true).total())
