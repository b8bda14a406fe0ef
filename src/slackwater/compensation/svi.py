"""PECJ's analytical estimator by stochastic variational inference (5.1, Eq. 5 to 10).

Each parameter μ of a window, a rate, the selectivity or a mean value, is observed once in every
cell: x_i. Disorder distorts the observations, ``x_i z_i ~ N(μ, 1/φ)``. With the mean-field family
q(μ) q(φ) Π q(z_i) and the priors μ ~ N(μ_0, 1/(τ_0 φ)), φ ~ Gamma, z_i ~ N(ζ_i, 1/ψ_i) every step
of natural gradient ascent on the evidence lower bound has a closed form, and with a step of 1 is
coordinate ascent:

- q(μ) = N((τ_0 μ_0 + Σ E z_i x_i) / (τ_0 + n), 1 / ((τ_0 + n) E φ)), Eq. 8 and 9;
- q(z_i) = N((ψ_i ζ_i + E φ x_i E μ) / (ψ_i + E φ x_i²), 1 / (ψ_i + E φ x_i²));
- q(φ) = Gamma(a_0 + (n + 1) / 2, b_0 + (Σ E (z_i x_i - μ)² + τ_0 E (μ - μ_0)²) / 2).

The posterior of a window is the next one's prior (Eq. 5), less some weight, so that it can change.
The ζ are learnt from complete windows. As printed, Eq. 7 lacks a minus and the z_i, and the
posterior of Eq. 8 only follows from a prior whose precision is a multiple of φ.

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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.compensation.forgetting import ForgettingMean
from slackwater.compensation.observation import Estimate, Truth, WindowObservation
from slackwater.compensation.parameters import product_form, scaled_estimate
from slackwater.kernels.records import F64

_STEPS = 15
_KEPT = 0.2  # of the weight of the previous posterior
_SHAPE = 1.0  # a_0
_TIGHT = 100.0  # ψ ζ²: how certain a distortion is
_REMEMBERED = 30.0  # windows that distortions are learnt from
_TINY = 1e-12


class Prior(NamedTuple):
    """The distribution of each parameter before a window: [parameter]."""

    mean: F64  # μ_0
    weight: F64  # τ_0, in observations


class Posterior(NamedTuple):
    """The distribution of each parameter after it: [parameter]."""

    mean: F64
    weight: F64  # τ_0 + n
    precision: F64  # E φ


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
        z = (psi * zeta + (precision * mean)[:, None] * x) / of_z
        variance = 1.0 / (np.maximum(weight, _TINY) * precision)
        off = np.where(known, (z * x - mean[:, None]) ** 2 + x**2 / of_z, 0.0).sum(axis=1)
        off += n * variance + prior.weight * ((mean - prior.mean) ** 2 + variance)
        precision = (_SHAPE + (n + 1) / 2) / (rate + off / 2)
    return Posterior(mean, weight, precision)


class SviEstimator:
    """Rates, selectivity and means, each inferred on its own."""

    def __init__(self, n_streams: int, cells: int, n_values: int) -> None:
        self._m, self._cells = n_streams, cells
        n = n_streams + n_values
        self._prior: Prior | None = None
        # observations, and the true values in their place
        self._observed = ForgettingMean(_REMEMBERED, (n, cells))
        self._true = ForgettingMean(_REMEMBERED, (n, cells))

    def estimate(self, observation: WindowObservation) -> Estimate:
        """Estimate the complete window."""
        posterior = self._infer(observation)
        sizes = posterior.mean[: self._m] * self._cells
        selectivity, means = float(posterior.mean[self._m]), posterior.mean[self._m + 1 :]
        values = product_form(sizes, selectivity, np.concatenate([[1.0], means]))
        relative = 1.0 / (
            posterior.weight * posterior.precision * np.maximum(posterior.mean**2, _TINY)
        )
        common = float(relative[: self._m + 1].sum())
        spread = np.sqrt(common + np.concatenate([[0.0], relative[self._m + 1 :]]))
        if self._observed.weight == 0.0:
            spread = np.full(len(values), np.inf)
        return scaled_estimate(observation, np.maximum(sizes, observation.totals), values, spread)

    def _infer(self, observation: WindowObservation) -> Posterior:
        x = observation.by_cell
        known = np.isfinite(x)
        first = np.where(known, x, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        prior = self._prior or Prior(first, np.full(len(x), 0.1))
        zeta = self._distortion
        return infer(x, known, prior, zeta, _TIGHT / zeta**2)

    @property
    def _distortion(self) -> F64:
        """ζ: by how much observations are too small."""
        observed, true = self._observed.value, self._true.value
        return np.clip(
            np.where(observed > 0.0, true / np.where(observed > 0.0, observed, 1.0), 1.0),
            0.1,
            100.0,
        )

    def learn(self, observation: WindowObservation, estimate: Estimate, truth: Truth) -> None:  # noqa: ARG002
        """Use the posterior as the next window's prior, and learn the distortions."""
        posterior = self._infer(observation)
        self._prior = Prior(posterior.mean, _KEPT * posterior.weight)
        x = observation.by_cell
        true = np.empty((len(x), 1))
        true[: self._m, 0] = truth.counts.mean(axis=1)
        true[self._m] = truth.values[0] / max(float(truth.counts.sum(axis=1).prod()), 1.0)
        true[self._m + 1 :, 0] = truth.values[1:] / max(float(truth.values[0]), 1.0)
        known = np.isfinite(x)
        self._observed.add(np.where(known, x, 0.0))
        self._true.add(np.where(known, np.broadcast_to(true, x.shape), 0.0))

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from."""
        prior = None if self._prior is None else [part.tolist() for part in self._prior]
        return {"prior": prior, "observed": self._observed.state(), "true": self._true.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        known = state["prior"]
        self._prior = None if known is None else Prior(*(np.array(part) for part in known))
        self._observed.resume(state["observed"])
        self._true.resume(state["true"])
