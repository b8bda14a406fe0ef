"""What a public project has beside its code: citation, addresses, templates, a private channel."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
# Of the Citation File Format 1.2.0; `make release` validates by its whole schema.
REQUIRED = {"cff-version", "message", "title", "authors"}
OF_A_REFERENCE = {"type", "title", "authors", "year", "notes"}
PLACES = {"article": "journal", "conference-paper": "collection-title", "thesis": "institution"}


def tracked():
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_the_citation_has_what_the_format_requires_and_our_version():
    assert set(CITATION) >= REQUIRED
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]


def test_the_citation_has_the_five_papers_by_the_names_of_the_documentation():
    table = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \*\*(\w+)\*\* \| (.*) \|$", table, re.MULTILINE))
    papers = {paper["notes"].split()[0]: paper for paper in CITATION["references"]}
    assert set(papers) == set(listed)
    assert len(papers) == 5
    for name, paper in papers.items():
        assert set(paper) >= OF_A_REFERENCE | {PLACES[paper["type"]]}
        families = ", ".join(author["family-names"] for author in paper["authors"])
        assert listed[name].startswith(f"{families}: {paper['title']}, ")
        assert str(paper["year"]) in listed[name]
        assert all(author["given-names"] for author in paper["authors"])


def test_addresses_of_the_project_are_in_one_place():
    hosts = {url.split("/")[2] for url in PROJECT["urls"].values()}
    assert {"Repository", "Documentation", "Changelog", "Issues"} == set(PROJECT["urls"])
    assert len(hosts) <= 2
    elsewhere = {
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.suffix in (".md", ".yml", ".yaml", ".toml", ".cff", ".py", ".html")
        and any(f"//{host}/" in path.read_text(encoding="utf-8") for host in hosts)
    }
    assert elsewhere == {"pyproject.toml"}


def test_classifiers_and_keywords_are_sorted_and_once():
    for listed in (PROJECT["keywords"], PROJECT["classifiers"]):
        assert listed == sorted(set(listed))


def test_vulnerabilities_are_reported_in_private_without_an_address():
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "private vulnerability reporting" in policy
    assert "@" not in policy
    assert "://" not in policy


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_has_fields_with_names_of_their_own(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "config.yml":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(form)
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    ids = [part["id"] for part in fields]
    assert len(ids) == len(set(ids)) > 0
    assert all(part["attributes"]["label"] for part in fields)
    assert any(part.get("validations", {}).get("required") for part in fields)


def test_a_form_for_bugs_points_to_the_private_channel():
    bug = (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    assert "SECURITY.md" in bug


def test_both_distributions_have_one_version():
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lab["version"] == PROJECT["version"]
