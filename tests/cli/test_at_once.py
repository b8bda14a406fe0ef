"""The commands on a job that joins three streams at once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorded import figures, slackwater, tables, write_job
from slackwater.jobs.job import read_job

NAMES = "abc"
GOAL = 'goal = {recall = 0.9, over = "2 s"}'


def job_of(folder, more=""):
    asked = f'[join]\non = "k"\nemit = "eager"\n{GOAL}\n{more}'
    file = write_job(folder, asked=asked, names=NAMES)
    text = file.read_text(encoding="utf-8").replace('window = "1 second"', 'window = "200 ms"')
    file.write_text(text, encoding="utf-8")
    return file


def told(command, job, *arguments):
    result = slackwater(command, job, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return figures(result, command)


@pytest.mark.parametrize("more", ["", 'select = "count"'])
def test_what_is_replayed_is_true_and_measured(tmp_path, more):
    job = job_of(tmp_path, more)
    known = told("replay", job)
    assert 0.85 <= known["recall"] <= 1  # it learns at first
    assert known["rows without a fate"] == 0
    assert known["average time that events are kept"] > 0
    found = read_job(job).query.replay(tables(names=NAMES), "arrival").results
    (tmp_path / "out").mkdir()
    half = found.num_rows // 2
    for n, part in enumerate((found.slice(0, half), found.slice(half))):
        pq.write_table(part, tmp_path / "out" / f"{n}.parquet")
    true = told("verify", job)
    assert true["extra results"] == 0
    assert true["results in the output"] == known["results"]
    assert true["true results"] - true["missing results"] == known["results"]


def test_counts_of_one_time_may_come_in_several_rows(tmp_path):
    """As each micro-batch on Spark has rows of its own."""
    job = job_of(tmp_path, 'select = "count"')
    found = read_job(job).query.replay(tables(names=NAMES), "arrival").results
    (tmp_path / "out").mkdir()
    first = found.slice(0, 5)
    numbers = [n - 1 for n in first["n"].to_pylist()], [1] * 5
    less, ones = (pa.table([first["result_ts"], pa.array(n)], schema=found.schema) for n in numbers)
    split = pa.concat_tables([less, found.slice(5), ones])
    pq.write_table(split, tmp_path / "out" / "0.parquet")
    true = told("verify", job)
    assert true["extra results"] == 0
    assert true["results in the output"] == sum(found["n"].to_pylist())


def test_advice(tmp_path):
    known = told("advise", job_of(tmp_path), "--over", "1 s")
    assert known["results, 0.9 asked: found"] >= 0.9
    assert known["results, 0.9 asked: best fixed"] > 0


def test_in_words(tmp_path):
    result = slackwater("explain", job_of(tmp_path))
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    for sentence in (
        "A join of 3 streams, a, b, c; results have all columns of all.",
        "A result comes with its last event, in no order of time.",
        "At least 0.9 of the true results are found, over any 2 s: this sets how long events are",
        "A result is lost if one of its events is forgotten when the last one comes.",
        "While a stream is silent, nothing is forgotten: idle_after is not set.",
    ):
        assert sentence in words
    assert "has no partner" not in words
