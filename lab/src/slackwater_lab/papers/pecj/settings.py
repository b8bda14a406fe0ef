"""How much the experiments of PECJ run, on what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slackwater_lab.experiment import Cell, Setting
from slackwater_lab.papers.pecj.data import (
    MS,
    Dataset,
    Published,
    authors_results,
    micro,
    random_micro,
    real,
)
from slackwater_lab.papers.pecj.runs import ESTIMATORS, OURS, Disorder, Outcome, Plan

Rows = list[tuple[tuple[str, ...], list[Cell]]]

COUNT, SUM = 0, 1  # aggregates
KEYS = (10, 100, 1000)
_SLOW = ("SVI", "MLP", "MLP, ELBO")  # on real data over fewer draws
_MOST_WARM_UP = 394  # windows: that of Q3


@dataclass(frozen=True)
class Lab:
    """What all experiments share."""

    setting: Setting
    real: Sequence[Dataset]
    missing: Sequence[str]  # words about data that is not at hand
    published: dict[tuple[str, str, str], Published]

    @classmethod
    def of(cls, setting: Setting) -> Lab:
        """With all data that is at hand."""
        found, missing = real()
        return cls(setting, found, missing, authors_results())

    @property
    def quick(self) -> bool:
        """Whether it is only tried whether anything works."""
        return self.setting.quick

    @property
    def seed(self) -> int:
        """Of everything."""
        return self.setting.seed

    @property
    def full(self) -> Plan:
        """Enough for what is promised."""
        return Plan(self.seed, 20, 1, 30) if self.quick else Plan(self.seed, 1000, 50)

    @property
    def brief(self) -> Plan:
        """Enough for curves."""
        return Plan(self.seed, 20, 1, 30) if self.quick else Plan(self.seed, 500, 5)

    def micro(self, keys: int, rate: int = 100) -> Dataset:
        """Made windows, as many as any plan takes."""
        return micro(keys, self._pool, self.seed, rate)

    def random_micro(self, keys: int) -> Dataset:
        """The same with random sizes."""
        return random_micro(keys, self._pool, self.seed)

    @property
    def _pool(self) -> int:
        return 50 if self.quick else _MOST_WARM_UP + self.full.windows

    def datasets(self) -> list[Dataset]:
        """Those of the main tables."""
        return [*self.real, *map(self.micro, (100,) if self.quick else KEYS)]

    def theirs(self, experiment: str, algorithm: str, point: object) -> float | None:
        """The authors' error, in percent."""
        found = self.published.get((experiment, algorithm, str(point)))
        return None if found is None else 100 * found.error

    def judge(
        self, plan: Plan, data: Dataset, disorder: Disorder, confidences: Sequence[float] = (0.95,)
    ) -> Judged:
        """All estimators on a dataset."""
        few = Plan(plan.seed, plan.windows, min(plan.draws, 10), plan.warm_up)
        slow = [name for name in _SLOW if name in ESTIMATORS and data.is_real]
        fast = [name for name in ESTIMATORS if name not in slow]
        main = plan.run(data, disorder, fast, confidences)
        others = few.run(data, disorder, slow) if slow else None
        return Judged(data, disorder, main, others)


@dataclass(frozen=True)
class Judged:
    """What came of a dataset with some disorder."""

    data: Dataset
    disorder: Disorder
    main: Outcome
    others: Outcome | None  # of those that are slow

    @property
    def omega(self) -> str:
        """The deadline, for people."""
        return f"{self.disorder.deadline / MS:g} ms"

    @property
    def delta(self) -> str:
        """The largest delay, for people."""
        return f"{self.disorder.most / MS:g} ms"

    def outcome(self, name: str) -> Outcome:
        """Where the errors of an estimator are."""
        return self.main if name in self.main.estimates or self.others is None else self.others

    def error(self, name: str, a: int) -> float:
        """The mean error, in percent."""
        return 100 * self.outcome(name).error(name, a)

    def errors(self, names: Iterable[str], a: int) -> list[Cell]:
        """The same of several."""
        return [self.error(name, a) for name in names]

    def best_oracle(self, a: int) -> float:
        """The error of the better of those who know the delays, in percent."""
        return min(self.error("ratio", a), self.error("ipw", a))

    def by_oracle(self, a: int) -> float | None:
        """Ours as a multiple of that."""
        best = self.best_oracle(a)
        return self.error(OURS, a) / best if best > 0.0 else None


@dataclass(frozen=True)
class Query:
    """One of the paper's."""

    name: str
    aggregate: int
    most: int  # Δ in ms
    deadlines: tuple[int, ...]  # ω in ms
    experiment: str  # of the authors
    algorithms: tuple[str, str]  # theirs: not compensated, and compensated

    def of(self, judged: Iterable[Judged]) -> list[Judged]:
        """Those with its disorder."""
        return [found for found in judged if found.disorder.most == self.most * MS]


QUERIES = (
    Query("Q1", COUNT, 5, (7, 10, 12), "Sec6_2Stockq1", ("wa", "pec_sel")),
    Query("Q2", SUM, 5, (7, 10, 12), "Sec6_2Stockq2", ("wa", "pec_sel")),
    Query("Q3", COUNT, 1000, (200, 300, 600), "Sec6_2Stockq3", ("wa", "pec_ai")),
)
