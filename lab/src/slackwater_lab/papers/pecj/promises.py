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
    asked: str
    found: float
    where: str
    beyond: float


class Promises:
    """The worst case of each."""

    def __init__(self) -> None:
        self._cases: dict[str, list[_Case]] = {}

    def add(self, what: str, asked: str, found: float, where: str, beyond: float) -> None:
        """One case; it is `beyond` what was asked if that is above 0."""
        self._cases.setdefault(what, []).append(_Case(asked, found, where, beyond))

    def table(self) -> Table:
        """All of them."""
        rows: list[tuple[tuple[str, ...], list[Cell]]] = []
        for what, cases in self._cases.items():
            worst = max(cases, key=lambda case: case.beyond)
            missed = sum(case.beyond > 0.0 for case in cases)
            verdict = f"missed in {missed} of {len(cases)}" if missed else "kept"
            rows.append(((what,), [worst.asked, verdict, worst.found, worst.where]))
        columns = (Column("asked"), Column("verdict"), Column("worst"), Column("where"))
        return Table("Promises", ("promise",), columns, rows)
