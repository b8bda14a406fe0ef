"""The experiments of PECJ: early results of window joins, compared with what is attainable.

The paper's figures rest on a single window each. Here every distinct window of the real data
counts, with 50 draws of the delays, and a thousand of the made data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.papers.pecj import change, latency, memory, prior, single, sweeps
from slackwater_lab.papers.pecj.data import LENGTH, MS, Dataset
from slackwater_lab.papers.pecj.intervals import coverage, zeros
from slackwater_lab.papers.pecj.oracles import NAMES as ORACLES
from slackwater_lab.papers.pecj.promises import Promises
from slackwater_lab.papers.pecj.runs import CONFIDENCES, ESTIMATORS, OURS, Disorder, k_slack
from slackwater_lab.papers.pecj.settings import COUNT, QUERIES, Judged, Lab, Query, Rows
from slackwater_lab.plots import Panel, panels

_TIMES = 1.25  # the better oracle: so much is promised
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_PROMISED_OF_MICRO = {  # with 100 keys, in percent, by (Δ, ω) in ms
    (5, 7): 3.3, (5, 10): 1.9, (5, 12): 1.2, (1000, 200): 10.0, (1000, 300): 7.0, (1000, 600): 4.0,
}  # fmt: skip
_SLACK_WINDOWS = 200  # of Micro, for KSJ


def _pecj(setting: Setting) -> Findings:
    lab = Lab.of(setting)
    judged = _judge(lab)
    promises = Promises()
    tables = [_errors(lab, query, judged, promises) for query in QUERIES]
    tables += [*coverage(judged, promises), *zeros(judged), _distribution(judged)]
    figures = {"-errors": _distribution_figure(judged)}

    in_order, worst = sweeps.in_order(lab)
    promises.add("error on in-order data, in percent", "≤ 0.05", worst, "count", worst - 0.05)
    by_deadline, grid = sweeps.deadlines(lab)
    figures["-deadlines"] = panels("Error by deadline (Fig. 11)", "ω [ms]", grid)
    tables += [in_order, sweeps.keys(lab), sweeps.rates(lab), *by_deadline]
    tables += [sweeps.oscillation(lab), _integrated(lab, judged)]

    changes, grid = change.changes(lab, promises)
    figures["-change"] = panels("After the disorder has changed", "windows after the change", grid)
    tables += [*changes, prior.prior_gain([*lab.real, lab.micro(100)], lab.brief)]
    words = _words(lab)
    if (stock := _named(lab.real, "Stock")) is not None:
        draws, most = (5, 20) if lab.quick else (100, 2000)
        table, conclusion = single.single_window(stock.windows[0], draws, most, lab.published)
        tables += [table, single.all_windows(stock, lab.brief, ORACLES)]
        tables.append(memory.memorised(lab.real, setting.some((30, 210, 1000)), setting.seeds(5)))
        words.append(conclusion)
    return Findings([promises.table(), *tables], words, figures)


def _named(datasets: Sequence[Dataset], name: str) -> Dataset | None:
    return next((data for data in datasets if data.name == name), None)


def _judge(lab: Lab) -> list[Judged]:
    """All datasets, with the disorder of all queries."""
    return [
        lab.judge(lab.full, data, Disorder(most * MS, omega * MS), CONFIDENCES)
        for data in lab.datasets()
        for most, deadlines in {query.most: query.deadlines for query in QUERIES}.items()
        for omega in lab.setting.some(deadlines)
    ]


# ---- errors


def _errors(lab: Lab, query: Query, judged: Sequence[Judged], promises: Promises) -> Table:
    a = query.aggregate
    rows: Rows = []
    for found in query.of(judged):
        where = f"{query.name}, {found.data.name}, ω = {found.omega}"
        ours, most = found.error(OURS, a), _allowed(found)
        times, by_aema = found.by_oracle(a) or 0.0, found.error(OURS, a) / found.error("AEMA", a)
        promises.add("error by the better oracle", f"≤ {_TIMES}", times, where, times - _TIMES)
        if most is not None:
            promises.add(
                "error with 100 keys, in percent", f"≤ {most}", ours, where, ours / most - 1.0
            )
        promises.add("error by that of AEMA", "< 1", by_aema, where, by_aema - 1.0)
        low, high = (100 * end for end in found.main.error_range(OURS, a, lab.seed))
        rows.append(((found.data.name, found.omega), [
            *found.errors(["WMJ"], a), *_k_slack(lab, found, a), *found.errors(ESTIMATORS, a),
            min(most or np.inf, _TIMES * found.best_oracle(a)), f"{low:.3g} to {high:.3g} %",
            100 * found.main.summed_error(OURS, a), *found.errors(ORACLES, a), times,
            _theirs(lab, query, found),
        ]))  # fmt: skip
    limit = None if lab.quick else "at most"
    columns = (
        Column("WMJ", "%"), Column("KSJ", "%"), Column("KSJ, K = Δ/2", "%"),
        *(Column(n, "%", ceiling=limit if n == OURS else None) for n in ESTIMATORS),
        Column("at most", "%"), Column("ours, 95 % range"), Column("ours, Σ error by Σ truth", "%"),
        *(Column(name, "%") for name in ORACLES), Column("ours by the better oracle"),
        Column("authors, one window"),
    )  # fmt: skip
    what = "count" if a == COUNT else "sum"
    title = f"{query.name}: mean error of the {what} (Δ = {query.most:,} ms)"
    return Table(title, ("data", "ω"), columns, rows)


def _allowed(found: Judged) -> float | None:
    """The promised error of Micro with 100 keys, in percent."""
    if found.data.name != "Micro, 100 keys":
        return None
    return _PROMISED_OF_MICRO[found.disorder.most // MS, found.disorder.deadline // MS]


def _k_slack(lab: Lab, found: Judged, a: int) -> list[Cell]:
    """KSJ with the largest K that the deadline leaves time for, and with half of the delays."""
    data, disorder = found.data, found.disorder
    some = data if data.is_real else replace(data, windows=data.windows[:_SLACK_WINDOWS])
    slacks = (max(0, disorder.deadline - LENGTH), disorder.most // 2)
    draws = 1 if lab.quick or not data.is_real else 3
    return [100 * float(k_slack(some, disorder, k, draws, lab.seed)[a]) for k in slacks]


def _theirs(lab: Lab, query: Query, found: Judged) -> Cell:
    if found.data.name != "Stock":
        return None
    point = found.disorder.deadline // MS
    printed = [lab.theirs(query.experiment, name, point) for name in query.algorithms]
    return ", ".join(
        f"{name} {error:.3g} %"
        for name, error in zip(("WMJ", "PECJ"), printed, strict=True)
        if error is not None
    )


# ---- distributions


def _shown(judged: Sequence[Judged]) -> list[Judged]:
    """Q1 on Stock and Micro with 100 keys."""
    return [
        found for found in QUERIES[0].of(judged) if found.data.name in ("Stock", "Micro, 100 keys")
    ]


def _distribution(judged: Sequence[Judged]) -> Table:
    rows: Rows = []
    for found in _shown(judged):
        for name in ("WMJ", *ESTIMATORS, *ORACLES):
            errors = found.outcome(name).errors(name, COUNT)
            cells: list[Cell] = [100 * float(x) for x in np.quantile(errors, _QUANTILES)]
            rows.append(((found.data.name, found.omega, name), cells))
    columns = tuple(Column(f"{q:.0%}", "%") for q in _QUANTILES)
    title = "Q1: quantiles of the error (windows with results)"
    return Table(title, ("data", "ω", "estimator"), columns, rows)


def _distribution_figure(judged: Sequence[Judged]) -> Figure:
    share = np.linspace(0.01, 0.99, 99)
    row = []
    for found in _shown(judged):
        if found.disorder.deadline not in (7 * MS, 10 * MS):
            continue
        names = (OURS, *(name for name in (*ESTIMATORS, "WMJ", "ipw") if name != OURS))
        curves = {}
        for name in names:
            sizes = 100 * np.abs(found.outcome(name).errors(name, COUNT))
            curves[name] = ((100 * share).tolist(), np.quantile(sizes, share).tolist())
        row.append(
            Panel(
                f"{found.data.name}, ω = {found.omega}", "error [%]", curves, log=True,
                y_range=(0.02, 300.0),
            )
        )  # fmt: skip
    grid = [row[i : i + 2] for i in range(0, len(row), 2)]
    return panels("Q1: how large errors are", "share of the windows [%]", grid)


# ---- the rest


def _integrated(lab: Lab, judged: Sequence[Judged]) -> Table:
    disorder = Disorder(5 * MS, 10 * MS)
    cases = [(found.data, found.main) for found in judged if found.disorder == disorder]
    if lab.quick:
        cases = [(found.data, found.main) for found in QUERIES[0].of(judged)][:1]
    windows = 20 if lab.quick else 400
    return latency.integrated(cases, disorder, windows, lab.seed, lab.published)


def _words(lab: Lab) -> list[str]:
    plan = lab.full
    return [
        f"Real data: all distinct windows, {plan.draws} draw(s) of the delays each; the half of "
        f"the windows that is not evaluated has warmed up the estimators. Micro: {plan.windows:,} "
        "windows after the warm-up. Errors are those of windows that have results, the range is "
        "that of a bootstrap over windows. SVI and MLP are evaluated over 10 draws of real data; "
        "the sweeps have 5 draws and 500 windows.",
        "`ratio`, `ipw` and `size` are oracles: they know the distribution of the delays, or how "
        "many events a window will have. On Micro and Rovio they agree with the table that came "
        "with the data; on Stock that table differs by a few hundredths, for an unknown reason.",
        "WMJ uses the events that have arrived. KSJ is our engine with a K-slack buffer before it: "
        "at a fixed deadline the events that the buffer holds back are lost. With the largest K "
        "that the deadline allows (ω minus the length of a window, at least 0) it equals WMJ "
        "except for a few events where delays are short; where they are long, the newest event is "
        "some time back, and more is lost. AEMA, SVI and MLP are the paper's estimators, as "
        "options of `compensate=`. The authors' network learnt from the same window on which it "
        "was evaluated; here no estimator does.",
        "Coverage on real data is counted in two ways: over windows with some result at the "
        "deadline, which is known then, and over windows that have results in the end, which is "
        "not known then. Windows without any result at the deadline have a table of their own. The "
        "draws of a window are not independent, because the same windows are hard each time. So "
        "the p value (two-sided binomial) of all draws together means less than it seems; that of "
        "one draw is valid, and the table has the number of draws that pass when each is tested "
        "alone. The range is that of a bootstrap over windows.",
        "Lazy and eager: in our engine both see the same events at the deadline, so the errors are "
        "the same; an eager join has counted before the deadline (a lookup and an addition per "
        "event) and answers earlier by the time of counting. The authors' lazy variant has larger "
        "errors because it also begins to estimate only at the deadline. Latency is defined as in "
        "the paper: how long 95 % of the events waited for the answer.",
        "SVI: by Eq. 5 the prior is the posterior of the window before, and windows of Stock "
        "differ by a factor of up to 400. It is believed as far as windows were alike and this one "
        "is like them: the table `What the window before gives SVI` has the errors without it. On "
        "data in order SVI is exact.",
        "MLP: on Stock there are a dozen distinct windows with results to learn from, and 22 "
        "inputs. What the network learns are these windows: the longer it learns, the smaller its "
        "error on them, with new delays, and the larger on the other half, where after little "
        "training it is about that of the plain extrapolation (`ratio`). The table `The network on "
        "windows that it has learnt from` has both. Training with the ELBO does not help.",
        *lab.missing,
    ]


EXPERIMENTS = (
    Experiment(
        "pecj", "PECJ, 6", "window joins reported early, compensated, with intervals", _pecj
    ),
)
