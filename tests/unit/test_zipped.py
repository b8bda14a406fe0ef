"""The package works from a zip or a wheel, and compiles its kernels once per content."""

import os
import subprocess
import sys
from zipfile import ZipFile

import pytest

from marks import full_but
from zipped import zipped

pytestmark = pytest.mark.compiled

USE = """
import numpy as np
import slackwater
from slackwater.dashboard.assemble import page
from slackwater.kernels.vectors import add_norms

vectors = np.array([[3.0, 4.0, 0.0]])
add_norms(vectors, 0, 2)
assert vectors[0, 2] == 5.0
print(slackwater.__file__, len(page()[0]) > 100_000, sum(add_norms.stats.cache_hits.values()))
"""


def used(archive, cache):
    """Where the package came from, whether its page is there, kernels found in the cache."""
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    env |= {"PYTHONPATH": str(archive), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    "name", full_but(("slackwater.zip",), ["slackwater.zip", "slackwater-0.1.0-py3-none-any.whl"])
)
def test_kernels_of_an_archive_are_compiled_once_wherever_it_lies(tmp_path, name):
    cache = tmp_path / "cache"
    for number, hits in enumerate("01"):
        (tmp_path / str(number)).mkdir()
        archive = zipped(tmp_path / str(number) / name)
        assert used(archive, cache) == [f"{archive}/slackwater/__init__.py", "True", hits]
    (folder,) = cache.iterdir()
    assert folder.name.startswith("slackwater_")


@pytest.mark.full
def test_when_one_kernel_has_changed_none_is_taken_from_the_cache(tmp_path):
    archive, cache = zipped(tmp_path / "slackwater.zip"), tmp_path / "cache"
    assert used(archive, cache)[-1] == "0"
    with ZipFile(archive, "a") as packed:
        packed.writestr("slackwater/kernels/new.py", "# which another one might call")
    assert used(archive, cache)[-1] == "0"
    assert used(archive, cache)[-1] == "1"


@pytest.mark.full
def test_without_a_folder_to_write_to_nothing_is_cached(tmp_path):
    archive = zipped(tmp_path / "slackwater.zip")
    nowhere = tmp_path / "a file"
    nowhere.touch()
    assert used(archive, nowhere)[1:] == ["True", "0"]
