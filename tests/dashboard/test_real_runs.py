"""Real runs on the page: charts move, and a target that is changed there changes K in the run."""

import json
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.full

SLACKWATER = [sys.executable, "-c", "from slackwater.cli import main; main()"]


@contextmanager
def running(*arguments, cwd):
    """A command with a page; yields the process and where the page is."""
    command = [*SLACKWATER, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=cwd, **pipes) as process:
        try:
            found = None
            while found is None:
                line = process.stderr.readline()
                assert line, "it ended before it said where its page is"
                found = re.search(r"dashboard: (http\S+)", line)
            yield process, found[1]
        finally:
            process.kill()


def ask_for(window, percent):
    """Type a target and press Apply."""
    window.type("recall-number", str(percent))
    window.driver.find_element("id", "apply").click()


SLACK = (
    "[...document.querySelectorAll('#tiles dt')].find(t => t.textContent === 'Slack K')"
    ".nextSibling.textContent.trim()"
)


def slack_on(window):
    """K as the page shows it."""
    return window.js(f"return {SLACK}")


def disordered(seed):
    rng = np.random.default_rng(seed)
    ts = np.arange(60_000) * 2
    delay = np.where(rng.random(len(ts)) < 0.3, rng.exponential(800, len(ts)), 0).astype(int)
    order = np.argsort(ts + delay, kind="stable")
    columns = {"ts": ts, "k": rng.integers(0, 100, len(ts)), "arrival": ts + delay}
    return pa.table({name: values[order] for name, values in columns.items()})


def read(log):
    """The metrics of each micro-batch so far."""
    *whole, _ = log.read_text().split("\n")
    lines = map(json.loads, whole)
    return [line["metrics"] for line in lines if line["event"] == "batch"]


def has_doubled(batches):
    """Whether K is twice what it was before the command."""
    slacks = [metrics["slack"] for metrics in batches]
    [changed] = [n for n, metrics in enumerate(batches) if metrics["commands"]]
    return slacks[-1] > 2 * max(slacks[changed // 2 : changed])


def test_a_target_changed_on_the_page_changes_k_in_a_replay(window, tmp_path):
    for number, name in enumerate("ab"):
        pq.write_table(disordered(number), tmp_path / f"{name}.parquet")
    arguments = (
        "replay", "a.parquet", "b.parquet", "--on", "k", "--window", "1 s", "--arrival", "arrival",
        "--goal", "recall=0.8, over=5 s", "--dashboard", "--speed", "2", "--metrics", "log.jsonl",
    )  # fmt: skip
    with running(*arguments, cwd=tmp_path) as (_, url):  # a minute, if nobody ends it
        window.open(url)
        window.wait("document.getElementById('tiles').children.length > 3")
        window.wait("document.getElementById('tiles').textContent.includes('80 %')")
        ask_for(window, 99)
        window.wait("document.getElementById('tiles').textContent.includes('99 %')")
        window.wait("document.getElementById('changes').textContent.includes('99 %')")
        before = slack_on(window)
        window.wait(f"{SLACK} !== {json.dumps(before)}")
        while not has_doubled(batches := read(tmp_path / "log.jsonl")):
            time.sleep(0.1)
    [changed] = [n for n, told in enumerate(batches) if told["commands"]]
    assert batches[changed]["commands"] == [{"recall": 0.99}]
    assert [told["target"] for told in batches] == [0.8] * changed + [0.99] * (
        len(batches) - changed
    )


@pytest.mark.spark
def test_a_demo_moves_on_the_page_and_takes_a_target(window, tmp_path):
    with running("demo", "--seconds", 40, "--dashboard", "--json", cwd=tmp_path) as (_, url):
        window.open(url, until="document.readyState === 'complete'")
        window.wait("document.getElementById('tiles').children.length > 3")
        before, slack = window.text("tiles"), slack_on(window)
        ask_for(window, 99)
        window.wait("document.getElementById('changes').textContent.includes('99 %')")
        window.wait(f"{SLACK} !== {json.dumps(slack)}")
        assert window.text("tiles") != before
        assert window.driver.get_log("browser") == []
