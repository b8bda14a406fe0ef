"""The drawings of docs/concepts.md: one idea each, names beside what they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, NullFormatter

from slackwater_lab.concepts.measured import (
    TARGET,
    Answers,
    Arriving,
    Course,
    Fates,
    Lead,
    Pairs,
    Price,
    Sorted,
)

_OURS, _LATE, _FIXED, _OTHER = "#1f5fbf", "#c0392b", "#8c8c8c", "#d1711f"
_TEXT, _PALE = "#333333", "#cfdcf0"


def disorder(stream: Arriving) -> Figure:
    """Events by arrival and event time, and the delay of one."""
    figure, (ax,) = _blank(1, 3.3)
    behind = stream.delay > 0
    ax.step(stream.arrival, stream.local, where="post", color=_FIXED, linewidth=1.2)
    ax.plot(stream.arrival[~behind], stream.ts[~behind], "o", color=_OURS, markersize=4)
    ax.plot(stream.arrival[behind], stream.ts[behind], "o", color=_LATE, markersize=4)
    worst = int(np.argmax(stream.delay))
    x, low, high = stream.arrival[worst], stream.ts[worst], stream.local[worst]
    ax.annotate(
        "", (x, low + 0.12), (x, high), arrowprops={"arrowstyle": "<->", "color": _TEXT, "lw": 1.1}
    )
    _label(ax, f"its delay: {high - low:.1f} s", (x, (low + high) / 2), (7, -3), _TEXT)
    last = len(stream.ts) - 1
    newest = stream.arrival[last], stream.local[last]
    _label(ax, "local time: the largest\nevent time so far", newest, (10, -10), "#6b6b6b")
    _label(ax, "behind its own stream", (stream.arrival[worst], low), (9, -4), _LATE)
    _dress(ax, "One stream: when events came, and when they happened", "event time [s]")
    ax.set_xlabel("arrival [s]", fontsize=9, color=_TEXT)
    ax.set_xlim(None, stream.arrival[last] + 3.6)
    return figure


def slack(outs: Sequence[Sorted]) -> Figure:
    """What K-slack lets out, for several K."""
    figure, axes = _blank(len(outs), 3.1)
    for ax, out in zip(axes, outs, strict=True):
        late = out.is_late
        place = np.arange(len(out.ts))
        ax.plot(place, out.ts, color="#dddddd", linewidth=1.0, zorder=1)
        ax.plot(place[~late], out.ts[~late], "o", color=_OURS, markersize=3, zorder=2)
        ax.plot(place[late], out.ts[late], "o", color=_LATE, markersize=4.5, zorder=3)
        title = f"K = {out.slack:g} s: {int(late.sum())} late, {out.wait:.1f} s of waiting"
        _dress(ax, title, "event time [s]" if ax is axes[0] else "")
        ax.set_xlabel("in the order in which they leave", fontsize=9, color=_TEXT)
    return figure


def synchronizer(lead: Lead) -> Figure:
    """Local times of two streams, and what waits for the slower one."""
    figure, (left, right) = _blank(2, 3.1)
    first, second = lead.local
    left.fill_between(lead.arrival, second, first, color=_PALE)
    left.plot(lead.arrival, first, color=_OURS, linewidth=1.5)
    left.plot(lead.arrival, second, color=_OTHER, linewidth=1.5)
    middle = len(first) // 2
    at = float(lead.arrival[middle])
    _label(left, "a", (at, first[middle]), (-14, 8), _OURS)
    _label(left, "b, slow for a while", (at, second[middle]), (8, -14), _OTHER)
    _label(left, "lead", (at - 2, (first[middle] + second[middle]) / 2 - 1.8), (0, -3), "#5577aa")
    _dress(left, "Local times", "event time [s]")
    right.plot(lead.arrival, lead.waiting, color=_OURS, linewidth=1.5)
    _dress(right, "Events of a in the Synchronizer", "events")
    for ax in (left, right):
        ax.set_xlabel("arrival [s]", fontsize=9, color=_TEXT)
    return figure


def windows(pairs: Pairs) -> Figure:
    """Events of two streams on two lines, and results between them."""
    figure, (ax,) = _blank(1, 2.7)
    for found, colour, style in ((pairs.in_time, _OURS, "-"), (pairs.late, _LATE, "--")):
        for a, b in found:
            ax.plot([a, b], [1, 0], style, color=colour, linewidth=1.4, zorder=1)
    for times, y in ((pairs.a, 1), (pairs.b, 0)):
        ax.plot(times, [y] * len(times), "o", color=_TEXT, markersize=6, zorder=2)
    ax.plot([pairs.late_event], [1], "o", color=_LATE, markersize=7, zorder=3)
    text = "comes 4 s late: its results are lost, or emitted late"
    _label(ax, text, (pairs.late_event, 1), (0, 9), _LATE)
    _label(ax, "results in time", (pairs.in_time[2][0], 1), (0, 9), _OURS, "center")
    middle = float(pairs.b[-1])
    ax.plot([middle - pairs.window, middle], [-0.28] * 2, color=_FIXED, linewidth=5, alpha=0.5)
    text = f"the window at this time: {pairs.window:g} s back"
    _label(ax, text, (middle - pairs.window, -0.28), (-8, -3), "#6b6b6b", "right")
    _dress(ax, f"A join of a and b, windows of {pairs.window:g} s, K = 0.5 s", "")
    ax.set_yticks([0, 1], ["b", "a"])
    ax.set_ylim(-0.55, 1.35)
    ax.set_xlabel("event time [s]", fontsize=9, color=_TEXT)
    return figure


def recall(courses: Sequence[Course], change: float) -> Figure:
    """Recall and K over time, when delays change."""
    figure = Figure(figsize=(8.4, 4.8), layout="constrained", dpi=130)
    above, below = figure.subplots(2, 1, sharex=True)
    for course, colour in zip(courses, (_LATE, _OURS), strict=True):
        minutes = course.time / 60
        above.plot(minutes, 100 * course.recall, color=colour, linewidth=1.6)
        below.step(
            course.slack_time / 60, np.maximum(course.slack, 1) / 1000, where="post",
            color=colour, linewidth=1.6,
        )  # fmt: skip
        text = f"{course.name}: reached in {100 * course.phi:.0f} % of the minutes"
        high = colour == _OURS
        _label(
            above, text, (minutes[-1], 100 * float(np.median(course.recall[-300:]))),
            (-4, 9 if high else 16), colour, "right",
        )  # fmt: skip
    above.axhline(100 * TARGET, color=_TEXT, linewidth=1.0, linestyle=":")
    _label(
        above,
        f"target: {100 * TARGET:g} %",
        (courses[0].time[0] / 60, 100 * TARGET),
        (0, -11),
        _TEXT,
    )
    for ax in (above, below):
        ax.axvline(change / 60, color="#999999", linewidth=0.9, linestyle=":")
    _label(
        below,
        "from here on delays are longer",
        (change / 60, below.get_ylim()[1]),
        (-5, -10),
        "#6b6b6b",
        "right",
    )
    _dress(above, "Results that came in time, over the last minute", "recall [%]")
    _dress(below, "How long events are held back", "K [s]")
    below.set_xlabel("event time [min]", fontsize=9, color=_TEXT)
    above.set_ylim(None, 100.5)
    return figure


def curve(prices: Mapping[str, Sequence[Price]]) -> Figure:
    """Recall by latency."""
    figure, (ax,) = _blank(1, 3.5)
    looks = {"fixed slack": (_FIXED, "-o"), "Recall": (_OURS, "o"), "InputQuantile": (_LATE, "s")}
    targets = (0.9, 0.95, 0.99)
    for name, several in prices.items():
        colour, style = looks[name]
        x = [max(price.latency, 1) for price in several]
        y = [100 * price.recall for price in several]
        is_line = name == "fixed slack"
        size = 3.0 if is_line else 7.0
        ax.plot(x, y, style, color=colour, linewidth=1.3, markersize=size, zorder=2 + (not is_line))
        if is_line:
            _label(ax, "any fixed slack, from 0 to 5 s", (x[10], y[10]), (-20, -16), "#6b6b6b")
            continue
        for at_x, at_y, target in zip(x, y, targets, strict=True):
            off = (-9, 5) if name == "Recall" else (9, -10)
            align = "right" if name == "Recall" else "left"
            _label(ax, f"{name}({target:g})", (at_x, at_y), off, colour, align)
    ax.set_xscale("log")
    ax.set_xlim(2.5, 9000)
    ax.set_ylim(87.5, 101.2)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms / 1000:g} s"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    _dress(ax, "What recall costs: three streams, six minutes", "recall [%]")
    ax.set_xlabel("average latency of a result", fontsize=9, color=_TEXT)
    return figure


def lateness(several: Sequence[Fates]) -> Figure:
    """What became of events and of results, under several slacks."""
    figure, (left, right) = _blank(2, 3.0)
    names = [f"K = {fates.slack}" for fates in several]
    parts = (
        (left, "Events", [f.events for f in several], ("in order", "late, kept", "late, dropped")),
        (right, "True results", [f.results for f in several], ("in time", "emitted late", "never")),
    )
    for ax, title, shares, labels in parts:
        start = np.zeros(len(names))
        for part, colour, label in zip(
            zip(*shares, strict=True), (_OURS, "#e59866", _LATE), labels, strict=True
        ):
            ax.barh(names, 100 * np.array(part), left=start, color=colour, height=0.62, label=label)
            start += 100 * np.array(part)
        ax.invert_yaxis()
        _dress(ax, title, "")
        ax.set_xlabel("share [%]", fontsize=9, color=_TEXT)
        ax.legend(
            fontsize=8, frameon=False, ncols=3, loc="upper left", bbox_to_anchor=(-0.02, -0.2),
            handlelength=1.0, columnspacing=1.0, labelcolor=_TEXT,
        )  # fmt: skip
    return figure


def shedding(budgets: Sequence[int], shares: Mapping[str, Sequence[float]]) -> Figure:
    """Results by what the CPU can do."""
    figure, (ax,) = _blank(1, 3.2)
    places = {
        "harvest": (-8, 8, "right"),
        "random drop": (10, -3, "left"),
        "tail drop": (10, -14, "left"),
    }
    for (name, found), colour in zip(shares.items(), (_OURS, _OTHER, _FIXED), strict=True):
        style = "--" if name == "tail drop" else "-"
        x = np.array(budgets) / 1000
        ax.plot(
            x, 100 * np.array(found), style, marker="o", color=colour, markersize=3.5, linewidth=1.6
        )
        right, up, align = places[name]
        middle = len(x) // 2
        _label(ax, name, (x[middle], 100 * found[middle]), (right, up), colour, align)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:,g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    _dress(ax, "Results that are left when the CPU is short", "share of all results [%]")
    ax.set_xlabel("what the CPU can do [thousand comparisons/s]", fontsize=9, color=_TEXT)
    return figure


def compensation(answers: Answers, shown: int = 60) -> Figure:
    """Draw windows that are emitted before they are complete."""
    figure, (ax,) = _blank(1, 3.3)
    part = slice(0, shown)
    x = answers.end[part]
    ax.fill_between(x, answers.low[part], answers.high[part], color=_PALE, linewidth=0)
    ax.plot(x, answers.observed[part], color=_LATE, linewidth=1.4)
    ax.plot(x, answers.emitted[part], color=_OURS, linewidth=1.6)
    ax.plot(x, answers.true[part], "o", color=_TEXT, markersize=2.8)
    ends = (
        ("emitted, compensated", answers.emitted, _OURS, 10),
        ("true, known later", answers.true, _TEXT, -1),
        ("had arrived", answers.observed, _LATE, -3),
    )
    for name, values, colour, up in ends:
        _label(ax, name, (x[-1], values[part][-1]), (8, up), colour)
    _label(ax, "95 % interval", (x[-1], answers.low[part][-1]), (8, -12), "#5577aa")
    _dress(ax, "Results in each window, emitted 50 ms after its end", "results")
    ax.set_xlabel("end of the window [s]", fontsize=9, color=_TEXT)
    ax.set_xlim(None, x[-1] + 0.22 * (x[-1] - x[0]))
    return figure


# ---- parts


def _blank(columns: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(8.4, height), layout="constrained", dpi=130)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _dress(ax: Axes, title: str, y_label: str) -> None:
    ax.set_title(title, fontsize=10, color=_TEXT, loc="left")
    ax.set_ylabel(y_label, fontsize=9, color=_TEXT)
    ax.tick_params(labelsize=8, colors=_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)


def _label(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    off: tuple[float, float],
    colour: str,
    align: str = "left",
) -> None:
    """A name beside what it names."""
    ax.annotate(
        text, (float(at[0]), float(at[1])), xytext=off, textcoords="offset points", fontsize=8.5,
        color=colour, ha=align, annotation_clip=False,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )  # fmt: skip
