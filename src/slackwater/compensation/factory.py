"""The estimator of a query."""

from __future__ import annotations

from slackwater.compensation.aema import AemaEstimator
from slackwater.compensation.delay_weighting import DelayWeightingEstimator
from slackwater.compensation.mlp import MlpEstimator
from slackwater.compensation.observation import Estimator, cells_for
from slackwater.compensation.svi import SviEstimator
from slackwater.compensation.values import Values
from slackwater.query.aggregate import AggregateQuery


def estimator_for(query: AggregateQuery, values: Values) -> Estimator | None:
    """Return the estimator of a query; None: it does not compensate."""
    m = len(query.streams)
    cells, n = cells_for(m), values.n
    match query.compensate:
        case None | False:
            return None
        case True | "delays":
            return DelayWeightingEstimator(m, cells, n)
        case "aema":
            return AemaEstimator(m, n)
        case "svi":
            return SviEstimator(m, cells, n)
        case "mlp" | "mlp-elbo":
            return MlpEstimator(m, cells, n, elbo=query.compensate == "mlp-elbo")
