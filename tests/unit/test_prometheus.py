"""The text that Prometheus reads, held against strict readers of its format; Grafana's panels."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from prometheus_client.parser import text_string_to_metric_families

import slackwater as sw
from slackwater.engine.replay_lines import lines
from slackwater.metrics.prometheus import FAMILIES, exposition

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana" / "slackwater.json"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (\S+)")
ODD = 'a "query"\\of\nmine'


def line(unit="ms", goal=None, how="inner"):
    rng = np.random.default_rng(1)
    ts = np.arange(1_000) * 4
    table = pa.table({"ts": ts, "k": rng.integers(0, 5, 1_000),
                      "arrival": ts + rng.integers(0, 100, 1_000)})  # fmt: skip
    asked = None if how == "inner" else 0.9
    other = table if how == "inner" else table.filter(pc.not_equal(table["k"], 3))
    streams = (sw.Stream(name, ts="ts", window=500) for name in "ab")
    goal = goal or sw.Recall(0.9, over=2_000, every=1_000, granularity=10, unmatched=asked)
    query = sw.join(*streams, on="k", goal=goal, unit=unit, how=how)
    return [one for one in lines(query, {"a": table, "b": other}, "arrival", 500)
            if one["event"] == "batch"][-2]  # fmt: skip


def parsed(text):
    """{family: (kind, [(name, labels, value)])} of a text that breaks no rule, or an error."""
    assert text.endswith("\n")
    families, name, seen = {}, None, set()
    helped = None
    for row in text.removesuffix("\n").split("\n"):
        if row.startswith("# HELP "):
            helped = re.fullmatch(rf"# HELP ({NAME}) (.+)", row)[1]
        elif row.startswith("# TYPE "):
            name, kind = re.fullmatch(
                rf"# TYPE ({NAME}) (counter|gauge|histogram)", row
            ).groups()  # fmt: skip
            assert name == helped
            assert name not in families
            families[name] = (kind, [])
        else:
            found = SAMPLE.fullmatch(row)
            own = name + (r"(_bucket|_sum|_count)" if families[name][0] == "histogram" else "")
            assert re.fullmatch(own, found[1]), row
            labels = dict(pair[:2] for pair in re.findall(LABEL, found[2]))
            assert (found[1], tuple(sorted(labels.items()))) not in seen
            seen.add((found[1], tuple(sorted(labels.items()))))
            families[name][1].append((found[1], labels, float(row.rpartition(" ")[2])))
    assert all(samples for _, samples in families.values())
    return families


def test_the_format_is_kept():
    families = parsed(exposition({"one": line(how="left"), ODD: line(how="left")}))
    for name, (kind, samples) in families.items():
        assert name.startswith("slackwater_")
        assert name.endswith("_total") == (kind == "counter"), name
        assert {labels["query"] for _, labels, _ in samples} == {
            "one", ODD.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"),
        }  # fmt: skip
    labels = {label for _, samples in families.values() for _, own, _ in samples for label in own}
    assert labels == {"query", "stream", "reason", "state", "le"}
    assert {family.name for family in FAMILIES} == set(families)


def test_another_reader_reads_the_same():
    text = exposition({"one": line(), ODD: line()})
    ours, theirs = parsed(text), list(text_string_to_metric_families(text))
    assert len(theirs) == len(ours)
    for family in theirs:
        kind, samples = ours[family.name + ("_total" if family.type == "counter" else "")]
        assert kind == family.type
        assert [(s.name, s.value) for s in family.samples] == [(n, v) for n, _, v in samples]
        assert {s.labels["query"] for s in family.samples} == {"one", ODD}


def test_figures_are_those_of_the_line_in_seconds():
    reported = line()
    families = parsed(exposition({"q": reported}))

    def value(name, **labels):
        [found] = [v for _, own, v in families[name][1] if own == {"query": "q"} | labels]
        return found

    metrics = reported["metrics"]
    assert value("slackwater_arrivals_total", stream="a") == metrics["streams"]["a"]["arrivals"]
    assert value("slackwater_results_total") == metrics["produced"] > 0
    assert value("slackwater_slack_seconds") == metrics["slack"] / 1_000 > 0
    assert value("slackwater_recall_recent_ratio") == metrics["charts"]["recall"]
    assert value("slackwater_recall_target_ratio") == 0.9
    assert value("slackwater_balanced") == 1
    assert value("slackwater_rejected_total", stream="b", reason="null_key") == 0
    assert value("slackwater_stream_state", stream="a", state="active") == 1
    assert value("slackwater_stream_state", stream="a", state="idle") == 0
    assert value("slackwater_batch_duration_seconds") == reported["duration_ms"] / 1_000
    finer = parsed(exposition({"q": line("us")}))
    assert finer["slackwater_slack_seconds"][1][0][2] == metrics["slack"] / 10**6


def test_delays_are_a_histogram():
    reported = line()
    samples = parsed(exposition({"q": reported}))["slackwater_delay_seconds"][1]
    own = [(name, labels.get("le"), v) for name, labels, v in samples if labels["stream"] == "a"]
    buckets = [(float(le), v) for name, le, v in own if name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert len({le for le, _ in buckets}) == len(buckets) == 32
    assert [v for _, v in buckets] == sorted(v for _, v in buckets)
    drawn = reported["metrics"]["charts"]["delays"]["a"]
    assert buckets[0] == (0.0, drawn["counts"][0])
    assert dict(buckets)[0.031] == sum(drawn["counts"][:6])  # below the edge 32
    assert buckets[-1] == (float("inf"), sum(drawn["counts"]))
    [count] = [v for name, _, v in own if name.endswith("_count")]
    [total] = [v for name, _, v in own if name.endswith("_sum")]
    assert count == sum(drawn["counts"])
    assert 0.01 < total / count < 0.1  # delays are up to 100 ms


def test_what_is_not_known_is_left_out():
    bare = {"batch": 0, "rows": 5, "duration_ms": 1, "balanced": None, "metrics": None}
    assert set(parsed(exposition({"q": bare}))) == {
        "slackwater_batch", "slackwater_batch_rows", "slackwater_batch_duration_seconds",
    }  # fmt: skip
    fixed = parsed(exposition({"q": line(goal=sw.Slack(50))}))
    assert "slackwater_recall_target_ratio" not in fixed
    assert "slackwater_recall_recent_ratio" not in fixed
    assert "slackwater_delay_seconds" in fixed
    assert exposition({}) == exposition({"q": {"event": "started", "query": None}}) == ""


def expressions(part):
    if isinstance(part, dict):
        for name, value in part.items():
            if name in ("expr", "definition"):
                yield value
            yield from expressions(value)
    elif isinstance(part, list):
        for one in part:
            yield from expressions(one)


def test_the_dashboard_shows_metrics_that_there_are():
    board = json.loads(GRAFANA.read_text(encoding="utf-8"))
    emitted = {name for _, samples in parsed(exposition({"q": line()})).values()
               for name, _, _ in samples}  # fmt: skip
    shown = [name for text in expressions(board) for name in re.findall(r"slackwater_\w+", text)]
    assert len(shown) > 15
    assert set(shown) <= emitted


def test_the_dashboard_can_be_imported():
    board = json.loads(GRAFANA.read_text(encoding="utf-8"))
    assert [one["name"] for one in board["__inputs"]] == ["DS_PROMETHEUS"]
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${DS_PROMETHEUS}"}
    assert {panel["type"] for panel in panels} <= {
        one["id"] for one in board["__requires"] if one["type"] == "panel"
    }
    cells = [(x, y) for panel in panels for at in [panel["gridPos"]]
             for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
             ]  # fmt: skip
    assert len(set(cells)) == len(cells)  # panels do not overlap


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_each_family_has_a_help(kind):
    families = [family for family in FAMILIES if family.kind == kind]
    assert families
    assert all(family.help.endswith(".") and "\n" not in family.help for family in families)
