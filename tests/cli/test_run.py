"""`slackwater run`: what is refused, without Spark, and one real run as a user starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import slackwater as sw
from patience import PROGRAM_S
from slackwater.cli import app
from slackwater.jobs.checkpoint import Checkpoint
from slackwater.jobs.job import read_job
from slackwater.jobs.plan import known_before
from slackwater.jobs.run import start_line
from slackwater.jobs.toml_table import JobFileError
from slackwater.testing.workloads import uniform_keys

GOOD = """\
[job]
name = "pairs"
checkpoint = "state"
at_end = "flush"
arrival = "arrival"
shards = 1
metrics = "log/metrics.jsonl"

[spark]
cores = 2
spark.sql.files.maxPartitionBytes = "64m"

[join]
on = "k"
goal = {slack = "300 ms"}

[[stream]]
name = "a"
ts = "ts"
window = "1 second"
format = "parquet"
schema = "ts long, k long, v double, arrival long"
path = "in/a"
options = {maxFilesPerTrigger = 1}

[[stream]]
name = "b"
ts = "ts"
window = "1 second"
format = "parquet"
schema = "ts long, k long, v double, arrival long"
path = "in/b"
options.maxFilesPerTrigger = 1

[sink]
format = "parquet"
path = "out"
select = ["result_ts", "a_k as k", "b_v - a_v as step"]
"""

SCHEMA = 'schema = "ts long, k long, v double, arrival long"'


def write_job(directory, *changes, name="job.toml"):
    """The good job with some of its text replaced, and directories for its streams."""
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    for stream in "ab":
        (directory / "in" / stream).mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(text, encoding="utf-8")
    return file


def refused(file, *options):
    """What the command says about a job that it refuses."""
    result = CliRunner().invoke(app, ["run", str(file), *options])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr.removeprefix("slackwater: ").removeprefix(f"{file}: ").rstrip()


# ---- the file


def test_a_good_job_is_read(tmp_path):
    job = read_job(write_job(tmp_path))
    assert (job.name, job.cores, job.trigger_ms) == ("pairs", 2, None)
    assert job.checkpoint == tmp_path / "state"
    assert job.metrics == tmp_path / "log" / "metrics.jsonl"
    assert job.query.goal == sw.Slack("300 ms")
    assert job.options["arrival"] == "arrival"
    assert job.settings == {"spark.sql.files.maxPartitionBytes": "64m"}
    assert job.sources[0].path == str(tmp_path / "in" / "a")
    assert job.sources[0].options == {"maxFilesPerTrigger": "1"}
    assert job.sink.select == ("result_ts", "a_k as k", "b_v - a_v as step")


def test_every_option_of_join_can_be_given(tmp_path):
    more = 'late = "emit"\nbounds = "(]"\nslide = "10 ms"\nretention = 5000\nstrict = true'
    more += '\nwhere = "a.v < b.v"\npipeline = "icde16"\noverdue = "now"\nselect = "*"\nunit = "us"'
    query = read_job(write_job(tmp_path, ('on = "k"', f'on = "k"\n{more}'))).query
    assert (query.late, query.bounds, query.slide, query.strict) == ("emit", "(]", "10 ms", True)
    assert (query.pipeline, query.overdue) == ("icde16", "now")
    assert (query.where, query.retained) == ("a.v < b.v", 5000)


def test_a_stream_may_tell_the_length_of_its_vectors(tmp_path):
    lengths = ('name = "a"', 'name = "a"\nvectors = {v = 512}')
    query = read_job(write_job(tmp_path, lengths)).query
    assert [dict(stream.vectors) for stream in query.streams] == [{"v": 512}, {}]


@pytest.mark.parametrize(
    ("goal", "meant"),
    [
        ('"no-slack"', sw.NoSlack()),
        ('"max-slack"', sw.MaxSlack()),
        ("{synchronize = false}", sw.NoSlack(synchronize=False)),
        ("{slack = 300}", sw.Slack(300)),
        ("{recall = 0.95}", sw.Recall(0.95)),
        ('{recall = 0.9, over = "10 s", confidence = 0.9, model = "eqsel"}',
         sw.Recall(0.9, over="10 s", confidence=0.9, model="eqsel")),
        ('{recall = 1, model = "late-degree", every = 500, granularity = 20, decay = 0.5, '
         "overall = true}",
         sw.Recall(1, model="late-degree", every=500, granularity=20, decay=0.5, overall=True)),
        ('{recall = 0.9, model = "pd", gains = ["2 s", 100]}',
         sw.Recall(0.9, model="pd", gains=("2 s", 100))),
        ('{input_quantile = 0.95, every = "2 s"}', sw.InputQuantile(0.95, every="2 s")),
        ('{latency = "200 ms"}', sw.Latency("200 ms")),
        ('{drop_ratio = 0.01}', sw.DropRatio(0.01)),
    ],
)  # fmt: skip
def test_every_goal_can_be_given(tmp_path, goal, meant):
    assert read_job(write_job(tmp_path, ('{slack = "300 ms"}', goal))).query.goal == meant


@pytest.mark.parametrize(
    ("shed", "meant"),
    [
        ('"adaptive"', "adaptive"),
        ('{budget = 1e6, basic_window = "100 ms", memory = "64 MB"}',
         sw.Harvest(budget=1e6, basic_window="100 ms", memory="64 MB")),
        ('{method = "random-drop", sample = 0.2}', sw.RandomDrop(sample=0.2)),
        ('{method = "tail-drop", buffer = "2 s"}', sw.TailDrop(buffer="2 s")),
    ],
)  # fmt: skip
def test_what_is_shed_can_be_given(tmp_path, shed, meant):
    path = write_job(tmp_path, ('on = "k"', f'on = "k"\nshed = {shed}'))
    assert read_job(path).query.shed == meant


@pytest.mark.parametrize(
    ("shed", "message"),
    [
        ('"much"', "shed must be 'adaptive', 'off' or a table with a method: 'harvest'"),
        ('{method = "guess"}', "shed must be 'adaptive', 'off' or a table with a method"),
        ("{boost = 0.9}", "boost must be above 1, got 0.9"),
        ('{every = "soon"}', "every must be like '5 seconds'"),
        ("{bost = 2}", 'has no key "bost" (did you mean "boost"?)'),
    ],
)
def test_what_is_wrong_with_shedding_is_told(tmp_path, shed, message):
    path = write_job(tmp_path, ('on = "k"', f'on = "k"\nshed = {shed}'))
    with pytest.raises(JobFileError) as error:
        read_job(path)
    assert message in str(error.value)


def test_a_goal_may_be_a_table_of_its_own(tmp_path):
    old = 'goal = {slack = "300 ms"}\n'
    file = write_job(tmp_path, (old, '[join.goal]\nrecall = 0.95\nover = "30 seconds"\n'))
    assert read_job(file).query.goal == sw.Recall(0.95, over="30 seconds")


def test_dotted_options_become_one_name(tmp_path):
    table = '[stream.options]\nkafka.bootstrap.servers = "x:1"\nstartingOffsets = "earliest"'
    kafka = ("options = {maxFilesPerTrigger = 1}", table)
    plain = (f'format = "parquet"\n{SCHEMA}\npath = "in/a"', 'format = "kafka"')
    source = read_job(write_job(tmp_path, kafka, plain)).sources[0]
    assert source.options == {"kafka.bootstrap.servers": "x:1", "startingOffsets": "earliest"}


WRONG = [
    ("[job]", "[jbo]", 'has no key "jbo" (did you mean "job"?); allowed are job, join, window'),
    ("checkpoint =", "chekpoint =", '[job] has no key "chekpoint" (did you mean "checkpoint"?)'),
    ('checkpoint = "state"\n', "", "[job] needs checkpoint"),
    ('"state"', "7", "[job] checkpoint must be a text, got 7"),
    ('"state"', '"s3a://b/x"', "[job] checkpoint must be a directory of this machine"),
    ('"state"', '"job.toml"', "[job] checkpoint must be a directory, got 'job.toml'"),
    ("shards = 1", "shards = 0", "[job] shards must be a whole number not below 1, got 0"),
    ("shards = 1", 'trigger = "once"', '[job] trigger must be "available-now" or a time between '
     "micro-batches such as \"5 seconds\", got 'once'"),
    ('"flush"', '"drop"', "[job] at_end must be \"hold\" or \"flush\", got 'drop'"),
    ("shards = 1", 'idle_after = "soon"',
     "[job] idle_after must be like '5 seconds', '200 ms' or '1 minute', got 'soon'"),
    ("shards = 1", "max_future_skew = -1", "[job] max_future_skew must be >= 0"),
    ("cores = 2", "coers = 2", '[spark] has no key "coers" (did you mean "cores"?); allowed'),
    ('"64m"', "[64]", "[spark] spark.sql.files.maxPartitionBytes must be a text, number or"),
    ('on = "k"', 'on = "k"\nlate = "never"',
     "[join] late must be one of 'count', 'emit', 'drop', got 'never'"),
    ('on = "k"', 'on = "k"\nretnetion = 5', '[join] has no key "retnetion" (did you mean'),
    ('on = "k"', 'on = "k"\nretention = "5 parsecs"',
     "[join] retention must be like '5 seconds', '200 ms' or '1 minute', got '5 parsecs'"),
    ('on = "k"', 'where = "c.v < 1"', "[join] where names an unknown stream in c.v; streams are a"),
    ('on = "k"', 'on = "k"\nunit = "h"', "[join] unit must be \"ms\" or \"us\", got 'h'"),
    ('{slack = "300 ms"}', '"fast"',
     '[join] goal must be "no-slack", "max-slack" or a table with one of recall, input_quantile, '
     "latency, drop_ratio, error_bound, deadline, slack, synchronize, got 'fast'"),
    ('{slack = "300 ms"}', '{slack = 1, recall = 0.9}', '[join] goal must be "no-slack", "max-'),
    ('{slack = "300 ms"}', '{over = "1 s"}', '[join] goal must be "no-slack", "max-slack" or a'),
    ('{slack = "300 ms"}', '{slack = "300 mz"}', "[join] goal: slack must be like '5 seconds'"),
    ('{slack = "300 ms"}', '{slack = 1, over = "1 s"}',
     '[join] goal: has no key "over"; allowed are slack'),
    ('{slack = "300 ms"}', "{recall = 95}",
     "[join] goal: recall must be above 0 and at most 1, got 95"),
    ('{slack = "300 ms"}', '{recall = 0.9, ovre = "1 s"}',
     '[join] goal: has no key "ovre" (did you mean "over"?); allowed are recall, over, confidence'),
    ('{slack = "300 ms"}', '{recall = 0.9, over = "10 ms", every = "1 second"}',
     "[join] goal: over must not be shorter than every, the adaptation interval ('1 second'), got"),
    ('{slack = "300 ms"}', '{recall = 0.9, over = "soon"}',
     "[join] goal: over must be like '5 seconds', '200 ms' or '1 minute', got 'soon'"),
    ('{slack = "300 ms"}', '{recall = 0.9, model = "magic"}',
     "[join] goal: model must be one of 'lateness', 'measured', 'eqsel', 'noneqsel', "
     "'late-degree', 'pd', got"),
    ('{slack = "300 ms"}', "{recall = 0.9, overall = 1}",
     "[join] goal: overall must be true or false, got 1"),
    ('{slack = "300 ms"}', '{recall = 0.9, gains = "1 s"}',
     "[join] goal: gains must be a list of two durations, got '1 s'"),
    ('{slack = "300 ms"}', '{recall = 0.9, gains = ["1 s", "soon"]}',
     "[join] goal: gains must be like '5 seconds'"),
    ('{slack = "300 ms"}', "{input_quantile = 2}",
     "[join] goal: the quantile must be above 0 and at most 1, got 2"),
    ('{slack = "300 ms"}', "{latency = -1}", "[join] goal: latency must be >= 0"),
    ('{slack = "300 ms"}', "{synchronize = 1}",
     "[join] goal: synchronize must be true or false, got 1"),
    ('{slack = "300 ms"}', '{recall = 0.9}\nlate = "drop"',
     "[join] a recall goal must know what is lost: late must be 'count' or 'emit', got 'drop'"),
    ('b"\nts = "ts"\nwindow = "1 second"', 'b"\nts = "ts"\nwindow = "soon"',
     "[[stream]] b: window must be like '5 seconds', '200 ms' or '1 minute', got 'soon'"),
    ('b"\nts = "ts"\nwindow = "1 second"', 'b"\nts = "ts"', "[[stream]] b: needs window"),
    ('name = "a"', 'name = "a b"', "[[stream]] a b: a stream's name must be letters"),
    ('name = "a"\n', "", "[[stream]] 1: needs name"),
    ('name = "a"', 'name = "a"\nvectors = {v = "long"}',
     "[[stream]] a: stream 'a': vectors must be lengths not below 1 by column"),
    ('name = "b"', 'name = "a"', "[join] streams must have different names, got a more than"),
    ('path = "in/b"', 'path = "in/c"', "[[stream]] b: path must be a file or directory that"),
    ('path = "in/b"', "", "[[stream]] b: needs path: parquet is a format of files"),
    ('path = "in/b"', 'path = "in/b"\nwhere = ["x"]', "[[stream]] b: where must be a text"),
    ('path = "in/b"', 'path = "in/b"\nselect = "x"',
     "[[stream]] b: select must be a list of texts, got 'x'"),
    ("options = {maxFilesPerTrigger = 1}", "options = 1",
     "[[stream]] a: options must be a table, got 1"),
    (f"{SCHEMA}\n", "", "[[stream]] a: needs schema: Spark does not guess the columns of a stream"),
    ('"parquet"\nschema', '"kafka"\nschema', "[[stream]] a: schema must be left out: kafka has"),
    ('[sink]\nformat = "parquet"', "[sink]", "[sink] needs format"),
    ('path = "out"\n', "", "[sink] needs path: parquet is a format of files"),
    ("[sink]", "[[sink]]", "[sink] must be one table in single brackets"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[wrong[2] for wrong in WRONG])
def test_what_is_wrong_with_a_job_is_told_with_table_and_key(tmp_path, old, new, message):
    assert refused(write_job(tmp_path, (old, new))).startswith(message)
    assert {path.name for path in tmp_path.iterdir()} == {"job.toml", "in"}


@pytest.mark.parametrize("endless", ["rate", "socket"])
def test_streams_without_end_need_a_pause_between_micro_batches(tmp_path, endless):
    old = f'format = "parquet"\n{SCHEMA}\npath = "in/b"'
    file = write_job(tmp_path, (old, f'format = "{endless}"'))
    assert refused(file) == (
        f'[job] trigger = "available-now" needs streams that end, but [[stream]] b has format '
        f'"{endless}"; give a time between micro-batches such as "5 seconds"'
    )
    file = write_job(tmp_path, (old, f'format = "{endless}"'), ("shards = 1", 'trigger = "5 s"'))
    assert read_job(file).trigger_ms == 5_000


def test_an_interval_stands_beside_streams_without_windows(tmp_path):
    file = write_job(
        tmp_path,
        ('on = "k"', 'on = "k"\nbetween = ["0 s", "30 min"]'),
        ('window = "1 second"\n', ""),
    )
    assert read_job(file).query.lengths == (1_800_000, 0)


def test_a_job_can_be_a_join_of_any_kind(tmp_path):
    kind = 'on = "k"\nhow = "left"\nemit = "eager"\nresult_id = true'
    named = ('name = "a"\n', 'name = "a"\nid = ["arrival"]\n')
    query = read_job(write_job(tmp_path, ('on = "k"', kind), named)).query
    assert (query.how, query.emit, query.result_id) == ("left", "eager", True)
    assert query.streams[0].id == ("arrival",)
    kind = 'on = "k"\nhow = "asof"\ntolerance = "2 s"\ndirection = "nearest"'
    query = read_job(write_job(tmp_path, ('on = "k"', kind), ('window = "1 second"\n', ""))).query
    assert (query.how, query.lengths, query.direction) == ("asof", (2_000, 2_000), "nearest")
    file = write_job(tmp_path, ('on = "k"', kind))
    assert "with how='asof' the tolerance is the window, got window='1 second'" in refused(file)


def test_mistakes_of_several_tables_are_shown_together(tmp_path):
    file = write_job(
        tmp_path,
        ('on = "k"', 'onn = "k"\nwher = "x"'),
        ('path = "in/b"', 'path = "in/c"'),
        ('format = "parquet"\npath = "out"', 'format = "parquet"\nselct = 1'),
    )
    told = refused(file).splitlines()
    assert [line.removeprefix(f"{file}: ").partition(" has no ")[0] for line in told] == [
        "[join]", told[1].removeprefix(f"{file}: "), "[sink]"
    ]  # fmt: skip
    assert 'has no keys "onn" (did you mean "on"?), "wher" (did you mean "where"?); ' in told[0]
    assert "[[stream]] b: path must be a file or directory that exists" in told[1]


def test_one_stream_is_not_a_join(tmp_path):
    first, _, rest = GOOD.partition("[[stream]]")
    only, _, sink = rest.partition("[[stream]]")[0], None, GOOD[GOOD.index("[sink]") :]
    file = write_job(tmp_path)
    file.write_text(f"{first}[[stream]]{only}{sink}")
    assert refused(file) == "needs at least 2 tables [[stream]], got 1"
    file.write_text(f"{first}[stream]{only}{sink}")
    assert refused(file).startswith("[[stream]] must be written in double brackets")


def test_files_that_cannot_be_read_are_named(tmp_path):
    assert refused(tmp_path / "none.toml").endswith("cannot be read: No such file or directory")
    (tmp_path / "bad.toml").write_text("[job\n")
    assert "bad.toml is not a TOML file: " in refused(tmp_path / "bad.toml")


def test_the_job_of_the_documentation_is_a_good_one(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    for name in ("quotes", "trades"):
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    assert read_job(tmp_path / "job.toml").query.names == ("quotes", "trades")


# ---- the checkpoint


def begun(tmp_path, **now):
    """A checkpoint directory as a query leaves it that has begun."""
    Checkpoint(tmp_path / "state", "job.toml").claim(now)
    (tmp_path / "state" / "offsets").mkdir()
    (tmp_path / "state" / "offsets" / "0").write_text("v1\n{}")
    return Checkpoint(tmp_path / "state", "job.toml")


def test_a_checkpoint_remembers_what_must_not_change(tmp_path):
    checkpoint = begun(tmp_path, shards=2, windows={"a": "1 s", "b": "2 s"})
    assert checkpoint.saved == {"shards": 2, "windows": {"a": "1 s", "b": "2 s"}}
    checkpoint.check({"shards": 2})
    expected = r"is of another query: shards was 2, now 3; windows of b was \"2 s\", now \"5 s\"\."
    with pytest.raises(JobFileError, match=expected):
        checkpoint.check({"shards": 3, "windows": {"a": "1 s", "b": "5 s"}})


def test_a_query_that_never_began_may_change(tmp_path):
    Checkpoint(tmp_path / "state", "job.toml").claim({"shards": 2})
    checkpoint = Checkpoint(tmp_path / "state", "job.toml")
    checkpoint.check({"shards": 3})
    checkpoint.claim({"shards": 3})
    assert json.loads((tmp_path / "state" / "slackwater.json").read_text())["job"] == {"shards": 3}


def test_half_a_write_leaves_no_claim(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "slackwater.json.new").write_text('{"ver')
    Checkpoint(tmp_path / "state", "job.toml").claim({"shards": 3})
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["slackwater.json"]


def test_a_changed_query_is_refused_before_spark_starts(tmp_path):
    from slackwater.jobs.plan import known_before

    file = write_job(tmp_path)
    begun(tmp_path, **known_before(read_job(file)))
    write_job(tmp_path, ('name = "b"\nts = "ts"\nwindow = "1 second"',
                         'name = "b"\nts = "v"\nwindow = "2 seconds"'),
              ("in/a", "in/b"))  # fmt: skip
    said = refused(file)
    assert 'times of b was "ts", now "v"' in said
    assert 'windows of b was "1 second", now "2 seconds"' in said
    assert "sources of a was" in said
    assert "windows of a" not in said
    assert not (tmp_path / "out").exists()


def test_a_changed_goal_is_the_same_query(tmp_path):
    from slackwater.jobs.plan import known_before

    saved = begun(tmp_path, **known_before(read_job(write_job(tmp_path))))
    other = write_job(tmp_path, ('{slack = "300 ms"}', '"max-slack"'), ("shards = 1", ""))
    saved.check(known_before(read_job(other)))


def test_the_directory_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "state" / "offsets").mkdir(parents=True)
    said = refused(write_job(tmp_path), "--check")
    assert said.endswith("is not empty and was not made by `slackwater run`; name a directory that "
                         "is new")  # fmt: skip
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["offsets"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"version": 1', "is damaged: slackwater.json in it cannot be read"),
        ("[]", "is damaged"),
        ('{"version": 99, "job": {}}', "is of version 99, but this Slackwater reads version 1"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_refused(tmp_path, text, message):
    begun(tmp_path)
    (tmp_path / "state" / "slackwater.json").write_text(text)
    assert message in refused(write_job(tmp_path))


def test_a_checkpoint_that_lost_a_plan_is_refused(tmp_path):
    begun(tmp_path)
    (tmp_path / "state" / "commits").mkdir()
    (tmp_path / "state" / "commits" / "1").touch()
    assert "damaged: offsets/1 is missing, but commits/1 is there" in refused(write_job(tmp_path))


# ---- a real run


AGGREGATE = """\
[job]
checkpoint = "state"
arrival = "arrival"

[aggregate]
on = "k"
select = {n = "count()", total = "sum(a.v)"}
window = {length = "2 s", slide = "1 s"}
deadline = {limit = "3 s", after = "end", slack = "1 s"}
compensate = true
by = "a.k"
late = "emit"

[[stream]]
name = "a"
ts = "ts"
format = "rate"

[[stream]]
name = "b"
ts = "ts"
format = "rate"

[sink]
format = "parquet"
path = "out"
"""


def aggregate_job(folder, *changes):
    text = AGGREGATE.replace("[job]", '[job]\ntrigger = "1 s"')
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"


def test_a_job_may_be_aggregates_over_joined_windows(tmp_path):
    asked = {
        "select": {"n": sw.count(), "total": sw.functions.sum("a.v")}, "on": "k", "by": "a.k",
        "deadline": sw.Deadline("3 s", after="end", slack="1 s"), "compensate": True,
        "late": "emit",
    }  # fmt: skip
    streams = sw.Stream("a", "ts"), sw.Stream("b", "ts")
    query = read_job(aggregate_job(tmp_path)).query
    assert query == sw.aggregate(*streams, window=sw.Sliding("2 s", "1 s"), **asked)
    known = known_before(read_job(aggregate_job(tmp_path)))  # what a checkpoint is held against
    assert known["windows"] == {"a": None, "b": None}
    assert known["window"] == "Sliding(length='2 s', slide='1 s')"
    tumbling = aggregate_job(tmp_path, ('{length = "2 s", slide = "1 s"}', '"2 s"'))
    assert read_job(tumbling).query.window == sw.Tumbling("2 s")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[aggregate]", "[join]\n[aggregate]", "has both [join] and [aggregate]"),
        ('window = {length = "2 s", slide = "1 s"}', "", "[aggregate] needs window"),
        (', slide = "1 s"}', "}", "[aggregate] the sliding windows of a join need a slide"),
        ('{length = "2 s", slide = "1 s"}', '"9 tuples"', "must be a Tumbling or a Sliding"),
        ('deadline = {limit = "3 s", after = "end", slack = "1 s"}', "",
         "[aggregate] needs deadline"),
        ('{limit = "3 s", after = "end", slack = "1 s"}', '{slack = "3 s"}',
         "[aggregate] deadline: needs limit"),
        ('{limit = "3 s", after = "end", slack = "1 s"}', '"soon"',
         "deadline must be like"),
        ('"count()"', '"max(a.v)"', "what has not arrived may hold the extreme value"),
        ("compensate = true", 'compensate = "magic"', "compensate must be one of 'delays'"),
        ('arrival = "arrival"', 'idle_after = "1 s"', "an [aggregate] does not wait for a stream"),
        ('name = "b"', 'name = "b"\nwindow = "1 s"', "aggregates have one window= for all"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_job_of_aggregates(tmp_path, old, new, message):
    with pytest.raises(JobFileError) as told:
        read_job(aggregate_job(tmp_path, (old, new)))
    assert message in str(told.value)


WINDOW = """\
[job]
checkpoint = "state"
at_end = "flush"
arrival = "arrival"

[window]
window = {length = "2 seconds", slide = "1 second"}
by = "k"
select = {n = "count()", most = "MAX(v)"}
goal = {drop_ratio = 0.02}

[[stream]]
name = "a"
ts = "ts"
format = "parquet"
schema = "ts long, k long, v double, arrival long"
path = "in/a"

[sink]
format = "parquet"
path = "out"
"""


def window_job(folder, *changes):
    (folder / "in" / "a").mkdir(parents=True)
    text = WINDOW
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"


def test_a_job_may_be_windows_of_one_stream(tmp_path):
    query = read_job(window_job(tmp_path)).query
    assert query == sw.window(
        sw.Stream("a", ts="ts"), window=sw.Sliding("2 seconds", "1 second"), by="k",
        select={"n": sw.count(), "most": sw.functions.max("v")}, goal=sw.DropRatio(0.02),
    )  # fmt: skip


def test_windows_take_best_effort_unless_they_are_asked_for_more(tmp_path):
    without = window_job(tmp_path, ("goal = {drop_ratio = 0.02}\n", ""))
    assert read_job(without).query.goal == sw.DropRatio()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[window]", "[join]\n[window]", "has both [join] and [window]"),
        ('window = {length = "2 seconds", slide = "1 second"}', "", "[window] needs window"),
        ('slide = "1 second"', 'slide = "9 tuples"', "both in tuples or both in time"),
        ('"count()"', '"count"', 'select.n must be like "avg(price)" or "count()", got \'count\''),
        ('"MAX(v)"', '"median(v)"', "[window] an aggregate must be one of count, sum"),
        ('select = {n = "count()", most = "MAX(v)"}', "", "[window] select must be a table"),
        ("{drop_ratio = 0.02}", "{drop_ratio = 2}", "a drop ratio must be at least 0 and below 1"),
        ("{drop_ratio = 0.02}", "{recall = 0.9}", "the goal of a window must be one of DropRatio"),
        ('arrival = "arrival"', 'idle_after = "1 s"', "[job] idle_after is for joins"),
        ("[sink]", '[[stream]]\nname = "b"\nts = "ts"\nformat = "rate"\n[sink]',
         "[window] takes one [[stream]], got 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_job_of_windows(tmp_path, old, new, message):
    job = window_job(tmp_path, (old, new))
    if "rate" in new:
        job.write_text(job.read_text().replace("[job]", '[job]\ntrigger = "1 s"'))
    with pytest.raises(JobFileError) as told:
        read_job(job)
    assert message in str(told.value)


@pytest.mark.spark
def test_a_job_runs_from_a_venv_that_is_not_activated(tmp_path):
    tables = {name: uniform_keys(2_000, seed, 500, 50) for seed, name in enumerate("ab")}
    file = write_job(tmp_path)
    for name, table in tables.items():
        for part in range(2):
            path = tmp_path / "in" / name / f"{part}.parquet"
            pq.write_table(table.slice(part * 1_000, 1_000), path)
            os.utime(path, (part, part))
    program = Path(sys.prefix) / "bin" / "slackwater"
    clean = {name: value for name, value in os.environ.items() if name in ("JAVA_HOME", "HOME")}
    done = subprocess.run(
        [program, "run", file.name, "--json"],
        cwd=tmp_path, env=clean | {"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        check=False, timeout=PROGRAM_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    figures = {line["name"]: line["value"] for line in json.loads(done.stdout)["lines"]}
    replayed = read_job(file).query.replay(tables, arrival="arrival")
    assert figures["rows in"] == 4_000
    assert figures["results"] == replayed.metrics.produced == replayed.results.num_rows
    assert figures["results lost"] == replayed.metrics.lost > 0
    written = pq.read_table(sorted((tmp_path / "out").glob("*.parquet")))
    assert written.num_rows == replayed.results.num_rows
    assert written.column_names == ["result_ts", "k", "step"]
    log = (tmp_path / "log" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    log = [json.loads(line) for line in log]
    assert [line["event"] for line in log][:2] == ["started", "batch"]
    assert all(line["balanced"] for line in log if line["event"] == "batch")
    verified = CliRunner().invoke(app, ["verify", str(file), "--json"])
    assert verified.exit_code == 0, verified.output
    seen = {line["name"]: line["value"] for line in json.loads(verified.stdout)["lines"]}
    assert seen["results in the output"] == figures["results"]
    assert (seen["extra results"], seen["doubled results"]) == (0, 0)
    assert seen["missing results"] >= figures["results lost"]  # of a few it is not known
    saved = json.loads((tmp_path / "state" / "slackwater.json").read_text())["job"]
    assert (saved["shards"], saved["windows"]) == (1, {"a": "1 second", "b": "1 second"})


@pytest.mark.full
@pytest.mark.spark
def test_windows_run_too_with_a_page_beside_them(tmp_path):
    table = uniform_keys(2_000, 3, 500, 5)
    file = window_job(tmp_path)
    pq.write_table(table, tmp_path / "in" / "a" / "0.parquet")
    done = subprocess.run(
        [Path(sys.prefix) / "bin" / "slackwater", "run", file.name, "--json", "--dashboard"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PROGRAM_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("dashboard: http://127.0.0.1:")
    assert done.stderr.count("\n") == 1  # and without a terminal it does not stay
    figures = {line["name"]: line["value"] for line in json.loads(done.stdout)["lines"]}
    written = pq.read_table(sorted((tmp_path / "out").glob("*.parquet")))
    assert figures["results"] == written.num_rows > 0
    assert written.column_names == ["result_ts", "k", "n", "most"]
    assert "recall" not in figures


# ---- SQL


SQL = """
SET checkpoint = 'state';
SET at_end = 'flush';
SET spark.sql.shuffle.partitions = 2;
CREATE STREAM a (ts BIGINT, k BIGINT, x DOUBLE) FROM JSON 'a' OPTIONS (maxFilesPerTrigger 1);
CREATE STREAM b (ts BIGINT, k BIGINT, x DOUBLE) FROM JSON 'b';
INSERT INTO PARQUET 'out' OPTIONS (partition_by ('k'))
SELECT l.k, l.x - r.x AS gap FROM a [RANGE 2 SECONDS] l, b [RANGE 2 SECONDS] r WHERE l.k = r.k
WITH SLACK 100 MS;
"""


def sql_job(folder, text=SQL):
    for name in "ab":
        (folder / name).mkdir(exist_ok=True)
    path = folder / "matches.sql"
    path.write_text(text)
    return read_job(path)


def test_a_job_can_be_one_sql_file(tmp_path):
    job = sql_job(tmp_path)
    assert job.name == "matches"
    assert job.query.listed == (("k", "l.k"), ("gap", "l.x - r.x"))
    assert [stream.source for stream in job.query.streams] == ["a", "b"]
    assert job.sources[0].options == {"maxFilesPerTrigger": "1"}
    assert job.sources[0].schema == "ts BIGINT, k BIGINT, x DOUBLE"
    assert job.sink.partition_by == ("k",)
    assert job.options["at_end"] == "flush"
    assert job.settings == {"spark.sql.shuffle.partitions": "2"}


def test_an_sql_file_can_be_a_join_of_any_kind(tmp_path):
    old = "a [RANGE 2 SECONDS] l, b [RANGE 2 SECONDS] r WHERE l.k = r.k"
    new = "a [RANGE 2 SECONDS] l LEFT JOIN b [RANGE 2 SECONDS] r ON l.k = r.k"
    text = SQL.replace(old, new).replace("SLACK 100 MS", "SLACK 100 MS, EMIT EAGER, RESULT_ID")
    query = sql_job(tmp_path, text).query
    assert (query.how, query.emit, query.result_id) == ("left", "eager", True)
    new = "a l ASOF JOIN b [ID x] r ON l.k = r.k TOLERANCE 2 SECONDS NEAREST"
    query = sql_job(tmp_path, SQL.replace(old, new)).query
    assert (query.how, query.direction, query.streams[1].id) == ("asof", "nearest", ("x",))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("WITH SLACK", "WITH SLAK", "did you mean SLACK?"),
        ("FROM JSON 'b'", "FROM JSON 'c'", "path must be a file or directory that exists"),
        ("CREATE STREAM b", "CREATE STREAM c", "there is no stream c; the text has a, b"),
        (
            "CREATE STREAM b (ts BIGINT, k BIGINT, x DOUBLE) FROM JSON 'b';",
            "",
            "sql reads b, which no .* is called; there are a",
        ),
        (
            "INSERT INTO PARQUET 'out' OPTIONS (partition_by ('k'))",
            "",
            "a file must name its output",
        ),
        ("SET at_end", "SET at_ned", 'has no key "at_ned" \\(did you mean "at_end"'),
        ("SET checkpoint = 'state';", "", "needs checkpoint"),
        ("(ts BIGINT, k BIGINT, x DOUBLE) FROM JSON 'b'", "FROM JSON 'b'", "needs schema"),
    ],
)
def test_a_bad_sql_file_is_refused(tmp_path, old, new, message):
    assert old in SQL
    with pytest.raises(JobFileError, match=message):
        sql_job(tmp_path, SQL.replace(old, new))


def test_the_start_line_states_the_goal_even_if_the_job_gives_none(tmp_path):
    job = read_job(write_job(tmp_path))
    assert start_line(job) == "pairs: join of a, b; goal: Slack(300 ms)"
    default = read_job(write_job(tmp_path, ('goal = {slack = "300 ms"}', "")))
    assert start_line(default) == "pairs: join of a, b; goal: Recall(0.95)"
