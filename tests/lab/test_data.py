"""The lab's datasets are what their papers describe, and its numbers are those of the reports."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slackwater as sw
from slackwater.errors import DataError, QueryError
from slackwater.testing.workloads import WorkloadError, soccer
from slackwater_lab.datasets import DATASETS, delays, get, local_times
from slackwater_lab.debs import read_debs
from slackwater_lab.measure import Job, measure
from slackwater_lab.synthetic import drifting_streams

MINUTES = 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


def test_soccer_has_the_disorder_of_the_thesis():
    game = soccer(300, seed=5)
    for table, most in zip(game.values(), (23_000, 26_500), strict=True):
        late_by = delays(table)
        assert 0.67 < np.mean(late_by == 0) < 0.75
        assert np.mean((late_by > 0) & (late_by <= 40)) > 0.7 * np.mean(late_by > 0)
        assert 5_000 < late_by.max() < most
    local = local_times(game)
    ahead = local[0] - local[1]
    assert np.mean(np.abs(ahead) <= 60) > 0.99
    assert ahead.min() < -30 and ahead.max() > 30


@pytest.mark.parametrize("drift", ["step", "ramp", "burst", "lag", "keyed"])
def test_drift_changes_delays_but_not_values(drift):
    tables, usual = drifting_streams(2, 3, drift), DATASETS["dx3"].make(2, 3)
    changed = 0
    for name, table in tables.items():
        values = [
            t.sort_by([("arrival", "ascending")])["a1"].to_numpy() for t in (table, usual[name])
        ]
        assert np.array_equal(*values)
        changed += not table.equals(usual[name])
    assert changed == (1 if drift == "lag" else 3)


def test_unknown_drift_is_refused():
    with pytest.raises(WorkloadError, match="drift must be one of step, ramp"):
        drifting_streams(1, 1, "wild")


def test_a_dataset_is_made_once_with_its_truth(folder):
    made = get("dx4", 1, MINUTES, folder)
    assert [path.name for path in folder.iterdir()] == [made.folder.name]
    before = (made.folder / "s1.parquet").stat().st_mtime_ns
    again = get("dx4", 1, MINUTES, folder)
    assert (again.folder / "s1.parquet").stat().st_mtime_ns == before
    run = replace(made.dataset.query, goal=sw.NoSlack()).replay(made.tables(), arrival="arrival")
    assert made.truth()[1].sum() == made.facts().true == run.report().true
    assert made.facts().largest_delay == max(delays(t).max() for t in made.tables().values())


def test_unknown_dataset_is_refused(folder):
    with pytest.raises(QueryError, match="there is no dataset 'dx9'; there are dx2, dx3"):
        get("dx9", 1, 1, folder)


@pytest.mark.parametrize("goal", [sw.NoSlack(), sw.Slack("50 ms"), sw.Recall(0.9, over="10 s")])
def test_an_outcome_has_the_numbers_of_the_report(folder, goal):
    outcome = measure(Job("dx3", 1, MINUTES, goal, over="10 s"), folder)
    data = get("dx3", 1, MINUTES, folder)
    run = replace(data.dataset.query, goal=goal).replay(data.tables(), arrival="arrival")
    report = run.report(0.9, over="10 s")
    assert outcome.recalls == report.measurements["recall"].to_pylist()
    assert outcome.recall == report.recall
    assert outcome.average_slack == report.average_slack
    assert outcome.average_latency == report.average_latency
    assert outcome.average_buffer == report.average_slack + data.facts().lead
    assert (outcome.steps > 0) == isinstance(goal, sw.Recall)


def test_sorted_data_lose_nothing(folder):
    outcome = measure(Job("soccer23", 1, 0.2, sw.NoSlack(), over="1 s", in_order=True), folder)
    assert outcome.recall == 1.0


def test_without_synchronizer_nothing_is_held_back(folder):
    goal = sw.NoSlack(synchronize=False)
    assert measure(Job("soccer23", 1, 0.2, goal, over="1 s"), folder).average_buffer == 0


def test_the_original_soccer_file(tmp_path: Path):
    # sid, ts in ps, x, y, z in mm, and what is not needed
    rows = [(13, 7_000, 1_500, -250), (61, 7_010, 0, 100), (4, 7_011, 9, 9), (14, 7_005, 2_000, 0)]
    path = tmp_path / "full-game"
    path.write_text(
        "".join(f"{sid},{ms}000000000,{x},{y},0,1,2,3,4,5,6,7,8\n" for sid, ms, x, y in rows)
    )
    game = read_debs(path)
    assert game["a"].to_pylist() == [
        {"ts": 0, "sid": 13, "x": 1.5, "y": -0.25, "arrival": 0},
        {"ts": 5, "sid": 14, "x": 2.0, "y": 0.0, "arrival": 3},
    ]
    assert game["b"].to_pylist() == [{"ts": 10, "sid": 61, "x": 0.0, "y": 0.1, "arrival": 1}]
    run = replace(DATASETS["dx2"].query, goal=sw.NoSlack()).replay(game, arrival="arrival")
    assert run.report().true == 2


@pytest.mark.parametrize("text", ["", "a,b\n", "1,x,1,1,0,0,0,0,0,0,0,0,0\n"])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(DataError, match="must be a file of DEBS 2013"):
        read_debs(path)
