"""tools/release.py refuses what must not be released."""

import zipfile

import pytest

import release


def wheel(tmp_path, *names, filling=b""):
    path = tmp_path / "slackwater.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*release.NEEDED, *names):
            archive.writestr(name, filling)
    return path


def test_a_wheel_with_the_package_alone_is_fine(tmp_path):
    assert release.wheel_problems(wheel(tmp_path, "slackwater/__init__.py")) == []


@pytest.mark.parametrize("name", ["slackwater_lab/cases.py", "tests/naive.py"])
def test_a_wheel_holds_neither_the_lab_nor_tests(tmp_path, name):
    (problem,) = release.wheel_problems(wheel(tmp_path, name))
    assert problem.endswith(f"holds {name.split('/')[0]}, must hold only slackwater")


def test_a_wheel_is_small_and_whole(tmp_path):
    (problem,) = release.wheel_problems(wheel(tmp_path, filling=bytes(release.LIMIT_BYTES // 2)))
    assert f"bytes, must have less than {release.LIMIT_BYTES:,}" in problem
    empty = tmp_path / "empty.whl"
    zipfile.ZipFile(empty, "w").close()
    assert release.wheel_problems(empty) == [f"empty.whl lacks {', '.join(release.NEEDED)}"]


def test_the_example_of_a_page_is_one_program_with_its_output():
    skipped = "```python\na = 1\n```\nWords.\n```python no-run\nb\n```\n"
    page = skipped + "```python\nprint(a)\n```\n\n```text\n1\n```\n"
    assert release.readme_example(page) == ("a = 1\n\nprint(a)\n", "1\n")


def test_the_readme_has_an_example_to_try():
    code, output = release.readme_example((release.ROOT / "README.md").read_text(encoding="utf-8"))
    assert "import slackwater as sw" in code
    assert output


def test_only_a_tag_of_the_version_is_published(capsys):
    assert release.main(["--publishable", "v9.9"]) == 1
    assert "the tag is 'v9.9', and pyproject.toml has version" in capsys.readouterr().err


def test_addresses_that_lead_nowhere_are_not_published(tmp_path, monkeypatch):
    text = '[project]\nversion = "1.0"\n[project.urls]\nRepository = "https://{}"\n'
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text(text.format("a.example/b"), encoding="utf-8")
    with pytest.raises(release.ReleaseError, match="addresses that lead nowhere"):
        release.check_publishable("v1.0")
    (tmp_path / "pyproject.toml").write_text(text.format("a.org/b"), encoding="utf-8")
    release.check_publishable("v1.0")
