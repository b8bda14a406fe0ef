import subprocess
from pathlib import Path

import pytest

import ensure_java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('WARNING: Using incubator modules\nopenjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_version_is_read_from_what_java_prints(text, version):
    assert ensure_java.parse_version(text) == version


def fake_java(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_wrapper_drops_the_vector_module_and_nothing_else(tmp_path):
    java = fake_java(tmp_path / "it's a $HOME" / "java", 'printf "%s\\n" "$#" "$@"')
    wrapper = tmp_path / "java"
    ensure_java.write_wrapper(wrapper, java)
    arguments = ["-cp", "a b;*", "", "--add-modules=jdk.incubator.vector", '"$(date)"', "-n", "*"]
    out = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True).stdout
    kept = [a for a in arguments if a != "--add-modules=jdk.incubator.vector"]
    assert out.splitlines() == [str(len(kept)), *kept]


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ("echo 'openjdk version \"21.0.8\"' >&2", 21),
        ("echo 'openjdk version \"11.0.2\"' >&2", None),  # too old
        ("echo 'openjdk version \"21.0.8\"' >&2; exit 1", None),  # lacks the module
    ],
)
def test_only_a_java_that_spark_can_start_is_usable(tmp_path, body, version):
    assert ensure_java.usable_version(fake_java(tmp_path / "java", body)) == version


def test_a_java_that_is_not_there_is_not_usable(tmp_path):
    assert ensure_java.usable_version(tmp_path / "java") is None


def test_java_home_goes_before_the_path_as_in_spark(tmp_path, monkeypatch):
    on_path = fake_java(tmp_path / "bin" / "java", "exit 0")
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert ensure_java.java_spark_would_run() == tmp_path / "home" / "bin" / "java"
    monkeypatch.delenv("JAVA_HOME")
    assert ensure_java.java_spark_would_run() == on_path
