"""The rate source as a load: rows come by the clock, and get no older than they must."""

import pytest

from slackwater_lab.benches.steady import hold


@pytest.mark.full
def test_a_low_rate_is_held(spark, tmp_path):
    seen = hold(spark, 2_000, 300.0, seed=1, checkpoint=tmp_path, warm_up=0, most=4)
    assert seen.batches[-1].produced > 0
    assert all(batch.rows % 1_000 == 0 for batch in seen.batches)
    assert all(batch.age > 0 for batch in seen.batches)
    assert all(size > 10**8 for _, size in seen.memory)
