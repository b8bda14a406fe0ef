"""The engine of a query: a new one, or the one whose snapshot is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slackwater.controllers.controller import Controller
from slackwater.engine.aggregate import AggregateEngine
from slackwater.engine.arrivals import ArrivalEngine
from slackwater.engine.at_once import AtOnceEngine
from slackwater.engine.base import AnyEngine
from slackwater.engine.join import JoinEngine
from slackwater.engine.match import MatchEngine
from slackwater.engine.snapshot import restored
from slackwater.engine.window import WindowEngine
from slackwater.events.limits import DEFAULT_LIMITS, Limits
from slackwater.query.aggregate import AggregateQuery
from slackwater.query.any_query import AnyQuery
from slackwater.query.join import JoinQuery
from slackwater.query.window import WindowQuery

Schemas = Mapping[str, pa.Schema]


@dataclass(frozen=True)
class _Options:
    """The options of `engine_for`; each kind of engine uses those that concern it."""

    controller: Controller | None
    common_clock: bool
    idle_after: int | None
    sharing: int


def join_engine(
    query: JoinQuery,
    schemas: Schemas,
    controller: Controller | None = None,
    common_clock: bool = False,
    idle_after: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    sharing: int = 1,
) -> JoinEngine | ArrivalEngine:
    """A new engine for a join; options as in `engine_for`."""
    if query.emit == "eager" and (len(query.streams) > 2 or query.select == "count"):
        return AtOnceEngine(query, schemas, idle_after, sharing, limits)
    if query.is_matched:
        return MatchEngine(query, schemas, idle_after, sharing, limits)
    return JoinEngine(query, schemas, controller, common_clock, idle_after, sharing, limits)


def _join(query: JoinQuery, schemas: Schemas, options: _Options) -> AnyEngine:
    return join_engine(
        query,
        schemas,
        options.controller,
        options.common_clock,
        options.idle_after,
        sharing=options.sharing,
    )


def _window(query: WindowQuery, schemas: Schemas, _: _Options) -> AnyEngine:
    return WindowEngine(query, schemas)


def _aggregate(query: AggregateQuery, schemas: Schemas, options: _Options) -> AnyEngine:
    return AggregateEngine(query, schemas, partial=options.common_clock)


_ENGINES: dict[type[Any], Callable[[Any, Schemas, _Options], AnyEngine]] = {
    JoinQuery: _join,
    WindowQuery: _window,
    AggregateQuery: _aggregate,
}


def engine_for(
    query: AnyQuery,
    schemas: Schemas,
    *,
    controller: Controller | None = None,
    common_clock: bool = False,
    idle_after: int | None = None,
    sharing: int = 1,
) -> AnyEngine:
    """A new engine for `query`.

    Parameters
    ----------
    query
        A query of any kind.
    schemas
        The Arrow schema of each stream, by name.
    controller
        Of a join: what sets K; None: the controller of the query's goal.
    common_clock
        Whether it is one of several shards: ticks carry the local times of all streams.
    idle_after
        Of a join: after which silence, in units, it stops waiting for a stream; None: never.
    sharing
        Of a join: how many shards have one K together, this one included.
    """
    options = _Options(controller, common_clock, idle_after, sharing)
    return _ENGINES[type(query)](query, schemas, options)


def restore(data: bytes, query: AnyQuery, schemas: Schemas, **options: Any) -> AnyEngine:
    """The engine whose snapshot is `data`; `options` are those of `engine_for`.

    The query may differ from the saved one in the options of `query.fingerprint.MAY_CHANGE`.
    """
    return restored(data, engine_for(query, schemas, **options))
