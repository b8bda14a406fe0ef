"""tools/check_workflows.py takes actionlint where it is, builds it, or does without."""

import subprocess

import check_workflows


def test_without_actionlint_and_go_the_check_is_skipped_in_words(monkeypatch, capsys):
    monkeypatch.setattr(check_workflows, "found", lambda: None)
    monkeypatch.setattr(check_workflows.shutil, "which", lambda _: None)
    assert check_workflows.main() == 0
    assert "workflows not checked" in capsys.readouterr().out


def test_what_actionlint_finds_fails_the_check(monkeypatch):
    done = subprocess.CompletedProcess([], returncode=1)
    monkeypatch.setattr(check_workflows, "found", lambda: "/somewhere/actionlint")
    monkeypatch.setattr(check_workflows.subprocess, "run", lambda *_, **__: done)
    assert check_workflows.main() == 1
