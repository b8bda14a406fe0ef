"""Queries as SQL, to and fro.

>>> query = sql(
...     "SELECT q.symbol, q.px - t.px AS gap FROM quotes [RANGE 5 SECONDS] q, "
...     "trades [RANGE 5 SECONDS] t WHERE q.symbol = t.symbol WITH RECALL 0.95 OVER 1 MINUTE",
...     quotes="event_time",
...     trades="event_time",
... )
>>> print(query)
SELECT q.symbol, q.px - t.px AS gap
FROM quotes [RANGE 5 SECONDS, WATTR event_time] AS q,
     trades [RANGE 5 SECONDS, WATTR event_time] AS t
WHERE q.symbol = t.symbol
WITH RECALL 0.95 OVER 1 MINUTE
>>> sql(str(query)) == query
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater.query.any_query import AnyQuery
    from slackwater.query.stream import Stream


def sql(text: str, **streams: str | Stream) -> AnyQuery:
    """The query that a text asks for; the statement is described in docs/sql.md.

    Parameters
    ----------
    text
        One SELECT.
    streams
        By the name of a source: the column of its event time, or a `Stream`, where the text does
        not say it (``[RANGE 5 SECONDS, WATTR event_time]``). Otherwise it is ``ts``.
    """
    from slackwater.sql.reader import read

    return read(text, streams)
