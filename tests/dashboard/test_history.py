"""What is kept of a run, and for how long."""

import json

import pytest

from slackwater.dashboard import history as kept
from slackwater.dashboard.assemble import page
from slackwater.dashboard.history import History, row_of
from synthetic_run import aggregate_lines, ended, join_lines


def taken(lines):
    history = History()
    for line in lines:
        history.take(line)
    return history


def only(history):
    (query,) = history.known()["queries"]
    return query


def test_every_line_keeps_its_numbers():
    lines = list(join_lines(50))
    query = only(taken(lines))
    batches = [line for line in lines if line["event"] == "batch"]
    assert query["columns"]["slack"] == [line["metrics"]["slack"] for line in batches]
    arrivals = [line["metrics"]["streams"]["trades"]["arrivals"] for line in batches]
    assert query["columns"]["streams.trades.arrivals"] == arrivals
    assert query["columns"]["charts.leads.trades"] == [0] * 50
    assert query["columns"]["charts.recall"][:6] == [None] * 6
    assert query["columns"]["time"][1] - query["columns"]["time"][0] == 1000


def test_an_hour_of_lines_and_the_page_are_below_five_megabytes():
    history = taken(join_lines(3600, targets={1800: 0.99}, shed_from=3000))
    known = json.dumps(history.known(), separators=(",", ":")).encode()
    html, _ = page()
    print(f"\none hour: {len(known):,} bytes of lines, {len(html):,} of page")  # noqa: T201
    assert len(only(history)["numbers"]) == 3600
    assert len(known) + len(html) < 5_000_000


def test_drawings_are_spread_over_the_run_and_the_last_is_among_them():
    query = only(taken(join_lines(2000)))
    numbers = sorted(map(int, query["drawings"]))
    assert kept.MOST_DRAWINGS / 2 <= len(numbers) <= kept.MOST_DRAWINGS
    assert numbers[-1] == query["numbers"][-1]
    gaps = {b - a for a, b in zip(numbers[:-2], numbers[1:-1], strict=True)}
    assert len(gaps) == 1


def test_a_run_longer_than_the_memory_loses_every_other_line_of_its_older_half(monkeypatch):
    monkeypatch.setattr(kept, "MOST_LINES", 100)
    query = only(taken(join_lines(101)))
    assert query["columns"]["batch"] == [*range(0, 50, 2), *range(50, 101)]
    assert len(query["numbers"]) == len(query["columns"]["slack"]) == 76


def test_commands_and_windows_stay_beside_the_thinned_drawings():
    query = only(taken(join_lines(50, targets={20: 0.99})))
    assert query["commands"] == [(22, {"recall": 0.99})]  # the first line was the start
    windows = only(taken(aggregate_lines(100)))["windows"]
    assert [row["exact"] for _, row in windows].count(True) == 7
    assert len(windows) == 17


def test_queries_are_kept_apart_and_their_ends_are_known():
    history = taken([*join_lines(3), *aggregate_lines(4), ended()])
    first, second = history.known()["queries"]
    assert (first["name"], len(first["numbers"]), first["ended"]["exception"]) == (
        "matches",
        3,
        None,
    )
    assert (second["name"], len(second["numbers"]), second["ended"]) == ("early answers", 4, None)
    assert {name: line["batch"] for name, line in history.latest().items()} == {
        "matches": 2,
        "early answers": 3,
    }


def test_a_restart_goes_on():
    query = only(taken([*join_lines(3), ended(), *join_lines(3)]))
    assert (query["ended"], len(query["numbers"])) == (None, 6)


def test_lines_behind_a_number_and_when_they_are_gone(monkeypatch):
    history = taken(join_lines(5))
    assert [n for n, _ in history.after(4, 0)] == [5, 6]
    assert history.after(6, 0) == []
    assert history.after(7, 0) is None  # of another server: the page starts again
    monkeypatch.setattr(kept, "MOST_RECENT", 3)
    assert taken(join_lines(5)).after(2, 0) is None


@pytest.mark.parametrize(
    "line",
    [
        {"event": "batch", "name": "m", "batch": 0, "metrics": None},
        {"event": "batch", "name": "m", "batch": 0, "metrics": {"charts": None}},
        {"event": "batch", "name": "m", "batch": 0, "timestamp": "soon", "metrics": {}},
    ],
)
def test_what_is_absent_is_absent(line):
    assert row_of(line) == {"batch": 0}
    assert only(taken([line]))["columns"] == {"batch": [0]}
