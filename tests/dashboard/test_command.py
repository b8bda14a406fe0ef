"""`slackwater dashboard` as a user starts it, and the page beside a run; without Spark."""

import json
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from patience import PATIENCE_S
from slackwater.cli import app
from slackwater.cli.dashboard_server import beside, serving
from slackwater.cli.run import _control
from slackwater.dashboard.control import CommandFiles
from slackwater.dashboard.history import History
from slackwater.jobs.demo_run import FlushAtEnd
from slackwater.jobs.watch import QueryWatch
from synthetic_run import join_lines


def log_of(tmp_path, count):
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in join_lines(count)))
    return file


def refused(*arguments):
    result = CliRunner().invoke(app, ["dashboard", *map(str, arguments)])
    assert result.exit_code == 2
    return result.stderr.strip()


def test_a_recorded_run_is_served_until_it_is_told_to_end(tmp_path):
    code = "from slackwater.cli import main; main()"
    command = [sys.executable, "-c", code, "dashboard", str(log_of(tmp_path, 5))]
    command += ["--json", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        printed = ""
        while not printed.rstrip().endswith("}"):
            printed += process.stdout.readline()
        said = json.loads(printed)
        with urlopen(said["url"] + "lines.json", timeout=PATIENCE_S) as answer:
            known = json.load(answer)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert said["queries"] == ["matches"]
    assert (known["live"], known["last"], known["control"]["can"]) == (False, 6, False)


def test_what_cannot_be_shown_is_told(tmp_path):
    assert refused(tmp_path / "none") == (
        f"slackwater: {tmp_path / 'none'} cannot be read: No such file or directory"
    )
    other = tmp_path / "other"
    other.write_text("a,b\n1,2\n")
    assert "must be a metrics log, JSON lines with an event; got something else" in refused(other)
    other.write_text("")
    assert refused(other) == f"slackwater: {other} has no lines; --follow waits for them"
    log = log_of(tmp_path, 2)
    assert "a token must have 8 or more letters" in refused(log, "--token", "x")
    assert "cannot listen on 192.0.2.1 port 0" in refused(log, "--host", "192.0.2.1", "--port", 0)


def test_the_usual_port_gives_way_but_one_that_was_asked_for_does_not():
    with serving(History()) as first, serving(History()) as second:
        assert first.url != second.url


def test_prometheus_finds_its_text_beside_the_page():
    history = History()
    for line in join_lines(3):
        history.take(line)
    with (
        serving(history) as dashboard,
        urlopen(dashboard.url + "metrics", timeout=PATIENCE_S) as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    assert '\nslackwater_recall_target_ratio{query="matches"} 0.95\n' in text


def test_a_page_beside_a_run_says_where_it_is(capsys):
    with beside(is_wanted=True, no_control="Why.") as history:
        url = capsys.readouterr().err.removeprefix("dashboard: ").strip()
        with urlopen(url + "lines.json", timeout=PATIENCE_S) as answer:
            assert json.load(answer)["control"] == {"can": False, "why": "Why."}
    assert history is not None
    with beside(is_wanted=False) as history:
        assert history is None


class Job:
    name = "matches"

    def __init__(self, control, trigger_ms):
        self.options = {} if control is None else {"control": str(control)}
        self.trigger_ms = trigger_ms


@pytest.mark.parametrize(
    ("has_directory", "trigger_ms", "why"),
    [
        (False, 1000, "give the job a control directory"),
        (True, None, "takes what was there when it started, and no commands"),
        (True, 1000, ""),
    ],
)
def test_a_job_can_be_commanded_if_it_has_a_directory_and_runs_on(
    tmp_path, has_directory, trigger_ms, why
):
    control, said = _control(Job(tmp_path if has_directory else None, trigger_ms))
    assert (control is None) == bool(why)
    assert why in said
    if control is not None:
        control.send({"recall": 0.9})
        assert [file.name for file in tmp_path.iterdir()] == ["page-00000001.json"]


def test_the_demo_flushes_when_all_rows_are_in_and_ends_when_nothing_waits(tmp_path):
    watch, files = QueryWatch("demo"), CommandFiles(tmp_path)
    end = FlushAtEnd(watch, 10, lambda: files.write({"flush": True}))
    assert not end()
    watch.metrics = {"arrivals": 9, "buffered": 4}
    assert not end()
    watch.metrics = {"arrivals": 10, "buffered": 4}
    assert not end() and not end()
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text()) == {"flush": True}
    watch.metrics = {"arrivals": 10, "buffered": 0}
    assert not end()  # the micro-batch with the command is not over
    watch.lines.append({"rows": 0})
    assert end()
