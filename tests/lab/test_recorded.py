"""Recorded streams from any folder, K* from one pass, and policies judged on its record."""

import numpy as np
import pytest

from recordings import write_recording
from slackwater.errors import DataError
from slackwater.query.goals import NoSlack, Slack
from slackwater_lab import policies
from slackwater_lab.curves import Held, Narrowing, bracket, curve_of
from slackwater_lab.experiment import Column, Table
from slackwater_lab.measure import Job, data_of, measure
from slackwater_lab.recorded_streams import FOLDER, RECORDINGS, folder_of, recordings_in

OVER = "10 s"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    write_recording(folder, minutes=1.0)
    return folder


def job_of(folder, goal=None, name=None):
    name = name or next(iter(recordings_in(folder)))
    return Job(name, 0, 0.0, goal or NoSlack(), over=OVER, recordings=str(folder))


# ---- folders


def test_files_without_a_description_are_joined_on_the_column_they_share(folder):
    (recording,) = recordings_in(folder).values()
    assert recording.name == folder.name
    assert (recording.key, list(recording.files)) == ("device", ["left", "right"])
    tables = recording.tables(folder)
    assert tables["left"].column_names == ["ts", "key", "arrival"]
    assert min(table["ts"].to_numpy().min() for table in tables.values()) == 0


def test_a_description_names_the_recordings(tmp_path):
    write_recording(tmp_path, 0.1, names=("left-1", "right"))
    (tmp_path / "recordings.toml").write_text(
        '[[recording]]\nname = "own"\nkey = "device"\nwindow = "3 s"\nover = "20 s"\n'
        'files = ["left-1", "right"]\nresolution_ms = 5\n'
    )
    (recording,) = recordings_in(tmp_path).values()
    assert (recording.name, recording.window, recording.over) == ("own", "3 s", "20 s")
    assert recording.resolution_ms == 5
    assert {name: file for name, (file, _) in recording.files.items()} == {
        "s1": "left-1",
        "right": "right",
    }
    assert recording.rows(tmp_path) == 2 * 600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[recording]]\nname = "own"\n', "misses key, files"),
        ('[[recording]]\nname = "a"\nkey = "k"\nfiles = []\nspeed = 3\n', "has no speed"),
        ('[[recording]]\nname = "a"\nkey = "k"\nfiles = ["x", "y"]\n', "x.parquet, y.parquet in"),
        ("", "has no recording"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, text, message):
    (tmp_path / "recordings.toml").write_text(text)
    with pytest.raises(DataError, match=message):
        recordings_in(tmp_path)


def test_files_that_share_no_single_column_need_a_description(tmp_path):
    with pytest.raises(DataError, match="0 Parquet files with event_us and arrival_us"):
        recordings_in(tmp_path)
    write_recording(tmp_path, 0.1)
    write_recording(tmp_path, 0.1, names=("third", "fourth"), key="user")
    with pytest.raises(DataError, match=r"must share one column .* got none"):
        recordings_in(tmp_path)


def test_the_folder_is_the_given_one_or_that_of_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert folder_of(None) == tmp_path
    other = tmp_path / "other"
    with pytest.raises(DataError, match=f"recorded streams need a folder.*{FOLDER}; got .*other"):
        folder_of(other)
    other.mkdir()
    assert folder_of(other) == other


def test_our_recordings_have_what_their_queries_need():
    try:
        folder = folder_of(None)
    except DataError as error:
        pytest.skip(str(error))
    for name, recording in recordings_in(folder).items():
        assert name in RECORDINGS
        if recording.rows(folder) < 100_000:  # the others take long
            assert data_of(job_of(folder, name=name), folder).facts.true > 0


# ---- K*


def test_a_bracket_holds_the_smallest_slack_that_does_over_all_seeds():
    known = [
        Held(10, np.array([0, 5, 9]), np.array([[2, 9, 10]])),
        Held(10, np.array([0, 7]), np.array([[4, 10]])),
    ]
    assert bracket(known, 0, wanted=0.3) == (-1, 0)
    assert bracket(known, 0, wanted=0.65) == (0, 5)
    assert bracket(known, 0, wanted=0.95) == (5, 7)
    assert bracket(known, 0, wanted=1.0) == (7, 9)


@pytest.mark.parametrize("best", [65, 70, 96, 4_000])
def test_runs_narrow_the_bracket_down_to_the_slack_that_does(best):
    search = Narrowing(lambda slack: [slack], 0.9, best * 31 // 32 - 1, best + best // 32)
    while not search.is_over:
        (slack,) = search.runs
        search.learn(1.0 if int(slack.length.split()[0]) >= best else 0.0)
    assert best <= search.high <= best * (1 + 1 / 200)


def test_a_fixed_slack_holds_as_often_as_the_curve_says(folder):
    curve = curve_of(job_of(folder), folder)
    slack = curve.smallest_slack(0.95, 0.97)
    run = measure(job_of(folder, Slack(slack)), folder)
    assert run.recalls == curve.series(slack)["recall"].to_pylist()


# ---- policies


def test_what_a_policy_gives_by_the_record_is_what_the_engine_gives(folder):
    job = job_of(folder)
    curve, data = curve_of(job, folder), data_of(job, folder)
    some = list(policies._family(curve, data.query))
    assert len(some) == 9 * 10 * 8
    for policy in some[100:700:150]:
        by_record = policies._judged(curve, policy, 0.95)
        by_engine = policies.confirmed(curve, data, policy, 0.95)
        assert by_record.average_slack == pytest.approx(by_engine.average_slack, rel=1e-6)
        assert by_record.phi == pytest.approx(by_engine.phi, abs=0.1)


def test_the_best_policy_reaches_what_is_wanted_with_the_smallest_slack(folder):
    job = job_of(folder)
    curve, data = curve_of(job, folder), data_of(job, folder)
    best = policies.best_moving(curve, data, 0.95, 0.9)
    assert best.phi >= 0.9
    fixed = policies.best_fixed(curve, 0.95, 0.9)
    assert fixed.average_slack == curve.smallest_slack(0.95, 0.9)
    assert fixed == policies.confirmed(curve, data, fixed.policy, 0.95)
    never = policies.best_moving(curve, data, 0.95, 1.1)
    assert best.phi <= never.phi < 1.1


def test_a_limit_may_be_a_number_or_in_another_column():
    columns = (
        Column("share", "", floor="least"),
        Column("slack", "ms", ceiling=5.0),
        Column("least"),
    )
    first, second, _ = Table("", ("row",), columns, [(("a",), [0.5, 6.0, 0.7])]).lines()
    assert (first.floor, first.ok, second.ceiling, second.ok) == (0.7, False, 5.0, False)
    (only, *_) = Table("", ("row",), columns, [(("a",), [0.5, None, None])]).lines()
    assert only.floor is None
