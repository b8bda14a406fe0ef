"""The papers' controllers and baselines on fixed data, and what their experiments are made of."""

from dataclasses import replace

import numpy as np
import pytest

import slackwater as sw
from recordings import write_debs
from slackwater.errors import DataError
from slackwater_lab.datasets import DATASETS, delays, get
from slackwater_lab.debs import NAME, thinned
from slackwater_lab.experiment import Setting
from slackwater_lab.measure import Job, data_of, measure
from slackwater_lab.papers.grubjoin import Lab
from slackwater_lab.papers.harvest import optimality
from slackwater_lab.papers.icde16 import ExactLosses
from slackwater_lab.papers.icde16_readings import EXPERIMENTS, run_tree
from slackwater_lab.papers.kim_runs import SHAPES, arrivals, drops, kims, max_delay
from slackwater_lab.papers.overload import Workload, query_of, run
from slackwater_lab.papers.shards import run_shards
from slackwater_lab.plots import Panel, panels

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("papers")


def judged(folder, data, over, target, controller=None, **options):
    """(average K, Φ, overall recall at the end) on three minutes of a dataset."""
    goal = sw.Recall(target, over=over, every="1 s", **options)
    made = controller and {"controller": controller}
    job = Job(data, 1, 3.0, goal, over=over, every="1 s", pipeline="icde16", **(made or {}))
    run = measure(job, folder)
    phi = float(np.mean(np.array(run.recalls) >= target))
    return run.average_slack, phi, run.recall


def test_icde16_is_as_printed_only_without_its_feedback(folder):
    # D×3, Γ = .95. As printed, K is at seconds, though the data need 40 ms; losses that are counted
    # instead of estimated do not help much. By the model alone NonEqSel has the larger K and Φ
    noneqsel, eqsel = ("dx3", "10 s", 0.95, None), {"model": "eqsel"}
    printed, _, _ = judged(folder, *noneqsel, model="noneqsel")
    exact, _, _ = judged(folder, *noneqsel[:3], ExactLosses, model="noneqsel")
    alone, phi, _ = judged(folder, *noneqsel, model="noneqsel", calibrate=False)
    equal, equal_phi, _ = judged(folder, *noneqsel, **eqsel, calibrate=False)
    assert printed > 5_000 and exact > 1_000
    assert equal == 30 < alone < 300
    assert equal_phi < 0.9
    assert phi > 0.97


def test_k_grows_or_falls_with_the_adaptation_interval_by_the_productivities_alone(folder):
    # Fig. 9 prints that K grows with L. Here it falls, and EqSel, which has no productivities, has
    # the same K; the largest productivity of a longer interval is larger, but its part in all less
    slacks = {}
    for model in ("eqsel", "noneqsel"):
        for every in ("100 ms", "1 s", "10 s"):
            options = {"over": "10 s", "every": every}
            goal = sw.Recall(0.95, model=model, calibrate=False, **options)
            run = measure(Job("dx3", 1, 3.0, goal, pipeline="icde16", **options), folder)
            slacks[model, every] = run.average_slack
    assert {slacks["eqsel", every] for every in ("100 ms", "1 s", "10 s")} == {30}
    assert slacks["noneqsel", "100 ms"] > 3 * slacks["noneqsel", "1 s"]
    assert slacks["noneqsel", "1 s"] >= slacks["noneqsel", "10 s"]


def test_without_slack_the_recall_follows_the_share_of_events_in_order():
    # Fig. 6 prints about 0.5 for D×2. The made-up game has 70 % in order, as the Thesis prints for
    # the same stadium; with 46 % in order the recall is what Fig. 6 prints
    query = replace(DATASETS["dx2"].query, goal=sw.NoSlack(), pipeline="icde16")
    game, rng = DATASETS["dx2"].make(1.0, 1), np.random.default_rng(1)
    found = []
    for share, mean in ((0.0, 1), (0.3, 20), (0.6, 20), (0.6, 50)):  # held up, and for how long
        worse = {}
        for name, table in game.items():
            held = np.where(rng.random(len(table)) < share, rng.exponential(mean, len(table)), 0)
            arrival = table["arrival"].to_numpy() + held.astype(np.int64)
            moved = table.drop(["arrival"]).append_column("arrival", [arrival])
            worse[name] = moved.take(np.argsort(arrival, kind="stable"))
        in_order = np.mean(np.concatenate([delays(table) == 0 for table in worse.values()]))
        found += [in_order, query.replay(worse, arrival="arrival").report().recall]
    assert found == pytest.approx([0.72, 0.785, 0.575, 0.66, 0.46, 0.55, 0.385, 0.45], abs=0.01)


def test_the_thesis_keeps_the_overall_quality_with_a_small_buffer(folder):
    # target .9: each second, and overall with Λ_max = 1 s
    slack, qcr, recall = judged(folder, "soccer23", "1 s", 0.9, model="late-degree")
    assert 20 < slack < 30 and 0.65 < qcr < 0.78 and 0.9 < recall < 0.94
    options = {"model": "late-degree", "overall": True, "most_late": "1 s"}
    slack, _, recall = judged(folder, "soccer23", "1 s", 0.9, **options)
    assert slack < 400 and 0.9 <= recall < 0.91


def test_a_game_without_bursts_lets_each_second_keep_its_target(folder):
    options = {"model": "late-degree", "most_late": "1 s"}
    _, qcr, _ = judged(folder, "soccer23", "1 s", 0.95, **options)
    _, calm, _ = judged(folder, "soccer23-calm", "1 s", 0.95, **options)
    assert qcr < 0.75
    assert calm > 0.97


def test_decay_has_no_effect_where_delays_do_not_change(folder):
    # Fig. 6.12 prints that 0.7 costs 6 to 12 % at 0.98: an older record is of use there. The delays
    # of our game are the same all the time; with bursts, a shorter memory is even better
    names, decays, by = ("soccer23", "soccer23-calm"), (0.7, 0.8, 0.9), {}
    for data in names:
        for decay in decays:
            track = {"over": "1 s", "every": "1 s"}
            goal = sw.Recall(0.98, model="late-degree", most_late="1 s", decay=decay, **track)
            run = measure(Job(data, 1, 3.0, goal, pipeline="icde16", **track), folder)
            by[data, decay] = np.mean(np.array(run.recalls) >= 0.98) / run.average_buffer
    bursts, calm = ([by[name, d] for d in decays] for name in names)
    assert calm == pytest.approx([calm[1]] * 3, rel=0.02)
    assert bursts[0] > bursts[1] > bursts[2]


def test_the_pd_controller_is_near_its_target_half_of_the_time(folder):
    slack, qcr, recall = judged(folder, "soccer23", "1 s", 0.9, model="pd")
    assert 25 < slack < 60 and 0.55 < qcr < 0.75 and recall == pytest.approx(0.9, abs=0.02)


def max_k_slack(arrived, local, delay):
    """The average over event time of the largest delay so far, after the first minute."""
    order = np.argsort(arrived, kind="stable")
    time = np.maximum.accumulate(local[order])
    slack, later = np.maximum.accumulate(delay[order]), time - time[0] >= 60_000
    return np.average(slack[later], weights=np.diff(time, append=time[-1])[later]) / 1000


@pytest.mark.full
def test_max_k_slack_depends_on_when_the_largest_delays_come():
    # Table II prints 19.96 s for D×2. The made-up game has 25 s, whatever the seed, because a delay
    # of 19 s comes in its first minute; if they were at most 10 s for nine minutes, it had less
    for seed in (1, 2):
        teams = DATASETS["dx2"].make(23.0, seed).values()
        ts = [team["ts"].to_numpy() for team in teams]
        local = [np.maximum.accumulate(times) for times in ts]
        arrived = np.concatenate([team["arrival"].to_numpy() for team in teams])
        delay = np.concatenate(local) - np.concatenate(ts)
        local = np.concatenate(local)
        assert 24.9 < max_k_slack(arrived, local, delay) < 25.5
        calm = np.where(local - local.min() < 9 * 60_000, np.minimum(delay, 10_000), delay)
        assert 19.0 < max_k_slack(arrived, local, calm) < 20.0


def test_a_tree_of_binary_joins_makes_the_same_results(folder):
    made = get("dx3", 2, 0.05, folder)
    tables = {name: table.sort_by("ts").drop(["arrival"]) for name, table in made.tables().items()}
    query = replace(made.dataset.query, goal=sw.NoSlack())
    pairs, results = run_tree(query, tables)
    assert results == query.replay(tables).metrics.produced > pairs > 0


def of_instances(folder, n, sharing, goal):
    """Half a minute of D×3 over instances by key."""
    data = data_of(Job("dx3", 2, 0.5, goal), folder)
    keys = [table["a1"].to_numpy().astype("int64") for table in data.batch.tables]
    query = replace(data.query, goal=goal, pipeline="clocked")
    return run_shards(query, data, keys, n, sharing=sharing, every=2_000, over=5_000)


def test_instances_have_all_results_with_enough_slack(folder):
    for sharing in (False, True):
        assert of_instances(folder, 3, sharing, sw.Slack("25 s")).recall == 1.0


def test_instances_with_one_slack_give_results_in_order_and_others_do_not(folder):
    goal = sw.Recall(0.95, over="5 s", every="1 s")
    alone, together = (of_instances(folder, 3, sharing, goal) for sharing in (False, True))
    assert together.behind == 0 < alone.behind
    assert min(alone.recall, together.recall) > 0.9
    one = of_instances(folder, 1, False, goal)
    assert one.behind == 0 and one.recall > 0.9


def test_what_greedy_search_loses_is_gained_by_moving_basic_windows():
    # Fig. 7 prints .98 to 1 for BDOpDC. Below that only because windows that were chosen early stay
    # chosen: the same scores with single moves afterwards give nearly the best there is
    table, _ = optimality(40, seed=1, correlated=True)
    place = [column.name for column in table.columns]
    greedy, moved = (
        np.array([cells[place.index(name)] for _, cells in table.rows])
        for name in ("BDOpDC", "better")
    )
    assert 0.94 < greedy.min() < 0.98
    assert moved.min() > 0.995


def test_larger_buffers_cut_the_drops_of_the_papers_throttle():
    # Fig. 16, 200 events per second: about 50 % less with 2 s; with our throttle none but a few
    lab, tables = Lab([1], 3.5e6), Workload(rates=(200.0,)).tables(1)

    def dropped(shed):
        return run(query_of(3, shed), tables).drop_rate(20, 60) / 3

    small, large = (dropped(lab.printed(buffer=buffer)) for buffer in ("50 ms", "2 s"))
    assert small > 20
    assert 0.3 < large / small < 0.6
    assert dropped(lab.ours()) < 1


def test_the_largest_delay_is_taken_from_arrivals():
    # times       10  14  30  25  21  60      u - t:      0   6   0  15  29   0
    # arrive at   10  20  30  40  50  60      heartbeat: 10  14  24  25  25  31  (u - max, kept
    # from falling); 21 is behind 25: dropped. Waiting: 10 and 14 leave at once, 25 with the 40,
    # 30 when the heartbeat is 31, 60 never
    ts, arrived = np.array([10, 14, 30, 25, 21, 60]), np.array([10, 20, 30, 40, 50, 60])
    run = max_delay(ts, arrived, every=1)
    assert run.dropped.tolist() == [0, 0, 0, 0, 1, 1]
    assert run.waiting.tolist() == [0, 0, 1, 1, 1, 1]
    assert run.events.tolist() == [1, 2, 3, 4, 5, 6]


def test_kims_best_effort_is_as_printed_with_a_short_mean():
    # Fig. 3, normal delays: with M = 5 the buffer of max-delay and fewer drops; with M = 100 the
    # mean lies 100 events behind, and the buffer is six times as large
    ts, arrived = arrivals(SHAPES["normal"], 20_000, seed=1)
    best = max_delay(ts, arrived, every=1000)
    short, long = (drops(ts, kims(0.0, m)) for m in (5, 100))
    assert short.buffered == pytest.approx(best.buffered, rel=0.06)
    assert 0 < short.dropped[-1] < best.dropped[-1]
    assert long.buffered > 5 * best.buffered
    assert long.dropped[-1] <= short.dropped[-1]


def test_two_curves_of_a_figure_never_have_the_same_colour():
    curves = {name: ([0.0, 1.0], [0.0, float(n)]) for n, name in enumerate(("WMJ", "AEMA", "ours"))}
    figure = panels("t", "x", [[Panel("p", "y", curves)]])
    assert len({line.get_color() for line in figure.axes[0].get_lines()}) == 3


# ---- the original recording


def test_a_recording_is_thinned_to_as_many_rows_as_the_paper_has():
    game = DATASETS["dx2"].make(0.1, 1)  # 1,950 rows a team
    kept = thinned(game, most=1_000)
    assert kept["a"].equals(game["a"].take(list(range(0, 1_950, 2))))
    assert thinned(game)["b"].equals(game["b"])


def test_the_recording_is_measured_like_made_up_data(folder, tmp_path):
    file = write_debs(tmp_path / "full-game")
    options = {"over": "10 s", "pipeline": "icde16"}
    run = measure(Job(NAME, 0, 0.0, sw.NoSlack(), recordings=str(file), **options), folder)
    like = measure(Job("dx2", 1, 0.5, sw.NoSlack(), **options), folder)
    assert run.recall == pytest.approx(like.recall, abs=0.02)


def test_without_the_file_it_says_what_is_needed(tmp_path):
    [debs] = [e for e in EXPERIMENTS if e.name == "debs"]
    for given in (None, tmp_path):
        with pytest.raises(DataError, match="debs needs the file of the DEBS 2013 Grand Challenge"):
            debs.run(Setting(None, 1, True, given))
