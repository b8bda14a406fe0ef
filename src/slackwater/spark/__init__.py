"""Slackwater on Spark: pack, exchange, operator, unpack. Decode, delegate, encode.

`session` starts a local Spark with the right settings, `MetricsLog` logs the metrics of
queries, `check_checkpoint` finds out whether entries of a checkpoint are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slackwater.spark.checkpoint import check_checkpoint
from slackwater.spark.session import session  # now, or the name would be that of the module

if TYPE_CHECKING:
    from slackwater.spark.listener import MetricsLog

__all__ = ["MetricsLog", "check_checkpoint", "session"]


def __getattr__(name: str) -> Any:
    """Import `MetricsLog` on first use: workers import this package too."""
    if name == "MetricsLog":
        from slackwater.spark.listener import MetricsLog  # noqa: PLC0415

        return MetricsLog
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
