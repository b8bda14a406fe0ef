"""Build what is released, and try it: ``make release``.

Builds wheel and sdist of ``slackwater`` and ``slackwater-lab`` into ``dist``, checks them with
twine, checks what the wheel holds, and installs the wheel into a fresh environment in which the
Python of README.md and ``slackwater demo --embedded`` must run. CITATION.cff is validated, and must
have the version that is built. Nothing is uploaded: the workflow ``release.yml`` does that.

``--publishable`` only checks that the addresses in pyproject.toml are real, and that the version is
the one of a given tag.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
FRESH = ROOT / "build" / "release" / "fresh"  # the environment that the wheel is installed into
LIMIT_BYTES = 800_000  # the aim is 400 kB: docs/decisions/0018-size-of-the-wheel.md
NEEDED = ("slackwater/py.typed", "slackwater/dashboard/page/index.html")
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class ReleaseError(Exception):
    """What was built must not be released."""


def version() -> str:
    """The version in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; return what it prints, or show it and raise."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
        msg = f"failed with {done.returncode}: {' '.join(map(str, command))}"
        raise ReleaseError(msg)
    return done.stdout


def build() -> list[Path]:
    """Wheel and sdist of both distributions, in dist."""
    shutil.rmtree(DIST, ignore_errors=True)
    for leftover in (ROOT / "build" / "lib", ROOT / "lab" / "build"):
        shutil.rmtree(leftover, ignore_errors=True)  # setuptools would put old files into a wheel
    for project in (ROOT, ROOT / "lab"):
        run(sys.executable, "-m", "build", "--outdir", DIST, project)
    return sorted(DIST.iterdir())


def wheel_problems(wheel: Path) -> list[str]:
    """What is wrong with size and contents of the wheel of slackwater."""
    problems = []
    size = wheel.stat().st_size
    if size >= LIMIT_BYTES:
        problems.append(f"{wheel.name} has {size:,} bytes, must have less than {LIMIT_BYTES:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    allowed = {"slackwater", f"slackwater-{version()}.dist-info"}
    foreign = sorted({name.split("/")[0] for name in names} - allowed)
    if foreign:
        problems.append(f"{wheel.name} holds {', '.join(foreign)}, must hold only slackwater")
    missing = [name for name in NEEDED if name not in names]
    if missing:
        problems.append(f"{wheel.name} lacks {', '.join(missing)}")
    return problems


def readme_example(readme: str) -> tuple[str, str]:
    """The Python of README.md as one program, and what it prints according to the page."""
    blocks = list(BLOCK.finditer(readme))
    code = "\n".join(block["code"] for block in blocks)
    return code, "".join(block["output"] or "" for block in blocks)


def fresh_install(wheel: Path) -> Path:
    """A new environment with nothing but the wheel and what it requires; its Python."""
    shutil.rmtree(FRESH, ignore_errors=True)
    venv.create(FRESH, with_pip=True)
    python = FRESH / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", f"{wheel}[spark]", cwd=FRESH)
    return python


def try_wheel(wheel: Path) -> None:
    """Run README's example and the demonstration in a fresh environment."""
    python = fresh_install(wheel)
    code, expected = readme_example((ROOT / "README.md").read_text(encoding="utf-8"))
    if not expected:
        msg = "README.md has no Python example with its output"
        raise ReleaseError(msg)
    printed = run(python, "-c", code, cwd=FRESH)
    if printed.split() != expected.split():
        msg = f"README's example printed\n{printed}\nwhere README.md has\n{expected}"
        raise ReleaseError(msg)
    run(FRESH / "bin" / "slackwater", "demo", "--embedded", cwd=FRESH)


def check_citation() -> None:
    """Validate CITATION.cff by its schema, and compare its version with ours."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    stated = re.search(r"^version: (\S+)$", text, re.MULTILINE)
    if stated is None or stated[1] != version():
        msg = f"CITATION.cff has version {stated and stated[1]}, pyproject.toml {version()}"
        raise ReleaseError(msg)
    cffconvert = Path(sys.executable).with_name("cffconvert")
    run(cffconvert, "--validate", "--infile", ROOT / "CITATION.cff")


def check_publishable(tag: str) -> None:
    """Raise for a tag of another version, and for addresses that lead nowhere."""
    if tag.removeprefix("v") != version():
        msg = f"the tag is {tag!r}, and pyproject.toml has version {version()}"
        raise ReleaseError(msg)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    reserved = [url for url in tomllib.loads(text)["project"]["urls"].values() if ".example" in url]
    if reserved:
        msg = f"[project.urls] in pyproject.toml has addresses that lead nowhere: {reserved[0]}"
        raise ReleaseError(msg)


def main(arguments: list[str] | None = None) -> int:
    """Build and check, or only check; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--publishable", metavar="TAG", help="only check that TAG may be uploaded")
    options = parser.parse_args(arguments)
    try:
        if options.publishable:
            check_publishable(options.publishable)
            return 0
        check_citation()
        files = build()
        run(sys.executable, "-m", "twine", "check", "--strict", *files)
        wheel = next(path for path in files if path.match(f"slackwater-{version()}-*.whl"))
        print(f"release: trying {wheel.name} ({wheel.stat().st_size:,} bytes)")
        try_wheel(wheel)
        if problems := wheel_problems(wheel):
            raise ReleaseError("; ".join(problems))
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"release: {len(files)} files in dist")
    return 0


if __name__ == "__main__":
    sys.exit(main())
