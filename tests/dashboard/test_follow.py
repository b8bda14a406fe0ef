"""A metrics log that is read while it is written."""

import json
from threading import Event

import pytest

from patience import PATIENCE_S
from slackwater.dashboard.follow import Follower, LogFile


def write(file, *batches, end="\n"):
    with file.open("a") as log:
        for batch in batches:
            log.write(json.dumps({"event": "batch", "batch": batch}) + end)


def batches(log):
    return [line["batch"] for line in log.lines()]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_only_what_is_new_is_read(file):
    write(file, 1, 2)
    log = LogFile(file)
    assert batches(log) == [1, 2]
    assert batches(log) == []
    write(file, 3)
    assert batches(log) == [3]


def test_half_a_line_waits_for_its_end(file):
    write(file, 1)
    write(file, 2, end="")
    log = LogFile(file)
    assert batches(log) == [1]
    with file.open("a") as rest:
        rest.write("\n")
    assert batches(log) == [2]


def test_strange_lines_are_counted_and_left_out(file):
    file.write_text('{"event": "batch", "batch": 1}\nnonsense\n[1]\n\n{"a": 1}\n')
    log = LogFile(file)
    assert batches(log) == [1]
    assert log.skipped == 3


def test_a_file_that_was_replaced_is_read_anew(file, tmp_path):
    write(file, 1, 2, 3)
    log = LogFile(file)
    assert batches(log) == [1, 2, 3]
    other = tmp_path / "other"
    write(other, 4, 5, 6, 7)
    other.rename(file)
    assert batches(log) == [4, 5, 6, 7]
    file.write_text("")
    write(file, 8)
    assert batches(log) == [8]


def test_a_follower_hands_on_what_is_added(file):
    write(file, 1)
    log, came, taken = LogFile(file), Event(), []
    assert batches(log) == [1]

    def take(line):
        taken.append(line["batch"])
        came.set()

    with Follower(log, take):
        write(file, 2)
        assert came.wait(PATIENCE_S)
    assert taken == [2]
