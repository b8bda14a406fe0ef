"""The experiment `concepts`: small streams, one figure and a few numbers for each idea."""

from __future__ import annotations

import numpy as np

from slackwater.kernels.records import F64
from slackwater_lab.concepts import drawings as draw
from slackwater_lab.concepts import measured as concepts
from slackwater_lab.experiment import Column, Experiment, Findings, Setting, Table

_BUDGETS = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)


def _concepts(setting: Setting) -> Findings:
    """All figures; nothing of this needs Spark."""
    seed, quick = setting.seed, setting.quick
    stream = concepts.one_stream(seed)
    outs = [concepts.through_slack(stream, slack) for slack in (0.0, 1.0, 3.0)]
    courses, change = concepts.over_time(seed, 4 if quick else 20)
    prices = concepts.curve(seed, 1 if quick else 6)
    fates = list(concepts.fates(seed, 2_000 if quick else 20_000))
    budgets = setting.some(_BUDGETS)
    shares = concepts.shedding(seed, 24 if quick else 60, budgets)
    answers = concepts.early_answers(seed, 20 if quick else 300)
    found = Findings(
        [
            Table(
                "K-slack", ("K",), (Column("late", "events"), Column("average wait", "ms")),
                [((f"{o.slack:g} s",), [int(o.is_late.sum()), 1000 * o.wait]) for o in outs],
            ),
            Table(
                "Recall over a minute, delays longer from half time on", ("goal",),
                (Column("Φ(0.95)", "share"), Column("lowest", "share"), Column("average K", "ms")),
                [((c.name,), [c.phi, float(c.recall.min()), c.average_slack]) for c in courses],
            ),
            Table(
                "Recall and latency", ("goal", ""),
                (Column("recall", "share"), Column("average latency", "ms")),
                [
                    ((name, str(n)), [price.recall, price.latency])
                    for name, several in prices.items()
                    for n, price in enumerate(several, 1)
                ],
            ),
            Table(
                "Fates", ("K",),
                tuple(Column(name, "share") for name in (
                    "in order", "late, kept", "late, dropped", "results in time", "late", "never",
                )),
                [((f.slack,), [*f.events, *f.results]) for f in fates],
            ),
            Table(
                "Share of the results by comparisons per second", ("budget",),
                tuple(Column(name, "share") for name in shares),
                [
                    ((f"{budget:,}",), [found[n] for found in shares.values()])
                    for n, budget in enumerate(budgets)
                ],
            ),
            Table(
                "Early answers", ("what",),
                (Column("mean error", "share"), Column("inside", "share")),
                [
                    (("had arrived",), [_error(answers.observed, answers.true), None]),
                    (("compensated",), [_error(answers.emitted, answers.true), answers.inside]),
                ],
            ),
        ],
        [
            "The figures of docs/concepts.md, and the numbers behind them. The streams are small "
            "and synthetic; the other experiments measure how well each part works."
        ],
    )  # fmt: skip
    found.figures = {
        "-disorder": draw.disorder(stream),
        "-slack": draw.slack(outs),
        "-synchronizer": draw.synchronizer(concepts.two_streams()),
        "-windows": draw.windows(concepts.small_join()),
        "-recall": draw.recall(courses, change),
        "-curve": draw.curve(prices),
        "-lateness": draw.lateness(fates),
        "-shedding": draw.shedding(budgets, shares),
        "-compensation": draw.compensation(answers),
    }
    return found


def _error(found: F64, true: F64) -> float:
    return float(np.mean(np.abs(found / true - 1)))


EXPERIMENTS = (Experiment("concepts", "ours", "figures for the concepts", _concepts),)
