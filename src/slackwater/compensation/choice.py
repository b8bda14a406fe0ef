"""Which estimator a query asks for."""

from __future__ import annotations

from slackwater.aggregate_query import AggregateQuery
from slackwater.compensation.aema import AemaEstimator
from slackwater.compensation.delays import DelayEstimator
from slackwater.compensation.seen import Estimator, cells_for
from slackwater.compensation.values import Values


def estimator_for(query: AggregateQuery, values: Values) -> Estimator | None:
    """Who compensates, if anybody does."""
    m = len(query.streams)
    match query.compensate:
        case None | False:
            return None
        case True | "delays":
            return DelayEstimator(m, cells_for(m), values.n)
        case "aema":
            return AemaEstimator(m, values.n)
