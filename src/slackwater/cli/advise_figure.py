"""The figure of ``slackwater advise``: recall against latency, and the target over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from slackwater.jobs.advise import Advisor
from slackwater.jobs.waits_tried import GoalResult
from slackwater.query.goals import InputQuantile, MaxSlack, NoSlack, Slack
from slackwater.query.units import to_units

_OURS, _QUANTILE, _FIXED, _ENDS = "#1f5fbf", "#c0392b", "#8c8c8c", "#444444"
_TEXT, _GRID = "#333333", "#e6e6e6"
_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
_SHORT_MS = 180_000  # what is shorter is drawn in seconds
_LEAST_LOSS = 1e-4  # the axis ends here: what is better is drawn there


def draw(title: str, advisor: Advisor) -> Figure:
    """Left, what each goal costs and gives; right, the goal of the target over time."""
    figure = Figure(
        figsize=(11.5, 5.6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08), dpi=150
    )
    figure.suptitle(
        f"{title}: what recall costs", x=0.012, ha="left", fontsize=13, color=_TEXT, weight="bold"
    )
    grid = figure.add_gridspec(2, 2, width_ratios=(1.35, 1))
    _draw_curve(figure.add_subplot(grid[:, 0]), advisor)
    above = figure.add_subplot(grid[0, 1])
    below = figure.add_subplot(grid[1, 1], sharex=above)
    _draw_time(above, below, advisor)
    return figure


# ---- recall against latency


def _draw_curve(ax: Axes, advisor: Advisor) -> None:
    per_ms = to_units("1 ms", advisor.unit)

    def place(results: Sequence[GoalResult]) -> tuple[list[float], list[float]]:
        x = [max(result.average_latency / per_ms, 1.0) for result in results]
        return x, [max(1 - result.recall, _LEAST_LOSS) for result in results]

    fixed = [advisor.result(Slack(slack)) for slack in advisor.slacks]
    ax.plot(*place(fixed), color=_FIXED, linewidth=1.4, marker="o", markersize=3, zorder=2)
    ours = [advisor.result(advisor.recall_goal(target)) for target in advisor.targets]
    quantiles = [advisor.result(InputQuantile(q)) for q in advisor.quantiles]
    ends = [advisor.result(goal) for goal in (NoSlack(), MaxSlack())]
    ax.scatter(*place(ours), s=52, color=_OURS, zorder=4)
    ax.scatter(*place(quantiles), s=38, marker="s", color=_QUANTILE, zorder=3)
    ax.scatter(*place(ends), s=38, marker="D", color=_ENDS, zorder=3)
    for x, y, target in zip(*place(ours), advisor.targets, strict=True):
        _name(ax, f"Recall({target:g})", (x, y), (-9, 3), _OURS)
    for x, y, q in zip(*place(quantiles), advisor.quantiles, strict=True):
        _name(ax, f"InputQuantile({q:g})", (x, y), (9, -9), _QUANTILE)
    for x, y, name in zip(*place(ends), ("NoSlack", "MaxSlack"), strict=True):
        _name(ax, name, (x, y), (9, -11) if name == "NoSlack" else (0, -15), _ENDS)
    _dress_curve(ax, advisor, place(fixed))


def _dress_curve(ax: Axes, advisor: Advisor, fixed: tuple[list[float], list[float]]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    worst = max(1 - advisor.result(NoSlack()).recall, 1 - advisor.target, 0.02)
    ax.set_ylim(min(1.0, 1.7 * worst), 0.6 * _LEAST_LOSS)  # upside down: better is higher
    ax.yaxis.set_major_locator(FixedLocator([*(1 - level for level in _LEVELS), _LEAST_LOSS]))
    ax.yaxis.set_major_formatter(FuncFormatter(_level_name))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: _time(ms)))
    ax.xaxis.set_minor_locator(NullLocator())
    low, high = min(fixed[0]), max(fixed[0])
    ax.set_xlim(low / 3.5, high * 3)
    at = (fixed[0][-3:][0], fixed[1][-3:][0])  # where no other goal is likely to be
    _name(ax, "any fixed slack", at, (-8, 3), "#777777")
    _level(ax, 1 - advisor.target, f"target {100 * advisor.target:.4g} %")
    _dress(ax, "Recall of the whole recording, by what it costs", "recall")
    ax.set_xlabel("average latency of a result", fontsize=9, color=_TEXT)


# ---- over time


def _draw_time(above: Axes, below: Axes, advisor: Advisor) -> None:
    ours = advisor.result(advisor.recall_goal(advisor.target))
    quantile = advisor.result(InputQuantile(advisor.target))
    per_ms = to_units("1 ms", advisor.unit)
    lines = (
        (quantile, _QUANTILE, f"InputQuantile({advisor.target:g})"),
        (ours, _OURS, f"Recall({advisor.target:g})"),
    )
    start, end = (ours.ts[0], ours.ts[-1]) if len(ours.ts) else (0, 0)
    is_short = end - start < _SHORT_MS * per_ms
    for result, colour, name in lines:
        x = (result.ts - start) / per_ms / (1_000 if is_short else 60_000)
        above.plot(x, 100 * result.recalls, color=colour, linewidth=1.4, label=name)
        k = np.maximum(result.slacks / per_ms, 1.0)
        below.step(x, k, where="post", color=colour, linewidth=1.4)
    best = advisor.best_slack(advisor.target) / per_ms
    below.axhline(
        max(best, 1.0), color=_ENDS, linewidth=1.0, linestyle="--",
        label=f"best fixed slack, in hindsight: {_time(best)}",
    )  # fmt: skip
    above.axhline(
        100 * advisor.target, color=_ENDS, linewidth=1.0, linestyle=":", label="target", zorder=3
    )
    _dress(above, f"Recall over the last {advisor.over}", "recall [%]")
    _dress(below, "K, how long the join waits", "")
    above.tick_params(labelbottom=False)
    lowest = 100 * min([advisor.target, *(o.recalls.min() for o, _, _ in lines)])
    above.set_ylim(lowest - 0.04 * (100 - lowest), 100 + 0.22 * (100 - lowest))
    above.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}" if y <= 100 else ""))
    _legend(above)
    below.set_yscale("log")
    top = max(float(o.slacks.max()) / per_ms for o, _, _ in lines)
    below.set_ylim(None, 2.2 * max(top, best, 1.0))
    _legend(below)
    below.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
    below.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: _time(ms)))
    below.yaxis.set_minor_locator(NullLocator())
    below.set_xlabel(f"event time [{'s' if is_short else 'min'}]", fontsize=9, color=_TEXT)


# ---- parts


def _legend(ax: Axes) -> None:
    """The names of the lines, in a row above them."""
    ax.legend(
        fontsize=8, frameon=False, loc="upper right", ncols=3, labelcolor="linecolor", borderpad=0,
        handlelength=1.4, columnspacing=1.2,
    )  # fmt: skip


def _dress(ax: Axes, title: str, y_label: str) -> None:
    ax.set_title(title, fontsize=10, color=_TEXT, loc="left")
    ax.set_ylabel(y_label, fontsize=9, color=_TEXT)
    ax.tick_params(labelsize=8, colors=_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#999999")
    ax.grid(color=_GRID, linewidth=0.7)
    ax.set_axisbelow(True)


def _level(ax: Axes, y: float, text: str) -> None:
    ax.axhline(y, color="#999999", linewidth=0.9, linestyle=":", zorder=1)
    _name(ax, text, (0.995, y), (0, 3), "#777777", True, "right")


def _name(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    off: tuple[float, float],
    colour: str,
    across: bool = False,
    align: str | None = None,
) -> None:
    """A name beside what it names; `across`: x is a share of the width."""
    align = align or ("right" if off[0] < 0 else "left")
    ax.annotate(
        text, at, xycoords=("axes fraction", "data") if across else "data", xytext=off,
        textcoords="offset points", fontsize=8, color=colour, ha=align, zorder=5,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )  # fmt: skip


def _level_name(loss: float, _: object) -> str:
    best = "≥ " if loss <= _LEAST_LOSS else ""
    return f"{best}{100 * (1 - loss):.6g} %"


def _time(ms: float) -> str:
    if ms >= 60_000:
        return f"{ms / 60_000:g} min"
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"
