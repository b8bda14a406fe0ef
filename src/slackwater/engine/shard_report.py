"""What a shard of a query reports to the others at the end of a micro-batch, and their sum."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from slackwater.errors import SnapshotError
from slackwater.kernels.histogram import BUCKETS
from slackwater.stats.buckets import dense, sparse
from slackwater.stats.lateness import LatenessOf

_VERSION = 2


class LearntIn(NamedTuple):
    """What shards learnt in an adaptation interval."""

    end: int  # largest local time
    common_clock: int
    most_behind: int
    lateness: LatenessOf

    @classmethod
    def together(cls, parts: Sequence[LearntIn]) -> LearntIn:
        """The same of some shards. They may end an interval a little earlier or later."""
        end, common_clock, most_behind, lateness = zip(*parts, strict=True)
        return cls(max(end), max(common_clock), max(most_behind), LatenessOf.together(lateness))


@dataclass(frozen=True)
class ShardReport:
    """What a shard reports.

    Parameters
    ----------
    slack
        The K that it wants.
    sync_time
        Its S.
    intervals
        For each controller of K: what the shard learnt in each adaptation interval that ended, by
        the number of the interval.
    """

    slack: int
    sync_time: int
    intervals: Sequence[dict[int, LearntIn]]

    def to_bytes(self) -> bytes:
        """The report with a checksum; the same bytes for the same report."""
        plain = {
            "version": _VERSION,
            "slack": self.slack,
            "sync_time": self.sync_time,
            "intervals": [
                [[n, *_plain(learnt)] for n, learnt in own.items()] for own in self.intervals
            ],
        }
        text = json.dumps(plain, separators=(",", ":")).encode()
        return zlib.crc32(text).to_bytes(4, "big") + zlib.compress(text, 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> ShardReport:
        """The report that these bytes are; raises when they are not what was written."""
        try:
            text = zlib.decompress(data[4:])
            if zlib.crc32(text).to_bytes(4, "big") != data[:4]:
                raise ValueError
        except (zlib.error, ValueError) as error:
            msg = "the report of a shard is damaged: its bytes are not those that were written"
            raise SnapshotError(msg) from error
        plain = json.loads(text)
        if plain["version"] != _VERSION:
            got = plain["version"]
            msg = f"the report of a shard has version {got}; this release reads version {_VERSION}"
            raise SnapshotError(msg)
        intervals = [{n: _learnt(*rest) for n, *rest in own} for own in plain["intervals"]]
        return cls(plain["slack"], plain["sync_time"], intervals)


class Reports(tuple[ShardReport, ...]):
    """The reports of all shards on a micro-batch, added up once for all shards that read them."""

    def learnt(self, controller: int = 0) -> dict[int, LearntIn]:
        """What all shards learnt together for one of the controllers, interval by interval.

        Nothing if the goal of that time had no such controller.
        """
        return self._sums[controller] if controller < len(self._sums) else {}

    @cached_property
    def _sums(self) -> list[dict[int, LearntIn]]:
        controllers = min((len(report.intervals) for report in self), default=0)
        return [self._sum(controller) for controller in range(controllers)]

    def _sum(self, controller: int) -> dict[int, LearntIn]:
        parts: dict[int, list[LearntIn]] = {}
        for report in self:
            for number, learnt in report.intervals[controller].items():
                parts.setdefault(number, []).append(learnt)
        return {number: LearntIn.together(parts[number]) for number in sorted(parts)}


def _plain(learnt: LearntIn) -> list[Any]:
    *times, lateness = learnt
    counts, lost, on_time, found_in, passed = lateness
    return [*times, sparse(counts), lost, on_time, found_in.tolist(), passed]


def _learnt(
    end: int,
    common_clock: int,
    most_behind: int,
    counts: list[list[int]],
    lost: int,
    on_time: int,
    found_in: list[int],
    passed: int,
) -> LearntIn:
    late = dense(counts, np.zeros(BUCKETS, np.int64))
    lateness = LatenessOf(late, lost, on_time, np.array(found_in, np.int64), passed)
    return LearntIn(end, common_clock, most_behind, lateness)
