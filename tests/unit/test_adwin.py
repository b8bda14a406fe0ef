"""Adwin with chunks of one number is ADWIN: river's implementation is the oracle."""

import numpy as np
import pytest
from river.drift import ADWIN

from slackwater.stats.adwin import Adwin, Chunk


def steps(rng):
    """Abrupt changes of a Bernoulli sequence."""
    return np.concatenate([rng.random(700) < p for p in (0.2, 0.8, 0.5)]).astype(float)


def drift(rng):
    """A mean that rises slowly."""
    return np.clip(rng.normal(np.linspace(0.2, 0.8, 2000), 0.1), 0, 1)


def still(rng):
    """Nothing changes."""
    return rng.random(2000)


def spikes(rng):
    """Mostly 0, as delays are, with a heavier phase."""
    rare = np.where(rng.random(2100) < 0.05, rng.random(2100), 0)
    rare[900:1100] = rng.random(200)
    return rare


@pytest.mark.parametrize("series", [steps, drift, still, spikes])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_window_is_as_wide_as_rivers_after_each_number(series, seed):
    ours = Adwin(delta=0.002)
    detector = ADWIN(delta=0.002, clock=1, max_buckets=5, min_window_length=5, grace_period=10)
    theirs = detector._helper  # the detector forgets its window after a change, the helper cuts it
    widths = []
    for x in series(np.random.default_rng(seed)).tolist():
        ours.add(Chunk(1, x, 0.0, None))
        theirs.update(x)
        widths.append((ours.size, int(theirs.get_width())))
    assert [w for w, _ in widths] == [w for _, w in widths]
    assert ours.mean == pytest.approx(theirs.get_total() / theirs.get_width())
