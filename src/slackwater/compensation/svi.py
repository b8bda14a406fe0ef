"""PECJ's analytical estimator by stochastic variational inference (5.1, Eq. 5 to 10).

Each parameter μ of a window, a rate, the selectivity or a mean value, is observed once in every
cell: x_i is the part of μ that is there, times the number of cells. Disorder distorts the
observations, ``x_i z_i ~ N(μ, 1/φ)``, so the density of x_i is z_i times that of a normal
distribution. With the mean-field family q(μ) q(φ) Π q(z_i) and the priors μ ~ N(μ_0, 1/(τ_0 φ)),
φ ~ Gamma, z_i ~ N(ζ_i, 1/ψ_i) above 0, every step of natural gradient ascent on the evidence lower
bound has a closed form, and with a step of 1 is coordinate ascent:

- q(μ) = N((τ_0 μ_0 + Σ E z_i x_i) / (τ_0 + n), 1 / ((τ_0 + n) E φ)), Eq. 8 and 9;
- q(z_i) = z_i N((ψ_i ζ_i + E φ x_i E μ) / (ψ_i + E φ x_i²), 1 / (ψ_i + E φ x_i²)), z_i > 0;
- q(φ) = Gamma(a_0 + (n + 1) / 2, b_0 + (Σ E (z_i x_i - μ)² + τ_0 E (μ - μ_0)²) / 2).

The posterior of a window is the next one's prior (Eq. 5). The paper does not say how it ever
forgets; here a parameter moves from window to window by a share of itself, whose mean square D is
learnt. So the prior is worth 1 / (1 / (τ_0 + n) + D μ² φ) observations, where φ is the precision of
the observations of this window and μ the larger one of their mean and the prior's: a window that
looks like none before does not believe them. What a distortion is on average, ζ, and
how much it varies, 1 / ψ, are learnt from complete windows, cell by cell. As printed, Eq. 6 to 8
lack the factor z_i, Eq. 7 a minus, and the posterior of Eq. 8 only follows from a prior whose
precision is a multiple of φ.

The paper's own example, two observations distorted by 2 and 3 and a prior of 1:

>>> posterior = infer(
...     np.array([[0.5, 1 / 3]]),
...     np.ones((1, 2), bool),
...     Prior(np.ones(1), np.ones(1)),
...     np.array([[2.0, 3.0]]),
...     np.full((1, 2), 1e6),
... )
>>> posterior.mean.round(3).tolist()
[1.0]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.compensation.forgetting import ForgettingMean
from slackwater.compensation.observation import Estimate, Truth, WindowObservation, parts_of
from slackwater.compensation.parameters import product_form, scaled_estimate
from slackwater.kernels.records import F64

_STEPS = 15
_SHAPE = 1.0  # a_0
_MOST = 30.0  # windows that a prior is worth
_TIGHT = 100.0  # ψ ζ² before any window is complete
_MOST_TIGHT = 1e12  # of a distortion that does not vary
_REMEMBERED = 30.0  # windows that distortions are learnt from
_LIMITS = (0.01, 100.0)  # of ζ
_TINY = 1e-12

_normal_tail = np.frompyfunc(lambda t: 0.5 * math.erfc(-t / math.sqrt(2.0)), 1, 1)


class Prior(NamedTuple):
    """The distribution of each parameter before a window: [parameter]."""

    mean: F64  # μ_0
    weight: F64  # τ_0, in observations


class Posterior(NamedTuple):
    """The distribution of each parameter after it: [parameter]."""

    mean: F64
    weight: F64  # τ_0 + n
    precision: F64  # E φ


def distortions(center: F64, precision: F64) -> tuple[F64, F64]:
    """Return mean and variance of z above 0 whose density is z times a normal density.

    >>> mean, variance = distortions(np.array([0.0, 50.0]), np.array([1.0, 1.0]))
    >>> mean.round(3).tolist(), variance.round(3).tolist()  # of z exp(-z² / 2): Rayleigh's
    ([1.253, 50.02], [0.429, 1.0])
    """
    scale = 1.0 / np.sqrt(precision)
    t = center / scale
    above = np.asarray(_normal_tail(t), float)
    edge = np.exp(-0.5 * np.minimum(t**2, 1400.0)) / math.sqrt(2.0 * math.pi)
    # moments of a normal distribution above 0, in units of its deviation
    first = np.maximum(t * above + edge, _TINY)
    second = (t**2 + 1.0) * above + t * edge
    third = (t**3 + 3.0 * t) * above + (t**2 + 2.0) * edge
    mean = second / first
    return scale * mean, scale**2 * np.maximum(third / first - mean**2, 0.0)


def infer(x: F64, known: NDArray[np.bool_], prior: Prior, zeta: F64, psi: F64) -> Posterior:
    """Return the posterior of all parameters; `x` is [parameter, observation], some are `known`."""
    n = known.sum(axis=1)
    x = np.where(known, x, 0.0)
    z = zeta
    mean, weight = prior.mean, prior.weight + n
    scale = np.maximum(np.abs(prior.mean), _TINY)
    rate = _SHAPE * (0.1 * scale) ** 2  # b_0: about a tenth off
    precision = _SHAPE / rate
    for _ in range(_STEPS):
        mean = (prior.weight * prior.mean + (z * x).sum(axis=1)) / np.maximum(weight, _TINY)
        of_z = psi + precision[:, None] * x**2
        z, varies = distortions((psi * zeta + (precision * mean)[:, None] * x) / of_z, of_z)
        variance = 1.0 / (np.maximum(weight, _TINY) * precision)
        off = np.where(known, (z * x - mean[:, None]) ** 2 + x**2 * varies, 0.0).sum(axis=1)
        off += n * variance + prior.weight * ((mean - prior.mean) ** 2 + variance)
        precision = (_SHAPE + (n + 1) / 2) / (rate + off / 2)
    return Posterior(mean, weight, precision)


class SviEstimator:
    """Rates, selectivity and means, each inferred on its own."""

    def __init__(self, n_streams: int, cells: int, n_values: int) -> None:
        self._m, self._cells = n_streams, cells
        n = n_streams + n_values
        self._prior: Prior | None = None
        # observations and the true parts in their place; products of them
        self._observed = ForgettingMean(_REMEMBERED, (n, cells))
        self._true = ForgettingMean(_REMEMBERED, (n, cells))
        self._squares = ForgettingMean(_REMEMBERED, (3, n, cells))
        self._last: F64 | None = None  # the parameters of the last complete window
        self._moved = ForgettingMean(_REMEMBERED, (n,))  # D, as a share of the square

    def estimate(self, observation: WindowObservation) -> Estimate:
        """Estimate the complete window."""
        posterior = self._infer(observation)
        sizes = np.maximum(posterior.mean[: self._m], observation.totals)
        selectivity, means = float(posterior.mean[self._m]), posterior.mean[self._m + 1 :]
        values = product_form(sizes, selectivity, np.concatenate([[1.0], means]))
        certain = np.maximum(posterior.weight, _TINY) * posterior.precision
        relative = 1.0 / (certain * np.maximum(posterior.mean**2, _TINY))
        common = float(relative[: self._m + 1].sum())
        spread = np.sqrt(common + np.concatenate([[0.0], relative[self._m + 1 :]]))
        if self._observed.weight == 0.0:
            spread = np.full(len(values), np.inf)
        return scaled_estimate(observation, sizes, values, spread)

    def _infer(self, observation: WindowObservation) -> Posterior:
        x = observation.parts
        usual = self._observed.value > 0.0
        # without history an empty cell says nothing; later only one that is always empty
        known = (x != 0.0) if self._observed.weight == 0.0 else usual | (x != 0.0)
        known[self._m + 1 :] &= observation.observed[0] > 0.0
        x = x * self._coverage(known)[:, None]
        zeta = self._distortion
        return infer(x, known, self._prior_of(zeta * x, known), zeta, self._certainty(zeta))

    def _prior_of(self, x: F64, known: NDArray[np.bool_]) -> Prior:
        """Return the prior of a window with these observations, distortions taken back."""
        n = known.sum(axis=1)
        own = np.where(known, x, 0.0).sum(axis=1) / np.maximum(n, 1)
        if self._prior is None:
            return Prior(own, np.full(len(x), 0.1) * self._missing)
        moved = self._moved.value * np.maximum(np.abs(own), np.abs(self._prior.mean)) ** 2
        off = np.where(known, (x - own[:, None]) ** 2, 0.0).sum(axis=1) / np.maximum(n - 1, 1)
        off = np.where(off > 0.0, off, moved)  # equal observations do not tell how precise they are
        spread = 1.0 / np.maximum(self._prior.weight, _TINY) + moved / np.maximum(off, _TINY)
        return self._prior._replace(weight=self._missing / spread)

    @property
    def _missing(self) -> F64:
        """Return the share of each parameter's events that is usually missing: [parameter].

        The mean of a part of a window is that of the window but for so much of its variance; of a
        whole window it is exact, and a prior is worth nothing.
        """
        m = self._m
        observed, true = (mean.value[:m].sum(axis=1) for mean in (self._observed, self._true))
        share = np.where(true > 0.0, observed, 1.0) / np.where(true > 0.0, true, 1.0)
        of_pairs = np.full(len(self._true.value) - m, share.prod())
        return np.asarray(1.0 - np.minimum(np.concatenate([share, of_pairs]), 1.0))

    def _coverage(self, known: NDArray[np.bool_]) -> F64:
        """Return the share of the cells that are known, by the share of the truth in them."""
        true = self._true.value
        inside, whole = np.where(known, true, 0.0).sum(axis=1), true.sum(axis=1)
        is_known = (inside > 0.0) & (whole > 0.0)
        share = np.where(is_known, inside, 1.0) / np.where(is_known, whole, 1.0)
        return np.asarray(np.where(is_known, known.mean(axis=1) / share, 1.0))

    @property
    def _distortion(self) -> F64:
        """ζ: by how much observations are too small, by the cell when it is complete."""
        observed, true = self._observed.value, self._true.value
        is_known = (observed > 0.0) & (true > 0.0)
        ratio = np.where(is_known, true, 1.0) / np.where(is_known, observed, 1.0)
        return np.asarray(np.clip(ratio, *_LIMITS))

    def _certainty(self, zeta: F64) -> F64:
        """ψ: the precision of the distortion of a cell, by what ζ times observations was off."""
        observed, both, true = self._squares.value
        is_known = (observed > 0.0) & (self._squares.weight >= 2.0)
        off = np.maximum(true - 2.0 * zeta * both + zeta**2 * observed, 0.0)
        varies = np.where(is_known, off, 1.0) / np.where(is_known, observed, 1.0)
        certain = self._squares.weight / np.maximum(varies, zeta**2 / _MOST_TIGHT)
        return np.asarray(np.maximum(np.where(is_known, certain, 0.0), _TIGHT / zeta**2))

    def learn(self, observation: WindowObservation, estimate: Estimate, truth: Truth) -> None:  # noqa: ARG002
        """Use the posterior as the next window's prior, and learn the distortions."""
        posterior = self._infer(observation)
        x, true = observation.parts, parts_of(truth.counts, truth.found)
        self._observed.add(x)
        self._true.add(true)
        self._squares.add(np.stack([x**2, x * true, true**2]))
        parameters = true.mean(axis=1)
        if self._last is not None:
            size = np.maximum((np.abs(parameters) + np.abs(self._last)) / 2, _TINY)
            self._moved.add(((parameters - self._last) / size) ** 2)
        self._last = parameters
        self._prior = Prior(posterior.mean, np.minimum(posterior.weight, _MOST * self._cells))

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        prior = None if self._prior is None else [part.tolist() for part in self._prior]
        last = None if self._last is None else self._last.tolist()
        own = {name: getattr(self, name).state() for name in _LEARNT}
        return own | {"prior": prior, "last": last}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        known, last = state["prior"], state["last"]
        self._prior = None if known is None else Prior(*(np.array(part) for part in known))
        self._last = None if last is None else np.array(last)
        for name in _LEARNT:
            getattr(self, name).resume(state[name])


_LEARNT = ("_observed", "_true", "_squares", "_moved")
