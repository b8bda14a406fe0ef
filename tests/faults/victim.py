"""A Spark driver in a process of its own: ``python -m faults.victim MASTER SCRATCH``.

One order per line comes in, one answer per line goes out, as JSON. A query runs until its input is
used up. The answer is what its micro-batches counted, or why it was refused.
"""

import json
import os
import sys
from pathlib import Path

from faults.kinds import KINDS
from slackwater.spark import check_checkpoint, session
from spark.streams import finish, is_balanced, observed

COUNTS = ("arrivals", "produced", "missed", "shed", "late_kept", "late_dropped", "buffered")

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # JVMs here do not live long enough for more


def started(master, scratch):
    return session("victim", settings={
        "spark.master": master,
        "spark.local.dir": scratch,
        "spark.sql.shuffle.partitions": 2,
        # snapshots of the state too, not only what changed since the first
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": 2,
        "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
        "spark.deploy.maxExecutorRetries": -1,
        "spark.driver.extraJavaOptions": BRIEF,
        "spark.executor.extraJavaOptions": BRIEF,
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",  # messages with their causes
    })  # fmt: skip


def run(spark, order):
    """Run a query over the files that are there."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", order["partition"])
    spark.conf.set("spark.sql.files.openCostInBytes", "1kb")
    trial, folder = KINDS[order["kind"]](), Path(order["folder"])
    inputs = {
        name: source(spark, folder / name, parts[0], order["per_trigger"])
        for name, parts in trial.parts.items()
    }
    check_checkpoint(folder / "checkpoint")
    joined = trial.stream(inputs if len(inputs) > 1 else inputs.popitem()[1])
    told = observed(finish(joined, folder))
    return {
        "counts": {name: told[-1][name] for name in COUNTS} if told else None,
        "balanced": all(map(is_balanced, told)),
    }


def source(spark, folder, like, per_trigger):
    """The files of a folder as a stream; there need not be any yet."""
    folder.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(spark.createDataFrame(like).schema)
    return reader.option("maxFilesPerTrigger", per_trigger).parquet(str(folder))


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer
    spark = started(*sys.argv[1:])
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = run(spark, json.loads(line))
        except Exception as error:  # what the user would see
            answer = {"refused": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
