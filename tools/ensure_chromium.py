"""Look for the browser that the tests of the dashboard need.

They drive Chromium through its chromedriver. If both are there, this program only prints where. If
not, and this is a Debian where it may install packages, it does. Anywhere else it prints that these
tests will be skipped: nothing but them needs a browser, so that is no error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

BROWSERS = ("chromium", "google-chrome")
DRIVER = "chromedriver"
PACKAGES = ("chromium", "chromium-driver")
DEBIAN = Path("/etc/debian_version")


def found() -> tuple[str, str] | None:
    """The browser and its driver, if both are there."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which(DRIVER)
    return (browser, driver) if browser is not None and driver is not None else None


def may_install() -> bool:
    """Whether packages can be installed without asking anybody."""
    return DEBIAN.exists() and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install() -> bool:
    """Install both; whether that worked."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *PACKAGES]
    refresh = ["apt-get", "update", "--quiet"]
    # The lists of packages may be old or empty: try with new ones if it does not work at once.
    for steps in ([command], [refresh, command]):
        done = [subprocess.run(step, env=quiet, capture_output=True, check=False) for step in steps]
        if done[-1].returncode == 0:
            return True
    return False


def main() -> int:
    """Find Chromium or bring it; say which in one line. Return the exit status, always 0."""
    place = found()
    if place is not None:
        print(f"chromium: {place[0]}, driven by {place[1]}")
        return 0
    if may_install() and install() and (place := found()) is not None:
        print(f"chromium: installed {place[0]}, driven by {place[1]}")
        return 0
    print(
        "chromium: none with its chromedriver; the browser tests of the dashboard will be skipped"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
