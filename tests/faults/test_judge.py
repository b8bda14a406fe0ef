"""The judge finds what is wrong, and damage can be mended: else no fault would ever be seen."""

import random
from collections import Counter

import pytest

from faults.checkpoint import cuts
from faults.damage import WAYS, damaged
from faults.judge import Verdict, compared

CALM = {0: Counter("ab"), 1: Counter("cc")}


@pytest.mark.parametrize(
    ("found", "lost", "doubled"),
    [
        ({0: Counter("ab"), 1: Counter("cc")}, 0, 0),
        ({0: Counter("ab"), 1: Counter("c")}, 1, 0),
        ({0: Counter("ab")}, 2, 0),
        ({0: Counter("ab"), 1: Counter("ccc")}, 0, 1),
        ({0: Counter("ab"), 1: Counter("cd")}, 1, 1),
        ({0: Counter("a"), 1: Counter("bcc")}, 1, 1),  # in another micro-batch
        ({0: Counter("ab"), 1: Counter("cc"), 2: Counter("a")}, 0, 1),
    ],
)
def test_rows_are_compared_by_micro_batch(found, lost, doubled):
    verdict = compared(found, CALM)
    assert verdict == Verdict(lost, doubled)
    assert verdict.ok == (lost == doubled == 0)


def test_an_open_account_is_not_ok():
    assert not Verdict(0, 0, "the accounting is not closed").ok


@pytest.mark.parametrize("way", [way for way in WAYS if way != "delayed"])
def test_damage_is_done_and_mended(tmp_path, way):
    for seed in range(20):
        (tmp_path / "offsets").mkdir(exist_ok=True)
        for number in range(11):
            (tmp_path / f"offsets/{number}").write_bytes(b"content of it")
            (tmp_path / f"offsets/.{number}.crc").write_bytes(b"sum")
        before = _contents(tmp_path)
        damage = damaged(tmp_path, "offsets", way, random.Random(seed))
        changed = {f for f, content in before.items() if _contents(tmp_path).get(f) != content}
        assert tmp_path / "offsets/10" in changed  # the last one, and nothing but it
        assert changed <= {tmp_path / "offsets/10", tmp_path / "offsets/.10.crc"}
        damage.mend()
        assert _contents(tmp_path) == before


def test_what_was_written_anew_is_not_mended(tmp_path):
    (tmp_path / "commits").mkdir()
    file = tmp_path / "commits/0"
    file.write_bytes(b"old")
    damage = damaged(tmp_path, "commits", "missing", random.Random(1))
    file.write_bytes(b"new")
    damage.mend()
    assert file.read_bytes() == b"new"


def _contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_files_of_a_micro_batch_are_known(tmp_path):
    """The second one found files of two, and the other source had none."""
    plans = ['{"logOffset":0}\n{"logOffset":0}', '{"logOffset":2}\n{"logOffset":0}']
    for number, plan in enumerate(plans):
        _put(tmp_path / f"checkpoint/offsets/{number}", f"v1\n{{}}\n{plan}")
    for source, entries in enumerate([(0, 1, 2), (0,)]):
        for n in entries:
            line = f'{{"path":"file:///in/{"ab"[source]}/{n}.parquet","batchId":{n}}}'
            _put(tmp_path / f"checkpoint/sources/{source}/{n}", f"v1\n{line}")
    assert cuts(tmp_path) == [
        {("a", "0.parquet"), ("b", "0.parquet")},
        {("a", "1.parquet"), ("a", "2.parquet")},
    ]


def _put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
