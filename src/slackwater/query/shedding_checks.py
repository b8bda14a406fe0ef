"""Refuses `shed=` where a query has no work to skip, and says what to use instead."""

from __future__ import annotations

from slackwater.errors import QueryError


def refuse_shedding(shed: object, what: str, instead: str) -> None:
    """Raise `QueryError` unless `shed` is ``"off"``.

    >>> refuse_shedding("off", "windows", "use a filter")
    >>> refuse_shedding("adaptive", "windows", "use a filter")
    Traceback (most recent call last):
    slackwater.errors.QueryError: shed must be 'off' for windows, got 'adaptive': only joins ...
    """
    if shed != "off":
        msg = f"shed must be 'off' for {what}, got {shed!r}: only joins skip work; {instead}"
        raise QueryError(msg)
