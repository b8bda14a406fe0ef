"""Arrival clock for engines without reordering: last arrival, local times, largest delay."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.kernels.records import BEFORE, I64


class ArrivalClock:
    """The interface of a reordering stage, without holding anything back."""

    slack = 0

    def __init__(self, n_streams: int) -> None:
        self._local = [BEFORE] * n_streams
        self._finished = [False] * n_streams
        self.now = BEFORE  # the last arrival
        self.max_delay = 0  # arrival minus time

    def took(self, stream: I64, ts: I64, arrival: I64) -> None:
        """These events arrived."""
        for s in range(len(self._local)):
            own = stream == s
            if own.any():
                self._local[s] = max(self._local[s], int(ts[own].max()))
        self.max_delay = max(self.max_delay, int((arrival - ts).max(initial=0)))
        self.now = max(self.now, int(arrival.max(initial=BEFORE)))

    @property
    def top(self) -> int:
        """The largest time so far."""
        return max(self._local)

    def local(self, stream: int) -> int:
        """The largest time of a stream so far."""
        return self._local[stream]

    def waiting(self) -> I64:
        """Events that are held back: none."""
        return np.empty(0, np.int64)

    def buffered_of(self, stream: int) -> int:  # noqa: ARG002  as other stages
        """The same of one stream."""
        return 0

    def finish(self, stream: int) -> None:
        """No more is to be expected of `stream`."""
        self._finished[stream] = True

    def is_finished(self, stream: int) -> bool:
        """Whether the stream was declared finished."""
        return self._finished[stream]

    def is_idle(self, stream: int) -> bool:  # noqa: ARG002
        """Never: no stream waits for another."""
        return False

    is_awaited = is_idle

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "local": self._local, "finished": self._finished, "now": self.now,
            "max_delay": self.max_delay,
        }  # fmt: skip

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._local, self._finished = list(state["local"]), list(state["finished"])
        self.now, self.max_delay = state["now"], state["max_delay"]
