"""The documentation is true: its Python runs, prints what it says, and its links lead somewhere.

The ```python blocks of a file run in order in one namespace and in a directory of their own; those
marked ```python no-run do not. A ```text block right behind one is what it prints. So it is with
```sh blocks that have nothing but commands of `slackwater` (those of cli.md have their own test).
"""

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from recorded import slackwater

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

KINDS = {"python", "python no-run", "text", "sh", "sql", "toml"}
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block, and the text block right behind it, if there is one."""

    info: str
    code: str
    line: int  # of the file, from 0, where the code begins
    output: str | None


def blocks(page):
    """Every fenced block of a page."""
    fences = list(FENCE.finditer(page))
    for n, fence in enumerate(fences):
        output = None
        for behind in fences[n + 1 : n + 2]:
            is_next = not page[fence.end() : behind.start()].strip()
            if is_next and behind["info"].strip() == "text":
                output = behind["body"]
        line = page.count("\n", 0, fence.start("body"))
        yield Block(fence["info"].strip(), fence["body"], line, output)


def is_session(block):
    """Whether it shows commands of ours, and what they print."""
    lines = block.code.splitlines()
    is_ours = block.info == "sh" and all(line.startswith("slackwater ") for line in lines)
    return is_ours and block.output is not None


def typed(block):
    """What the commands of a block print."""
    printed = ""
    for line in block.code.splitlines():
        result = slackwater(*shlex.split(line)[1:], env={"COLUMNS": "80"})
        assert result.exit_code == 0, result.output
        printed += result.stdout
    return printed


def run(block, namespace, name):
    """What the block prints; errors show the line of the page."""
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile("\n" * block.line + block.code, name, "exec"), namespace)
    return printed.getvalue()


def trimmed(text):
    """Without spaces at the ends of lines, which pages should not have."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def starts_spark(path):
    """Whether its Python needs a session: not where kernels are plain Python."""
    page = path.read_text(encoding="utf-8")
    return any(b.info == "python" and "pyspark" in b.code for b in blocks(page))


def named(paths):
    marks = {True: [pytest.mark.spark, pytest.mark.full], False: []}
    return [
        pytest.param(p, id=str(p.relative_to(ROOT)), marks=marks[starts_spark(p)]) for p in paths
    ]


pages = pytest.mark.parametrize("path", named(PAGES))


@pages
def test_the_examples_of_a_page_run_and_print_what_the_page_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": path.stem}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.info == "python":
            printed = run(block, namespace, str(path))
        elif is_session(block) and path.name != "cli.md":
            printed = typed(block)
        else:
            continue
        if block.output is not None:
            assert trimmed(printed) == trimmed(block.output), f"line {block.line}"


@pages
def test_every_fence_is_closed_and_of_a_known_kind(path):
    page = path.read_text(encoding="utf-8")
    assert len(re.findall(r"^```", page, re.MULTILINE)) == 2 * len(list(FENCE.finditer(page)))
    assert {block.info for block in blocks(page)} <= KINDS


@pages
def test_links_to_other_files_lead_somewhere(path):
    targets = [link["target"] for link in LINK.finditer(path.read_text(encoding="utf-8"))]
    files = [target.partition("#")[0] for target in targets if "://" not in target]
    missing = [name for name in files if name and not (path.parent / name).exists()]
    assert missing == []


def slugs(path):
    """Anchors of the headings of a page, as GitHub makes them."""
    page = FENCE.sub("", path.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pages
def test_links_into_pages_lead_to_headings(path):
    targets = [link["target"] for link in LINK.finditer(path.read_text(encoding="utf-8"))]
    places = [target.partition("#") for target in targets if "://" not in target and "#" in target]
    pages = [(path.parent / name if name else path, anchor) for name, _, anchor in places]
    lost = [(str(page), at) for page, at in pages if page.suffix == ".md" and at not in slugs(page)]
    assert lost == []


def test_a_text_block_belongs_to_the_code_right_before_it():
    shown = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    apart = "```python no-run\nx\n```\nWords.\n```text\n3\n```\n"
    first, _, skipped, _ = blocks(shown + apart)
    assert (first.info, first.output, first.line) == ("python", "2\n", 1)
    assert (skipped.info, skipped.output) == ("python no-run", None)
    assert run(first, {}, "page") == "1\n"
