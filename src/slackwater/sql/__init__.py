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
    """The query that a SQL text describes; docs/sql.md has the grammar.

    Parameters
    ----------
    text
        One SELECT.
    streams
        By the name of a source: the column of its event time, or a `Stream`, where the text does
        not name it (``[RANGE 5 SECONDS, WATTR event_time]``). The default is ``ts``.

    Returns
    -------
    JoinQuery, WindowQuery or AggregateQuery
        The same as `join` or `window` return for these options.

    Raises
    ------
    QueryError
        If the text cannot be read; the message shows the line and what may have been meant.

    Examples
    --------
    >>> sql("SELECT * FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] USING (k)").names
    ('a', 'b')
    """
    from slackwater.sql.reader import read

    return read(text, streams)
