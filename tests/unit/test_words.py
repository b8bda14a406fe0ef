"""The words of this project are short and direct, in names and in the documentation."""

import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "lab" / "src").rglob("*.py")])
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SCRIPTS = sorted((ROOT / "src/slackwater/dashboard/page").glob("*.*"))

# Parts of names: report, metrics, request, state, result, observed, given say the same better.
NOT_IN_NAMES = {
    "told", "tell", "tells", "teller", "tellers", "telling", "asked", "said", "judgement",
    "explaining", "moral",
}  # fmt: skip
NOT_NAMES = {"Seen"}
NOT_MODULES = {
    "choice", "explaining", "judgement", "pieces", "playing", "record", "seen", "serving", "tables",
    "telling", "written",
}  # fmt: skip
NOT_IN_PROSE = re.compile(r"\b(told|asked|said)\b", re.IGNORECASE)

# Titles and sentences of others, and keys of JSON, which do not change.
QUOTED = {}  # by page
JSON_KEYS = re.compile(r"\b(picture|known)\.told\b")


def names(file):
    """The names in a Python file, and how often each is there."""
    tokens = tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.NAME)


def parts(name):
    """The words of a name, in snake_case or CamelCase."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def prose(text):
    """A page without its blocks of code and without code in lines."""
    without_blocks = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", without_blocks)


def relative(file):
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", SOURCES, ids=relative)
def test_names_are_of_plain_words(file):
    assert file.stem not in NOT_MODULES
    found = [name for name in names(file) if name in NOT_NAMES or parts(name) & NOT_IN_NAMES]
    assert found == []


@pytest.mark.parametrize("file", PAGES, ids=relative)
def test_pages_are_in_plain_words(file):
    text = file.read_text(encoding="utf-8")
    for quoted in QUOTED.get(relative(file), []):
        assert quoted in text, "not quoted any more: remove it from QUOTED"
        text = text.replace(quoted, "")
    lines = [line for line in prose(text).splitlines() if NOT_IN_PROSE.search(line)]
    assert lines == []


@pytest.mark.parametrize("file", SCRIPTS, ids=relative)
def test_the_dashboard_is_in_plain_words(file):
    if file.is_file():
        text = JSON_KEYS.sub("", file.read_text(encoding="utf-8"))
        assert [line for line in text.splitlines() if NOT_IN_PROSE.search(line)] == []


def test_words_are_found_in_names_of_any_style():
    assert parts("is_toldBefore") == {"is", "told", "before"}
    assert parts("_MOST_TOLD") == {"most", "told"}
    assert parts("ToldPanel") == {"told", "panel"}
    assert parts("gold_toldo") == {"gold", "toldo"}


def test_prose_is_a_page_without_its_code():
    assert prose("a `told` b\n```py\ntold\n```\nc").split() == ["a", "b", "c"]
