"""Slackwater on Spark: pack, exchange, operator, unpack. Decode, delegate, encode.

`session` starts a local Spark with the right settings, `MetricsLog` logs the metrics of
queries, `latest_metrics` returns those of a query, `check_checkpoint` finds out whether entries of
a checkpoint are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slackwater.spark.checkpoint import check_checkpoint
from slackwater.spark.session import session  # now, or the name would be that of the module

if TYPE_CHECKING:
    from slackwater.spark.listener import MetricsLog, latest_metrics

__all__ = ["MetricsLog", "check_checkpoint", "latest_metrics", "session"]


def __getattr__(name: str) -> Any:
    """Import what needs the listener on first use: workers import this package too."""
    if name in ("MetricsLog", "latest_metrics"):
        from slackwater.spark import listener  # noqa: PLC0415

        return getattr(listener, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
