"""What was promised of early answers, and whether it is kept.

>>> promises = Promises()
>>> promises.add("error", "at most 2 %", 1.5, "here", beyond=1.5 - 2.0)
>>> promises.add("error", "at most 2 %", 2.5, "there", beyond=2.5 - 2.0)
>>> promises.table().text()
[['error', 'at most 2 %', 'missed in 1 of 2', '2.5', 'there']]
"""

from __future__ import annotations

from typing import NamedTuple

from slackwater_lab.experiment import Cell, Column, Table


class _Case(NamedTuple):
    promised: str
    found: float
    where: str
    beyond: float


class Promises:
    """Collects cases, and finds the worst one of each promise."""

    def __init__(self) -> None:
        self._cases: dict[str, list[_Case]] = {}

    def add(self, what: str, promised: str, found: float, where: str, beyond: float) -> None:
        """Add a case; above 0, `beyond` is by how much it misses what was promised."""
        self._cases.setdefault(what, []).append(_Case(promised, found, where, beyond))

    def table(self) -> Table:
        """Return a table of all promises."""
        rows: list[tuple[tuple[str, ...], list[Cell]]] = []
        for what, cases in self._cases.items():
            worst = max(cases, key=lambda case: case.beyond)
            missed = sum(case.beyond > 0.0 for case in cases)
            verdict = f"missed in {missed} of {len(cases)}" if missed else "kept"
            rows.append(((what,), [worst.promised, verdict, worst.found, worst.where]))
        limit = Column("asked", title="limit")  # the name stays in the JSON
        columns = (limit, Column("verdict"), Column("worst"), Column("where"))
        return Table("Promises", ("promise",), columns, rows)
