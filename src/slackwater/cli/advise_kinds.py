"""What ``slackwater advise`` shows of joins with rows that need a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slackwater.cli.console import duration, out

if TYPE_CHECKING:
    from slackwater.jobs.advise_kinds import KindAdvisor

_CAPTION = (
    "Asked: the goal on this recording. Φ: how often the share over the last {over} was not below "
    "the one asked. Best fixed: the smallest that, in hindsight, holds it as often. Fixed waits "
    "come from one pass and are at most 3 % too large."
)


def print_kinds(title: str, advisor: KindAdvisor) -> None:
    """Print a table for each kind of rows, and the conclusion."""
    from rich import box
    from rich.table import Table

    from slackwater.jobs.advise_kinds import sentences

    def time(value: float) -> str:
        return "" if np.isnan(value) else duration(value, advisor.unit)

    console = out()
    console.print(f"{title}: {advisor.rows:,} rows.", highlight=False)
    for name, part in advisor.parts.items():
        kept = part.wait == "kept"
        table = Table(
            title=f"{part.name}: {part.curve.n_true:,} true ones",
            title_justify="left",
            caption=_CAPTION.format(over=advisor.over),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        table.add_column("", no_wrap=True)
        average = "average time kept" if kept else "average K"
        for column in (part.quality, "Φ", average, "best fixed"):
            table.add_column(column, justify="right", no_wrap=True)
        for target in advisor.targets:
            result, best = advisor.result(name, target), advisor.best_wait(name, target)
            cells = [f"{result.recall:.2%}", f"{result.phi(target):.0%}"]
            table.add_row(
                f"asked: {target:g}", *cells, time(result.average_slack), time(best),
                style="bold" if target == advisor.target else "",
                end_section=target == advisor.targets[-1],
            )  # fmt: skip
        quantiles = [(f"{q:.0%} of the delays", w) for q, w in advisor.delay_quantiles.items()]
        fixed = [(f"fixed: {time(wait)}", wait) for wait in advisor.slacks]
        for label, wait in [*quantiles, *fixed]:
            phi = part.curve.phi(wait, advisor.target)
            row = (label, f"{part.curve.recall(wait):.2%}", f"{phi:.0%}", time(wait), "")
            table.add_row(*row, style="dim" if label.startswith("fixed") else "")
        console.print(table)
    for sentence in sentences(advisor, time):
        console.print("\n" + sentence, highlight=False)
