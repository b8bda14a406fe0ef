"""docs/cli.md is true: its session runs, and prints what the page says.

Lines that need Spark or minutes are parsed, not run: other tests do that.
"""

import re
import shlex
from pathlib import Path

import pytest
import typer

from recorded import slackwater
from slackwater.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = (["run"], ["dashboard"], ["bench"], ["lab", "run"], ["demo"])


def session():
    """The commands of the page, each with the text right behind its block, or None."""
    page = PAGE.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(page))
    for n, block in enumerate(blocks):
        if block["info"] != "sh":
            continue
        behind = blocks[n + 1] if n + 1 < len(blocks) else None
        shown = None
        if behind and behind["info"] == "text" and not page[block.end() : behind.start()].strip():
            shown = behind["body"]
        for line in block["body"].splitlines():
            yield shlex.split(line)[1:], shown


def parsed(words):
    """The request is one that the command takes."""
    found, context = typer.main.get_command(app), None
    words = list(words)
    while hasattr(found, "commands"):
        context = found.context_class(found, parent=context)
        found = found.get_command(context, words.pop(0))
    found.make_context("x", words, parent=context)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies = {block["info"]: block["body"] for block in BLOCK.finditer(PAGE.read_text("utf-8"))}
    exec(bodies["python no-run"], {})
    (tmp_path / "matches.toml").write_text(bodies["toml"], encoding="utf-8")
    return tmp_path


def test_the_session_on_the_page_runs(folder):
    lines = lambda text: [line.rstrip() for line in text.strip().splitlines()]  # noqa: E731
    for words, shown in session():
        parsed(words)
        is_elsewhere = any(words[: len(start)] == start for start in ELSEWHERE)
        if is_elsewhere and "--embedded" not in words:
            continue
        result = slackwater(*words, env={"COLUMNS": "80"})
        assert result.exit_code == 0, result.output
        if shown is not None:
            assert lines(result.stdout) == lines(shown), words


def test_every_command_is_on_the_page():
    names = {command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    assert names == {words[0] for words, _ in session()}
