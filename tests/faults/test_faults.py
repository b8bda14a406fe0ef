"""A few seeded faults with every run of the suite; ``python -m faults`` does hundreds."""

import pytest

from faults.bench import Bench
from faults.families import FAMILIES

SEED = 1


@pytest.mark.parametrize(
    ("kind", "family", "n"), [("two-way", "driver", 1), ("windows", "file", 3)]
)
def test_a_disturbed_run_gives_the_rows_of_an_undisturbed_one(tmp_path, kind, family, n):
    with Bench(kind, tmp_path, SEED) as bench:
        run = bench.run(family, FAMILIES[family], n, turn=0)
    assert run.verdict.ok, f"seed {SEED}: {run}"
    assert len(run.faults) == n
