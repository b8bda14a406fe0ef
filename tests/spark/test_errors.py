"""What cannot work is said in `JoinQuery.stream`, before anything runs."""

from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.spark.session import cores_of
from spark.streams import pair, pair_query, source, write

COLUMNS = "ts long, k long, v double"


@pytest.fixture
def batch(spark):
    return spark.createDataFrame([], COLUMNS)


@pytest.fixture
def streaming(spark, tmp_path):
    write(tmp_path / "a", [pair(rows=10)["a"]])
    return source(spark, tmp_path / "a")


def refused(query, inputs, error, message, **options):
    with pytest.raises(error, match=message):
        query.stream(inputs, **options)


def test_streams_are_named(batch):
    query = pair_query()
    refused(query, {"a": batch}, sw.DataError, "no DataFrame for stream b; streams are a, b")
    inputs = {"a": batch, "b": batch, "c": batch}
    refused(query, inputs, sw.DataError, "there is no stream c; streams are a, b")
    refused(query, {"a": batch, "b": [1]}, sw.DataError, "'b' must be a Spark DataFrame, got list")
    frames = {"a": batch.toPandas(), "c": batch}
    refused(query, frames, sw.DataError, "(?s)no stream c.*no DataFrame for stream b.*got pandas.D")
    with pytest.raises(sw.QueryError, match="all streams but one, got a, b"):
        query.with_(a=batch, b=batch)


def test_columns_are_named(batch):
    query = pair_query()
    refused(query, {"a": batch.drop("ts"), "b": batch}, sw.DataError, "'a' has no time column 'ts'")
    refused(query, {"a": batch.drop("k"), "b": batch}, sw.QueryError, "on names a.k, but .* it has")
    wrong = batch.withColumn("ts", F.lit("noon"))
    refused(query, {"a": wrong, "b": batch}, sw.DataError, "'ts' must be a timestamp or a number")
    inputs = {"a": batch, "b": batch}
    refused(query, inputs, sw.DataError, "no arrival column 'arrived'", arrival="arrived")
    twice = batch.select("*", F.lit(1).alias("k"))
    refused(query, {"a": twice, "b": batch}, sw.DataError, "more than one column named k")
    ours = batch.withColumn("__Slackwater_ts", batch["ts"])  # Spark does not mind the case
    message = "stream 'a' has a column __Slackwater_ts, but names that begin with __slackwater_"
    refused(query, {"a": ours, "b": batch}, sw.DataError, message)


def test_key_and_time_columns_must_be_comparable(batch):
    query = pair_query()
    text = batch.withColumn("k", F.col("k").cast("string"))
    refused(query, {"a": text, "b": batch}, sw.DataError, "key must be comparable, got string")
    time = batch.withColumn("ts", F.current_timestamp())
    message = "of one kind, got a.ts timestamp.*, b.ts int64"
    refused(query, {"a": time, "b": batch}, sw.DataError, message)
    local = time.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    refused(query, {"a": time, "b": local}, sw.DataError, "must be of one kind")


def test_streaming_and_batch_do_not_mix(batch, streaming):
    message = "all batch; got: a is streaming, b is batch. .* use Spark's own join"
    refused(pair_query(), {"a": streaming, "b": batch}, sw.SparkError, message)


def test_options_are_checked(batch, streaming):
    query, inputs = pair_query(), {"a": batch, "b": batch}
    refused(query, inputs, sw.QueryError, "at_end must be one of .* got 'stop'", at_end="stop")
    refused(query, inputs, sw.QueryError, "shards must be a whole number .* got 0", shards=0)
    refused(query, inputs, sw.QueryError, "idle_after must be at least 1 ms, got 0", idle_after=0)
    refused(query, inputs, sw.SparkError, "control= needs streaming DataFrames", control="there")
    marked = streaming.withColumn("ts", F.timestamp_millis("ts")).withWatermark("ts", "1 second")
    message = "uses Spark's watermark .* stream 'a' has one on ts; leave out withWatermark"
    refused(query, {"a": marked, "b": marked}, sw.SparkError, message, at_end="flush")


def test_the_session_is_checked(spark, streaming):
    query, inputs = pair_query(), {"a": streaming, "b": streaming}
    settings = {
        "spark.sql.shuffle.partitions": (
            "200",
            "is 200, on 2 cores: .* Set it to .* 2, .* most to 8",
        ),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
            "keeps its state in RocksDB: set spark.sql.* got .*HDFSBackedStateStoreProvider",
        ),
    }
    for name, (value, message) in settings.items():
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            refused(query, inputs, sw.SparkError, message)
        finally:
            spark.conf.set(name, before)


def test_a_cluster_is_not_asked_for_cores_that_have_not_come_yet():
    masters = {"local[3]": 3, "local[3,2]": 3, "spark://there:7077": None, "yarn": None}
    masters["local-cluster[2,1,1024]"] = None
    for master, cores in masters.items():
        assert cores_of(SimpleNamespace(conf={"spark.master": master})) == cores


@pytest.mark.full
def test_a_row_that_is_too_large_is_refused_with_its_size(spark):
    query = pair_query()
    frame = spark.range(1).select(F.lit(1).alias("ts"), F.lit(1).alias("k"))
    large = frame.withColumn("v", F.expr("repeat('x', 65 * 1024 * 1024)"))
    with pytest.raises(Exception, match="row 0 has 65 MB; at most 64 MB per row"):
        query.stream({"a": large, "b": frame}).count()
