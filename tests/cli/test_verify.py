"""`slackwater verify`: outputs as a sink leaves them, whole and mutilated."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from patience import PROGRAM_S
from recorded import figures, slackwater, tables, write_job
from slackwater.jobs.job import Sink, read_job
from slackwater.jobs.sink_files import columns_of

RECALL = '[join]\non = "k"\nlate = "emit"\ngoal = {recall = 0.6, over = "2 s"}'


def replayed(file):
    """What the job gives in this process."""
    job = read_job(file)
    query = job.query
    if len(query.names) == 1:
        return query.replay(tables()["a"], "arrival").results
    return query.replay(tables(), "arrival").results


def write(table, folder, name="part-0.parquet"):
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)


def verified(file, *arguments, code=0):
    """The figures, of a verification that ends with this code."""
    result = slackwater("verify", file, *arguments, "--json")
    assert result.exit_code == code, result.output
    return figures(result, "verify")


# ---- joins


@pytest.fixture
def job(tmp_path):
    return write_job(tmp_path, asked=RECALL)


@pytest.fixture
def results(job):
    return replayed(job)


def test_what_was_replayed_is_found_to_be_true(tmp_path, job, results):
    write(results, tmp_path / "out")
    told = verified(job)
    query = read_job(job).query
    report = query.replay(tables(), "arrival").report(0.6, "2 s")
    assert told["true results"] == report.true
    assert told["results in the output"] == results.num_rows
    assert told["recall in time"] == report.recall
    assert told["Φ(0.6) over 2 s"] == pytest.approx(report.phi, abs=1e-6)
    assert told["late results"] == pc.sum(results["late"]).as_py() > 0
    assert told["missing results"] == report.true - results.num_rows
    assert told["extra results"] == told["doubled results"] == 0


def test_the_oracle_is_named(tmp_path, job, results, monkeypatch):
    write(results, tmp_path / "out")
    first = json.loads(slackwater("verify", job, "--json").stdout)
    monkeypatch.setattr("slackwater.testing.oracle.find_spec", lambda name: None)
    second = json.loads(slackwater("verify", job, "--json").stdout)
    assert (first.pop("oracle"), second.pop("oracle")) == (
        "DuckDB",
        "the embedded engine, on sorted input",
    )
    assert first == second


@pytest.mark.parametrize(
    ("mutilate", "fault", "n"),
    [
        (lambda t: pa.concat_tables([t, t.slice(7, 2)]), "doubled results", 2),
        (
            lambda t: t.set_column(3, "a_v", pc.add(t["a_v"], (np.arange(len(t)) == 5) * 1.0)),
            "extra results",
            1,
        ),
        (lambda t: t.set_column(0, "result_ts", pc.add(t["result_ts"], 1)), "extra results", None),
    ],
)
def test_extra_and_doubled_results_fail(tmp_path, job, results, mutilate, fault, n):
    write(results, tmp_path / "whole")
    before = verified(job, tmp_path / "whole")
    write(mutilate(results), tmp_path / "out")
    told = verified(job, code=1)
    assert told[fault] == (results.num_rows if n is None else n)
    gone = told["missing results"] - before["missing results"]
    assert gone == (0 if fault.startswith("doubled") else told[fault])
    shown = slackwater("verify", job)
    assert shown.exit_code == 1
    assert f"{fault.split()[0]}, the first ones:" in shown.stdout
    assert "not as promised" in shown.stdout


def test_a_recall_below_the_target_fails(tmp_path, job, results):
    write(results.slice(0, results.num_rows // 2), tmp_path / "out")
    told = verified(job, code=1)
    assert told["extra results"] == told["doubled results"] == 0
    assert told["recall in time"] < 0.6
    no_target = write_job(
        tmp_path, asked=RECALL.replace('{recall = 0.6, over = "2 s"}', '"no-slack"')
    )
    verified(no_target)


def test_output_may_lie_in_several_places_and_none(tmp_path, job, results):
    write(results.slice(0, 50), tmp_path / "x", "1.parquet")
    write(results.slice(50), tmp_path / "y", "2.parquet")
    told = verified(job, tmp_path / "x" / "1.parquet", tmp_path / "y")
    assert told["results in the output"] == results.num_rows
    missing = slackwater("verify", job)
    assert missing.exit_code == 2
    assert "must be the output of the job" in missing.stderr


def test_spark_has_committed_only_what_its_log_says(tmp_path, job, results):
    out = tmp_path / "out"
    log = out / "_spark_metadata"
    log.mkdir(parents=True)
    for number in range(4):
        write(results.slice(number * 100, 100), out, f"part-{number}.parquet")
    write(results.slice(0, 100), out, "part-orphan.parquet")

    def told(number):
        path = f"file:///elsewhere/out/part-{number}.parquet"
        return json.dumps({"path": path, "size": 1, "action": "add"})

    (log / "0").write_text("v1\n" + told("orphan"))  # older than the compact file
    (log / "1.compact").write_text("\n".join(["v1", told(0), told(1)]))
    (log / "2").write_text("v1\n" + told(2))
    (log / ".2.crc").touch()
    told = verified(job, code=1)
    assert (told["results in the output"], told["doubled results"]) == (300, 0)


def test_select_and_partitions_of_a_sink(tmp_path, job, results):
    select = ["result_ts as at", "a_k as key", "b_v - 2 * a_v as step", "late", "upper('x') as x"]
    sink = f'format = "parquet"\npath = "out"\nselect = {json.dumps(select)}\n'
    job = write_job(tmp_path, asked=RECALL, sink=sink + 'partition_by = ["key"]')
    step = pc.subtract(results["b_v"], pc.multiply(2, results["a_v"]))
    made = pa.table({"at": results["result_ts"], "step": step, "late": results["late"]})
    for key in set(results["a_k"].to_pylist()):
        write(made.filter(pc.equal(results["a_k"], key)), tmp_path / "out" / f"key={key}")
    told = verified(job)
    assert told["results in the output"] == results.num_rows
    assert told["late results"] > 0 and "Φ(0.6) over 2 s" in told
    assert "not compared: upper('x')" in " ".join(slackwater("verify", job).stdout.split())
    [first, *_] = (tmp_path / "out").iterdir()
    first.rename(tmp_path / "out" / "key=77")  # results of a key that is not there
    assert verified(job, code=1)["extra results"] > 0


@pytest.mark.parametrize("form", ["csv", "csv with header", "json"])
@pytest.mark.parametrize("stamped", [False, True])
def test_text_files_say_the_same(tmp_path, form, stamped):
    job = write_job(tmp_path, asked=RECALL, sink=f'format = "{form[:4].strip()}"\npath = "out"')
    if stamped:
        job.write_text(job.read_text().replace("ts long", "ts timestamp"))
        for name, table in tables().items():
            times = table["ts"].cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
            pq.write_table(table.set_column(0, "ts", times), tmp_path / name / "0.parquet")
    done = slackwater("replay", job, "--out", tmp_path / "whole.parquet")
    assert done.exit_code == 0, done.output
    expected = verified(job, tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    (tmp_path / "out").mkdir()
    if form == "json":  # as Spark writes them: times in this form
        with (tmp_path / "out" / "0.json").open("w") as lines:
            for row in table.to_pylist():
                when = {n: v.isoformat(timespec="milliseconds").replace("+00:00", "Z")
                        for n, v in row.items() if hasattr(v, "isoformat")}  # fmt: skip
                lines.write(json.dumps(row | when) + "\n")
    else:
        options = pyarrow.csv.WriteOptions(include_header=form.endswith("header"))
        pyarrow.csv.write_csv(table, tmp_path / "out" / "0.csv", options)
    (tmp_path / "out" / "empty.json").touch()
    assert verified(job) == expected


def test_counts_are_added_up(tmp_path):
    asked = '[join]\non = "k"\nselect = "count"\ngoal = {slack = "300 ms"}'
    job = write_job(tmp_path, asked=asked)
    counts = replayed(job)
    half = pc.divide(counts["n"], 2)
    halves = [counts.set_column(1, "n", n) for n in (half, pc.subtract(counts["n"], half))]
    write(pa.concat_tables(halves), tmp_path / "out")  # two shards tell what they have
    told = verified(job)
    assert told["results in the output"] == pc.sum(counts["n"]).as_py()
    write(counts, tmp_path / "out", "again.parquet")
    assert verified(job, code=1)["doubled results"] > 0


def test_windows_in_tuples_may_have_results_that_are_not_true(tmp_path):
    job = write_job(tmp_path, asked='[join]\non = "k"\ngoal = "no-slack"')
    job.write_text(job.read_text().replace('"1 second"', '"9 tuples"', 1))
    write(replayed(job), tmp_path / "out")
    result = slackwater("verify", job, "--json")
    assert result.exit_code == 0, result.output
    sheet = json.loads(result.stdout)
    assert sheet["oracle"].startswith("the embedded engine")
    assert any("Windows in tuples" in note for note in sheet["notes"])


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ('format = "noop"', "[sink] has no files on this machine; name the output"),
        ('format = "parquet"\npath = "out"\nselect = ["upper(\'x\') as x"]',
         "no column of the output can be computed without Spark"),
        ('format = "parquet"\npath = "out"\nselect = ["a_v as other"]',
         "is not an output of this job: there is no column other"),
        ('format = "text"\npath = "out"', "must be Parquet, CSV or JSON files, got text"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(tmp_path, results, sink, message):
    name = "part-0.txt" if "text" in sink else "part-0.parquet"
    write(results, tmp_path / "out", name)
    result = slackwater("verify", write_job(tmp_path, asked=RECALL, sink=sink))
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_select_means_what_spark_means():
    exact = pa.table({"result_ts": [1], "a_x": [2], "a_y": [0.5], "a_s": ["t"]})
    select = ("*", "`a_x`", "a_x * 2 + a_y AS z", "a_x / 2 as half", "a_s + 1 as s", "a_x AS a")
    columns = columns_of(Sink("parquet", None, {}, select, ()), exact, ["late"])
    assert columns.unknown == ["a_x / 2", "a_s + 1"]
    assert columns.true["z"].to_pylist() == [4.5]
    assert columns.names == [*exact.column_names, "late", "a_x", "z", "half", "s", "a"]
    assert "late" not in columns.true.column_names


# ---- other kinds of joins

GOAL = 'goal = {slack = "100 ms"}\n'
EMISSIONS = [
    (how, emit)
    for how in ("left", "right", "full", "semi", "anti", "asof", "inner")
    for emit in ("ordered", "eager")
    if (how, emit) != ("inner", "ordered")
]


def job_of(folder, how, emit, goal=GOAL):
    """A job of this kind; it keeps all events, so that all corrections are found."""
    late = 'late = "emit"\nretention = "1 hour"\n'
    if emit == "eager" and how in ("inner", "semi"):
        late = ""
    asof = 'tolerance = "60 ms"\n' if how == "asof" else ""
    kind = f'[join]\non = "k"\nhow = "{how}"\nemit = "{emit}"\n'
    file = write_job(folder, asked=kind + late + asof + goal)
    window = "" if how == "asof" else 'window = "60 ms"'
    text = file.read_text(encoding="utf-8").replace('window = "1 second"', window)
    file.write_text(text, encoding="utf-8")
    return file


def column(table, name, default):
    """The values of a column, or of one that there is not."""
    return table[name].to_pylist() if name in table.schema.names else [default] * len(table)


@pytest.mark.parametrize(("how", "emit"), EMISSIONS)
def test_output_of_every_kind_is_true_in_the_end(tmp_path, how, emit):
    job = job_of(tmp_path, how, emit)
    found = replayed(job)
    write(found, tmp_path / "out")
    told = verified(job)
    assert told["true results"] > 100
    if (how, emit) not in (("inner", "eager"), ("semi", "eager")):
        assert told.get("missing results", told.get("missing results in the end")) == 0
    assert not told.get("wrong rows without partner in the end")
    assert told.get("right in the end", 1) == 1
    if how in ("left", "right", "full", "anti"):
        change = column(found, "change", "insert")
        assert told["results taken back"] == change.count("delete") > 0
    if how in ("left", "full", "anti"):
        metrics = read_job(job).query.replay(tables(), "arrival").metrics
        assert told["rows without partner, in time"] == metrics.unmatched_rows
        if not metrics.unmatched_rows_late:
            right = 1 - metrics.withdrawn_rows / metrics.unmatched_rows
            assert told["right rows without partner"] == pytest.approx(right, abs=1e-6)


def test_a_correction_that_is_missing_shows(tmp_path):
    job = job_of(tmp_path, "left", "eager")
    found = replayed(job)
    deletes = pc.equal(found["change"], "delete")
    assert pc.sum(deletes).as_py() > 5
    write(found.filter(pc.invert(deletes)), tmp_path / "out")
    told = verified(job)
    assert told["wrong rows without partner in the end"] == pc.sum(deletes).as_py()
    assert told["missing results in the end"] == told["results taken back"] == 0


def test_rows_that_are_false_fail(tmp_path):
    job = job_of(tmp_path, "left", "eager")
    found = replayed(job)
    pair = found.filter(found["b_ts"].is_valid()).slice(0, 1)
    other = pair.set_column(1, "a_ts", pc.add(pair["a_ts"], 1))
    alone = found.filter(pc.and_(found["b_ts"].is_null(), pc.equal(found["change"], "insert")))
    never = alone.set_column(1, "a_ts", pc.add(alone["a_ts"], 1)).slice(0, 1)
    column = found.schema.get_field_index("change")
    never = never.set_column(column, "change", pa.array(["delete"]))
    more = [part.cast(found.schema) for part in (pair, other, never)]
    write(pa.concat_tables([found, *more]), tmp_path / "out")
    told = verified(job, code=1)
    assert told["extra pairs"] == told["doubled results"] == told["taken back, never given"] == 1


def test_too_many_wrong_rows_fail(tmp_path):
    found = replayed(job_of(tmp_path, "anti", "eager"))
    job = job_of(
        tmp_path, "anti", "eager", 'goal = {recall = 0.8, unmatched = 0.999, over = "2 s"}\n'
    )
    write(found, tmp_path / "out")
    told = verified(job, code=1)
    assert told["right rows without partner"] < 0.999


def test_a_wrong_as_of_row_is_seen(tmp_path):
    job = job_of(tmp_path, "asof", "eager")
    found = replayed(job)
    values, change = found["b_v"].to_pylist(), found["change"].to_pylist()
    updated = {
        a for a, change in zip(found["a_v"].to_pylist(), change, strict=True) if change == "update"
    }
    at = next(
        n
        for n, (a, b) in enumerate(zip(found["a_v"].to_pylist(), values, strict=True))
        if b is not None and a not in updated
    )
    values[at] += 1
    wrong = found.set_column(found.schema.get_field_index("b_v"), "b_v", pa.array(values))
    write(found, tmp_path / "whole")
    write(wrong, tmp_path / "out")
    before, after = verified(job, tmp_path / "whole"), verified(job)
    missed = 1 / before["true results"]
    assert before["right at once"] - after["right at once"] == pytest.approx(missed, abs=1e-5)
    assert before["right in the end"] == 1 > after["right in the end"]


def test_changes_are_needed_to_apply_them(tmp_path):
    job = job_of(tmp_path, "left", "eager")
    job.write_text(job.read_text(encoding="utf-8") + 'select = ["a_v", "late"]\n', encoding="utf-8")
    write(replayed(job).select(["a_v", "late"]), tmp_path / "out")
    result = slackwater("verify", job)
    assert result.exit_code == 2
    assert "the output must have change unchanged, got a_v, late" in result.stderr


# ---- windows and aggregates


def test_windows_are_compared_one_by_one(tmp_path):
    job = write_job(tmp_path, "window")
    found = replayed(job)
    write(found, tmp_path / "out")
    told = verified(job)
    assert told["windows in the output"] == found.num_rows
    assert told["windows that differ"] > 0  # events were late
    once_more = found.slice(3, 1)
    elsewhere = once_more.set_column(0, "result_ts", pa.array([123_000]))
    write(pa.concat_tables([found, once_more, elsewhere.cast(found.schema)]), tmp_path / "out")
    told = verified(job, code=1)
    assert (told["extra windows"], told["doubled windows"]) == (1, 1)


def test_an_error_bound_is_held_to_its_promise(tmp_path):
    asked = '[window]\nwindow = "1 s"\nselect = {s = "sum(v)"}\n'
    job = write_job(tmp_path, "window", asked + "goal = {error_bound = 0.02}")
    found = replayed(job)
    write(found, tmp_path / "out")
    assert verified(job)["windows wrong by at most 0.02"] >= 0.97
    write(found.set_column(1, "s", pc.multiply(found["s"], 1.1)), tmp_path / "out")
    told = verified(job, code=1)
    assert told["largest error"] == pytest.approx(0.1, rel=0.3)


def test_a_window_needs_its_keys_in_the_output(tmp_path):
    sink = 'format = "parquet"\npath = "out"\nselect = ["k", "n"]'
    job = write_job(tmp_path, "window", sink=sink)
    write(replayed(job).select(["k", "n"]), tmp_path / "out")
    result = slackwater("verify", job)
    assert result.exit_code == 2
    assert "the output must have result_ts unchanged, got k, n" in result.stderr


@pytest.mark.full
@pytest.mark.spark
def test_aggregates_run_on_spark_and_are_verified(tmp_path):
    job = write_job(tmp_path, "aggregate", more="shards = 2")
    program = Path(sys.prefix) / "bin" / "slackwater"
    done = subprocess.run(
        [program, "run", job.name, "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PROGRAM_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = {line["name"]: line["value"] for line in json.loads(done.stdout)["lines"]}
    assert (run["rows in"], run["micro-batches"]) == (4_000, 2)
    out = tmp_path / "out"
    written = pq.read_table(sorted(out.glob("*.parquet"))).sort_by("window_start")
    expected = replayed(job)
    assert written.column_names == expected.column_names
    keys = ["window_start", "exact", "n_observed"]
    rows = [sorted(t.select(keys).to_pylist(), key=str) for t in (written, expected)]
    assert rows[0] == rows[1]
    told = verified(job)
    assert told["true windows"] == told["windows in the output"] == 10
    assert (told["early answers"], told["exact answers"]) == (
        pc.sum(pc.invert(written["exact"])).as_py(),
        pc.sum(written["exact"]).as_py(),
    )
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    largest = max(copy.glob("*.parquet"), key=lambda file: pq.read_metadata(file).num_rows)
    table = pq.read_table(largest)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), largest)
    assert verified(job, copy, code=1)["doubled windows"] == 1
    pq.write_table(table.slice(0, 0), largest)
    assert verified(job, copy)["missing windows"] > 0


BLANKS = """
[job]
checkpoint = "state"
at_end = "flush"

[join]
on = "k"
goal = "max-slack"

[[stream]]
name = "a"
ts = "ts"
window = "1 second"
format = "csv"
schema = "ts long, k string"
path = "a.csv"

[[stream]]
name = "b"
ts = "ts"
window = "1 second"
format = "csv"
schema = "ts long, k string"
path = "b.csv"

[sink]
format = "csv"
path = "out"
"""


def test_blanks_of_csv_are_null_as_on_spark_and_match_nothing(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(BLANKS)
    (tmp_path / "a.csv").write_text("1,x\n2,\n3,\n4,y\n")
    (tmp_path / "b.csv").write_text('1,x\n2,\n3,""\n4,z\n')
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-0.csv").write_text("1,1,x,1,x\n")  # what Spark writes
    told = verified(job)
    assert (told["true results"], told["missing results"], told["recall"]) == (1, 0, 1.0)
    for files in ([job], [tmp_path / "a2.csv", tmp_path / "b2.csv"]):
        for name in "ab":  # plain files have a header
            text = (tmp_path / f"{name}.csv").read_text()
            (tmp_path / f"{name}2.csv").write_text("ts,k\n" + text)
        options = [] if len(files) == 1 else ["--on", "k", "--window", "1 s"]
        replayed = slackwater("replay", *files, *options, "--json")
        assert figures(replayed, "replay")["true results"] == 1
