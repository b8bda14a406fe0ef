"""Hypothesis profiles, markers by folder, and fixtures that every suite shares."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

import profiles

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parent.parent / "shared"

pytest_plugins = ["counted"]

MARKER_OF_FOLDER = {"property": "trust", "spark": "spark", "faults": "spark"}

for name, count in profiles.EXAMPLES.items():
    settings.register_profile(
        name,
        max_examples=count,
        deadline=None,  # the first example may compile a kernel
        derandomize=name != "trust",  # `make test` repeats itself; `make trust` looks for new cases
        print_blob=True,
        # Of a mutant it only matters that some example fails, not which is the smallest.
        phases=[Phase.explicit, Phase.generate] if name == "mutants" else list(Phase),
        # Kernels as plain Python are slow on purpose; the data is not at fault.
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(profiles.PROFILE)

# Tests of a worker share one JVM, whichever starts it; rows of 65 MB need more than Spark's 1 GB.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 3g pyspark-shell")
# They live for minutes at most: Java's second compiler would take more time than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Spark finds its Java here where the system has none; see tools/ensure_java.py.
if (Path(sys.prefix) / "bin" / "java").exists():
    os.environ["JAVA_HOME"] = sys.prefix


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS):
            folder = item.path.relative_to(TESTS).parts[0]
            if marker := MARKER_OF_FOLDER.get(folder):
                item.add_marker(marker)
            # These start Spark or a browser: a file at a time. Of `make test`, which has few of
            # them, all that share a Spark session: one is quicker than two.
            if folder in ("spark", "faults", "cli", "dashboard"):
                is_one = profiles.PROFILE == "ci" and "spark" in item.fixturenames
                item.add_marker(pytest.mark.xdist_group("spark" if is_one else item.path.stem))


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The shared data beside the repository; a test that needs it is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("no shared data: the directory ../shared beside the repository is absent")
    return SHARED
