"""What all commands have in common: help, examples, completion, colours, exit codes."""

import re
import shlex
import subprocess
import sys

import pytest

from recorded import slackwater, write_job
from slackwater.cli import app, console

COMMANDS = [
    ["demo"], ["explain"], ["run"], ["advise"], ["replay"], ["verify"], ["dashboard"],
    ["bench"], ["bench", "core"], ["bench", "spark"], ["bench", "overload"],
    ["bench", "shards"],
    ["bench", "soak"], ["bench", "steady"], ["bench", "peers"],
    ["lab"], ["lab", "list"], ["lab", "run"],
]  # fmt: skip
SIZE = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}


def test_every_command_is_tried_here():
    top = {command.name or command.callback.__name__ for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    assert top | groups == {command[0] for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_80_columns_and_has_examples_and_exit_codes(command):
    result = slackwater(*command, "--help", env=SIZE)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "bool" not in result.stdout  # a flag takes no value
    assert re.search(rf"Examples?:\s+slackwater {' '.join(command)}\b", result.stdout)
    assert console.EXIT_CODES in " ".join(result.stdout.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_examples_are_commands_that_exist(command):
    """Each example is parsed with the options it has; files are not looked at."""
    import typer

    shown = slackwater(*command, "--help", env=SIZE).stdout
    examples = re.findall(r"^ slackwater (.+?) *$", shown, re.MULTILINE)
    assert examples
    root = typer.main.get_command(app)
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])
        found, context = root, None
        while hasattr(found, "commands"):
            context = found.context_class(found, parent=context)
            found = found.get_command(context, words.pop(0))
        found.make_context("x", words, parent=context)


def test_the_version_is_printed():
    result = slackwater("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"slackwater \d+\.\d+\.\d+\S*\n", result.stdout)


def test_a_shell_can_complete():
    options = slackwater("--help", env=SIZE).stdout
    assert "--install-completion" in options and "--show-completion" in options
    words = {"COMP_WORDS": "slackwater re", "COMP_CWORD": "1"}
    code = "from slackwater.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**words, "_SLACKWATER_COMPLETE": "complete_bash", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.stdout.split() == ["replay"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verfy"], "Did you mean 'verify'?"),
        (["bench", "cor"], "Did you mean 'core'?"),
        (["run", "--jsn", "x.toml"], "--json"),
    ],
)
def test_what_is_unknown_gets_a_suggestion(arguments, message):
    result = slackwater(*arguments, env=SIZE)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("name", ["lab", "bench"])
def test_without_the_lab_its_commands_name_the_package_to_install(name):
    code = (
        "import importlib.metadata as metadata; metadata.entry_points = lambda **_: (); "
        f"import sys; sys.argv[1:] = ['{name}', 'list']; from slackwater.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        f"slackwater: the command {name} is in slackwater-lab, which is not installed: in a clone "
        "of the repository, make setup or pip install ./lab\n"
    )


def test_no_color_is_respected(tmp_path):
    job = write_job(tmp_path)
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    command = [sys.executable, "-c", "from slackwater.cli import main; main()", "replay", str(job)]
    path = {"PYTHONPATH": ":".join(sys.path)}
    for more, expected in (({}, True), ({"NO_COLOR": "1"}, False)):
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=forced | path | more
        )
        assert bool(coloured.search(done.stdout)) is expected


def test_a_bar_shows_only_what_takes_long(monkeypatch):
    from io import StringIO

    from rich.console import Console

    def drawn(patience):
        monkeypatch.setattr(console, "_PATIENCE_S", patience)
        screen = Console(file=StringIO(), force_terminal=True, width=80)
        with console._patient(screen, hidden=False) as bar:
            bar.add_task("working", total=2)
            bar.refresh()
        return "working" in screen.file.getvalue()

    assert drawn(patience=0) and not drawn(patience=1_000)


def test_steps_are_gone_through_in_order():
    shown = []
    assert list(console.progress([("a", 1), ("b", 2)], "x", quiet=True)) == [1, 2]
    with console.bar("x", quiet=True) as show:
        shown.append(show("a", 0, 1))
    assert shown == [None]


def test_shares_are_rounded_down():
    from slackwater.jobs.measurement import Measurement

    shares = {0.57: "57.00%", 0.999999: "99.99%", 1.0: "100.00%"}
    assert {value: console.shown(Measurement("x", value, "share")) for value in shares} == shares
