"""The figure of ``slackwater advise`` for joins with rows that need a decision."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullFormatter

from slackwater.jobs.advise_kinds import KindAdvisor
from slackwater.query.units import to_units

_OURS, _QUANTILE, _FIXED, _TEXT = "#1f5fbf", "#c0392b", "#8c8c8c", "#333333"
_LEAST_LOSS = 1e-4  # the axis ends here


def draw_kinds(title: str, advisor: KindAdvisor) -> Figure:
    """Draw for each kind of rows what every fixed wait gives, and what was asked and reached."""
    parts = advisor.parts
    figure = Figure(
        figsize=(5.8 * len(parts), 4.6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08),
        dpi=150,
    )  # fmt: skip
    figure.suptitle(f"{title}: what quality costs", x=0.012, ha="left", fontsize=12, color=_TEXT)
    for place, name in enumerate(parts):
        _draw_part(figure.add_subplot(1, len(parts), place + 1), advisor, name)
    return figure


def _draw_part(ax: Axes, advisor: KindAdvisor, name: str) -> None:
    part, per_ms = advisor.parts[name], to_units("1 ms", advisor.unit)

    def place(waits: list[float], shares: list[float]) -> tuple[list[float], list[float]]:
        return (
            [max(wait / per_ms, 1.0) for wait in waits],
            [max(1 - share, _LEAST_LOSS) for share in shares],
        )

    fixed = [float(wait) for wait in advisor.slacks]
    shares = [part.curve.recall(int(wait)) for wait in fixed]
    ax.plot(
        *place(fixed, shares), color=_FIXED, marker="o", markersize=3, linewidth=1.3, label="fixed"
    )
    quantiles = [float(wait) for wait in advisor.delay_quantiles.values()]
    ax.scatter(
        *place(quantiles, [part.curve.recall(int(wait)) for wait in quantiles]),
        color=_QUANTILE, marker="s", s=34, zorder=3, label="95 % and 99 % of the delays",
    )  # fmt: skip
    results = [advisor.result(name, target) for target in advisor.targets]
    known = [result for result in results if not np.isnan(result.average_slack)]
    ax.scatter(
        *place([r.average_slack for r in known], [r.recall for r in known]),
        color=_OURS, s=46, zorder=4,
        label=f"asked: {', '.join(f'{target:g}' for target in advisor.targets)}",
    )  # fmt: skip
    for target in advisor.targets:
        ax.axhline(max(1 - target, _LEAST_LOSS), color="#bbbbbb", linewidth=0.7, linestyle=":")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.invert_yaxis()  # better is higher
    ax.yaxis.set_major_formatter(FuncFormatter(lambda loss, _: f"{100 * (1 - loss):.6g} %"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: _time(ms)))
    ax.set_title(f"{part.name} that are {part.quality}", fontsize=10, color=_TEXT, loc="left")
    label = "how long events are kept beyond their windows" if part.wait == "kept" else "K"
    ax.set_xlabel(label, fontsize=9, color=_TEXT)
    ax.tick_params(labelsize=8, colors=_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="best")


def _time(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"
