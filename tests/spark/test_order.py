"""In-time results of a micro-batch lie above what was complete, so they can be published once."""

import logging
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from shutil import copytree, rmtree

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.testing.workloads import uniform_keys
from spark.streams import (
    by_arrival,
    by_batch,
    finish,
    observed,
    pair_query,
    sources,
    write,
)

SHARDS = 4
FILES = 6


def moving(rows=6_000, seed=5):
    """Two streams whose delays grow in the middle and shrink again, cut by arrival."""
    tables = {
        name: uniform_keys(rows, seed=2 * seed + i, rate_per_s=500, keys=50)
        for i, name in enumerate("ab")
    }
    return by_arrival(tables, FILES)


def query_of(goal=None, **options):
    query = pair_query(**options)
    return replace(query, goal=goal or sw.Recall(0.9, over="4 seconds"))


def prepared(folder, files=range(FILES)):
    for name, parts in moving().items():
        for number in files:
            write(folder / name, [parts[number]], first=number)


def joined(spark, folder, query, **options):
    options = {"arrival": "arrival", "shards": SHARDS, "shared": f"{folder}/shared"} | options
    return query.stream(sources(spark, folder), **options)


def check_order(rows, told):
    """No result in time at or below what was complete behind an earlier micro-batch."""
    complete = [t["complete_through"] for t in told]
    times = [[row[0] for row in batch] for batch in rows.values()]
    for (before, after), batch in zip(pairwise(complete), times[1:], strict=True):
        assert after >= before
        assert not batch or min(batch) > before
    assert sum(map(len, times)) > 100


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory):
    """The rows of each micro-batch and what was observed, of a run from start to end."""
    folder = tmp_path_factory.mktemp("undisturbed")
    prepared(folder)
    told = observed(finish(joined(spark, folder, query_of()), folder))
    return by_batch(folder), told


def test_results_in_time_lie_above_what_was_complete(undisturbed):
    rows, told = undisturbed
    assert len(told) == FILES
    check_order(rows, told)
    assert len({t["slack"] for t in told}) > 2  # K was changed


def test_shards_with_a_slack_of_their_own_are_not_in_order(spark, tmp_path, caplog):
    prepared(tmp_path)
    with caplog.at_level(logging.WARNING, logger="slackwater"):
        own = joined(spark, tmp_path, query_of(), shared=None)
    assert "each shard chooses its own K" in caplog.text
    told = observed(finish(own, tmp_path))
    most = max(max(row[0] for row in batch) for batch in by_batch(tmp_path).values() if batch)
    assert told[-1]["complete_through"] < most  # that of the slowest shard
    caplog.clear()
    joined(spark, tmp_path, query_of(slack_scope="shard"), shared=None)
    assert caplog.text == ""


def test_a_stop_after_each_micro_batch_and_a_repeated_one_change_nothing(
    spark, tmp_path, undisturbed
):
    rows, told = undisturbed
    found = []
    for number in range(FILES):
        prepared(tmp_path, [number])
        found += observed(finish(joined(spark, tmp_path, query_of()), tmp_path))
        if number == FILES // 2:  # as if it had not been committed
            for done in ("checkpoint/commits", "out/_spark_metadata"):
                for file in (tmp_path / done).glob(f"*{number}*"):
                    file.unlink()
            found = found[:-1] + observed(finish(joined(spark, tmp_path, query_of()), tmp_path))
    assert by_batch(tmp_path) == rows
    same = ("slack", "complete_through", "produced", "lost")
    assert [[t[name] for name in same] for t in found] == [[t[name] for name in same] for t in told]


@pytest.mark.full
def test_going_back_to_a_copy_of_the_checkpoint_gives_the_same_again(spark, tmp_path, undisturbed):
    rows, _ = undisturbed
    prepared(tmp_path, range(3))
    finish(joined(spark, tmp_path, query_of()), tmp_path)
    places = ("checkpoint", "out/_spark_metadata")
    for place in places:
        copytree(tmp_path / place, tmp_path / "copy" / place)
    prepared(tmp_path, range(3, FILES))
    finish(joined(spark, tmp_path, query_of()), tmp_path)
    for place in places:  # the reports that were written since stay
        rmtree(tmp_path / place)
        copytree(tmp_path / "copy" / place, tmp_path / place)
    told = observed(finish(joined(spark, tmp_path, query_of()), tmp_path))
    assert len(told) == 3
    assert by_batch(tmp_path) == rows


def windows_of(frame):
    """Results counted in windows that are published once, without any delay."""
    at = F.timestamp_millis("result_ts").alias("at")
    times = frame.select(at).withWatermark("at", "0 seconds")
    return times.groupBy(F.window("at", "500 milliseconds")).count()


def dropped(progress):
    return sum(o.numRowsDroppedByWatermark for p in progress for o in p.stateOperators)


def published(folder):
    """The windows that were written, each once: (end in ms, results)."""
    tables = [pq.read_table(file) for file in (folder / "windows").glob("*.parquet")]
    windows = [row for table in tables for row in table.to_pylist()]
    found = sorted((round(w["window"]["end"].timestamp() * 1000), w["count"]) for w in windows)
    assert len({end for end, _ in found}) == len(found)
    return found


def counted(rows):
    """Results by the end of their window, of all micro-batches."""
    times = (row[0] for batch in rows.values() for row in batch.elements())
    return sorted(Counter(ts // 500 * 500 + 500 for ts in times).items())


def test_windows_over_results_are_published_once_without_delay_and_drop_nothing(
    spark, tmp_path, undisturbed
):
    rows, _ = undisturbed
    prepared(tmp_path)
    same = finish(windows_of(joined(spark, tmp_path, query_of())), tmp_path, sink="windows")
    assert dropped(same) == 0
    finished = published(tmp_path)
    assert len(finished) > 5
    assert finished == counted(rows)[: len(finished)]


def test_so_do_those_of_a_second_query_over_the_sink_of_the_first(spark, tmp_path, undisturbed):
    rows, _ = undisturbed
    found = []
    for number in range(FILES):  # each sees a part of the other's work
        prepared(tmp_path, [number])
        finish(joined(spark, tmp_path, query_of()), tmp_path)
        if number % 2:  # two micro-batches of the first are one of the second
            results = spark.readStream.schema("result_ts long").parquet(f"{tmp_path}/out")
            found += finish(windows_of(results), tmp_path / "second", sink="windows")
    assert dropped(found) == 0
    finished = published(tmp_path / "second")
    assert len(finished) > 5
    assert finished == counted(rows)[: len(finished)]


GOALS = {
    "recall": sw.Recall(0.9, over="4 seconds"),
    "at least": sw.Recall(0.9, over="4 seconds", at_least="200 ms"),
    "paper's model": sw.Recall(0.9, over="4 seconds", model="eqsel"),
    "largest": sw.MaxSlack(),
    "quantile": sw.InputQuantile(0.9),
    "latency": sw.Latency("300 ms"),
    "late events": sw.DropRatio(0.05),
    "fixed": sw.Slack("300 ms"),
    "none": sw.NoSlack(),
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("goal", "shards"),
    [(goal, 4) for goal in GOALS] + [("recall", n) for n in (1, 2, 8)] + [("largest", 8)],
)
def test_every_goal_on_any_number_of_shards_keeps_the_order(spark, tmp_path, goal, shards):
    query, told = query_of(GOALS[goal]), []
    for files in ([0, 1, 2], [3, 4, 5]):  # with a restart
        prepared(tmp_path, files)
        told += observed(finish(joined(spark, tmp_path, query, shards=shards), tmp_path))
    assert len(told) == FILES
    check_order(by_batch(tmp_path), told)


@pytest.mark.full
def test_results_lie_above_what_was_complete_without_an_arrival_column_too(spark, tmp_path):
    prepared(tmp_path)
    told = observed(finish(joined(spark, tmp_path, query_of(), arrival=None), tmp_path))
    assert len(told) == FILES
    check_order(by_batch(tmp_path), told)


@pytest.mark.full
def test_a_query_whose_shared_folder_was_lost_goes_on_by_way_of_a_slack_for_each_shard(
    spark, tmp_path
):
    told = []

    def goes_on(number, **options):
        prepared(tmp_path, [number])
        told.extend(observed(finish(joined(spark, tmp_path, query_of(**options)), tmp_path)))

    goes_on(0)
    goes_on(1)
    rmtree(tmp_path / "shared")
    with pytest.raises(StreamingQueryException, match="report of shard . on micro-batch 1 is miss"):
        goes_on(2)
    own = joined(spark, tmp_path, query_of(slack_scope="shard"), shared=None)
    told += observed(finish(own, tmp_path))
    for number in (3, 4, 5):
        goes_on(number)
    assert len(told) == FILES
    check_order(by_batch(tmp_path), told)
