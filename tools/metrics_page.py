"""Write docs/metrics.md, the list of all metrics, from the table in `slackwater.metrics.schema`.

Run it with ``.venv/bin/python tools/metrics_page.py``; a test compares the page with the table.
"""

from __future__ import annotations

from pathlib import Path

from slackwater.metrics.counters import STATES
from slackwater.metrics.progress import REASON_KEYS
from slackwater.metrics.schema import METRICS, Each, Metric, Scope, Share

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

_BEGIN = """\
# Metrics

<!-- Written by tools/metrics_page.py from src/slackwater/metrics/schema.py: change the table. -->

All metrics of a running query. They are in `query.lastProgress.observedMetrics["slackwater"]`, in
the metrics log and in the lines of a replay ([running.md](running.md#metrics-of-a-query) shows how
to get them), and most of them in Prometheus.

```text
{"event": "batch", "batch": 7, …, "metrics": {
  "arrivals": …, "produced": …, "streams": {"a": {"arrivals": …}}, "charts": {…}, "commands": […]}}
```

Counters count since the first start of the query, across restarts. Times are in the query's unit,
in Prometheus in seconds. The column *shards* shows how the values of several shards become one. The
column *Prometheus* has the name without its beginning `slackwater_`; all have the label `query`,
and names that end in `_total` are counters. `commands` has the commands of the micro-batch, such as
`[{"recall": 0.99}]`."""

_CHAPTERS: dict[Scope, tuple[str, str]] = {
    "stream": (
        "Of each stream",
        """\
In `metrics.streams`, in Prometheus with the label `stream`. `metrics` itself has the sum over all
streams, except of `local_time` and `state`.

- The keys of `rejected`, in Prometheus the label `reason`: {reasons}.
- `state` is one of {states}. In Prometheus it is a label: 1 for the
  state of the stream, 0 for the others.""",
    ),
    "query": ("Of the query", "In `metrics`."),
    "line": ("Of the micro-batch", "In the line itself."),
    "charts": (
        "For charts",
        """\
In `metrics.charts`: a snapshot at the end of the micro-batch, not counters; null before the first
row. In `observedMetrics` it is still in parts, `chart_parts`, one JSON text for each shard; the log
has them merged. A line for two streams has two to five kilobytes, and never more than eight.""",
    ),
}

_END = """\
`delays` has all delays of the recent past, in steps of `granularity` (beyond 4,096 steps within
1/32), where the goal learns from delays; for other goals it is a sample, one event in 127 of the
last 130,000 to 260,000 rows, scaled up. Its histogram in Prometheus is of *recent* delays: do not
take a `rate` of it.

There is a curve for the goals `recall` (models `lateness`, `measured` and `eqsel`), `latency`,
`input_quantile` and `drop_ratio` of joins. In the merged curve, shards are weighted by their number
of results; its K is the largest one.
"""

_FOLDS = {"known": "largest known", "norm": "root of the sum of squares"}
_UNITS = {"reasons": "rows", "times": "time", "drawing": "list", "flag": "true or false"}


def page() -> str:
    """The whole page."""
    parts = [_BEGIN]
    for scope, (title, words) in _CHAPTERS.items():
        intro = words.format(reasons=_listed(REASON_KEYS), states=_listed(STATES))
        parts += [f"## {title}", intro, table(scope)]
    return "\n\n".join([*parts, _END])


def table(scope: Scope) -> str:
    """The metrics of a scope as a table; without the column *shards* where nothing is folded."""
    metrics = [metric for metric in METRICS if metric.scope == scope]
    rows: list[tuple[str, ...]] = [
        ("metric", "unit", "shards", "Prometheus", "meaning"),
        ("---",) * 5,
    ]
    rows += [_cells(metric) for metric in metrics]
    if all(metric.fold == "once" for metric in metrics):
        rows = [(*row[:2], *row[3:]) for row in rows]
    return "\n".join("| " + " | ".join(row).replace("|  |", "| |") + " |" for row in rows)


def _cells(metric: Metric) -> tuple[str, ...]:
    prometheus = "" if metric.prometheus is None else f"`{metric.prometheus}`"
    unit = _UNITS.get(metric.unit, metric.unit)
    return f"`{metric.name}`", unit, _fold(metric), prometheus, metric.help


def _fold(metric: Metric) -> str:
    if isinstance(metric.fold, Share):
        less = f" - {metric.fold.less}" if metric.fold.less else ""
        part = f"({metric.fold.part}{less})" if less else metric.fold.part
        return f"`{part} / ({' + '.join(metric.fold.of)})`"
    if isinstance(metric.fold, Each):
        return f"`{metric.fold.name}` of each"
    return _FOLDS.get(metric.fold, metric.fold)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
