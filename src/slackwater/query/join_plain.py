"""A join as plain data that JSON can hold, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from slackwater.errors import QueryError
from slackwater.query.goals import goal_from_dict, goal_to_dict
from slackwater.query.shedding import shedding_from_dict, shedding_to_dict
from slackwater.query.stream import Stream

if TYPE_CHECKING:
    from slackwater.query.join import JoinQuery


def plain_options(query: JoinQuery) -> dict[str, Any]:
    """The options of a join as plain data."""
    if callable(query.where):
        msg = f"a query is plain data only if where is text, got the function {query.where!r}"
        raise QueryError(msg)
    plain = {f.name: getattr(query, f.name) for f in fields(query)}
    plain["streams"] = [stream.to_dict() for stream in query.streams]
    plain["goal"] = goal_to_dict(query.goal)
    plain["shed"] = shedding_to_dict(query.shed)
    plain["on"] = list(query.on) if isinstance(query.on, tuple) else query.on
    plain["select"] = dict(query.listed) or query.select
    return plain


def options_of(plain: dict[str, Any]) -> dict[str, Any]:
    """The options that `plain_options` wrote down."""
    given = plain
    given["streams"] = tuple(map(Stream.from_dict, given["streams"]))
    given["on"] = tuple(given["on"]) if isinstance(given["on"], list) else given["on"]
    given["goal"] = goal_from_dict(given["goal"])
    given["shed"] = shedding_from_dict(given.get("shed", "off"))
    if given.get("between") is not None:
        given["between"] = tuple(given["between"])
    return given
