"""The processor as Spark's helper beside the driver gets it."""

import subprocess
import sys

from pyspark import cloudpickle

from slackwater.spark.processor import GatherProcessor, ShardProcessor

ASK = """
import pickle, sys
sys.modules["slackwater"] = None  # not to be found
class Handle:
    def getValueState(self, name, schema): print(name)
    getMapState = lambda self, name, key, value: print(name)
for processor in pickle.load(sys.stdin.buffer):
    processor.init(Handle())
    processor.close()
"""


def test_its_state_can_be_asked_for_where_the_package_is_not():
    pickled = cloudpickle.dumps([ShardProcessor("a job"), GatherProcessor("a job")])
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=pickled, check=True, capture_output=True
    )
    assert done.stdout.decode().split() == ["header", "chunks", "gathered"]
