"""The lab's own way through windows says what the engine says."""

import numpy as np
import pytest

from slackwater_lab.papers.pecj import runs
from slackwater_lab.papers.pecj.data import (
    FOLDER,
    LENGTH,
    MS,
    Dataset,
    authors_results,
    micro,
    real,
    tables,
)
from slackwater_lab.papers.pecj.intervals import binomial_p
from slackwater_lab.papers.pecj.oracles import oracles
from slackwater_lab.papers.pecj.runs import ESTIMATORS, Disorder, EstimatorRun, Plan, query


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("most", "deadline"), [(5 * MS, 10 * MS), (40 * MS, 20 * MS)])
def test_a_teller_says_what_the_engine_says(name, most, deadline):
    windows = micro(20, 60, seed=3).windows
    rng = np.random.default_rng(4)
    delays = [window.delays(most, rng) for window in windows]
    for delay in delays:
        delay[0] = most  # the engine waits as long as the largest delay so far
    run = query(deadline, ESTIMATORS[name]).replay(tables(windows, delays), "a")
    early = {row["window_start"]: row for row in run.early.to_pylist()}
    disorder = Disorder(most, deadline)
    estimator = EstimatorRun(name, 0.95, disorder.lag, LENGTH)
    for i, (window, delay) in enumerate(zip(windows, delays, strict=True)):
        early_values = estimator.estimate(window.arrived(delay, deadline), window.whole)
        if (row := early.get(i * LENGTH)) is None:
            continue  # the clock stopped before its deadline
        for one, what in zip(early_values, ("n", "total"), strict=True):
            assert one.observed == row[f"{what}_observed"]
            for mine, its in zip(one[1:], ("", "_low", "_high"), strict=True):
                assert mine == pytest.approx(row[what + its])
    assert len(early) > 50


def test_truth_is_that_of_the_engine():
    windows = micro(20, 10, seed=3).windows
    delays = [window.delays(5 * MS, np.random.default_rng(1)) for window in windows]
    exact = query(10 * MS, None).replay(tables(windows, delays), "a").exact
    assert exact["n"].to_pylist() == [window.truth[0] for window in windows]
    assert exact["total"].to_pylist() == [window.truth[1] for window in windows]


def test_oracles_are_right_on_average():
    (window,) = micro(10, 1, seed=1).windows
    rng = np.random.default_rng(2)
    estimates = [
        oracles(window, window.delays(5 * MS, rng), 5 * MS, 11 * MS)["ipw"] for _ in range(300)
    ]
    assert np.mean(estimates, axis=0) == pytest.approx(window.truth, rel=0.01)


def test_real_windows_are_judged_by_those_who_have_seen_the_other_half(monkeypatch):
    windows = micro(20, 8, seed=3).windows
    warmed_up = []  # for each half that is judged, the windows of the warm-up

    def start(*arguments):
        warmed_up.append([])
        return runs.EstimatorGroup([])

    def listen(group, windows, *arguments):
        warmed_up[-1] += list(windows)

    monkeypatch.setattr(runs, "estimator_group", start)
    monkeypatch.setattr(runs, "warm_up_on", listen)
    plan = Plan(seed=1, windows=0, draws=2, warm_up=12)
    outcome = plan.run(Dataset("real", windows, is_real=True), Disorder(5 * MS, 10 * MS))
    assert outcome.window.tolist() == [*range(4)] * 2 + [*range(4, 8)] * 2
    assert outcome.draw.tolist() == [0, 0, 0, 0, 1, 1, 1, 1] * 2
    for own, others in zip(warmed_up, (windows[4:], windows[:4]), strict=True):
        assert {id(window) for window in own} == {id(window) for window in others}


def test_without_a_folder_there_is_no_real_data(monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    found, words = real()
    assert found == []
    assert "Stock, Rovio, Logistics, Retail" in words[0]
    assert authors_results() == {}


def test_other_datasets_are_taken_as_keys_and_values(monkeypatch, tmp_path):
    rows = "key,value\n" + "".join(f"{i % 7},{i}\n" for i in range(2 * 1001 + 5))
    (tmp_path / "retail_r.csv").write_text(rows)
    (tmp_path / "retail_s.csv").write_text(rows)
    (tmp_path / "logistics.csv").write_text(rows)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    found, words = real()
    assert [(data.name, len(data.windows)) for data in found] == [("Logistics", 2), ("Retail", 2)]
    assert "Stock, Rovio" in words[0]
    assert found[0].windows[0].truth[0] == 1001**2 / 7  # seven keys, 143 of each


def test_binomial_p_of_many_cases():
    assert binomial_p(950, 1000, 0.95) == pytest.approx(1.0, abs=0.05)
    assert binomial_p(920, 1000, 0.95) < 1e-4
