"""What an engine shows in charts: its `ChartPart` at the end of a micro-batch.

Collecting it costs a fraction of a millisecond, and nothing in it depends on how the input was cut
into batches. What differs between kinds of queries is `ShardEngine.add_chart_facts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from slackwater.controllers.controller import RecallSeeker
from slackwater.controllers.lateness import LatenessController
from slackwater.controllers.measured import MeasuredLossController
from slackwater.kernels.delay_scale import ENDS
from slackwater.kernels.records import BEFORE, I64
from slackwater.metrics.charts import ChartPart, Charts, merge
from slackwater.query.goals import Recall
from slackwater.query.units import to_units
from slackwater.stats.delays import Delays
from slackwater.stats.recent import OCTAVES, octaves
from slackwater.stats.statistics import Statistics

if TYPE_CHECKING:
    from slackwater.engine.base import AnyEngine
    from slackwater.engine.join import JoinEngine

_STEPS = [0, 1, *(step << i for i in range(18) for step in (2, 3))]  # 2, 3, 4, 6, 8, 12, ...
_MODELS = ("measured", "eqsel")  # whose choice the recall model explains


def charts(engine: AnyEngine, results: pa.Table | None = None) -> Charts | None:
    """The charts of a query that has only one engine; `results` are those of the last batch."""
    return merge([chart_part(engine, results)])


def chart_part(
    engine: AnyEngine, results: pa.Table | None = None, counted: Sequence[bool] | None = None
) -> ChartPart:
    """What one shard shows in charts.

    Parameters
    ----------
    engine
        The engine of the shard.
    results
        The results of its last batch; only aggregates are shown.
    counted
        Whether the events of each stream are counted here; all by default.

    Returns
    -------
    ChartPart
        Plain data.
    """
    names, stage = engine.query.names, engine.reorder
    local = {name: stage.local(s) for s, name in enumerate(names)}
    known = {name: time for name, time in local.items() if time != BEFORE}
    leads = {name: time - min(known.values()) for name, time in known.items()}
    delays = _delay_counts(engine)
    part = ChartPart(
        unit=engine.query.unit,
        now=None if stage.top == BEFORE else stage.top,
        leads=leads,
        delays={
            name: _trimmed(delays[s].tolist())
            for s, name in enumerate(names)
            if counted is None or counted[s]
        },
        slack=stage.slack if engine.query.has_slack else None,
    )
    return engine.add_chart_facts(part, results)


def _delay_counts(engine: AnyEngine) -> I64:
    """[stream, octave]: of the sample that is kept, or of what the goal has learnt."""
    if engine.recent is not None:
        return engine.recent.counts
    assert engine.statistics is not None
    return _octave_counts(engine.statistics.delays)


def _octave_counts(delays: Delays) -> I64:
    """[stream, octave]: the histogram of a goal that learns, as coarse as charts show it."""
    used = delays.histogram[:, : delays.top + 1]
    starts, octave = _octave_starts(delays.granularity)
    n = int(np.searchsorted(starts, used.shape[1]))
    counts = np.zeros((len(used), OCTAVES), np.int64)
    counts[:, octave[:n]] = np.add.reduceat(used, starts[:n], axis=1)
    return counts


@cache
def _octave_starts(granularity: int) -> tuple[I64, I64]:
    """The buckets with which octaves begin, and these; a bucket ends at its largest delay."""
    octave = octaves(np.minimum(ENDS, 2**62 // granularity) * granularity)
    starts = np.flatnonzero(np.diff(octave, prepend=-1))
    return starts, octave[starts]


def _trimmed(counts: list[int]) -> list[int]:
    while counts and not counts[-1]:
        counts.pop()
    return counts


# ---- of a join


def with_join_facts(engine: JoinEngine, part: ChartPart) -> ChartPart:
    """`part` with the fields that only a join has."""
    found, true = _recent_results(engine)
    part = part._replace(found=found, true=true)
    if engine.shedder is not None:
        part = part._replace(throttle=engine.shedder.throttle.z, harvest=_harvest(engine))
    if engine.query.synchronizes:
        part = part._replace(lead=max(part.leads.values(), default=0))
    return part if engine.statistics is None else _with_curve(engine, engine.statistics, part)


def _recent_results(engine: JoinEngine) -> tuple[float, float]:
    """Of the last P of result time: results that were found, and those that should have been.

    What load shedding leaves out is missing as much as what came too late.
    """
    seeker, known, clock = engine.controller, engine.statistics, engine.join.time
    if not isinstance(seeker, RecallSeeker) or known is None or clock == BEFORE:
        return 0.0, 0.0
    end = clock // known.every * known.every
    produced, lost = known.results.between(end - seeker.over, end)[:2].sum(axis=1).tolist()
    kept = 1.0 if engine.shedder is None else engine.shedder.kept
    return kept * produced, produced + lost


def _with_curve(engine: JoinEngine, known: Statistics, part: ChartPart) -> ChartPart:
    """`part` with the recall that each K should give, and K: what the goal had to choose from."""
    controller = engine.controller
    if isinstance(controller, LatenessController):
        return _with_measured_curve(engine, controller, part)
    goal, delays = engine.query.goal, known.delays
    engine.model.learn(delays)
    part = part._replace(lead=engine.model.lead)
    explained = goal.model in _MODELS if isinstance(goal, Recall) else True
    if not explained or not any(delays.counts):
        return part
    scale = controller.scale if isinstance(controller, MeasuredLossController) else 1.0
    slacks = _ladder(delays.granularity, engine.model.largest)
    chosen = engine.reorder.slack
    modelled = np.array([engine.model.recall(slack) for slack in (*slacks, chosen)])
    recalls = (1.0 - scale * (1.0 - modelled)).clip(0.0, 1.0).round(6).tolist()
    points = [[slack, recall] for slack, recall in zip(slacks, recalls, strict=False)]
    return part._replace(curve=points, chosen=[chosen, recalls[-1]])


def _with_measured_curve(
    engine: JoinEngine, controller: LatenessController, part: ChartPart
) -> ChartPart:
    """The same, by what was measured."""
    chosen = engine.reorder.slack
    step = max(1, to_units("10 ms", engine.query.unit))
    slacks = _ladder(step, controller.largest)
    recalls = [round(recall, 6) for recall in controller.recall_at([*slacks, chosen])]
    if not recalls:
        return part
    points = [[slack, recall] for slack, recall in zip(slacks, recalls, strict=False)]
    chosen_point = [chosen, recalls[-1]]
    return part._replace(curve=points, chosen=chosen_point, slack_reason=controller.reasons())


def _ladder(step: int, largest: int) -> list[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, ... steps, up to the first that is not below `largest`.

    >>> _ladder(10, 50)
    [0, 10, 20, 30, 40, 60]
    """
    n = next((n for n, rung in enumerate(_STEPS) if rung * step >= largest), len(_STEPS))
    return [rung * step for rung in _STEPS[: n + 1]]


def _harvest(engine: JoinEngine) -> list[dict[str, Any]] | None:
    """Which share of the events of each direction looks at each basic window, newest first."""
    shedder, names = engine.shedder, engine.query.names
    if shedder is None or not shedder.shedding.harvests_windows:
        return None
    directions = []
    for i, order in enumerate(shedder.orders):
        windows = []
        for s in order:
            basic = [round(float(share), 4) for share in shedder.segments.searched_share(i, s)]
            fraction = round(sum(basic) / len(basic), 4)
            windows.append({"stream": names[s], "fraction": fraction, "basic": basic})
        directions.append({"direction": names[i], "windows": windows})
    return directions
