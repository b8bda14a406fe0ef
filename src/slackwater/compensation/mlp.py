"""PECJ's learning-based estimator (5.2): a small network per parameter, trained on past windows.

Its input is known at the deadline: of each parameter (the sizes, the selectivity, the mean of each
value) the observation of every cell, relative to the usual one, and how much of the window has
arrived. Its output is the factor for the plain extrapolation, and how certain it is. It learns only
from complete windows, never from the one that it estimates.

Outputs are the paper's seven (Eq. 15): log p(X|H), log p(μ), log p(φ), Σ log p(h|μ, φ),
Σ E log q(h), log E(μ|X), log E(φ|X). By plain regression the last two are fitted. With `elbo` all
are fitted first; later on the loss is -sigmoid(ELBO), as in the paper. That rewards large outputs,
whatever the truth: the last two are still fitted too, because nothing else would limit them.

Weights, seed and recipe are saved together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.compensation.forgetting import ForgettingMean
from slackwater.compensation.observation import Estimate, Truth, WindowObservation
from slackwater.compensation.parameters import parameters, product_form, scaled_estimate
from slackwater.compensation.sizes import Sizes
from slackwater.kernels.records import F64

_HIDDEN = 16
_OUTPUTS = 7
_MU, _PHI = 5, 6  # places of log E(μ|X) and log E(φ|X)
_KEPT = 256  # windows to learn from
_BATCH = 32
_EAGER = 300  # windows, each followed by a training step; later on
_LAZY = 8  # one step in so many windows
_PRE_TRAINING = 100  # windows before training with ELBO
_RATE = 0.01
_BETA = (0.9, 0.99)  # Adam's
_SEED = 7
_CAP = 2.0  # of the logarithm of a factor
_TINY = 1e-9


class Networks:
    """As many networks of one hidden layer as there are parameters, side by side."""

    def __init__(self, n: int, inputs: int) -> None:
        rng = np.random.default_rng(_SEED)
        self.weights = [
            rng.normal(0.0, 1.0 / np.sqrt(inputs), (n, inputs, _HIDDEN)),
            np.zeros((n, 1, _HIDDEN)),
            rng.normal(0.0, 0.01, (n, _HIDDEN, _OUTPUTS)),
            np.zeros((n, 1, _OUTPUTS)),
        ]
        self.weights[3][:, :, _PHI] = 4.0
        self.moments = [[np.zeros_like(w), np.zeros_like(w)] for w in self.weights]
        self.steps = 0

    def __call__(self, x: F64) -> F64:
        """Outputs for inputs [network, example, input]."""
        into, bias, out, shift = self.weights
        return np.asarray(np.tanh(x @ into + bias) @ out + shift)

    def step(self, x: F64, gradient: F64) -> None:
        """Move against the gradient of the loss by the outputs for `x`: Adam."""
        into, bias, out, _ = self.weights
        hidden = np.tanh(x @ into + bias)
        back = (gradient @ out.transpose(0, 2, 1)) * (1.0 - hidden**2)
        gradients = [
            x.transpose(0, 2, 1) @ back,
            back.sum(axis=1, keepdims=True),
            hidden.transpose(0, 2, 1) @ gradient,
            gradient.sum(axis=1, keepdims=True),
        ]
        self.steps += 1
        first, second = _BETA
        for weights, g, moments in zip(self.weights, gradients, self.moments, strict=True):
            moments[0] += (1.0 - first) * (g - moments[0])
            moments[1] += (1.0 - second) * (g**2 - moments[1])
            mean = moments[0] / (1.0 - first**self.steps)
            size = np.sqrt(moments[1] / (1.0 - second**self.steps))
            weights -= _RATE * mean / (size + 1e-8)  # noqa: PLW2901  in place


class MlpEstimator:
    """Estimates with the networks."""

    def __init__(self, n_streams: int, cells: int, n_values: int, elbo: bool = False) -> None:
        self._m, self._elbo = n_streams, elbo
        self._shape = {"streams": n_streams, "cells": cells, "values": n_values}
        n = n_streams + n_values
        self._networks = Networks(n, cells + 2)
        self._sizes = Sizes(n_streams, cells)
        self._usual = ForgettingMean(20.0, (n, cells))  # mean observation of each cell
        self._inputs = np.zeros((_KEPT, n, cells + 2))
        self._targets = np.full((_KEPT, n), np.nan)
        self._learnt = 0

    def estimate(self, observation: WindowObservation) -> Estimate:
        """Estimate the complete window."""
        plain = self._plain(observation)
        if self._learnt == 0:
            sizes, sure = plain[: self._m], np.full(len(plain), np.inf)
        else:
            output = self._networks(self._input(observation)[:, None, :])[:, 0]
            plain = plain * np.exp(np.clip(output[:, _MU], -_CAP, _CAP))
            sure = np.exp(-np.clip(output[:, _PHI], -4.0, 20.0))  # the variance of the logarithm
            sizes = np.maximum(plain[: self._m], observation.totals)
        values = product_form(
            sizes, float(plain[self._m]), np.concatenate([[1.0], plain[self._m + 1 :]])
        )
        common = float(sure[: self._m + 1].sum())
        spread = np.sqrt(common + np.concatenate([[0.0], sure[self._m + 1 :]]))
        return scaled_estimate(observation, sizes, values, spread)

    def _plain(self, observation: WindowObservation) -> F64:
        """Return sizes by the usual completeness, observed selectivity and means: [parameter]."""
        sizes = observation.totals / np.maximum(self._sizes.completeness, 0.01)
        selectivity, means = parameters(observation)
        return np.concatenate([sizes, [selectivity], means[1:]])

    def _input(self, observation: WindowObservation) -> F64:
        """Return the input of the networks: [parameter, input]."""
        cells, usual = observation.by_cell, self._usual.value
        known = np.isfinite(cells) & (usual > 0.0)
        ratio = np.where(known, cells, 1.0) / np.where(known, usual, 1.0)
        logs = np.where(known, np.clip(np.log(np.maximum(ratio, _TINY)), -2.0, 2.0), 0.0)
        whole = logs.mean(axis=1, keepdims=True) * 3.0
        share = np.full((len(cells), 1), float(known.mean()))
        return np.concatenate([logs, whole, share], axis=1)

    # ---- learning

    def learn(self, observation: WindowObservation, estimate: Estimate, truth: Truth) -> None:  # noqa: ARG002
        """Add a complete window to those that are trained on."""
        place = self._learnt % _KEPT
        true = np.concatenate([
            truth.counts.sum(axis=1),
            [truth.values[0] / max(float(truth.counts.sum(axis=1).prod()), 1.0)],
            truth.values[1:] / max(float(truth.values[0]), 1.0),
        ])  # fmt: skip
        plain = self._plain(observation)
        known = (plain > 0.0) & (true > 0.0) & (self._learnt > 0)
        ratio = np.where(known, true, 1.0) / np.where(known, plain, 1.0)
        self._inputs[place] = self._input(observation)
        self._targets[place] = np.where(known, np.clip(np.log(ratio), -_CAP, _CAP), np.nan)
        self._learnt += 1
        self._sizes.learn(observation.counts, truth.counts)
        cells = observation.by_cell
        self._usual.add(np.where(np.isfinite(cells), cells, self._usual.value))
        if self._learnt <= _EAGER or self._learnt % _LAZY == 0:
            self._train()

    def _train(self) -> None:
        """Do a step of Adam on some windows, chosen by a fixed seed."""
        n = min(self._learnt, _KEPT)
        if n < 2:
            return
        chosen = np.random.default_rng((_SEED, self._learnt)).integers(0, n, min(n, _BATCH))
        x = self._inputs[chosen].transpose(1, 0, 2)
        y = self._targets[chosen].T
        out = self._networks(x)
        self._networks.step(x, self._gradient(out, y) / len(chosen))

    def _gradient(self, out: F64, y: F64) -> F64:
        """Return the gradient of the loss by the outputs: [network, example, output]."""
        known = np.isfinite(y)
        off = np.where(known, out[:, :, _MU] - np.where(known, y, 0.0), 0.0)
        gradient = np.zeros_like(out)
        # minus the logarithm of a normal density with precision exp(out[PHI]), for the precision;
        # squared errors for the mean, or few errors would count for most
        precision = np.exp(np.clip(out[:, :, _PHI], -4.0, 20.0))
        gradient[:, :, _MU] = off
        gradient[:, :, _PHI] = np.where(known, np.clip(0.5 * (precision * off**2 - 1.0), -1, 5), 0)
        if not self._elbo:
            return gradient
        if self._learnt <= _PRE_TRAINING:
            gradient[:, :, :_MU] = np.where(
                known[:, :, None], out[:, :, :_MU] - _terms(out, off), 0.0
            )
            return gradient
        sign = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
        bound = 1.0 / (1.0 + np.exp(-np.clip(out @ sign, -30.0, 30.0)))
        steep = (bound * (1.0 - bound))[:, :, None]
        return np.asarray(gradient - steep * sign * known[:, :, None])

    # ---- as data

    def state(self) -> dict[str, Any]:
        """Return plain data to continue from; weights with the recipe they were made by."""
        return {
            "recipe": self.recipe,
            "weights": [w.tolist() for w in self._networks.weights],
            "moments": [[m.tolist() for m in pair] for pair in self._networks.moments],
            "inputs": self._inputs[: min(self._learnt, _KEPT)].tolist(),
            "targets": np.nan_to_num(self._targets[: min(self._learnt, _KEPT)], nan=1e9).tolist(),
            "learnt": self._learnt,
            "sizes": self._sizes.state(),
            "usual": self._usual.state(),
        }

    @property
    def recipe(self) -> dict[str, Any]:
        """How the weights are made."""
        return self._shape | {
            "hidden": _HIDDEN, "rate": _RATE, "batch": _BATCH, "seed": _SEED,
            "elbo": self._elbo, "steps": self._networks.steps,
        }  # fmt: skip

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._networks.steps = state["recipe"]["steps"]
        self._networks.weights = [np.array(w) for w in state["weights"]]
        self._networks.moments = [[np.array(m) for m in pair] for pair in state["moments"]]
        n = len(state["inputs"])
        if n:
            self._inputs[:n] = state["inputs"]
            targets = np.array(state["targets"])
            self._targets[:n] = np.where(targets > 1e8, np.nan, targets)
        self._learnt = state["learnt"]
        self._sizes.resume(state["sizes"])
        self._usual.resume(state["usual"])


def _terms(out: F64, off: F64) -> F64:
    """Return the targets of the first five outputs: the terms of Eq. 15, normal densities."""
    phi = np.clip(out[:, :, _PHI], -4.0, 20.0)
    likelihood = 0.5 * (phi - np.exp(phi) * off**2)
    of_mu = -0.5 * out[:, :, _MU] ** 2
    of_phi = -0.5 * (phi / 10.0) ** 2
    of_rest = np.zeros_like(phi)
    entropy = 0.5 * phi
    return np.stack([likelihood, of_mu, of_phi, of_rest, entropy], axis=2)
