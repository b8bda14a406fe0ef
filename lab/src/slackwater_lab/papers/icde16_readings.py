"""What ICDE16 leaves to the reader (b, ADWIN, trees of binary joins), and its own recording.

A tree of binary joins: the first operator makes all pairs of s1 and s2, the second joins them with
s3. A pair carries both of its times, because the windows of a result reach back from its own time.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any

from slackwater.errors import DataError
from slackwater.query.goals import MaxSlack, NoSlack
from slackwater.query.join import JoinQuery, join
from slackwater.query.stream import Stream
from slackwater.query.units import to_units
from slackwater_lab.cases import PHI, PHI_99, SLACK, Case, Measure, vary
from slackwater_lab.datasets import Tables, dataset, get
from slackwater_lab.debs import NAME
from slackwater_lab.experiment import Cell, Column, Experiment, Findings, Setting, Table
from slackwater_lab.measure import Job, data_of
from slackwater_lab.papers.icde16 import ALONE, EQUAL_ALONE, PRINTED, job
from slackwater_lab.papers.shards import run_shards

_SHOWN = (SLACK, PHI, PHI_99)
_BASIC = ("10 ms", "100 ms", "500 ms", "1 second", "5 seconds")
_READINGS: dict[str, dict[str, Any]] = {
    PRINTED: {"model": "noneqsel"},
    ALONE: {"model": "noneqsel", "calibrate": False},
}
_LEARNING: dict[str, dict[str, Any]] = {"lateness": {}} | _READINGS
_EQUAL = {EQUAL_ALONE: {"model": "eqsel", "calibrate": False}}
_TREE_MINUTES = 1.0
_ROUNDS = 3
_INSTANCE_MINUTES = 10.0
_BATCH = 5_000  # ms of arrivals
_SCOPES = (  # how many instances, and whether they share K
    ("one instance", 1, False),
    ("four, each its own K", 4, False),
    ("four, one K", 4, True),
)


def _readings(setting: Setting) -> Findings:
    """b, ADWIN over delays, trees of binary joins."""
    basic = _cases(setting, ("dx2", "dx3"), "basic_window", setting.some(_BASIC))
    adwin = _cases(setting, ("dx2", "dx3", "dx4"), "adwin", ("log", "delay"))
    labels = ("data", "goal")
    tables_of = [
        vary(setting, title, (*labels, x), cases, _SHOWN)
        for title, x, cases in (
            ("The length b of basic windows", "b", basic),
            ("What ADWIN watches: log(1 + d), or the delay d as printed", "ADWIN", adwin),
        )
    ]
    found = Findings([table for table, _ in tables_of], _WORDS)
    found.figures["-b"] = tables_of[0][1]
    found.tables += [_tree(setting), _instances(setting)]
    return found


_WORDS = [
    "**b.** The paper prints b = g = 10 ms, and that a longer one estimates less: with b = W only "
    "events in order count. The estimate and its hand case are in `tests/golden/test_goals.py`. "
    "EqSel by its model alone shows it: K grows with b, and so does Φ. NonEqSel is led by Eq. (6) "
    "and depends little on b.",
    "**ADWIN** over the delays d themselves gives what log(1 + d) gives on D×3 and D×4, whose "
    "disorder does not change. On D×2, where it does, windows are cut less often: the largest "
    "delays stay in them, and K as printed goes from 15 to 23 s.",
    "**Trees of binary joins** (V): the same results, but every pair of the first two streams is "
    "made and kept on the way, where one operator for all streams counts products of matches. Two "
    "of our queries in a row would also wait K twice: the paper puts K-slack at the raw inputs "
    "only, and so must who builds a tree of them: `goal=NoSlack()` behind the first.",
    "**One K or one for each instance** (V): the paper has one Buffer-Size Manager for all "
    '(`slack_scope="query"`); with one for each (`"shard"`) an instance learns from its own keys '
    "alone, and results of one micro-batch come after later ones of another instance. The rows of "
    "D×3 go to four instances by key, in the clocked pipeline.",
]


def _cases(setting: Setting, data: tuple[str, ...], option: str, values: Any) -> list[Case]:
    return [
        Case(
            f"{dataset(name).title}, Γ = {gamma:g}",
            line,
            value,
            (job(setting, name, setting.recall(gamma, **of, **{option: value})),),
            gamma,
        )
        for name in data
        for gamma in (0.95, 0.99)
        for line, of in (_READINGS | _EQUAL).items()
        for value in values
    ]


# ---- trees of binary joins (V)


def tree_of(query: JoinQuery) -> tuple[JoinQuery, JoinQuery]:
    """Two binary joins that make the results of a join of three streams on one shared key.

    The windows must have the same length; the first makes pairs, the second counts results.
    """
    first, second, third = query.streams
    [key] = query.keys
    name = next(iter(key.columns.values()))[0]
    length = query.lengths[0]
    columns = {"k": f"{first.name}.{name}", "t1": f"{first.name}.{first.ts}",
               "t2": f"{second.name}.{second.ts}"}  # fmt: skip
    pairs = Stream("pairs", ts="result_ts", window=first.window)
    both = " and ".join(f"{third.name}.{third.ts} - pairs.{t} <= {length}" for t in ("t1", "t2"))
    return (
        join(first, second, on=name, select=columns, goal=NoSlack()),
        join(pairs, third, on=f"pairs.k = {third.name}.{name}", where=both, select="count",
             goal=NoSlack()),
    )  # fmt: skip


def run_tree(query: JoinQuery, tables: Tables) -> tuple[int, int]:
    """Pairs and results of the tree over streams in order."""
    first, second = tree_of(query)
    pairs = first.replay({name: tables[name] for name in first.names}).results
    third = second.names[1]
    made = second.replay({"pairs": pairs, third: tables[third]})
    return len(pairs), int(made.metrics.produced)


def _tree(setting: Setting) -> Table:
    """The time of both, on the beginning of D×3 in order."""
    minutes = 0.1 if setting.quick else _TREE_MINUTES
    made = get("dx3", setting.seed, minutes, setting.sweep.folder)
    tables = {name: table.sort_by("ts").drop(["arrival"]) for name, table in made.tables().items()}
    query = replace(made.dataset.query, goal=NoSlack())
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    times: dict[str, list[float]] = {"m-way": [], "tree": []}
    n_pairs = results = by_tree = 0
    for n in range(1 if setting.quick else _ROUNDS + 1):  # in turns; the first round compiles
        begin = process_time()
        results = int(query.replay(tables).metrics.produced)
        middle = process_time()
        n_pairs, by_tree = run_tree(query, tables)
        if n or setting.quick:
            times["m-way"].append(middle - begin)
            times["tree"].append(process_time() - middle)
    for name, made_results, between in (("m-way", results, 0), ("tree", by_tree, n_pairs)):
        rows.append(((name,), [made_results, between, min(times[name])]))
    columns = (
        Column("results", "rows"), Column("results in between", "rows"),
        Column("processor time", "s"),
    )  # fmt: skip
    title = f"A tree of binary joins against one operator, {minutes:g} min of D×3 in order"
    return Table(title, ("join",), columns, rows)


# ---- one K for all instances, or one for each (V)


def _instances(setting: Setting) -> Table:
    """Four shards by key against one, micro-batch by micro-batch."""
    minutes = 2.0 if setting.quick else _INSTANCE_MINUTES
    data = data_of(setting.job("dx3", NoSlack(), minutes=minutes), setting.sweep.folder)
    keys = [table["a1"].to_numpy().astype("int64") for table in data.batch.tables]
    over = to_units(setting.over, "ms")
    rows: list[tuple[tuple[str, ...], list[Cell]]] = []
    for gamma in setting.some((0.95, 0.99)):
        for name, options in _LEARNING.items():
            query = replace(data.query, goal=setting.recall(gamma, **options), pipeline="clocked")
            for label, n, sharing in _SCOPES:
                run = run_shards(query, data, keys, n, sharing=sharing, every=_BATCH, over=over)
                phi = float((run.recalls >= gamma).mean()) if len(run.recalls) else 1.0
                cells: list[Cell] = [run.slack, phi, run.recall, run.behind]
                rows.append(((f"{gamma:g}", name, label), cells))
    columns = (
        Column("average K", "ms"), Column("Φ(Γ)", "share"), Column("recall", "share"),
        Column("results behind earlier ones, at most", "ms"),
    )  # fmt: skip
    title = f"One K, or one for each instance: {minutes:g} min of D×3, micro-batches of 5 s"
    return Table(title, ("Γ", "goal", "K"), columns, rows)


# ---- the original recording


def _debs(setting: Setting) -> Findings:
    """D×2 with the recording that the paper used, for those who have the file."""
    if setting.recordings is None or not setting.recordings.is_file():
        msg = (
            "debs needs the file of the DEBS 2013 Grand Challenge, as --data FILE; got "
            f"{setting.recordings or 'none'}. docs/lab.md says where it is from"
        )
        raise DataError(msg)

    def of(goal: Any) -> Job:
        file = str(setting.recordings)
        return Job(NAME, 0, 0.0, goal, over=setting.over, pipeline="icde16", recordings=file)

    runs = setting.run([of(NoSlack()), of(MaxSlack())])
    columns = (
        Column("average K", "ms"), Column("average γ(P)", "share"), Column("paper: K"),
        Column("paper: γ(P)"),
    )  # fmt: skip
    paper = {"No-K-slack": ("0", "about 0.5"), "Max-K-slack": ("19.96 s", "1.0")}
    rows: list[tuple[tuple[str, ...], list[Cell]]] = [
        ((name,), [run.average_slack, run.average_recall, *paper[name]])
        for name, run in zip(paper, runs, strict=True)
    ]
    cases = [
        Case("D×2, the recording", line, f"{gamma:g}", (of(setting.recall(gamma, **given)),), gamma)
        for line, given in (_READINGS | {"measured": {"model": "measured"}}).items()
        for gamma in setting.some((0.8, 0.9, 0.95, 0.99, 0.999))
    ]
    title = "Slack and fulfilment by the requirement Γ (Fig. 7)"
    measures: tuple[Measure, ...] = _SHOWN
    table, figure = vary(setting, title, ("data", "goal", "Γ"), cases, measures)
    baselines = Table("Baselines (Fig. 6, Table II)", ("approach",), columns, rows)
    words = [
        "Of the recording each team keeps every n-th row, so many that it has the 450,000 that the "
        "paper states. The sensors of the ball and of the referee are left out."
    ]
    return Findings([baselines, table], words, {"": figure})


EXPERIMENTS = (
    Experiment("readings", "ICDE16, IV and V", "what the text leaves open", _readings),
    Experiment("debs", "ICDE16, VI", "the original soccer recording", _debs),
)
