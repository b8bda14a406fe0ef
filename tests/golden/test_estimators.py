"""Estimators of aggregates: one fixed series of windows, and the numbers that each must give.

The windows are made by whole-number arithmetic, so they are the same everywhere. Two streams, three
cells, two values. The delays change after 150 windows; some cells are empty, some windows have no
results. Where a number is not worked out beside it, it was recorded from this code: it does not
show that the estimator is good (the simulations of tests/unit/test_aggregates.py do), only that it
has not changed.
"""

import json

import numpy as np
import pytest

from slackwater.compensation.aema import AdaptiveAverage, AemaEstimator
from slackwater.compensation.delay_weighting import DelayWeightingEstimator
from slackwater.compensation.forgetting import ForgettingMean
from slackwater.compensation.intervals import Intervals
from slackwater.compensation.mlp import MlpEstimator, Networks
from slackwater.compensation.observation import Estimate, Truth, WindowObservation
from slackwater.compensation.parameters import parameters, scaled_estimate, squared_errors
from slackwater.compensation.sizes import Sizes
from slackwater.compensation.svi import Prior, SviEstimator, distortions, infer
from slackwater.compensation.tally import Tally, added_up, in_order

INF = float("inf")
KINDS = {
    "delays": lambda: DelayWeightingEstimator(2, 3, 2),
    "aema": lambda: AemaEstimator(2, 2),
    "svi": lambda: SviEstimator(2, 3, 2),
    "mlp": lambda: MlpEstimator(2, 3, 2),
    "mlp-elbo": lambda: MlpEstimator(2, 3, 2, elbo=True),
}


def window(i):
    """Window `i` at its deadline, and complete."""
    cell = np.arange(3)
    whole = np.stack([6 + (7 * i + 5 * cell) % 5, 4 + (3 * i + 2 * cell + i // 7) % 6]).astype(
        float
    )
    whole[:, 1] *= 1 + (i % 11 == 3)  # a burst
    whole[0, 0] *= i % 13 != 6  # a cell without events
    share = np.array([1.0, 0.75, 0.5] if i < 150 else [0.75, 0.5, 0.0])
    arrived = np.floor(whole * share + (i % 3) / 3)
    near = 0.1 + 0.02 * ((i * i) % 5)
    near *= i % 17 != 9  # no results
    found, true = (near * np.einsum("i,j->ij", *n) for n in (arrived, whole))
    value = 2.0 + (i % 4)
    delay, latest = np.array([4.0, 6.0]) + i % 5, np.array([98.0, 100.0])
    seen = WindowObservation(arrived, np.stack([found, value * found]), delay, latest, 100.0)
    by_first = true.sum(axis=1)
    return seen, Truth(whole, np.stack([by_first, (value + 0.25) * by_first]))


def numbers(estimate):
    parts = (estimate.values, estimate.spread, estimate.scale, estimate.sizes)
    return np.concatenate([*parts])


def series(estimator, until, start=0):
    """The estimates of windows; each is learnt from when it is complete."""
    found = []
    for i in range(start, until):
        seen, truth = window(i)
        estimate = estimator.estimate(seen)
        found.append(numbers(estimate))
        estimator.learn(seen, estimate, truth)
    return found


AT = (0, 1, 2, 9, 40, 101, 149, 153, 290, 319)
# values, standard errors, factors, sizes of the streams
EXPECTED = {
    "delays": [
        [15.6, 31.2, INF, INF, 1, 1, 13, 12],
        [64.85818, 194.5745, 0.4866017, 0.4866017, 1, 1, 23.75758, 22.75],
        [101.5089, 406.0358, 0.1459628, 0.02206414, 1, 1, 30.0534, 18.76455],
        [0.4247007, 0.4283789, 60.53332, 277.336, 1, 1, 25.64331, 19.20296],
        [40.85804, 81.79644, 0.3186665, 0.4575946, 1.016092, 1.017091, 19.00864, 21.15405],
        [65.24455, 195.7337, 0.2375153, 0.3367799, 1, 1, 24.5345, 22.16082],
        [35.09442, 105.2833, 0.3255985, 0.47361, 1, 1, 16.27111, 17.97379],
        [53.99945, 161.9984, 1.024569, 1.468194, 1, 1, 19.18485, 15.63718],
        [48.41861, 193.6744, 0.9738828, 1.324908, 1, 1, 22.03973, 21.96879],
        [54.64491, 273.2245, 0.9367165, 1.267531, 1, 1, 25.90508, 17.57857],
    ],
    "aema": [
        [17.65505, 35.3101, INF, INF, 1.131734, 1.131734, 13.82979, 12.76596],
        [39.95838, 119.8751, 0.8351692, 1.064565, 1.156203, 1.156203, 19.35484, 17.2043],
        [76.42375, 305.695, 0.6932773, 0.8782151, 1.419988, 1.419988, 25, 16.98306],
        [0, 0, 0.6639463, 0.7839483, 0.9915703, 0.9915703, 16.65214, 15.83926],
        [33.86408, 67.72817, 0.6628323, 0.7861898, 1.628081, 1.628081, 19.4555, 17.40592],
        [33.78351, 101.3505, 0.6441635, 0.7609691, 0.9200301, 0.9200301, 16.6183, 16.94091],
        [37.80252, 113.4076, 0.6525866, 0.7650542, 2.019365, 2.019365, 18.98009, 16.59744],
        [14.94832, 44.84496, 0.7711452, 0.8668723, 1.73013, 1.73013, 10.66964, 7.783413],
        [14.62917, 58.51668, 1.883909, 1.886985, 1.828646, 1.828646, 13.85787, 10.55658],
        [7.952726, 39.76363, 1.898258, 1.901565, 1.004132, 1.004132, 8.614849, 7.692847],
    ],
    "svi": [
        [15.35818, 29.9428, INF, INF, 0.9844984, 0.9597051, 13, 12.11919],
        [44.89284, 127.4432, 0.2156839, 0.2427371, 1.298983, 1.229198, 21.93339, 18.71537],
        [105.0092, 457.2041, 0.1334877, 0.1374587, 1.951119, 2.123765, 30.85258, 19.11161],
        [0, 0, 1.355278, 1.365806, 1, 1, 25.23197, 18.3315],
        [35.32891, 74.71495, 0.1280956, 0.1588541, 1.698505, 1.796033, 17.55814, 20.37174],
        [63.87333, 202.3881, 0.1037686, 0.1067766, 1.73947, 1.83722, 24.3333, 22.23951],
        [55.50751, 203.5327, 0.4381994, 0.5439238, 2.965145, 3.624158, 19.77102, 19.14929],
        [11.73425, 29.34641, 0.5041431, 0.5955616, 1.358131, 1.132192, 9.992204, 8.103665],
        [16.67126, 43.59613, 0.4664029, 0.5588252, 2.083907, 1.362379, 14.93483, 16.3826],
        [14.15593, 46.78766, 0.5088579, 0.591922, 1.787365, 1.181507, 14.98205, 11.62772],
    ],
    "mlp": [
        [15.6, 31.2, INF, INF, 1, 1, 13, 12],
        [70.9471, 219.4623, 0.2354881, 0.2718792, 2.052868, 2.116728, 24.48939, 23.61586],
        [102.1578, 423.7112, 0.2361155, 0.2724188, 1.898137, 1.968187, 30.57922, 18.20931],
        [0, 0, 0.2302891, 0.2616068, 1, 1, 25.75918, 18.92107],
        [35.55111, 80.03711, 0.07710621, 0.1000237, 1.709188, 1.923969, 17.66457, 20.04655],
        [62.14431, 202.0992, 0.07929324, 0.07942949, 1.692383, 1.834597, 23.97923, 21.53185],
        [37.12488, 120.4875, 0.07745218, 0.07776277, 1.983167, 2.145433, 16.26796, 18.87827],
        [38.15664, 123.6589, 0.1097942, 0.1099598, 4.416277, 4.770792, 16.46326, 12.92715],
        [46.31984, 198.7385, 0.1118557, 0.1121257, 5.78998, 6.21058, 20.96794, 21.93971],
        [60.92564, 317.2171, 0.165979, 0.1665937, 7.692631, 8.010533, 29.0539, 17.48393],
    ],
    "mlp-elbo": [
        [15.6, 31.2, INF, INF, 1, 1, 13, 12],
        [70.9471, 219.4623, 0.2354881, 0.2718792, 2.052868, 2.116728, 24.48939, 23.61586],
        [102.1578, 423.7112, 0.2361155, 0.2724188, 1.898137, 1.968187, 30.57922, 18.20931],
        [0, 0, 0.2300734, 0.2619668, 1, 1, 25.74205, 18.95046],
        [36.58994, 81.71321, 0.07359258, 0.08497219, 1.759132, 1.96426, 17.83235, 20.49222],
        [61.84366, 202.0847, 0.08209771, 0.08219155, 1.684195, 1.834465, 24.2088, 21.28836],
        [35.39518, 115.2291, 0.0711304, 0.07138505, 1.890768, 2.0518, 15.64414, 18.84658],
        [38.68697, 125.6753, 0.06948715, 0.06968596, 4.477658, 4.848583, 16.27405, 13.18234],
        [44.78069, 191.3297, 0.11455, 0.114704, 5.597587, 5.979054, 20.5594, 21.77597],
        [59.73921, 313.0426, 0.1551001, 0.1553354, 7.542829, 7.905116, 28.80994, 17.27729],
    ],
}


# sums over all windows of what is finite, and weighted sums of roots
SUMS = {
    "delays": [
        20425.6837, 71525.90863, 478.4242377, 953.9466052, 319.6027051, 319.7491456,
        7672.289574, 6345.959371, 9744.680098, 17976.9228, 1092.815174, 1327.934504,
        1274.208001, 1274.46168, 6208.383575, 5673.050834,
    ],
    "aema": [
        8473.386574, 29718.71755, 376.177393, 397.1169176, 423.0498084, 423.0498084,
        4699.120192, 3977.610943, 6051.365466, 11161.25904, 1345.027623, 1392.798623,
        1453.55515, 1453.55515, 4820.469597, 4449.763481,
    ],
    "svi": [
        12510.13231, 43322.59036, 131.3786269, 150.5257108, 550.4146016, 496.7568093,
        6125.263387, 5093.45969, 7203.067349, 12815.13875, 773.6191864, 828.8352659,
        1662.482413, 1567.384689, 5498.370389, 5046.528288,
    ],
    "mlp": [
        21444.10031, 80433.29628, 37.71806492, 39.06844813, 1305.842506, 1406.193572,
        7962.058148, 6338.57856, 9881.932067, 18899.08723, 429.865591, 436.7081366,
        2458.880098, 2550.310314, 6294.164008, 5662.239741,
    ],
    "mlp-elbo": [
        21245.90149, 79667.14908, 34.65177433, 35.85477001, 1289.436399, 1387.293956,
        7887.859281, 6337.897347, 9840.974611, 18816.53923, 414.0574417, 420.1534986,
        2446.287823, 2536.468754, 6266.529948, 5662.520016,
    ],
}  # fmt: skip


def summed(found):
    rows = np.where(np.isfinite(found), found, 0.0)
    weights = 1.0 + np.arange(len(rows))[:, None] % 7
    return [*rows.sum(axis=0), *(weights * np.sqrt(np.abs(rows))).sum(axis=0)]


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_of_a_fixed_series_of_windows(kind):
    found = series(KINDS[kind](), 320)
    assert summed(found) == pytest.approx(SUMS[kind], rel=1e-5 if "mlp" in kind else 1e-8)
    for at, expected in zip(AT, EXPECTED[kind], strict=True):
        assert found[at] == pytest.approx(expected, rel=1e-5, abs=1e-9), f"window {at}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 1, 30, 270])
def test_an_estimator_goes_on_from_its_state_as_if_nothing_had_happened(kind, after):
    estimator, again = KINDS[kind](), KINDS[kind]()
    series(estimator, after)
    again.resume(json.loads(json.dumps(estimator.state())))
    for mine, other in zip(
        series(estimator, after + 12, after), series(again, after + 12, after), strict=True
    ):
        assert other.tolist() == mine.tolist()


# ---- parts, by hand


def test_a_step_of_the_networks_goes_against_the_gradient_at_adams_rate():
    networks = Networks(1, 2)
    x, before = np.array([[[0.5, -1.0], [2.0, 0.25]]]), [w.copy() for w in Networks(1, 2).weights]
    rng = np.random.default_rng(7)
    assert before[0] == pytest.approx(rng.normal(0.0, 2**-0.5, (1, 2, 16)))
    assert before[2] == pytest.approx(rng.normal(0.0, 0.01, (1, 16, 7)))
    assert (before[1], before[3].ravel()) == (pytest.approx(0), pytest.approx([0] * 6 + [4.0]))
    slope = np.linspace(-3, 4, 14).reshape(1, 2, 7)

    def loss(weights):
        one = Networks(1, 2)
        one.weights = weights
        return float((one(x) * slope).sum())

    networks.step(x, slope)
    assert networks.steps == 1
    for w, (old, new, moments) in enumerate(
        zip(before, networks.weights, networks.moments, strict=True)
    ):
        for at in [(0, 0, 0), (0, old.shape[1] - 1, 3), (0, 0, old.shape[2] - 1)]:
            sides = []
            for sign in (1, -1):
                moved = [other.copy() for other in before]
                moved[w][at] += sign * 1e-6
                sides.append(loss(moved))
            gradient = (sides[0] - sides[1]) / 2e-6
            assert moments[0][at] == pytest.approx(0.1 * gradient, rel=1e-5)
            assert moments[1][at] == pytest.approx(0.01 * gradient**2, rel=1e-5)
            assert new[at] - old[at] == pytest.approx(
                -0.01 * np.sign(gradient), rel=1e-4
            )  # Adam's first step
    networks.step(x, np.zeros_like(slope))
    gradient = slope.sum(axis=1)[0, 2]  # of a shift
    mean, square = 0.09 * gradient / 0.19, 0.0099 * gradient**2 / 0.0199
    moved = networks.weights[3][0, 0, 2] - before[3][0, 0, 2]
    assert moved == pytest.approx(-0.01 * np.sign(gradient) - 0.01 * mean / square**0.5)


@pytest.mark.parametrize(("sign", "factor", "variance"), [(1, 2.0, -20.0), (-1, -2.0, 4.0)])
def test_what_the_networks_say_is_limited(sign, factor, variance):
    """However sure they are: to a factor of e^2, and a variance between e^-20 and e^4."""
    estimator = MlpEstimator(2, 3, 2)
    seen, truth = window(4)
    plain = estimator.estimate(seen)
    estimator.learn(seen, plain, truth)
    plain = estimator._plain(seen)
    estimator._networks = lambda x: np.full((len(x), 1, 7), 100.0 * sign)
    found = estimator.estimate(seen)
    moved = plain * np.exp(factor)
    assert found.sizes == pytest.approx(np.maximum(moved[:2], seen.totals))
    # sizes and selectivity have errors, then the mean too
    assert found.spread**2 == pytest.approx(np.exp(variance) * np.array([3, 4]))


def test_the_gradient_is_that_of_a_normal_density_and_is_limited():
    estimator = MlpEstimator(2, 3, 2)
    out = np.zeros((1, 5, 7))
    out[0, :, 5] = [1.0, 3.0, 0.5, 2.0, 0.0]
    out[0, :, 6] = [0.0, 1.0, -9.0, 30.0, 0.5]
    gradient = estimator._gradient(out, np.array([[0.5, 1.0, 1.0, 2.0, np.nan]]))
    assert gradient[0, :, 5].tolist() == [0.5, 2.0, -0.5, 0.0, 0.0]
    assert gradient[0, :, 6] == pytest.approx([
        0.5 * (0.25 - 1), 0.5 * (np.e * 4 - 1), 0.5 * (np.exp(-4) * 0.25 - 1), -0.5, 0.0
    ])  # fmt: skip
    assert not gradient[:, :, :5].any()
    out[0, 0, 5:] = [9.0, 0.0]
    assert estimator._gradient(out, np.array([[1.0] * 5]))[0, 0, 6] == 5  # at most


def test_before_training_with_elbo_the_terms_of_eq_15_are_fitted():
    estimator = MlpEstimator(2, 3, 2, elbo=True)
    out = np.zeros((1, 2, 7))
    out[0, :, :5] = [1.0, 2.0, 3.0, 4.0, 5.0]
    out[0, :, 5:] = [3.0, 2.0]
    gradient = estimator._gradient(out, np.array([[1.0, np.nan]]))
    likelihood, of_mu, of_phi = 0.5 * (2 - np.exp(2) * 4), -0.5 * 9, -0.5 * 0.2**2
    assert gradient[0, 0, :5] == pytest.approx(
        [1 - likelihood, 2 - of_mu, 3 - of_phi, 4 - 0, 5 - 0.5 * 2]
    )
    assert not gradient[0, 1].any()
    estimator._learnt = 101  # from now on -sigmoid(ELBO), and the fit of the last two
    later = estimator._gradient(out / 10, np.array([[0.3, np.nan]]))
    bound = 1 / (1 + np.exp(-(0.1 + 0.2 + 0.3 + 0.4 - 0.5 + 0.3 + 0.2)))
    steep = bound * (1 - bound)
    assert later[0, 0, :6] == pytest.approx([-steep] * 4 + [steep, -steep])
    assert later[0, 0, 6] == pytest.approx(-0.5 - steep)
    assert not later[0, 1].any()


def above_zero(center, precision, power):
    """A moment of z times a normal density, z > 0, by summing."""
    z = np.linspace(1e-6, 12.0, 200_001)
    density = z * np.exp(-precision * (z - center) ** 2 / 2)
    return float((z**power * density).sum() / density.sum())


def test_coordinate_ascent_as_in_eq_8_to_10():
    x, known = np.array([[2.0, 4.0, 9.0]]), np.array([[True, True, False]])
    prior, zeta, psi = Prior(np.array([3.0]), np.array([0.5])), np.array([[1.0, 1.5, 7.0]]), 50.0
    z, rate = [1.0, 1.5], 0.3**2  # a_0 = 1, b_0: a tenth of the mean
    phi, mean = 1 / rate, 3.0
    for _ in range(15):
        mean = (0.5 * 3.0 + z[0] * 2.0 + z[1] * 4.0) / 2.5
        of_z = [psi + phi * 4.0, psi + phi * 16.0]
        center = [
            (psi * 1.0 + phi * mean * 2.0) / of_z[0], (psi * 1.5 + phi * mean * 4.0) / of_z[1]
        ]  # fmt: skip
        z = [above_zero(c, p, 1) for c, p in zip(center, of_z, strict=True)]
        varies = [
            above_zero(c, p, 2) - own**2 for c, p, own in zip(center, of_z, z, strict=True)
        ]  # fmt: skip
        variance = 1 / (2.5 * phi)
        off = (z[0] * 2 - mean) ** 2 + 4 * varies[0] + (z[1] * 4 - mean) ** 2 + 16 * varies[1]
        off += 2 * variance + 0.5 * ((mean - 3.0) ** 2 + variance)
        phi = (1 + 3 / 2) / (rate + off / 2)
    found = infer(x, known, prior, zeta, np.full((1, 3), psi))
    assert (found.mean[0], found.weight[0], found.precision[0]) == pytest.approx(
        (mean, 2.5, phi), rel=1e-6
    )
    assert found.precision[0] == pytest.approx(0.5447, abs=5e-5)  # E φ


def test_a_distortion_has_the_factor_z_of_the_density_of_an_observation():
    # x_i z_i ~ N(μ, 1/φ): the density of x_i is z_i times a normal one. x = (1, 3), ζ = (2, 1),
    # μ_0 = τ_0 = 2, so μ is first (2 * 2 + 2 + 3) / 4; φ = 25 is held, ψ = 25 / ζ²
    x, zeta, phi = np.array([1.0, 3.0]), np.array([2.0, 1.0]), 25.0
    psi, with_factor, without = phi / zeta**2, zeta, zeta
    for _ in range(2):
        of_z = psi + phi * x**2
        mean = [(2 * 2 + (z * x).sum()) / 4 for z in (with_factor, without)]
        with_factor, _ = distortions((psi * zeta + phi * mean[0] * x) / of_z, of_z)
        without = (psi * zeta + phi * mean[1] * x) / of_z
    assert with_factor.mean() == pytest.approx(1.437, abs=0.0005)
    assert without.mean() == pytest.approx(1.422, abs=0.0005)
    center, precision = np.array([2.0, 0.3, 0.0, -1.0]), np.array([4.0, 9.0, 1.0, 2.0])
    mean, variance = distortions(center, precision)
    for i, (c, p) in enumerate(zip(center, precision, strict=True)):
        first = above_zero(c, p, 1)
        assert mean[i] == pytest.approx(first, rel=1e-6)
        assert variance[i] == pytest.approx(above_zero(c, p, 2) - first**2, rel=1e-5)


def test_distortions_are_learnt_cell_by_cell_and_with_them_how_much_they_vary():
    # one stream of two cells: of the first all events arrive, of the second a half, by chance
    svi, products = SviEstimator(1, 2, 1), np.zeros((1, 2))
    for arrived, whole in (((10.0, 4.0), (10.0, 10.0)), ((20.0, 6.0), (20.0, 10.0))):
        counts = np.array([arrived])
        seen = WindowObservation(counts, products, np.zeros(1), np.zeros(1), 10.0)
        estimate = svi.estimate(seen)
        svi.learn(seen, estimate, Truth(np.array([whole]), products))
    zeta = svi._distortion
    assert zeta[0] == pytest.approx([1.0, 2.0])
    # off by 10 - 2 * 4 and 10 - 2 * 6 of observations 4 and 6: z varies by 4 / 26 over two windows
    assert svi._certainty(zeta)[0] == pytest.approx([2e12, 100 / 4])  # at least 100 by ζ²
    assert svi._missing == pytest.approx([1 - 40 / 50, 1 - 40 / 50])
    # from 20 to 30 events: by 10 of 25
    assert svi.state()["_moved"][0][0] == pytest.approx((10 / 25) ** 2)


def test_a_prior_is_worth_the_less_the_more_windows_differ():
    # sizes and a selectivity move by a half of themselves; half of the events are usually missing
    svi = SviEstimator(1, 2, 1)
    svi._observed.add(np.array([[1.0, 1.0], [1.0, 1.0]]))
    svi._true.add(np.array([[2.0, 2.0], [2.0, 2.0]]))
    svi._moved.add(np.array([0.25, 0.25]))
    svi._prior = Prior(np.array([4.0, 10.0]), np.array([6.0, 6.0]))
    x, known = np.array([[2.0, 6.0], [1.0, 3.0]]), np.ones((2, 2), bool)
    # observations 2 and 6 vary by 8 around 4, windows by 0.25 * 4²: 1 / (1/6 + 4/8), and half of it
    # 1 and 3 vary by 2, and the prior of 10 is five times their mean: 1 / (1/6 + 25/2), and half
    prior = svi._prior_of(x, known)
    assert prior.mean.tolist() == [4, 10]
    assert prior.weight == pytest.approx([0.75, 0.5 / (1 / 6 + 25 / 2)])
    # one observation says nothing about how much they vary: as much as windows do
    known[:, 1] = False
    assert svi._prior_of(x, known).weight == pytest.approx([0.5 / (1 / 6 + 1)] * 2)


def test_in_order_windows_are_exact_for_svi():
    svi = SviEstimator(2, 3, 2)
    for i in range(12):
        seen, _ = window(i)
        found = np.stack([p.sum(axis=1) for p in seen.products])
        estimate = svi.estimate(seen)
        if i > 1:
            assert estimate.values == pytest.approx(seen.observed, rel=1e-6), i
        svi.learn(seen, estimate, Truth(seen.counts, found))


def test_sizes_by_hand():
    sizes = Sizes(1, 2)
    assert sizes.estimate(np.array([[3.0, 1.0]])).tolist() == [[3.0, 1.0]]
    assert (sizes.share.tolist(), sizes.completeness.tolist()) == ([[1.0, 1.0]], [1.0])
    sizes.learn(np.array([[8.0, 4.0]]), np.array([[8.0, 8.0]]))
    assert (sizes.share.tolist(), sizes.completeness.tolist()) == ([[1.0, 0.5]], [0.75])
    # dispersion 1: 12 are expected, half of the second cell's are random; 9 are there
    chance = 8 * 0 + 4 * 0.5 + (8 + 4 * 0.5)
    trust = 0.05 / (0.05 + chance / 12**2)
    level = 1 + trust * (9 / 12 - 1)
    estimate = sizes.estimate(np.array([[7.0, 2.0]]))
    assert estimate[0] == pytest.approx([7.0, 8 * level + (2 - 4 * level)])
    # a second window of 10 and 4 events: its rate is 14/16 of the usual one
    sizes.learn(np.array([[10.0, 4.0]]), np.array([[10.0, 4.0]]))
    dispersion = ((10 - 7) ** 2 / 7 + (4 - 7) ** 2 / 7) / 1
    assert sizes.share[0] == pytest.approx([1.0, 8 / 12])
    state = sizes.state()
    assert state["_dispersion"] == [[pytest.approx(dispersion)], 1.0]
    assert state["_level"] == [[0.0], 1.0]  # (1/8)^2 is less than by chance
    # the shares were 0.99 (at most) and 0.5: of 10 and 4 events 9.9 and 2
    off = ((10 - 9.9) ** 2 / 1 + (4 - 2) ** 2 / 1) / 2
    assert state["_off"] == [pytest.approx(off), 1.0]
    sizes.learn(np.array([[30.0, 15.0]]), np.array([[30.0, 30.0]]))
    level = 60 / 15
    by_chance = (dispersion + ((30 - 36) ** 2 / 36 + (30 - 24) ** 2 / 24)) / 2 / 15
    assert sizes.state()["_level"] == [[pytest.approx(((level - 1) ** 2 - by_chance) / 2)], 2.0]


def test_changed_delays_are_noticed_and_old_windows_then_count_little():
    sizes = Sizes(1, 1)
    for arrived in (5.0, 6.0, 4.0, 5.0):
        sizes.learn(np.array([[arrived]]), np.array([[10.0]]))
    before = sizes.state()
    assert (before["_arrived"], before["_off"][1]) == ([[[5.0]], 4.0], 3.0)
    sizes.learn(np.array([[0.0]]), np.array([[10.0]]))  # ten times the usual error
    after = sizes.state()
    assert after["_arrived"] == [[[pytest.approx(5 * 2 / 3)]], 3.0]  # the mean counted as two
    assert after["_whole"] == [[[10.0]], 3.0]
    assert after["_usual"] == [[[10.0]], 5.0]
    assert after["_off"] == before["_off"]


def test_a_mean_forgets():
    mean = ForgettingMean(2.0)
    for value, expected, weight in ((4.0, 4.0, 1), (8.0, 6.0, 2), (0.0, 3.0, 2)):
        mean.add(value)
        assert (float(mean.value), mean.weight) == (expected, weight)
    mean.forget(1.0)
    mean.add(5.0)
    assert (float(mean.value), mean.weight) == (4.0, 2)


def test_an_average_adapts_to_its_errors():
    average = AdaptiveAverage()
    assert (average.follow(10.0), average.known) == (10.0, (10.0, 0.0, 0.0))
    assert average.preview(14.0) == 14.0  # the first error has one sign: it is followed at once
    average.follow(14.0)
    assert average.known == (14.0, pytest.approx(0.8), pytest.approx(0.8))
    average.follow(9.0)  # errors 0.8 + 0.2 (-5 - 0.8), sizes 0.8 + 0.2 (5 - 0.8)
    assert average.known == pytest.approx((14 - 0.36 / 1.64 * 5, -0.36, 1.64))


def test_sizes_from_rates_grow_by_two_at_most():
    def seen(latest, delay):
        one = np.ones((1, 1, 1))
        return WindowObservation(
            np.array([[6.0]]), one, np.array([delay]), np.array([latest]), 100.0
        )

    cases = (
        (90.0, 10.0, 7.5), (50.0, 45.0, 12.0), (130.0, 5.0, 6.0),
        # the window is over: an eighth of the delay after its end
        (104.9, 40.0, 6 * 100 / 64.9), (105.1, 40.0, 6.6), (1000.0, 950.0, 6.6), (105.1, 1.0, 6.0),
    )  # fmt: skip
    for latest, delay, size in cases:
        estimate = AemaEstimator(1, 1).estimate(seen(latest, delay))
        assert estimate.sizes == pytest.approx([size])
        assert estimate.values == pytest.approx(size / 6)


def test_parameters_of_nothing_and_factors_of_nothing():
    nothing = np.zeros((2, 1))
    empty = WindowObservation(nothing, np.zeros((2, 1, 1)), np.zeros(2), np.zeros(2), 6.0)
    selectivity, means = parameters(empty)
    assert (selectivity, means.tolist()) == (0.0, [0.0, 0.0])
    assert np.isnan(empty.by_cell).all()
    products = np.array([[[1.0]], [[0.0]], [[-2.0]]])
    seen = WindowObservation(np.ones((2, 1)), products, np.zeros(2), np.zeros(2), 6.0)
    estimate = scaled_estimate(seen, np.ones(2), np.array([3.0, 4.0, -5.0]), np.zeros(3))
    assert estimate.scale.tolist() == [3.0, 1.0, 2.5]
    assert estimate.values.tolist() == [3.0, 0.0, -5.0]
    assert estimate.apply(seen.products).tolist() == [3.0, 0.0, -5.0]
    weighted = estimate._replace(weights=np.array([[2.0], [3.0]]))
    assert weighted.apply(seen.products).tolist() == [18.0, 0.0, -30.0]


def test_squared_errors_are_relative_to_the_estimate():
    estimate = Estimate(None, np.ones(4), np.array([4.0, 0.0, -1.0, 1.0]), np.ones(4), np.ones(2))
    truth = Truth(np.ones((2, 1)), np.array([[5.0], [3.0], [-1.5], [9.0]]))
    assert squared_errors(estimate, truth).tolist() == [1 / 16, 0.0, 0.25, 4.0]


def test_what_is_observed_in_each_cell():
    counts = np.array([[2.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    products = np.zeros((2, 3, 3))
    products[0, 0], products[1, 0] = [3.0, 1.0, 0.0], [6.0, 4.0, 0.0]
    seen = WindowObservation(counts, products, np.zeros(2), np.zeros(2), 9.0)
    nan = np.nan
    assert seen.by_cell == pytest.approx(
        np.array([[2.0, nan, 1.0], [3.0, 1.0, nan], [4 / 8, nan, 0.0], [10 / 4, nan, nan]]),
        nan_ok=True,
    )
    assert (seen.observed.tolist(), seen.totals.tolist()) == ([4.0, 10.0], [3.0, 4.0])


def test_intervals_by_hand():
    intervals = Intervals(0.8)
    # few windows: one and a half times those of a normal distribution
    assert intervals.around(10.0, 2.0) == pytest.approx((10 - 3 * 1.2815516, 10 + 3 * 1.2815516))
    for i in range(19):
        intervals.learn(10.0, 2.0, 10.0 + 2 * i, was_inside=True)  # i errors above
    assert intervals.around(10.0, 2.0)[1] == pytest.approx(10 + 3 * 1.2815516)
    intervals.learn(10.0, 2.0, 48.0, was_inside=False)
    # 20 errors, 0 to 19; the share left out is 0.2 and moved by each window
    aim = 0.2 + 0.01 * (19 * 0.2 - 0.8)
    place = aim / 2 * 21 - 1
    low, high = intervals.around(100.0, 1.0)
    assert (low, high) == pytest.approx((100 + place, 100 + 19 - place))
    intervals.learn(10.0, 0.0, 48.0, was_inside=False)
    intervals.learn(10.0, INF, 48.0, was_inside=False)
    assert intervals.around(100.0, 1.0) == (low, high)


def test_intervals_reach_beyond_the_past_where_too_little_is_left_out():
    intervals = Intervals(0.95)
    intervals.resume([0.05, [float(i) for i in range(21)]])
    place = 0.05 / 2 * 22 - 1  # before the first: a tenth of the range for each place
    assert intervals.around(0.0, 1.0) == pytest.approx((place * 2, 20 - place * 2))
    intervals.resume([-3.0, [float(i) for i in range(21)]])
    place = 0.002 / 2 * 22 - 1
    assert intervals.around(0.0, 1.0) == pytest.approx((place * 2, 20 - place * 2))
    intervals.resume([3.0, [float(i) for i in range(21)]])
    assert intervals.around(0.0, 1.0) == pytest.approx((4.5, 15.5))  # half is left out at most


def test_intervals_remember_250_windows():
    intervals = Intervals(0.9)
    for i in range(251):
        intervals.learn(0.0, 1.0, float(i == 0) * 99 + i % 7, was_inside=True)
    past = intervals.state()[1]
    assert (len(past), max(past)) == (250, 6.0)
    assert intervals.around(0.0, 1.0)[1] < 8


def tally(groups, counts, products, delay, latest):
    return Tally(*map(np.array, (counts, products)), groups, np.array(delay), np.array(latest))


def test_tallies_of_shards_add_up():
    one = tally(
        [("a",), ("b",)], [[1.0, 2.0]], [[[1.0, 2.0]], [[3.0, 4.0]]], [6.0], [50.0]
    )  # fmt: skip
    two = tally([("b",), (None,)], [[0.0, 6.0]], [[[10.0, 20.0]], [[5.0, 5.0]]], [3.0], [70.0])
    whole = added_up([one, two])
    assert whole.groups == [("a",), ("b",), (None,)]
    assert whole.counts.tolist() == [[1.0, 8.0]]
    assert whole.products.tolist() == [[[1.0, 2.0]], [[13.0, 24.0]], [[5.0, 5.0]]]
    assert whole.delay.tolist() == [(3 * 6.0 + 6 * 3.0) / 9]
    assert whole.latest.tolist() == [70.0]
    assert added_up([one]) is one
    empty = tally([()], [[0.0, 0.0]], [[[0.0, 0.0]]], [0.0], [0.0])
    assert added_up([empty, empty]).delay.tolist() == [0.0]
    assert sorted([(None, 1), (2, 0), (1, None)], key=in_order) == [(1, None), (2, 0), (None, 1)]
