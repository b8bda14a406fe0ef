"""One Spark session for all tests of this folder: a fresh driver costs 25 s."""

import pytest

from slackwater.spark.session import session


@pytest.fixture(scope="session")
def spark():
    running = session("slackwater tests", cores=2)
    yield running
    running.stop()
