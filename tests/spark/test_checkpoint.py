"""A checkpoint from which entries are gone is refused before Spark goes on from it."""

import re
import shutil

import pytest

from slackwater.errors import SnapshotError
from slackwater.spark.checkpoint import check_checkpoint

HADOOPS = bytes.fromhex("63726300 00000200 f32abfdd")  # as it was found beside such an entry


@pytest.fixture
def checkpoint(tmp_path):
    """As Spark leaves it after three micro-batches over two file sources."""
    for number in range(3):
        _put(tmp_path, f"offsets/{number}", f'v1\n{{}}\n{{"logOffset":{number}}}\n-')
        _put(tmp_path, f"commits/{number}", "v1\n{}")
        _put(tmp_path, f"sources/0/{number}", "v1\n{}")
        _put(tmp_path, f"state/0/1/{number + 1}.changelog", "")
    return tmp_path


def _put(folder, name, text):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_what_spark_leaves_is_accepted(checkpoint, tmp_path):
    check_checkpoint(checkpoint)
    check_checkpoint(tmp_path / "not there yet")


@pytest.mark.parametrize("gone", ["commits/2", "commits", "state/0/1/3.changelog", "sources/0/1"])
def test_what_spark_repeats_or_refuses_itself_is_left_to_it(checkpoint, gone):
    _remove(checkpoint / gone)
    check_checkpoint(checkpoint)


def test_a_batch_that_was_noted_but_not_planned_is_none_yet(checkpoint):
    _put(checkpoint, "sources/0/3", "v1\n{}")
    check_checkpoint(checkpoint)


def test_notes_may_be_compacted(checkpoint):
    (checkpoint / "sources/0/2").rename(checkpoint / "sources/0/2.compact")
    check_checkpoint(checkpoint)


def test_a_plan_that_cannot_be_read_is_refused_by_spark(checkpoint):
    (checkpoint / "offsets/2").write_text("v1\n{}\n{")
    check_checkpoint(checkpoint)


@pytest.mark.parametrize("text", ["", "v1", "v1\n"])
@pytest.mark.parametrize("entry", ["offsets/2", "commits/2", "sources/0/2"])
def test_an_entry_that_says_nothing_is_refused(checkpoint, entry, text):
    (checkpoint / entry).write_text(text)
    with pytest.raises(SnapshotError, match=f"is damaged: {entry} is not what was written"):
        check_checkpoint(checkpoint)


def test_checksums_are_believed_where_they_are_kept(checkpoint):
    (checkpoint / "commits/2").write_text(text := 'v1\n{"nextBatchWatermarkMs":0}')
    (checkpoint / "commits/.2.crc").write_bytes(HADOOPS)
    check_checkpoint(checkpoint)
    (checkpoint / "commits/2").write_text(text.replace("0", "1"))
    with pytest.raises(SnapshotError, match="is damaged: commits/2 is not what was written"):
        check_checkpoint(checkpoint)


GONE = {
    "the last plan": (["offsets/2"], "offsets/2 is missing, but commits/2 is there"),
    "all plans": (["offsets"], "offsets/2 is missing, but commits/2 is there"),
    "the plan of a batch at work": (
        ["offsets/2", "commits/2"],
        "offsets/2 is missing, but version 3 of the state is there",
    ),
    "the last note": (["sources/0/2"], "sources/0/2 is missing, but offsets/2 goes by it"),
    "all notes": (["sources"], "sources/0/2 is missing, but offsets/2 goes by it"),
}


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_is_named(checkpoint, name):
    gone, message = GONE[name]
    for each in gone:
        _remove(checkpoint / each)
    with pytest.raises(SnapshotError, match=re.escape(f"is damaged: {message}. Restore")):
        check_checkpoint(checkpoint)


def _remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
