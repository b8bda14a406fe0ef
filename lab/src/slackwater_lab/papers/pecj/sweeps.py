"""One thing varied at a time: order, keys, rate, the deadline, the disorder (PECJ 6.3 and 6.4)."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater_lab.experiment import Cell, Column, Table
from slackwater_lab.papers.pecj.data import MS, Dataset
from slackwater_lab.papers.pecj.oracles import NAMES
from slackwater_lab.papers.pecj.runs import ESTIMATORS, OURS, Disorder, Outcome
from slackwater_lab.papers.pecj.settings import COUNT, SUM, Judged, Lab, Rows
from slackwater_lab.plots import Panel

_Q1 = tuple(range(5, 13))  # ω in ms
_Q3 = (50, 100, 200, 300, 400, 500, 600, 700)
_DELTAS = (90, 100, 110, 120, 150, 200, 300, 400, 500, 1000)
_SOME_KEYS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_RATES = (10, 20, 50, 100, 200, 300, 400)  # thousands per second
_SHOWN = ("WMJ", *ESTIMATORS, *NAMES)
_COLUMNS = (*(Column(name, "%") for name in _SHOWN), Column("ours by the better oracle"))


def _cells(found: Judged, a: int) -> list[Cell]:
    return [*found.errors(_SHOWN, a), found.by_oracle(a)]


def in_order(lab: Lab) -> tuple[Table, float]:
    """Fig. 9: nothing is late; and the largest mean error of ours, in percent."""
    disorder = Disorder(0, 11 * MS)
    rows: Rows = []
    for data in lab.datasets():
        draws = lab.full if not data.is_real else lab.brief
        found = draws.run(data, disorder, ESTIMATORS)
        means: list[Cell] = [100 * found.error(name, COUNT) for name in ESTIMATORS]
        sums: list[Cell] = [100 * found.error(OURS, SUM)]
        rows.append(((data.name,), [*means, *sums, _largest(found)]))
    columns = (
        *(Column(name, "%") for name in ESTIMATORS), Column("ours, sum", "%"),
        Column("ours, the worst window", "%"),
    )  # fmt: skip
    worst = max(float(row[1][list(ESTIMATORS).index(OURS)] or 0.0) for row in rows)
    return Table("In-order data (Fig. 9; Δ = 0, ω = 11 ms)", ("data",), columns, rows), worst


def _largest(found: Outcome) -> float:
    return 100 * float(abs(found.errors(OURS, COUNT)).max())


def keys(lab: Lab) -> Table:
    """Fig. 10a."""
    rows: Rows = []
    for n in lab.setting.some(_SOME_KEYS):
        found = lab.judge(lab.brief, lab.micro(n), Disorder(5 * MS, 10 * MS))
        theirs = [lab.theirs("Sec6_4NumberOfKeys", name, n) for name in ("wa", "pec_sel")]
        rows.append(((f"{n:,}",), [*_cells(found, SUM), *theirs]))
    columns = (*_COLUMNS, Column("authors: WMJ", "%"), Column("authors: AEMA", "%"))
    title = "Number of keys (Fig. 10a; Micro, sum, Δ = 5 ms, ω = 10 ms)"
    return Table(title, ("keys",), columns, rows)


def rates(lab: Lab) -> Table:
    """Fig. 10b."""
    rows: Rows = []
    for rate in lab.setting.some(_RATES):
        found = lab.judge(lab.brief, lab.micro(10, rate), Disorder(5 * MS, 10 * MS))
        theirs = [lab.theirs("Sec6_4EventRate", name, rate) for name in ("wa", "pec_sel")]
        rows.append(((f"{rate} K/s",), [*_cells(found, SUM), *theirs]))
    columns = (*_COLUMNS, Column("authors: WMJ", "%"), Column("authors: AEMA", "%"))
    title = "Event rate (Fig. 10b; Micro, 10 keys, sum, Δ = 5 ms, ω = 10 ms)"
    return Table(title, ("rate",), columns, rows)


def deadlines(lab: Lab) -> tuple[list[Table], list[list[Panel]]]:
    """Fig. 11: Q1 and Q3."""
    tables, grid = [], []
    for query, most, swept in (("Q1", 5, _Q1), ("Q3", 1000, _Q3)):
        experiment = f"Sec6_3MOdelingStock{query.lower()}"
        rows: Rows = []
        panels = []
        for data in _shown(lab):
            many = [
                lab.judge(lab.brief, data, Disorder(most * MS, omega * MS))
                for omega in lab.setting.some(swept)
            ]
            for found in many:
                point = found.disorder.deadline // MS
                theirs: list[Cell] = [
                    lab.theirs(experiment, name, point) if data.name == "Stock" else None
                    for name in ("pec_sel", "pecj_svi", "pec_any")
                ]
                rows.append(((data.name, found.omega), [*_cells(found, COUNT), *theirs]))
            x = [found.disorder.deadline / MS for found in many]
            panels.append(_panel(f"{data.name}, {query} (Δ = {most:,} ms)", x, many))
        columns = (*_COLUMNS, *_theirs())
        title = f"Deadline, {query} (Fig. 11; Δ = {most:,} ms)"
        tables.append(Table(title, ("data", "ω"), columns, rows))
        grid.append(panels)
    return tables, grid


def oscillation(lab: Lab) -> Table:
    """Fig. 12."""
    rows: Rows = []
    for data in _shown(lab):
        for most in lab.setting.some(_DELTAS):
            found = lab.judge(lab.brief, data, Disorder(most * MS, 100 * MS))
            theirs: list[Cell] = [
                lab.theirs("Sec6_3ModelingStockSynth", name, most) if data.name == "Stock" else None
                for name in ("pec_sel", "pecj_svi", "pec_any")
            ]
            rows.append(((data.name, found.delta), [*_cells(found, COUNT), *theirs]))
    title = "Largest delay (Fig. 12; ω = 100 ms)"
    return Table(title, ("data", "Δ"), (*_COLUMNS, *_theirs()), rows)


def _shown(lab: Lab) -> Sequence[Dataset]:
    return [*lab.real, lab.micro(100)]


def _theirs() -> tuple[Column, ...]:
    return tuple(Column(f"authors: {name}", "%") for name in ("AEMA", "SVI", "learning"))


def _panel(title: str, x: list[float], many: Sequence[Judged]) -> Panel:
    names = (OURS, *(name for name in (*ESTIMATORS, "WMJ") if name != OURS))
    curves = {name: (x, [found.error(name, COUNT) for found in many]) for name in names}
    curves["oracle"] = (x, [found.best_oracle(COUNT) for found in many])
    return Panel(title, "mean error [%]", curves, log=True)
