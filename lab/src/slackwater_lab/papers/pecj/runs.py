"""Runs estimators over windows, one after the other, and judges their estimates.

No estimator is judged on a window that it has learnt from. On Micro the windows that are judged
come after those of the warm-up. Real windows are few: one half of them is the warm-up, again and
again with new delays, and the other half is judged, with a copy of the estimator that is discarded
afterwards; then the warm-up continues for some windows, and another copy is judged on the next draw
of the delays.

A window is complete, and learnt from, at the deadline of the window by which all its events have
arrived, as in the engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.compensation.compensator import AggregateValue, Compensator
from slackwater.compensation.observation import cells_for
from slackwater.compensation.svi import SviEstimator
from slackwater.compensation.tally import Tally
from slackwater.compensation.tally_codec import TallyCodec
from slackwater.compensation.values import Values
from slackwater.kernels.records import F64, I64
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.aggregate_checks import Compensation
from slackwater.query.functions import count
from slackwater.query.functions import sum as total
from slackwater.query.stream import Stream
from slackwater.query.window_goals import Deadline
from slackwater.query.windows import Tumbling
from slackwater_lab.papers.pecj.data import LENGTH, MS, Dataset, Window, tables
from slackwater_lab.papers.pecj.oracles import oracles

ESTIMATORS: dict[str, Compensation | bool] = {  # all that are compared, by their names on the page
    "AEMA": "aema",
    "SVI": "svi",
    "MLP": "mlp",
    "MLP, ELBO": "mlp-elbo",
    "ours": True,
}
OURS = "ours"
NO_PRIOR = "SVI, no prior"
AGGREGATES = ("count", "sum")
CONFIDENCES = (0.95, 0.8)

Flags = NDArray[np.bool_]

_SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64(), "a": pa.int64()})
_BETWEEN = 10  # windows from one draw of the delays to the next
_RESAMPLED = 2000
_WARM_UP = 200  # windows, and twice as many as it takes until a window is complete


def query(
    deadline: int,
    compensate: Compensation | bool | None,
    confidence: float = 0.95,
    slack: int | None = None,
    length: int = LENGTH,
) -> AggregateQuery:
    """Q1 and Q2 in one: results, and the sum of r.v over them."""
    return AggregateQuery(
        (Stream("r", "t"), Stream("s", "t")),
        on="k",
        select={"n": count(), "total": total("r.v")},
        window=Tumbling(length),
        goal=Deadline(deadline, slack=slack),
        compensate=compensate,
        confidence=confidence,
        unit="us",
        late="emit",
    )


@dataclass(frozen=True)
class Disorder:
    """How late events are, and when windows are reported; in units."""

    most: int  # Δ: delays are uniform in (0, Δ]
    deadline: int  # ω

    @property
    def lag(self) -> int:
        """After how many windows a window is complete."""
        return max(1, -((self.deadline - LENGTH - self.most) // LENGTH))

    @property
    def warm_up(self) -> int:
        """Windows before any is judged."""
        return 2 * -((-LENGTH - self.most) // LENGTH) + _WARM_UP


class SviWithoutPrior(SviEstimator):
    """SVI to which the window before says nothing; distortions are learnt as usual."""

    @property
    def _missing(self) -> F64:
        return np.zeros_like(super()._missing)


class EstimatorRun:
    """One estimator that is run over windows, one after the other.

    AEMA needs the length of a window, and gets the paper's 10 ms: its rows would be too sparse for
    10.5 ms, and it would expect a twentieth more of each stream than there is.
    """

    def __init__(self, name: str, confidence: float, lag: int, length: int = 10 * MS) -> None:
        self.name, self.confidence = name, confidence
        compensate = ESTIMATORS["SVI" if name == NO_PRIOR else name]
        aggregates = query(LENGTH, compensate, confidence, length=length)
        values = Values(aggregates, [_SCHEMA, _SCHEMA])
        codec = TallyCodec((2, cells_for(2), values.n), [])
        self._compensator = Compensator(aggregates, values, codec)
        if name == NO_PRIOR:
            self._compensator.estimator = SviWithoutPrior(2, cells_for(2), values.n)
        self._lag = lag
        self._n = 0
        self._open: deque[tuple[int, Tally]] = deque()

    def learn(self) -> None:
        """Learn from the windows that are complete when the next one is reported."""
        while self._open and self._open[0][0] <= self._n - self._lag:
            self._compensator.close(*self._open.popleft())

    def estimate(self, arrived: Tally, whole: Tally) -> list[AggregateValue]:
        """Return the aggregates of the next window; `whole` is learnt from when it is complete."""
        self.learn()
        (row,) = self._compensator.report_early(self._n, arrived)
        self._open.append((self._n, whole))
        self._n += 1
        return row.aggregates


class EstimatorGroup:
    """Several estimators that are run over the same windows."""

    def __init__(self, runs: Sequence[EstimatorRun]) -> None:
        self.runs = runs

    def estimate(self, arrived: Tally, whole: Tally) -> list[list[AggregateValue]]:
        """Return the estimates of each: [estimator][aggregate]."""
        return [run.estimate(arrived, whole) for run in self.runs]

    @property
    def members(self) -> list[tuple[str, float]]:
        """Their names and confidences."""
        return [(run.name, run.confidence) for run in self.runs]


def estimator_group(names: Iterable[str], confidences: Sequence[float], lag: int) -> EstimatorGroup:
    """Return each by name at the first confidence, ours at all."""
    named = [EstimatorRun(name, confidences[0], lag) for name in names]
    others = (EstimatorRun(OURS, other, lag) for other in confidences[1:])
    return EstimatorGroup([*named, *others])


@dataclass(frozen=True)
class Outcome:
    """The estimates of the windows that were judged."""

    window: I64  # [case]: which it was
    draw: I64  # [case]: of the delays
    truth: F64  # [case, aggregate]
    estimates: dict[str, F64]  # by name: [case, aggregate]; WMJ: what has arrived
    bounds: dict[float, F64]  # ours, by confidence: [case, aggregate, low and high]

    @property
    def is_zero(self) -> Flags:
        """Windows without any result: [case]."""
        return np.asarray(self.truth[:, 0] == 0.0)

    def errors(self, name: str, a: int) -> F64:
        """Relative errors in the windows that have results."""
        estimates, truth = self.estimates[name][~self.is_zero, a], self.truth[~self.is_zero, a]
        return np.asarray(estimates / truth - 1.0)

    def error(self, name: str, a: int) -> float:
        """Return the mean absolute relative error."""
        return float(np.abs(self.errors(name, a)).mean())

    def summed_error(self, name: str, a: int) -> float:
        """Return the sum of absolute errors, as a share of the sum of all windows."""
        off = np.abs(self.estimates[name][:, a] - self.truth[:, a])
        return float(off.sum() / self.truth[:, a].sum())

    def inside(self, confidence: float, a: int) -> Flags:
        """Return whether our interval contains the truth: [case]."""
        low, high = self.bounds[confidence][:, a].T
        return np.asarray((low <= self.truth[:, a]) & (self.truth[:, a] <= high))

    def error_range(self, name: str, a: int, seed: int) -> tuple[float, float]:
        """Return the 95 % interval of the mean error."""
        window = self.window[~self.is_zero]
        return resampled(np.abs(self.errors(name, a)), window, 0.95, seed)


def resampled(values: F64, window: I64, share: float, seed: int) -> tuple[float, float]:
    """Return the bootstrap interval of the mean; windows are resampled with all their draws.

    >>> values, window = np.array([1.0, 3.0, 2.0, 2.0]), np.array([0, 0, 1, 1])
    >>> resampled(values, window, 0.95, seed=1)  # both windows have a mean of 2
    (2.0, 2.0)
    """
    _, place = np.unique(window, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place)
    n = len(means)
    drawn = means[np.random.default_rng(seed).integers(0, n, (_RESAMPLED, n))].mean(axis=1)
    low, high = np.quantile(drawn, [(1.0 - share) / 2, (1.0 + share) / 2])
    return float(low), float(high)


class _Recorder:
    """Collects what an outcome is made of."""

    def __init__(self, disorder: Disorder) -> None:
        self._disorder = disorder
        self._places: list[tuple[int, int]] = []
        self._truth: list[F64] = []
        self._estimates: dict[str, list[F64]] = {}
        self._bounds: dict[float, list[list[tuple[float, float]]]] = {}

    def add(
        self, group: EstimatorGroup, place: tuple[int, int], window: Window, delay: I64
    ) -> None:
        """Judge the estimates of a window."""
        most, deadline = self._disorder.most, self._disorder.deadline
        arrived = window.arrived(delay, deadline)
        known = oracles(window, delay, most, deadline) | {"WMJ": arrived.values[0]}
        estimates = group.estimate(arrived, window.whole)
        for (name, confidence), values in zip(group.members, estimates, strict=True):
            if name == OURS:
                own = [(_or(one.low, -np.inf), _or(one.high, np.inf)) for one in values]
                self._bounds.setdefault(confidence, []).append(own)
            known[name] = np.array([_or(one.value, 0.0) for one in values])
        for name, numbers in known.items():
            self._estimates.setdefault(name, []).append(numbers)
        self._places.append(place)
        self._truth.append(window.truth)

    def outcome(self) -> Outcome:
        """Return all of it."""
        which, draw = np.array(self._places).T
        estimates = {name: np.array(values) for name, values in self._estimates.items()}
        bounds = {confidence: np.array(own) for confidence, own in self._bounds.items()}
        return Outcome(which, draw, np.array(self._truth), estimates, bounds)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    seed: int
    windows: int  # of Micro that are judged
    draws: int  # of the delays of real windows
    warm_up: int | None = None  # windows; None: as many as the disorder needs

    def run(
        self,
        data: Dataset,
        disorder: Disorder,
        names: Iterable[str] = tuple(ESTIMATORS),
        confidences: Sequence[float] = CONFIDENCES[:1],
    ) -> Outcome:
        """Judge estimators on a dataset."""
        rng = np.random.default_rng((self.seed, disorder.most, disorder.deadline))
        warm_up = disorder.warm_up if self.warm_up is None else self.warm_up
        recorder = _Recorder(disorder)
        if not data.is_real:
            group = estimator_group(names, confidences, disorder.lag)
            judged = data.windows[warm_up : warm_up + self.windows]
            warm_up_on(group, data.windows[:warm_up], disorder, rng)
            for i, window in enumerate(judged):
                recorder.add(group, (i, 0), window, window.delays(disorder.most, rng))
            return recorder.outcome()
        for others, own in _halves(len(data.windows)):
            group = estimator_group(names, confidences, disorder.lag)
            rest = cycle([data.windows[i] for i in others])
            warm_up_on(group, islice(rest, warm_up), disorder, rng)
            for draw in range(self.draws):
                judge = deepcopy(group)
                for i in own:
                    window = data.windows[i]
                    recorder.add(judge, (i, draw), window, window.delays(disorder.most, rng))
                warm_up_on(group, islice(rest, _BETWEEN), disorder, rng)
        return recorder.outcome()


def _halves(n: int) -> Iterator[tuple[range, range]]:
    """Return the half of the warm-up, and the half that is judged."""
    first, second = range(n // 2), range(n // 2, n)
    yield second, first
    yield first, second


def warm_up_on(
    group: EstimatorGroup, windows: Iterable[Window], disorder: Disorder, rng: np.random.Generator
) -> None:
    """Run estimators over windows that are not judged."""
    for window in windows:
        delay = window.delays(disorder.most, rng)
        group.estimate(window.arrived(delay, disorder.deadline), window.whole)


def k_slack(data: Dataset, disorder: Disorder, slack: int, draws: int, seed: int) -> F64:
    """Return the mean errors of KSJ, run by the engine with a K-slack buffer: [aggregate]."""
    n = len(data.windows)
    more = disorder.deadline // LENGTH + 2  # the clock has to pass the last deadline
    windows = list(islice(cycle(data.windows), n + more))
    truth = np.array([window.truth for window in data.windows])
    has_results = truth[:, 0] > 0.0
    errors = []
    for draw in range(draws):
        rng = np.random.default_rng((seed, draw))
        delays = [window.delays(disorder.most, rng) for window in windows]
        aggregates = query(disorder.deadline, None, slack=slack)
        early = aggregates.replay(tables(windows, delays), "a").early.sort_by("window_start")
        reported = np.array([early[name].to_numpy()[:n] for name in aggregates.select]).T
        errors.append(np.abs(reported[has_results] / truth[has_results] - 1.0))
    return np.asarray(np.mean(np.concatenate(errors), axis=0))


def ms(value: float) -> int:
    """Milliseconds in units."""
    return round(value * MS)
