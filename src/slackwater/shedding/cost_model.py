"""What a join costs and gives in its present orders, from what the sample has shown."""

from __future__ import annotations

import numpy as np

from slackwater.kernels import shed as fields
from slackwater.kernels.records import F64, HarvestModel, Shed
from slackwater.shedding import harvest_search
from slackwater.shedding.join_orders import JoinOrders
from slackwater.shedding.kernel_state import AccessPaths
from slackwater.shedding.learning import Learning


class CostModel:
    """Builds the `HarvestModel` of an interval.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    paths
        How the join finds partners.
    learning
        What was learnt from the sample.
    orders
        The present join orders.
    """

    def __init__(
        self, shed: Shed, paths: AccessPaths, learning: Learning, orders: JoinOrders
    ) -> None:
        self._shed = shed
        self._paths = paths
        self._learning = learning
        self._orders = orders

    def model(self, rate: F64, window: F64) -> HarvestModel:
        """Return cost and output by direction and step.

        Parameters
        ----------
        rate
            Events per time of each stream.
        window
            Events in the window of each stream.
        """
        learning, orders = self._learning, self._orders.current
        streams = range(len(orders))
        which = [fields.FIRST] + [fields.LATER] * (len(orders) - 2)
        steps = [list(zip(which, orders[i], strict=True)) for i in streams]
        candidates = [[learning.candidates(w, i, s, window) for w, s in steps[i]] for i in streams]
        return harvest_search.model(
            rate,
            candidates,
            [[learning.matches(w, i, s, window) for w, s in steps[i]] for i in streams],
            [[learning.scores(i, s) for s in orders[i]] for i in streams],
            [[learning.pass_scores(i, s, w) for w, s in steps[i]] for i in streams],
            **self._costs(candidates, window),
        )

    def _costs(self, candidates: list[list[float]], window: F64) -> dict[str, list[list[float]]]:
        """Return what a step costs, by how the join finds candidates.

        A nested loop compares with all events of a basic window. A hash finds those with the right
        key, a bisection in each sorted basic window those that are near enough: both are where
        partners are. Counting them costs the same for all of a window as for part of it.
        """
        paths, n = self._paths, self._shed.n
        bisect = 2.0 * np.log2(window / n + 1.0)
        costs: dict[str, list[list[float]]] = {"entry": [], "each": [], "near": []}
        for i, order in enumerate(self._orders.current):
            rows: dict[str, list[float]] = {name: [] for name in costs}
            bound = [i]
            for c, s in zip(candidates[i], order, strict=True):
                counted, hashed = paths.counted[i, s], paths.lookup[i, s]
                by_value = paths.linked[bound, s].any()
                bound.append(s)
                rows["entry"].append(float(hashed + counted))
                rows["each"].append(
                    0.0 if counted or hashed else bisect[s] if by_value else c / n[s]
                )
                rows["near"].append(c if (hashed or by_value) and not counted else 0.0)
            for name, row in rows.items():
                costs[name].append(row)
        return costs
