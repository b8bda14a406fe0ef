"""Any of the three kinds of queries."""

from __future__ import annotations

from slackwater.query.aggregate import AggregateQuery
from slackwater.query.join import JoinQuery
from slackwater.query.window import WindowQuery

AnyQuery = JoinQuery | WindowQuery | AggregateQuery
