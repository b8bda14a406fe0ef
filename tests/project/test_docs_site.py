"""tools/docs_site.py: pages outside of docs, links between files as links between pages, the check.

`make docs` builds the whole site with `--strict`, which finds links that lead nowhere.
"""

import re

import pytest
import yaml

import docs_site


@pytest.mark.parametrize(
    ("uri", "link", "moved"),
    [
        ("index.md", "docs/tutorial.md", "tutorial.md"),
        ("index.md", "docs/engine.md#reordering", "engine.md#reordering"),
        ("index.md", "docs/decisions", "decisions/index.md"),
        ("index.md", "LICENSE", "license.md"),
        ("tutorial.md", "../README.md", "index.md"),
        ("tutorial.md", "../examples/cluster.py", "examples/cluster.py.md"),
        ("results/trust.md", "../../benchmarks/README.md#peers", "../benchmarks.md#peers"),
        ("results/trust.md", "trust.png", "trust.png"),
        ("benchmarks.md", "../docs/lab.md", "lab.md"),
        ("all-pages.md", "api/README.md", "api/README.md"),
        ("tutorial.md", "https://a.example/b.md", "https://a.example/b.md"),
        ("tutorial.md", "#restart", "#restart"),
        ("tutorial.md", "../tests/naive.py", "../tests/naive.py"),  # no page: mkdocs warns
    ],
)
def test_a_link_between_files_becomes_a_link_between_pages(uri, link, moved):
    assert docs_site.relinked(f"See [it]({link}).", uri) == f"See [it]({moved})."


def test_links_inside_code_stay():
    page = "[a](../README.md)\n\n```text\n[a](../README.md)\n```\n"
    assert docs_site.relinked(page, "tutorial.md") == page.replace("../README.md", "index.md", 1)


def test_lists_are_made_of_what_is_there():
    pages = docs_site.generated_pages()
    decisions = sorted((docs_site.ROOT / "docs" / "decisions").glob("*.md"))
    links = re.findall(r"^- \[.+\]\((.+)\)$", pages["decisions/index.md"], re.MULTILINE)
    assert links == [path.name for path in decisions]
    assert "# cluster.py\n\n```python\n" in pages["examples/cluster.py.md"]
    assert pages["license.md"].startswith("# Licence\n")
    assert set(docs_site.OUTSIDE.values()) <= set(pages)


def test_the_navigation_names_directories_only_once():
    nav = docs_site.expanded([{"A": "a.md"}, "b.md", {"Why": [{"Decisions": "decisions/*"}]}])
    assert nav[:2] == [{"A": "a.md"}, "b.md"]
    [decisions] = nav[2]["Why"]
    assert decisions["Decisions"][0] == "decisions/index.md"
    assert len(decisions["Decisions"]) == len(docs_site.listed("decisions")) + 1


def test_every_page_below_docs_is_in_the_navigation():
    class Loader(yaml.SafeLoader):
        """mkdocs.yml names a function of Python, which is of no interest here."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    text = (docs_site.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.load(text, Loader)
    shown = set(entries(docs_site.expanded(config["nav"])))
    docs = docs_site.ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"README.md"}
    assert sorted(pages - shown) == []
    assert sorted(shown - pages) == sorted(docs_site.generated_pages())


def entries(nav):
    for entry in nav:
        below = list(entry.values())[0] if isinstance(entry, dict) else entry
        yield from entries(below) if isinstance(below, list) else [below]


def site(tmp_path, **pages):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text("{}", encoding="utf-8")
    for name, body in pages.items():
        (tmp_path / f"{name}.html").write_text(body, encoding="utf-8")
    return tmp_path


def test_a_site_whose_pages_are_linked_is_fine(tmp_path, capsys):
    built = site(
        tmp_path,
        index='<link rel="stylesheet" href="a.css"><a href="b.html#x">b</a>',
        b='<a href="https://elsewhere.example/">a link out is fine</a><img src="c.png">',
    )
    assert docs_site.main(built) == 0
    assert capsys.readouterr().err == ""


def test_a_page_that_nothing_links_to_is_found(tmp_path, capsys):
    assert docs_site.main(site(tmp_path, index="", lost="")) == 1
    assert "cannot be reached from the home page: lost.html" in capsys.readouterr().err


def test_what_is_loaded_from_another_server_is_found(tmp_path, capsys):
    built = site(tmp_path, index='<script src="https://cdn.example/a.js"></script>')
    (built / "a.css").write_text("@font-face{src:url(//fonts.example/b)}", encoding="utf-8")
    assert docs_site.main(built) == 1
    shown = capsys.readouterr().err
    assert "index.html: https://cdn.example/a.js" in shown
    assert "a.css: //fonts.example/b" in shown
