"""Known vulnerabilities of the pinned packages, as pip-audit finds them: ``python tools/audit.py``.

Ends with 0 if every package was looked up and none has an advisory, with 1 if one has, with 2 if
some could not be looked up. A mirror of PyPI without advisories knows none of them: that is not
called clean. With ``--if-reachable`` that is printed and is no failure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PINNED = Path(__file__).resolve().parent.parent / "constraints.txt"
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 2


def looked_up(pinned: Path) -> list[dict[str, Any]]:
    """The report of pip-audit on each package."""
    options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *options, "-r", str(pinned)],
        capture_output=True,
        text=True,
        check=False,  # it ends with 1 if there is an advisory
    )
    if not done.stdout.strip():
        return []  # nobody answered
    found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    return found


def verdict(packages: list[dict[str, Any]], if_reachable: bool) -> tuple[int, list[str]]:
    """The exit status, and what to print.

    >>> verdict([{"name": "numpy", "version": "2.4.6", "vulns": []}], if_reachable=False)
    (0, ['audit: 1 packages, no known vulnerability'])
    """
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        message = "audit: advisories cannot be reached from here, nothing was looked up"
        return (CLEAN if if_reachable else UNKNOWN), [message]
    lines = [
        f"audit: {package['name']} {package['version']}: {advisory['id']}, "
        f"mended in {', '.join(advisory['fix_versions']) or 'no version yet'}"
        for package in known
        for advisory in package["vulns"]
    ]
    if lines:
        return VULNERABLE, lines
    missing = [package["name"] for package in packages if "skip_reason" in package]
    if missing:
        return UNKNOWN, [f"audit: could not be looked up: {', '.join(missing)}"]
    return CLEAN, [f"audit: {len(known)} packages, no known vulnerability"]


def main() -> int:
    """Look up and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--if-reachable", action="store_true", help="no advisories: no failure")
    status, lines = verdict(looked_up(PINNED), parser.parse_args().if_reachable)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
