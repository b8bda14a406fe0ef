"""A few seeded faults with every run of the suite; ``python -m faults`` does hundreds."""

import pytest

from faults.bench import Bench
from faults.families import FAMILIES

SEED = 1


@pytest.mark.full
def test_disturbed_runs_give_the_rows_of_an_undisturbed_one(tmp_path):
    with Bench("two-way", tmp_path, SEED) as bench:
        for family, n in {"file": 3, "driver": 1}.items():
            run = bench.run(family, FAMILIES[family], n, turn=0)
            assert run.verdict.ok, f"seed {SEED}: {run}"
            assert len(run.faults) == n
