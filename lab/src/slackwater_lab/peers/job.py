"""One timed run of another engine, in a process and a Python of its own.

Flink and Pathway need other versions of what Slackwater needs, so each has an environment of its
own, which `make peers` builds. What runs there is a script that imports nothing of Slackwater: it
takes a job as JSON, and prints how it went as JSON on its last line.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

FOLDER = "SLACKWATER_PEERS"  # the variable with the folder of the environments
_DEFAULT = ".venv-peers"  # in the working directory
_SCRIPTS = {"flink": "flink", "pathway": "pathway", "duckdb": "batch", "polars": "batch"}
_OWN_ENVIRONMENT = ("flink", "pathway")


class PeerError(RuntimeError):
    """A run of another engine failed."""


@dataclass(frozen=True)
class Job:
    """The query to run, and on which peer."""

    peer: str
    runs: tuple[str, ...]  # folders with a folder of files per stream; run one after the other
    streams: tuple[str, ...]
    window_ms: int
    slack_ms: int  # the delay of the watermark; batch engines need none
    count: bool = False  # only count the results
    parallelism: int = 2
    rows_per_commit: int = 10_000  # of a stream; Pathway only


@dataclass(frozen=True)
class PeerRun:
    """The result of a run."""

    seconds: list[float]  # of each run
    results: int  # of the last run

    def steady(self, rows: list[int]) -> float:
        """Rows per second between the ends of the last two runs: without the cost that both have.

        >>> PeerRun([9.0, 3.0, 5.0], 0).steady([100, 100, 300])
        100.0
        >>> PeerRun([3.0, 2.0], 0).steady([100, 300])  # too little data to compare
        150.0
        """
        more, longer = rows[-1] - rows[-2], self.seconds[-1] - self.seconds[-2]
        return more / longer if longer > 0 else rows[-1] / self.seconds[-1]


def missing(peer: str) -> str | None:
    """Return why a peer cannot run and what to do; None if it can."""
    if peer in _OWN_ENVIRONMENT:
        found, how = _python(peer).exists(), "make peers"
    else:
        found, how = find_spec(peer) is not None, f"pip install {peer}"
    return None if found else f"{peer}: skipped, not installed; try: {how}"


def run(job: Job) -> PeerRun:
    """Run it in a fresh process."""
    import subprocess  # noqa: PLC0415

    python = _python(job.peer) if job.peer in _OWN_ENVIRONMENT else Path(sys.executable)
    script = Path(__file__).with_name(f"{_SCRIPTS[job.peer]}.py")
    # isolated, so that the folder of the script hides no package
    command = [str(python), "-I", str(script), json.dumps(asdict(job))]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=_environment(job)
    )
    if done.returncode:
        # the causes in the Java trace, without the stack below each
        causes = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
        msg = f"the run of {job.peer} failed:\n" + "\n".join(causes)[-3000:]
        raise PeerError(msg)
    return PeerRun(**json.loads(done.stdout.splitlines()[-1]))


def _python(peer: str) -> Path:
    return Path(os.environ.get(FOLDER, _DEFAULT)).absolute() / peer / "bin" / "python"


def _environment(job: Job) -> dict[str, str]:
    """Ours, with the Java that Spark uses too, and as many threads as the job has."""
    own_java = Path(sys.prefix) / "bin" / "java"
    java = {"JAVA_HOME": sys.prefix} if own_java.exists() else {}
    threads = str(job.parallelism)
    return os.environ | java | {"PATHWAY_THREADS": threads, "POLARS_MAX_THREADS": threads}
