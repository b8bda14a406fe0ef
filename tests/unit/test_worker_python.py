"""Which Python Spark's workers run: asked before a query starts, not found out by a crash."""

import sys
from types import SimpleNamespace

import pytest

import slackwater as sw
from slackwater.spark.session import check_workers


def session(python, master="local[2]"):
    return SimpleNamespace(_sc=SimpleNamespace(master=master, pythonExec=str(python)))


def interpreter(folder, line):
    file = folder / "python3"
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return file


def test_the_python_of_this_process_is_taken():
    check_workers(session(sys.executable))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f'exec "{sys.executable}" -I -S "$@"', "which has no slackwater, pyarrow, pandas, numba"),
        ("echo 2.7", "which is Python 2.7"),
        ("exit 3", "which does not start"),
    ],
)
def test_another_python_is_refused_and_the_way_out_named(tmp_path, line, problem):
    python = interpreter(tmp_path, line)
    with pytest.raises(sw.SparkError) as error:
        check_workers(session(python))
    assert str(error.value).startswith(f"Spark's workers run {python}, {problem}. Set PYSPARK_PY")
    assert sys.executable in str(error.value)
    check_workers(session(python, master="spark://there:7077"))  # executors have their own
    check_workers(SimpleNamespace())  # Spark Connect


def test_a_python_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(sw.SparkError, match="which is not there"):
        check_workers(session(tmp_path / "none"))
