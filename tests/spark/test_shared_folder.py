"""Shards leave reports for each other in a folder: without a JVM."""

import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from helpers import engine_query, tables
from property.strategies import cases, tried
from property.test_lateness import clocked_case
from slackwater.errors import QueryError, SnapshotError, SparkError
from slackwater.kernels.records import BEFORE
from slackwater.spark import operator, shared_folder
from slackwater.spark.metrics import place_of
from slackwater.spark.shared_folder import located
from slackwater.spark.task import Task
from spark.streams import pair, pair_query
from spark.test_operator import CUTS, Cluster, cut_at

COMPLETE = place_of("complete_through")
RECALL = sw.Recall(0.9, over=12, every=3, granularity=2)


class Sharing(Cluster):
    """A cluster whose shards have one K; with reports in a folder, numbered by micro-batch."""

    def __init__(self, *args, folder, run="first", **options):
        super().__init__(*args, has_common_slack=True, shared=str(folder), **options)
        self.batch, self.run_id, self.query_id = 0, run, "query"

    def run(self, batch, *commands):
        now = Task(self.query_id, self.run_id, self.batch, 0)
        with patch.object(operator, "task", lambda: now):
            found = super().run(batch, *commands)
        self.batch += 1
        return found

    def complete(self):
        """What is complete behind the last micro-batch, by shard."""
        return [numbers[COMPLETE] for numbers in self.metrics[-self.job.partitioning.shards :]]


def sharing(query, own, shards, folder, **options):
    return Sharing(query, tuple(t.schema for t in own), shards, folder=folder, **options)


@pytest.mark.determinism
@tried(0.03)
@given(cases(kinds=("key", "keys", "theta")), CUTS, st.sampled_from([2, 4, 8]), st.integers(0, 99))
def test_shards_on_swapping_workers_end_each_micro_batch_at_the_same_time(
    case, sizes, shards, seed
):
    case = clocked_case(case)
    query = engine_query(case._replace(slack=None), retention=10**8)
    query = sw.join(*query.streams, on=query.on, where=query.where, goal=RECALL)
    own = list(tables(case).values())
    shared_folder._reports.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        cluster = sharing(query, own, shards, folder, seed=seed)
        complete = BEFORE
        for batch in cut_at(own, sizes):
            if not any(part.num_rows for parts in batch for part in parts):
                continue
            times = [row[0] for row in cluster.run(batch)]
            assert min(times, default=complete + 1) > complete
            (complete,) = set(cluster.complete())


# ---- what is in the folder


@pytest.fixture
def own():
    return [t.rename_columns(["ts", "k", "v", "arr"]) for t in pair(rows=1_200).values()]


@pytest.fixture
def cluster(own, tmp_path):
    shared_folder._reports.cache_clear()
    query = sw.join(*pair_query().streams, on="k", goal=sw.Recall(0.9, over="2 s"))
    return sharing(query, own, 4, tmp_path)


def contents(folder):
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def through(cluster, own, batches, size=100):
    for batch in list(cut_at(own, [size]))[:batches]:
        cluster.run(batch)


def test_each_shard_leaves_one_file_for_each_micro_batch(cluster, own, tmp_path):
    through(cluster, own, 3)
    expected = {f"query/{batch}/{shard}" for batch in range(3) for shard in range(4)}
    assert set(contents(tmp_path)) == expected


def test_the_same_rows_leave_the_same_bytes(cluster, own, tmp_path):
    through(cluster, own, 5)
    (tmp_path / "again").mkdir()
    again = sharing(cluster.job.query, own, 4, tmp_path / "again", seed=7, run="second")
    through(again, own, 5)
    first = {name: data for name, data in contents(tmp_path).items() if "again" not in name}
    assert contents(tmp_path / "again") == first
    assert again.complete() == cluster.complete()


def test_a_report_that_is_there_is_left_as_it_is(cluster, own, tmp_path):
    through(cluster, own, 1)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    again = sharing(cluster.job.query, own, 4, tmp_path, run="second")
    through(again, own, 1)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_missing_report_is_an_error_that_names_it(cluster, own, tmp_path):
    batches = cut_at(own, [100])
    cluster.run(next(batches))
    (tmp_path / "query/0/2").unlink()
    with pytest.raises(SnapshotError, match="run once with slack_scope='shard'") as error:
        cluster.run(next(batches))
    assert f"shard 2 on micro-batch 0 is missing in {tmp_path}" in str(error.value)


def test_a_damaged_report_is_an_error(cluster, own, tmp_path):
    batches = cut_at(own, [100])
    cluster.run(next(batches))
    (tmp_path / "query/0/2").write_bytes(b"")
    with pytest.raises(SnapshotError, match="the report of a shard is damaged"):
        cluster.run(next(batches))


def test_only_the_last_hundred_micro_batches_are_kept_and_the_one_that_is_still_needed(
    cluster, own, tmp_path
):
    batches = (batch for batch in cut_at(own, [8]) if any(part.num_rows for part in batch[0]))

    def kept_behind(n):
        for _, batch in zip(range(n), batches, strict=False):
            cluster.run(batch)
        return sorted(int(path.name) for path in (tmp_path / "query").iterdir())

    assert kept_behind(111) == list(range(10, 111))
    cluster.batch = 400  # the micro-batches between had no rows
    assert kept_behind(3) == [110, 400, 401, 402]  # to repeat 400, that on 110 is needed
    assert kept_behind(8) == list(range(400, 411))


def test_they_are_removed_too_where_only_odd_micro_batches_have_rows(cluster, own, tmp_path):
    cluster.batch = 1
    for batch in list(cut_at(own, [15]))[:70]:
        cluster.run(batch)
        cluster.batch += 1  # as after a micro-batch without rows, which a watermark causes
    kept = sorted(int(path.name) for path in (tmp_path / "query").iterdir())
    assert kept == list(range(31, 141, 2))  # 131 was the first behind 130


def test_reports_of_micro_batches_that_were_undone_do_not_matter(cluster, own, tmp_path):
    through(cluster, own, 6)
    (tmp_path / "query/0/.2.first.7").write_bytes(b"of a task that was killed")
    other = [t.rename_columns(["ts", "k", "v", "arr"]) for t in pair(rows=1_200, seed=9).values()]
    query = cluster.job.query
    expected = sharing(query, other, 4, tmp_path / "empty")
    again = sharing(query, other, 4, tmp_path, run="second")  # an older state of the checkpoint
    for batch in list(cut_at(other, [100]))[:6]:
        assert Counter(again.run(batch)) == Counter(expected.run(batch))
        assert again.complete() == expected.complete()


def test_a_task_that_does_not_know_its_query_writes_no_report(cluster, own, tmp_path):
    cluster.query_id = ""
    with pytest.raises(SparkError, match="does not tell this task its query and micro-batch"):
        cluster.run(next(cut_at(own, [100])))
    assert contents(tmp_path) == {}


def restarted(cluster, query, own, folder, number):
    """The same shards in a new run, perhaps with another goal."""
    again = sharing(query, own, 4, folder, run=f"run {number}", seed=number)
    again.batch = cluster.batch
    for key, before, after in zip(
        cluster.job.shard_keys, cluster.testers, again.testers, strict=True
    ):
        after.updateValueState("header", key, before.peekValueState("header", key))
        after.updateMapState("chunks", key, before.peekMapState("chunks", key))
    return again


def test_a_new_goal_at_a_restart_keeps_the_order(own, tmp_path):
    shared_folder._reports.cache_clear()
    recall = {"over": "2 s"}
    goals = (
        sw.Recall(0.9, **recall),
        sw.Recall(0.9, unmatched=0.95, **recall),  # a second controller
        sw.Recall(0.99, **recall),
        sw.Slack("50 ms"),  # needs no reports
        sw.MaxSlack(),
        sw.InputQuantile(0.9),
        sw.Recall(0.9, unmatched=0.9, **recall),
    )
    batches, complete, cluster, n = cut_at(own, [100]), BEFORE, None, 0
    for number, goal in enumerate(goals):
        query = sw.join(*pair_query().streams, on="k", how="left", goal=goal)
        if cluster is None:
            cluster = sharing(query, own, 4, tmp_path)
        else:
            cluster = restarted(cluster, query, own, tmp_path, number)
        for _, batch in zip(range(3), batches, strict=False):
            times = [row[0] for row in cluster.run(batch)]
            assert min(times, default=complete + 1) > complete
            (complete,) = set(cluster.complete())
            n += len(times)
    assert n > 500


@pytest.mark.parametrize("folder", ["nowhere://x/y", "abc:/x"])
def test_a_folder_that_cannot_be_written_to_is_refused(folder):
    with pytest.raises(QueryError, match="shared must be a path or URI of a file system"):
        located(folder)


def test_a_folder_is_where_it_is_on_the_driver(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert located("reports/") == str(tmp_path / "reports")
    assert located(f"file:{tmp_path}/x") == f"{tmp_path}/x"
    assert located(f"file://{tmp_path}/x") == f"{tmp_path}/x"
