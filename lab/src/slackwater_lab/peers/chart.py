"""The figures of `slackwater bench peers` as one chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slackwater.jobs.measurement import Measurement, amount

_OURS, _OTHER, _AT_REST = "#1f5fbf", "#9aa7b5", "#dcdcdc"
_TEXT, _SOFT = "#333333", "#777777"
_NAMES = {
    "slackwater": "Slackwater on Spark",
    "slackwater, late results too": "Slackwater, late results too",
    "spark native": "Spark's own join",
    "flink": "Flink SQL interval join", "pathway": "Pathway interval join",
    "duckdb": "DuckDB, at rest", "polars": "Polars, at rest",
}  # fmt: skip


def draw(lines: Sequence[Measurement]) -> Figure:
    """Rates beside each other, and below them what each finds when rows are later than it waits."""
    values = {line.name: line.value for line in lines}
    figure = Figure(figsize=(9.6, 5.6), layout="constrained", dpi=150)
    figure.suptitle(
        "The same rows, the same delay, the same machine", fontsize=13, color=_TEXT, x=0.01,
        ha="left",
    )  # fmt: skip
    axes = figure.subplot_mosaic([["two-way", "three-way"], ["recall", "recall"]])
    titles = {
        "two-way": "Two streams, all columns: rows/s, log scale",
        "three-way": "Three streams, counted: rows/s, log scale",
    }
    for name, title in titles.items():
        rates = {n: values[f"{name}: {n}"] for n in _NAMES if f"{name}: {n}" in values}
        _bars(axes[name], title, rates)
        axes[name].set_xscale("log")
        axes[name].set_xlim(min(rates.values(), default=1) / 3, 12 * max(rates.values(), default=1))
    if {name for name in _NAMES if f"two-way: {name}" in values}:  # the same names, once
        axes["three-way"].tick_params(labelleft=False)
    _recall(axes["recall"], values)
    return figure


def _bars(
    ax: Axes, title: str, bars: dict[str, float], text: Callable[[float], str] = amount
) -> None:
    colours = [_colour(name) for name in bars]
    places = range(len(bars))
    ax.barh(places, list(bars.values()), color=colours, height=0.68)
    for place, (name, value) in enumerate(bars.items()):
        ax.annotate(
            text(value), (value, place), xytext=(4, 0), textcoords="offset points", va="center",
            fontsize=8.5, color=_TEXT, fontweight="bold" if _is_ours(name) else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},  # over the dotted line
        )  # fmt: skip
    ax.set_yticks(places, [_NAMES.get(name, name) for name in bars])
    ax.invert_yaxis()
    ax.set_title(title, fontsize=10, color=_TEXT, loc="left")
    ax.tick_params(labelsize=8.5, colors=_TEXT, length=0)
    ax.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _recall(ax: Axes, values: dict[str, float]) -> None:
    """In linear scale; the last bar asked for a recall, not for a delay."""
    delay = values.get("recall: delay that is set", 0.0)
    shares = {n: values[f"recall: {n}"] for n in _NAMES if f"recall: {n}" in values}
    asked = values.get("recall: slackwater, 0.95 asked for")
    if asked is not None:
        chosen = values["recall: mean delay it chose"]
        name = f"Slackwater, recall 95% asked for\n(it chose {chosen / 1000:.1f} s on average)"
        shares[name] = asked
    title = f"Results found, a tenth of the rows later than the delay of {delay / 1000:.1f} s"
    _bars(ax, title, shares, "{:.1%}".format)
    ax.set_xlim(0, 1.08)
    if asked is not None:
        ax.axvline(0.95, color=_SOFT, linewidth=0.9, linestyle=":")


def _colour(name: str) -> str:
    if _is_ours(name):
        return _OURS
    return _AT_REST if name in ("duckdb", "polars") else _OTHER


def _is_ours(name: str) -> bool:
    return name.lower().startswith("slackwater")
