"""What long runs are judged by: flat or not, drifting or not, accounted for or not."""

import json
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from recorded import slackwater
from slackwater.jobs.measurement import Measurement
from slackwater_lab.benches import resident_memory as memory
from slackwater_lab.benches import steady as steady_bench
from slackwater_lab.benches.endless import PART, endless
from slackwater_lab.benches.soak import Soak, lines, soak
from slackwater_lab.benches.steady import Held, MicroBatch, Steady
from slackwater_lab.benches.steady import figure as steady_figure
from slackwater_lab.benches.steady import lines as steady_lines


def by_name(lines) -> dict[str, Measurement]:
    return {line.name: line for line in lines}


@pytest.mark.full
def test_every_event_happens_once_and_arrives_once():
    parts = list(endless(seed=3, parts=3))
    for s in (0, 1):
        come, happened = (
            np.concatenate([np.stack([t["ts"], t["k"]]) for t in (p.tables[s] for p in side)], 1)
            for side in zip(*parts, strict=True)
        )
        assert come.shape[1] == 3 * PART // 2
        assert sorted(come.T.tolist()) == sorted(happened.T.tolist())
        assert (np.diff(happened[0]) >= 0).all()
        assert not (np.diff(come[0]) >= 0).all()


def test_a_soak_accounts_for_every_result():
    record = soak(seed=1, events=2 * PART)
    found = by_name(lines(record, quick=False))
    assert found["events"].value == 2 * PART
    assert found["not accounted for"].ok
    assert found["true results"].value == sum(record.true) > 100_000
    assert 0 < found["counted as lost"].value < found["produced"].value


def soaked(**changed) -> Soak:
    """Two hours of which nothing can be said against."""
    seconds = 7_200
    record = Soak(
        events=list(range(PART, PART * seconds // 10 + 1, PART)),
        memory=[10**9] * (seconds // 10),
        produced=[99] * seconds,
        true=[100] * seconds,
        slacks=[(0, 100)],
        lost=seconds,
        seconds=1.0,
        top=1000 * seconds,
    )
    vars(record).update(changed)
    return record


GROWING = {"memory": np.linspace(10**9, 2 * 10**9, 720).tolist()}
WORSE = {"produced": [99] * 6_000 + [90] * 1_200, "lost": 6_000 + 12_000}


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        (GROWING, ["growth of memory"]),
        (WORSE, ["Φ(0.95), largest difference of fifths"]),
        ({"lost": 7_199}, ["not accounted for"]),
        ({"is_balanced": False}, ["not accounted for"]),
        ({"produced": [90] * 7_200, "lost": 72_000}, ["recall"]),
    ],
)
def test_a_soak_that_is_not_as_it_should_be_is_seen(changed, missed):
    found = lines(soaked(**changed), quick=False)
    assert [line.name for line in found if not line.ok] == missed


def held(ages, rate=1_000, lost=0):
    """A micro-batch each second."""
    batches = [
        MicroBatch(float(n), rate, age, 100 * n, lost * n, 50, 10**6) for n, age in enumerate(ages)
    ]
    return Held(rate, batches, [(float(n), 10**9) for n in range(len(ages))])


def test_a_rate_is_held_when_rows_do_not_get_older():
    assert held([1.5, 1.4, 1.6] * 50).is_held
    assert not held(np.linspace(1.5, 6, 150)).is_held
    assert not held([90.0] * 150).is_held, "waits too long"
    assert not held([1.5] * 3).is_held, "too little to tell"


@pytest.mark.parametrize(
    ("most_for_a_minute", "most_for_long", "tried", "found"),
    [
        (300_000, 300_000, [200_000, 240_000, 280_000, 330_000], 280_000),
        (300_000, 250_000, [200_000, 240_000, 280_000, 330_000, 280_000], 230_000),
        (150_000, 150_000, [200_000, 160_000, 130_000], 130_000),
    ],
)
def test_the_highest_rate_is_searched_from_below(
    monkeypatch, tmp_path, most_for_a_minute, most_for_long, tried, found
):
    """On a machine of which it is known what it can do; a real one takes 40 minutes."""

    def hold(_, rate, seconds, *__):
        most = most_for_long if seconds > 600 else most_for_a_minute
        return held([1.5] * 50 if rate <= most else np.linspace(1.5, 9, 50), rate)

    monkeypatch.setattr(steady_bench, "hold", hold)
    sessions = import_module("slackwater.spark.session")  # the package has a function of that name
    monkeypatch.setattr(sessions, "session", lambda *_: SimpleNamespace(stop=list))
    record = steady_bench.steady(1, 30.0, tmp_path)
    assert [trial.rate for trial in record.tried] == tried
    assert record.held.rate == found


def test_recall_is_that_of_the_last_minute():
    at, recalls = held([1.5] * 150, lost=100).recalls()
    assert at[0] == 60.0
    assert set(recalls) == {0.5}


@pytest.mark.parametrize(
    ("ages", "missed"),
    [([1.5] * 300, []), (np.linspace(1.5, 3, 300), ["age, last fifth by first"])],
)
def test_ages_that_grow_are_seen(ages, missed):
    record = Steady([held([1.5] * 50)], held(ages))
    found = list(steady_lines(record, quick=False))
    assert [line.name for line in found if not line.ok] == missed
    assert by_name(found)["rows joined by those made"].value == 1.0
    assert by_name(found)["Φ(0.95)"].value == 1.0
    assert steady_figure(record).axes


@pytest.mark.full
def test_the_command_tells_and_draws(tmp_path):
    result = slackwater("bench", "soak", "--quick", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["command"] == "bench soak --quick"
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")


def test_a_family_has_its_children():
    import os
    import subprocess

    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid in memory.family(os.getpid())
            assert memory.resident_family(os.getpid()) > memory.resident(os.getpid()) > 0
        finally:
            child.kill()
