"""However a query was interrupted, each micro-batch gives the rows of an undisturbed run.

Drivers, workers and executors are killed in `tests/faults`.
"""

import shutil
from dataclasses import replace

import pytest

from marks import full_but
from spark.cases import FILES, generated
from spark.streams import by_batch, finish, is_balanced, observed, pair_query, sources

TRIAL = generated()
prepared = TRIAL.write


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory):
    """The rows of each micro-batch, and the last metrics, of a run from start to end."""
    folder = tmp_path_factory.mktemp("undisturbed")
    prepared(folder)
    joined = TRIAL.stream(sources(spark, folder))
    told = observed(finish(joined, folder))
    assert all(map(is_balanced, told))
    return by_batch(folder), told[-1]


@pytest.mark.full
def test_stopping_after_every_batch_changes_nothing(spark, tmp_path, undisturbed):
    rows, metrics = undisturbed
    for number in range(FILES):
        prepared(tmp_path, [number])
        joined = TRIAL.stream(sources(spark, tmp_path))
        told = observed(finish(joined, tmp_path))
    assert by_batch(tmp_path) == rows
    ignored = {"restored"}
    assert {k: v for k, v in told[-1].items() if k not in ignored} == {
        k: v for k, v in metrics.items() if k not in ignored
    }


@pytest.mark.full
def test_a_batch_that_is_repeated_on_other_partitions_gives_the_same_rows(
    spark, tmp_path, undisturbed
):
    prepared(tmp_path)
    finish(TRIAL.stream(sources(spark, tmp_path)), tmp_path)
    last = FILES - 1
    for done in ("checkpoint/commits", "out/_spark_metadata"):  # as if it had not been committed
        for file in (tmp_path / done).glob(f"*{last}*"):
            file.unlink()
    assert last not in by_batch(tmp_path)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "8kb")
    try:
        finish(TRIAL.stream(sources(spark, tmp_path)), tmp_path)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert by_batch(tmp_path) == undisturbed[0]


# ---- what may change between two runs


@pytest.fixture(scope="module")
def first_run(spark, tmp_path_factory):
    """A folder with the checkpoint of a query that has seen one file, and a second file."""
    folder = tmp_path_factory.mktemp("first")
    prepared(folder, [0])
    finish(pair_query().stream(sources(spark, folder), arrival="arrival"), folder)
    prepared(folder, [1])
    return folder


def restarted(spark, first_run, folder, query, **options):
    """Go on from a copy of the first run's checkpoint with another query."""
    shutil.copytree(first_run / "checkpoint", folder / "checkpoint")
    joined = query.stream(sources(spark, first_run), **({"arrival": "arrival"} | options))
    return observed(finish(joined, folder))


def committed(folder):
    """The micro-batches that are done."""
    return sorted(
        int(f.name) for f in (folder / "checkpoint/commits").iterdir() if f.name.isdigit()
    )


def test_goals_and_caps_may_change(spark, first_run, tmp_path):
    query = pair_query(slack="700 ms", retention="3 s")
    told = restarted(spark, first_run, tmp_path, query, idle_after="1 hour")
    assert told[-1]["slack"] == 700
    assert told[-1]["arrivals"] == 2 * 1_200
    assert committed(tmp_path) == [0, 1]


CHANGES = {
    "the window": (pair_query(window="2 s"), {}, "windows was .*1 s.* now .*2 s"),
    "the bounds": (pair_query(bounds="(]"), {}, r"bounds was '\[\]', now '\(\]'"),
    "the join": (
        replace(pair_query(), on=("k", "v")),
        {},
        "on was 'k', now",
    ),
    "the number of shards": (pair_query(), {"shards": 1}, "shards was 2, now 1"),
    "the arrival": (pair_query(), {"arrival": None}, "arrival was 'arrival', now None"),
}


@pytest.mark.parametrize("name", full_but(("the window",), CHANGES))
def test_another_query_is_refused_by_name_before_anything_is_written(
    spark, first_run, tmp_path, name
):
    query, options, message = CHANGES[name]
    match = f"the checkpoint is of another query: .*{message}"
    with pytest.raises(Exception, match=match) as error:
        restarted(spark, first_run, tmp_path, query, **options)
    assert "Traceback" not in str(error.value)  # one line says it
    assert committed(tmp_path) == [0]


@pytest.mark.full
def test_a_changed_schema_is_refused(spark, first_run, tmp_path):
    shutil.copytree(first_run / "checkpoint", tmp_path / "checkpoint")
    inputs = sources(spark, first_run)
    more = {name: frame.selectExpr("*", "k + 1 as more") for name, frame in inputs.items()}
    with pytest.raises(Exception, match="of another query: columns was .* now .*more int64"):
        finish(pair_query().stream(more, arrival="arrival"), tmp_path, sink="other")


@pytest.mark.full
def test_another_number_of_shuffle_partitions_is_refused(spark, first_run, tmp_path):
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        with pytest.raises(Exception, match="another number of shuffle partitions than the 4"):
            restarted(spark, first_run, tmp_path, pair_query())
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert committed(tmp_path) == [0]


@pytest.mark.full
def test_a_checkpoint_of_another_kind_of_query_is_refused(spark, tmp_path):
    prepared(tmp_path, [0])
    counted = sources(spark, tmp_path)["a"].groupBy("k").count()
    writer = counted.writeStream.format("noop").outputMode("complete")
    writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    prepared(tmp_path, [1])
    with pytest.raises(Exception, match="(?i)state|source|checkpoint"):
        finish(pair_query().stream(sources(spark, tmp_path)), tmp_path)
    assert not (tmp_path / "out").exists() or not by_batch(tmp_path)
