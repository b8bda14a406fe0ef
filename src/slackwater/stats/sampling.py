"""Which events a sample keeps, and the variance of what is estimated from it (Horvitz-Thompson).

Each true result belongs to one *unit*, and a unit is sampled with probability `share`. A result
that is found in the sample stands for ``1 / share`` results, so the estimate is right on average,
whatever the data. Its variance is ``(1 - share) / share**2`` times the sum, over the sampled units,
of the squares of what was found of each.

- Two streams: the unit is the event that was there first. Events differ less than keys do, and no
  other way keeps fewer of them.
- More streams: all members of a result must be there. The unit is a *cluster*, a key and a pane of
  result time; an event is kept if a pane that its results can lie in is sampled.

Nothing is random: hashes choose, of the number of an event among all, or of the key and the pane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.kernels import hashing as kernels
from slackwater.kernels.records import I64

U64 = NDArray[np.uint64]
Flags = NDArray[np.bool_]

_BITS = 53  # of a hash, to compare
_ROUNDS = 3
_SHIFT = np.uint64(64 - _BITS)


@dataclass(frozen=True)
class Sampling:
    """How much a sample keeps.

    Parameters
    ----------
    share
        Share of the units that are sampled; a power of 1/2, so that sums are exact.
    times
        How many times as long as the join a sample by event keeps events; one by clusters, which
        keeps two events for each of these, half of it.
    seed
        Another seed, another sample.
    """

    share: float = 1 / 64
    times: int = 64
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def weight(self, results: int) -> float:
        """How many results those that were found stand for."""
        return results / self.share

    def variance(self, squares: int) -> float:
        """Of an estimate, from the sum of squares over the sampled units."""
        return (1.0 - self.share) / self.share**2 * squares

    @property
    def error_of_none(self) -> float:
        """Half-width of a 95 % interval when nothing was found: three units ("rule of three")."""
        return 3.0 / self.share if self.share < 1.0 else 0.0


DEFAULT_SAMPLING = Sampling()


class _Hashed:
    """Chooses values by their hashes."""

    def __init__(self, sampling: Sampling) -> None:
        self._seed = np.uint64(sampling.seed)
        self._below = np.uint64(round(sampling.share * 2**_BITS))

    def chooses(self, *values: U64) -> Flags:
        """Whether each combination of values is chosen.

        Numbers in a row have hashes in a row after one round; three leave nothing of it.
        """
        state = np.full(len(values[0]), self._seed)
        with np.errstate(over="ignore"):  # wrapping around is what hashes do
            for _ in range(_ROUNDS):
                for value in values:
                    kernels.mix(state, value)
        chosen: Flags = state >> _SHIFT < self._below
        return chosen

    def chooses_numbers(self, first: int, n: int) -> Flags:
        """The same for `n` numbers in a row, without an array of them."""
        chosen = np.empty(n, bool)
        with np.errstate(over="ignore"):
            kernels.below(np.uint64(first), _ROUNDS, self._seed, self._below, _SHIFT, chosen)
        return chosen

    def chooses_panes(self, keys: U64, ts: I64, lengths: I64, stream: I64, pane: int) -> Flags:
        """Whether a key is chosen together with the pane of its time, or of the window's end."""
        chosen = np.empty(len(ts), bool)
        with np.errstate(over="ignore"):
            kernels.either_below(
                keys, ts, lengths, stream, pane, _ROUNDS, self._seed, self._below, _SHIFT, chosen
            )
        return chosen


class Arriving(NamedTuple):
    """Events in arrival order."""

    ts: I64
    stream: I64
    code: I64  # of the first key


class ByEvent:
    """Two streams: the unit is the partner of a late event."""

    copies = 1  # events kept of all, in shares

    def __init__(self, sampling: Sampling) -> None:
        self._hashed = _Hashed(sampling)
        self._turn = 0  # events so far

    def choose(self, events: Arriving) -> Flags:
        """Which of the next events are kept."""
        first, self._turn = self._turn, self._turn + len(events.ts)
        return self._hashed.chooses_numbers(first, len(events.ts))

    def may_look(self, chosen: Flags) -> Flags:
        """Which late events look for results in the sample: all of them."""
        return np.ones_like(chosen)

    def add(self, found: I64, looking: Arriving) -> tuple[int, int]:  # noqa: ARG002
        """Results that probes found, and how much they add to the sum of squares."""
        results, squares = found.sum(axis=0).tolist()
        return results, squares

    def forget_before(self, ts: int) -> None:
        """Nothing before `ts` will be found any more."""

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"turn": self._turn}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._turn = state["turn"]


class ByCluster:
    """More streams: the unit is a key and a pane of result time.

    Parameters
    ----------
    sampling
        How much is sampled.
    pane
        Length of a pane: no window is longer, so the results of an event lie in two at most.
    lengths
        Of the windows, by stream.
    hashes
        Of the values of key codes; None if there is no key that all streams share.
    """

    copies = 2

    def __init__(
        self,
        sampling: Sampling,
        pane: int,
        lengths: Sequence[int],
        hashes: Callable[[I64], U64] | None,
    ) -> None:
        self._hashed = _Hashed(sampling)
        self._hashes = hashes
        self._pane = pane
        self._lengths = np.array(lengths, np.int64)
        self._found: dict[tuple[int, int], int] = {}  # results by (key, pane)

    def choose(self, events: Arriving) -> Flags:
        """Which of these events are kept."""
        ts, stream = map(np.ascontiguousarray, (events.ts, events.stream))
        return self._hashed.chooses_panes(self._keys(events), ts, self._lengths, stream, self._pane)

    def may_look(self, chosen: Flags) -> Flags:
        """Which late events look for results in the sample: those in a sampled cluster."""
        return chosen

    def _keys(self, events: Arriving) -> U64:
        if self._hashes is None:
            return np.zeros(len(events.code), np.uint64)
        return self._hashes(events.code)

    def _is_sampled(self, keys: U64, pane: I64) -> Flags:
        return self._hashed.chooses(keys, pane.view(np.uint64))

    def add(self, found: I64, looking: Arriving) -> tuple[int, int]:
        """Results that probes found, and how much they add to the sum of squares.

        `found` has, for each probe, the results in panes of even and of odd number.
        """
        results = squares = 0
        keys = self._keys(looking)
        for further in (0, 1):
            pane = looking.ts // self._pane + further
            n = np.take_along_axis(found, pane[:, None] % 2, axis=1)[:, 0]
            at = np.flatnonzero((n > 0) & self._is_sampled(keys, pane))
            for key, p, more in zip(
                keys[at].tolist(), pane[at].tolist(), n[at].tolist(), strict=True
            ):
                before = self._found.get((key, p), 0)
                self._found[key, p] = before + more
                results += more
                squares += (before + more) ** 2 - before**2
        return results, squares

    def forget_before(self, ts: int) -> None:
        """Nothing before `ts` will be found any more."""
        if self._found:
            old = [unit for unit in self._found if (unit[1] + 1) * self._pane <= ts]
            for unit in old:
                del self._found[unit]

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {"found": [[*unit, n] for unit, n in self._found.items()]}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._found = {(key, pane): n for key, pane, n in state["found"]}
