"""One Spark session for all tests of this folder: a fresh driver costs 25 s.

With SLACKWATER_CONNECT=1 it is a Spark Connect client: no JVM, no SparkContext behind it.
"""

import os
import sys

import pytest

from slackwater.spark.session import STATE_PROVIDER, session


@pytest.fixture(scope="session")
def spark():
    running = connected() if os.environ.get("SLACKWATER_CONNECT") else session("tests", cores=2)
    yield running
    running.stop()


def connected():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    client = SparkSession.builder.remote("local[2]").getOrCreate()
    client.conf.set("spark.sql.shuffle.partitions", "2")
    client.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_PROVIDER)
    client.conf.set("spark.sql.session.timeZone", "UTC")
    assert not hasattr(client, "_jsparkSession")
    return client
