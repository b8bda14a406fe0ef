"""The GitHub workflows run commands that exist, with the versions that pyproject.toml allows.

actionlint (`make lint`) checks their syntax; this checks what they mean here.
"""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

workflows = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def read(path):
    """A workflow; YAML takes its key `on` for a boolean."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)
    return found


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands(workflow):
    return "\n".join(step.get("run", "") for step in steps(workflow))


def test_there_is_one_for_each_change_one_for_each_night_and_one_for_a_release():
    on = {path.stem: read(path)["on"] for path in WORKFLOWS}
    assert set(on) == {"ci", "nightly", "release"}
    assert {"push", "pull_request"} <= set(on["ci"])
    assert "schedule" in on["nightly"]
    assert on["release"] == {"push": {"tags": ["v*"]}}


@workflows
def test_it_only_runs_targets_that_the_makefile_has(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    used = set(re.findall(r"\bmake ([a-z-]+)", commands(read(path))))
    assert used
    assert used <= targets


def test_a_change_is_linted_tested_documented_and_packed():
    used = set(re.findall(r"\bmake ([a-z-]+)", commands(read(ROOT / ".github/workflows/ci.yml"))))
    assert {"lint", "test", "docs", "release"} <= used
    nightly = commands(read(ROOT / ".github/workflows/nightly.yml"))
    assert "make test-all" in nightly


def test_the_matrix_has_the_versions_that_the_package_claims():
    matrix = read(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    claimed = {"3." + c.removeprefix(prefix) for c in PROJECT["classifiers"] if prefix in c}
    assert set(matrix["python"]) == claimed
    assert f">={min(claimed)}" == PROJECT["requires-python"]
    (pyspark,) = (p for p in PROJECT["optional-dependencies"]["spark"] if "pyspark" in p)
    assert [f"pyspark=={version}.*" for version in matrix["spark"]] == [pyspark]


@workflows
def test_it_needs_no_secret_and_only_the_rights_it_uses(path):
    workflow = read(path)
    assert "secrets." not in path.read_text(encoding="utf-8")
    assert workflow["permissions"] == {"contents": "read"}
    rights = [job.get("permissions", {}) for job in workflow["jobs"].values()]
    more = [right for right in rights if right]
    assert more == ([{"id-token": "write"}] if path.stem == "release" else [])


@workflows
def test_every_job_ends_and_every_action_has_a_version(path):
    workflow = read(path)
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())
    assert all(re.search(r"@\S*v\d", step["uses"]) for step in steps(workflow) if "uses" in step)


def test_what_is_published_was_checked_first():
    jobs = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "build"
    build = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert build.index("--publishable") < build.index("make release")
