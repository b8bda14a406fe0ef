"""Metrics as plain data, and the log that a query leaves."""

import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyspark.sql import Row

import slackwater as sw
from patience import PATIENCE_S
from slackwater.engine.replay_lines import lines
from slackwater.metrics.progress import is_balanced, query_dict
from slackwater.spark import MetricsLog, latest_metrics, session
from slackwater.spark.listener import Lines, plain, with_merged_charts
from spark.streams import in_parts, pair, pair_query, sources, write

COUNTS = {"in_order": 3, "late_kept": 2, "late_dropped": 1, "buffered": 4, "shed": 0}


def counts(**changes):
    return COUNTS | {"arrivals": 11, "rejected": {"bad_time": 1}} | changes


def event(**parts):
    return SimpleNamespace(id="i", runId="r", **parts)


def logged(log):
    return [json.loads(line) for line in log.path.read_text(encoding="utf-8").splitlines()]


def test_rows_become_nested_dicts():
    row = Row(n=1, streams=Row(a=Row(n=2, state="idle")), pair=(Row(x=1), 2), none=None)
    reported = {"n": 1, "streams": {"a": {"n": 2, "state": "idle"}}, "pair": [{"x": 1}, 2]}
    assert plain(row) == reported | {"none": None}
    assert plain(Row("n", "streams")(1, {"a": {"n": 2}})) == {"n": 1, "streams": {"a": {"n": 2}}}


def test_every_arrival_has_one_fate_in_each_stream():
    assert is_balanced(counts(streams={"a": counts(), "b": counts()}))
    assert not is_balanced(counts(arrivals=12, streams={}))
    assert not is_balanced(counts(streams={"a": counts(), "b": counts(shed=1)}))


def test_a_log_is_appended_to_and_knows_the_names_of_queries(tmp_path):
    for name in ("first", None):
        log = MetricsLog(tmp_path / "new" / "metrics.jsonl")
        log.onQueryStarted(event(name=name, timestamp="2026-01-01T00:00:00.000Z"))
        assert not log.wait(timeout_s=0)
        log.onQueryTerminated(event(exception="no space"))
        assert log.wait(timeout_s=0)
    first, last, *_ = reported = logged(log)
    assert first == {"event": "started", "id": "i", "run_id": "r", "name": "first",
                     "timestamp": "2026-01-01T00:00:00.000Z", "query": None}  # fmt: skip
    assert last == {"event": "terminated", "id": "i", "run_id": "r", "name": "first",
                    "exception": "no space"}  # fmt: skip
    assert [line["name"] for line in reported] == ["first", "first", None, None]


def test_a_path_that_cannot_be_written_is_an_error_at_once(tmp_path):
    with pytest.raises(IsADirectoryError):
        MetricsLog(tmp_path)


def test_a_log_that_cannot_be_written_does_not_stop_the_query(tmp_path, caplog):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.path = tmp_path
    with caplog.at_level(logging.WARNING, logger="slackwater"):
        log.onQueryStarted(event(name="x", timestamp=""))
        log.onQueryProgress(event(progress=None))
        log.onQueryTerminated(event(exception=None))
    assert [record.message for record in caplog.records] == ["an event was not logged"] * 3
    assert log.wait(timeout_s=0)


def test_the_front_door_of_the_package_has_both_names():
    from slackwater import spark

    assert callable(spark.session) and spark.session is session
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        spark.nonsense  # noqa: B018


def test_a_query_logs_each_micro_batch_and_how_it_ended(spark, tmp_path):
    for name, table in pair(rows=600).items():
        write(tmp_path / name, in_parts(table, 2))
    log, seen = MetricsLog(tmp_path / "metrics.jsonl"), []
    listeners = [log, Lines(seen.append)]
    for listener in listeners:
        spark.streams.addListener(listener)
    joined = pair_query().stream(sources(spark, tmp_path), arrival="arrival", at_end="flush")
    writer = joined.writeStream.format("noop").queryName("pairs")
    writer = writer.option("checkpointLocation", str(tmp_path / "state"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert all(listener.wait(PATIENCE_S) for listener in listeners)
    for listener in listeners:
        spark.streams.removeListener(listener)
    found = logged(log)
    assert found == json.loads(json.dumps(seen))
    assert [line["event"] for line in found] == ["started", *["batch"] * 3, "terminated"]
    assert {(line["id"], line["run_id"], line["name"]) for line in found} == {
        (str(query.id), str(query.runId), "pairs")
    }
    batches = found[1:-1]
    assert latest_metrics(query) == batches[-1]["metrics"]
    assert [line["batch"] for line in batches] == [0, 1, 2]
    assert [line["rows"] for line in batches] == [600, 600, 0]
    assert all(line["balanced"] and line["duration_ms"] > 0 for line in batches)
    reported = batches[-1]["metrics"]
    assert reported == with_merged_charts(plain(query.lastProgress.observedMetrics["slackwater"]))
    assert (reported["arrivals"], reported["streams"]["b"]["arrivals"]) == (1_200, 600)
    assert found[-1]["exception"] is None


def test_a_start_describes_the_query_where_it_is_known(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl", query=pair_query(), control=True)
    log.onQueryStarted(event(name="pairs", timestamp=""))
    [started] = logged(log)
    assert started["query"] == query_dict(pair_query(), control=True)
    assert started["query"]["streams"] == ["a", "b"]


NOW = "2026-01-01T00:00:00.000Z"
NOW_S = 1_767_225_600


@pytest.mark.parametrize(
    ("a", "b", "warned"),
    [
        (NOW_S * 1000, NOW_S * 1000 - 60_000, []),
        (NOW_S - 60, NOW_S * 1000, ["a"]),
        (NOW_S - 60, NOW_S, ["a", "b"]),  # going by when they were read
        (None, NOW_S, []),  # not yet
        (12, 34, []),
    ],
)
def test_seconds_are_noticed_once_in_a_run(caplog, a, b, warned):
    def progress(batch):
        streams = {name: counts(local_time=time) for name, time in {"a": a, "b": b}.items()}
        row = Row(**counts(streams=streams, shards=2))
        return SimpleNamespace(
            id="i", runId=f"seconds {a} {b}", name="x", batchId=batch, timestamp=NOW,
            numInputRows=9, durationMs={}, batchDuration=1, observedMetrics={"slackwater": row},
        )  # fmt: skip

    lines_seen = []
    listeners = [Lines(lines_seen.append, pair_query()) for _ in range(2)]
    with caplog.at_level(logging.WARNING, logger="slackwater"):
        for batch in range(3):
            for listener in listeners:
                listener.onQueryProgress(SimpleNamespace(progress=progress(batch)))
    warning = " seems to be in seconds, going by "
    assert [record.getMessage().partition(warning)[0] for record in caplog.records] == [
        f"the time of stream {name!r}" for name in warned
    ]
    assert len(lines_seen) == 6


@pytest.mark.full
def test_charts_of_two_shards_are_merged_and_commands_are_reported(spark, tmp_path):
    tables = pair(rows=1_200)
    for name, table in tables.items():
        write(tmp_path / name, in_parts(table, 2))
    (tmp_path / "control").mkdir()
    (tmp_path / "control" / "1.json").write_text('{"set": {"recall": 0.99}}')
    seen = []
    listener = Lines(seen.append)
    spark.streams.addListener(listener)
    goal = sw.Recall(0.9, over="1 s", every="500 ms")
    query = replace(pair_query(), goal=goal)
    joined = query.stream(
        sources(spark, tmp_path), arrival="arrival", at_end="flush", shards=2,
        control=str(tmp_path / "control"),
    )  # fmt: skip
    writer = joined.writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "state")).start().awaitTermination()
    assert listener.wait(PATIENCE_S)
    spark.streams.removeListener(listener)
    reported = [line["metrics"] for line in seen if line["event"] == "batch"]
    assert [metrics["commands"] for metrics in reported] == [[{"recall": 0.99}], [], []]
    assert [metrics["target"] for metrics in reported] == [0.99] * 3
    assert [metrics["shards"] for metrics in reported] == [2] * 3
    for metrics in reported:
        drawn = metrics["charts"]
        assert drawn["now"] == max(stream["local_time"] for stream in metrics["streams"].values())
        assert drawn["chosen"] in drawn["curve"]
        assert drawn["chosen"][0] == metrics["slack"]
        assert 0.0 < drawn["recall"] <= 1.0
        for name, delays in drawn["delays"].items():
            assert 0 < sum(delays["counts"]) <= metrics["streams"][name]["arrivals"]
    embedded = [line["metrics"] for line in lines(query, tables, "arrival", "1 s")
                if line["event"] == "batch"]  # fmt: skip
    for ours, theirs in ((embedded[-1], reported[-1]),
                         (embedded[-1]["streams"]["a"], reported[-1]["streams"]["a"]),
                         (embedded[-1]["charts"], reported[-1]["charts"])):  # fmt: skip
        assert set(ours) == set(theirs)


@pytest.mark.full
def test_a_query_that_fails_logs_why(spark, tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    spark.streams.addListener(log)
    failing = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    failing = failing.selectExpr("raise_error('no such luck')")
    writer = failing.writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
    with pytest.raises(Exception, match="no such luck"):
        query.awaitTermination()
    assert log.wait(PATIENCE_S)
    spark.streams.removeListener(log)
    assert "no such luck" in logged(log)[-1]["exception"]
