"""Check the GitHub workflows with actionlint: ``python tools/check_workflows.py``.

actionlint is a Go program. It is taken from the ``PATH``, else from ``build/actionlint``, where Go
builds it on first use. Without either, this program prints that the check is skipped and ends with
0: nothing else here needs Go, and GitHub's runners have it. ``tests/test_workflows.py`` checks with
Python alone what the workflows run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
BUILT = ROOT / "build" / "actionlint" / "actionlint"


def found() -> str | None:
    """Where actionlint is, if it is there."""
    return shutil.which("actionlint") or (str(BUILT) if BUILT.exists() else None)


def build() -> str | None:
    """Build it with Go, if that is there and can download the module."""
    go = shutil.which("go")
    if go is None:
        return None
    environment = {**os.environ, "GOBIN": str(BUILT.parent)}
    command = [go, "install", MODULE]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return str(BUILT) if done.returncode == 0 else None


def main() -> int:
    """Check every workflow; return the exit status."""
    actionlint = found() or build()
    if actionlint is None:
        print("actionlint: not installed, and there is no Go to build it; workflows not checked")
        return 0
    return subprocess.run([actionlint], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
