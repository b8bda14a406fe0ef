"""Figures that explain themselves: few colours, units on the axes, names beside the lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

Curve = tuple[Sequence[float], Sequence[float]]  # x, y

_COLOURS = {
    "measured": "#1f5fbf",
    "noneqsel": "#d1711f",
    "eqsel": "#2e8b57",
    "late-degree": "#7b4fa3",
    "pd": "#c0392b",
    "InputQuantile": "#b5a000",
    "MaxSlack": "#6b6b6b",
    "NoSlack": "#9a9a9a",
    "Baseline1": "#9a9a9a",
    "Baseline2": "#6b6b6b",
    "Baseline3": "#bfa36b",
    "K*": "#222222",
    "ours": "#1f5fbf",
    "Kim": "#d1711f",
    "max-delay": "#6b6b6b",
    "(m1 + m2) / 2": "#9a9a9a",
}
_OTHERS = ("#1f5fbf", "#d1711f", "#2e8b57", "#7b4fa3", "#c0392b", "#6b6b6b")
_GAP = 0.075  # between two names, as a share of the height
_TEXT = "#333333"


@dataclass(frozen=True)
class Panel:
    """One diagram."""

    title: str
    y_label: str
    curves: Mapping[str, Curve]
    log: bool = False
    level: tuple[float, str] | None = None  # a horizontal line, and what it is
    y_range: tuple[float | None, float | None] = (None, None)
    marks: dict[float, str] = field(default_factory=dict)  # vertical lines by x
    dots: bool = False


def panels(
    title: str, x_label: str, grid: Sequence[Sequence[Panel]], ticks: Sequence[str] | None = None
) -> Figure:
    """Diagrams side by side and one below the other, with a common x axis."""
    rows, columns = len(grid), max(map(len, grid))
    figure = Figure(figsize=(2.2 + 3.4 * columns, 0.9 + 2.5 * rows), layout="constrained", dpi=150)
    figure.suptitle(title, fontsize=12, color=_TEXT, x=0.01, ha="left")
    axes = figure.subplots(rows, columns, squeeze=False)
    for i, row in enumerate(grid):
        for ax in axes[i][len(row) :]:
            ax.set_visible(False)
        for j, panel in enumerate(row):
            ax = axes[i][j]
            _draw(ax, panel, j == len(row) - 1)
            if i == rows - 1:
                ax.set_xlabel(x_label, fontsize=9, color=_TEXT)
            if ticks is not None:
                ax.set_xticks(range(len(ticks)), ticks)
                ax.set_xlim(-0.25, len(ticks) - 0.75)
    return figure


def wrapped(row: list[Panel], most: int = 3) -> list[list[Panel]]:
    """Many diagrams in rows of a few."""
    return [row[i : i + most] for i in range(0, len(row), most)]


def _colours(names: Collection[str]) -> dict[str, str]:
    """Those with a colour of their own have it; the others take turns with what is left."""
    own = {name: _COLOURS[name] for name in names if name in _COLOURS}
    left = cycle([colour for colour in _OTHERS if colour not in own.values()])
    return {name: own[name] if name in own else next(left) for name in names}


def _draw(ax: Axes, panel: Panel, is_last: bool) -> None:
    colours = _colours(panel.curves.keys())
    for name, (x, y) in panel.curves.items():
        colour = colours[name]
        style = "--" if name in ("K*", "MaxSlack", "Baseline2") else "-"
        marker = "o" if len(x) <= 12 and not panel.dots else None
        width = 0 if panel.dots else 1.6
        ax.plot(
            x, y, style, color=colour, label=name, linewidth=width,
            marker="." if panel.dots else marker, markersize=1.5 if panel.dots else 3.5,
        )  # fmt: skip
    if panel.log:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
        ax.yaxis.set_major_formatter(
            FuncFormatter(lambda y, _: f"{y:,.0f}" if y >= 1 else f"{y:g}")
        )
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(*panel.y_range)
    _dress(ax, panel)
    if panel.level is not None:
        ax.axhline(panel.level[0], color="#999999", linewidth=0.9, linestyle=":")
        ax.annotate(
            panel.level[1], (0.01, panel.level[0]), xycoords=("axes fraction", "data"),
            xytext=(0, 2), textcoords="offset points", fontsize=7.5, color="#777777",
        )  # fmt: skip
    for x_mark, text in panel.marks.items():
        ax.axvline(x_mark, color="#999999", linewidth=0.9, linestyle=":")
        ax.annotate(
            text, (x_mark, 0.02), xycoords=("data", "axes fraction"),
            xytext=(3, 0), textcoords="offset points", fontsize=7.5, color="#777777",
        )  # fmt: skip
    if is_last and len(panel.curves) > 1:
        _name_lines(ax)


def _dress(ax: Axes, panel: Panel) -> None:
    ax.set_title(panel.title, fontsize=10, color=_TEXT, loc="left")
    ax.set_ylabel(panel.y_label, fontsize=9, color=_TEXT)
    ax.tick_params(labelsize=8, colors=_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)


def _name_lines(ax: Axes) -> None:
    """Write each name beside the end of its line, and none over another."""
    to_share = ax.transAxes.inverted()
    ends = []
    for line in ax.get_lines():
        name, data = str(line.get_label()), np.asarray(line.get_xydata(), float)
        data = data[np.isfinite(data).all(axis=1)]
        if not name.startswith("_") and len(data):
            _, y = to_share.transform(ax.transData.transform(data[-1]))
            ends.append((float(y), name, line.get_color()))
    ends.sort(key=lambda end: end[0])
    least = 0.0
    places = []
    for y, _, _ in ends:
        least = max(y, least)
        places.append(least)
        least += _GAP
    too_high = max(0.0, places[-1] - 1.0) if places else 0.0
    for place, (_, name, colour) in zip(places, ends, strict=True):
        ax.annotate(
            name, (1.02, place - too_high), xycoords="axes fraction", fontsize=8.5,
            color=colour, va="center", annotation_clip=False,
        )  # fmt: skip
