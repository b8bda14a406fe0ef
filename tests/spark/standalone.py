"""A standalone Spark cluster on this machine: a master, two workers, jobs by spark-submit.

Its Python has every package but ours: that comes with the job, in a zip.
"""

import os
import re
import signal
import site
import subprocess
import sys
import time
import venv
from pathlib import Path
from shutil import copy

import pyspark

from patience import PROGRAM_S
from zipped import compiled, zipped

SPARK = Path(pyspark.__file__).parent
CONF = Path(__file__).parents[2] / "examples" / "cluster.conf"
ADDRESS = "127.0.0.1"


class Standalone:
    """Everything that is started lives in `folder` and dies with the block."""

    def __init__(self, folder):
        self.folder = folder
        self.archive = zipped(folder / "slackwater.zip")
        self.python = _bare_python(folder / "python")
        self._started = []
        ours = {"PYTHONPATH", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SLACKWATER_CONNECT"}
        self._env = {k: v for k, v in os.environ.items() if k not in ours} | {
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": ADDRESS,
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",  # a fixed port
            "PYSPARK_PYTHON": str(self.python),
            "NUMBA_CACHE_DIR": str(folder / "kernels"),
        }

    def __enter__(self):
        self._warm()
        deploy = "org.apache.spark.deploy"
        shared = ["--host", ADDRESS, "--port", "0", "--webui-port", "0"]
        self._run("master", "spark-class", f"{deploy}.master.Master", *shared)
        self.url = self._said("master", r"Starting Spark master at (spark://\S+)")
        worker = [f"{deploy}.worker.Worker", *shared, "--cores", "1", "--memory", "1g"]
        self.workers = [
            self._run(name, "spark-class", *worker, "--work-dir", str(self.folder / name), self.url)
            for name in ("worker-1", "worker-2")
        ]
        for name in ("worker-1", "worker-2"):
            self._said(name, "(Successfully registered) with master")
        return self

    def __exit__(self, *_):
        for process in reversed(self._started):
            kill(process)

    def submit(self, name, program, *arguments):
        """Start a job; what it prints is in the file `name`.log."""
        limits = ["--driver-memory", "1g", "--executor-memory", "1g"]
        return self._run(
            name, "spark-submit", "--master", self.url, "--properties-file", str(CONF), *limits,
            "--conf", f"spark.executorEnv.NUMBA_CACHE_DIR={self.folder / 'kernels'}",
            "--py-files", str(self.archive), str(program), *map(str, arguments),
        )  # fmt: skip

    def log(self, name):
        """What a process has printed so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kernels(self):
        """What is compiled."""
        return {(f.name, f.stat().st_mtime_ns) for f in (self.folder / "kernels").rglob("*.nbc")}

    def left(self):
        """Processes that still have to do with the folder."""
        return [args for _, _, args in processes() if str(self.folder) in args]

    def _warm(self):
        """What `python -m slackwater.engine.warm` does on each machine: copied, not compiled."""
        env = self._env | {"PYTHONPATH": str(self.archive)}
        touch = [str(self.python), "-c", "import slackwater.kernels.vectors"]
        subprocess.run(touch, env=env, check=True)
        (cache,) = (self.folder / "kernels").iterdir()
        for file in compiled():
            copy(file, cache)

    def _run(self, name, program, *arguments):
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [str(SPARK / "bin" / program), *arguments],
                env=self._env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._started.append(process)
        return process

    def _said(self, name, pattern):
        wait_until(lambda: re.search(pattern, self.log(name)), f"{name} to start")
        return re.search(pattern, self.log(name))[1]


def executor_of(worker):
    """The process of the one executor that a worker has started."""
    found = [
        pid for pid, parent, args in processes() if parent == worker.pid and "Executor" in args
    ]
    return found[0] if found else None


def processes():
    """(pid, parent, command) of all processes that run."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], check=True, capture_output=True, text=True
    )
    rows = (line.split(None, 2) for line in listed.stdout.splitlines())
    return [(int(pid), int(parent), args) for pid, parent, args in rows]


def kill(process):
    """`kill -9` for a process and its group; it may be dead."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wait_until(what, said, seconds=PROGRAM_S):
    """Wait for a condition that other processes bring about."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"waited {seconds} s for {said}"
        time.sleep(0.2)


def _bare_python(folder):
    """The packages of this environment, but not what is installed in place: the package itself."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    python = folder / "bin" / Path(sys.executable).name
    found = subprocess.run(
        [python, "-I", "-c", "import slackwater"], check=False, capture_output=True
    )
    assert b"No module named 'slackwater'" in found.stderr
    return python
