"""Lives of a driver: started, told what to run, watched, killed."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event

TESTS = Path(__file__).resolve().parent.parent
DAEMON, EXECUTOR = "-m slackwater.spark.daemon", "CoarseGrainedExecutorBackend"
LOCAL, ONE, CLUSTER = "local[2,8]", "local[1,8]", "local-cluster[2,1,1024]"
TRIES = 3
ALIVE, LAST = set(), Event()  # those who live; there will be no more


class Life:
    """A driver with all its processes: those of one session of the operating system."""

    def __init__(self, master, scratch):
        if LAST.is_set():
            sys.exit()  # of this thread
        self.master, self.scratch = master, Path(scratch)
        self.log = self.scratch.with_suffix(".log")
        classic = {k: v for k, v in os.environ.items() if "REMOTE" not in k and "CONNECT" not in k}
        paths = [str(TESTS), *filter(None, [classic.get("PYTHONPATH")])]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "faults.victim", master, str(scratch)],
                start_new_session=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=classic | {"PYTHONPATH": os.pathsep.join(paths)},
            )
        ALIVE.add(self)
        self._answer()  # ready

    def start(self, kind, folder, rng, per_trigger=1):
        """Let it run a query; how files are laid out over tasks does not matter."""
        order = {
            "kind": kind,
            "folder": str(folder),
            "per_trigger": per_trigger,
            "partition": rng.choice(["8kb", "128mb"]),
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    @property
    def is_busy(self):
        """Whether the query has not ended yet."""
        return not select.select([self._process.stdout], [], [], 0)[0]

    def start_until(self, file, *order):
        """Start, and wait until a file is there; whether it came before the end of the query."""
        for _ in range(TRIES):
            self.start(*order)
            self.wait_for(file)
            if self.is_busy:
                return True
            if not _was_too_slow(self.end()):
                break
        return False

    def wait_for(self, file):
        """Until a file is there, and not a moment longer; or until the query ends."""
        while self.is_busy and not file.exists():
            time.sleep(0.0005)

    def end(self):
        """Wait for the end of the query; what it counted, or why it was refused."""
        return self._answer()

    def run(self, *order, **options):
        """Start, and wait for the end."""
        for _ in range(TRIES):
            self.start(*order, **options)
            answer = self.end()
            if not _was_too_slow(answer):
                break
        return answer

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            said = self.log.read_text()[-2_000:]
            self.close()
            msg = f"the driver on {self.master} ended by itself: {said}"
            raise RuntimeError(msg)
        return json.loads(line)

    def close(self):
        """`kill -9` of everything: the driver, its JVM, workers and executors."""
        while pids := [pid for pid, *_ in self._processes()]:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
            time.sleep(0.01)
        with suppress(BrokenPipeError):  # what it was told and did not read
            self._process.communicate()
        ALIVE.discard(self)

    def kill_worker(self, rng):
        """`kill -9` of a Python worker, or of the daemon that makes them; whether there was one."""
        daemons = {pid: parent for pid, parent, said in self._processes() if DAEMON in said}
        workers = [pid for pid, parent in daemons.items() if parent in daemons]
        makers = [pid for pid, parent in daemons.items() if parent not in daemons]
        return _kill_one(makers if rng.random() < 0.2 else workers, rng)

    def kill_executor(self, rng):
        """`kill -9` of the JVM of an executor; whether there was one."""
        return _kill_one([pid for pid, _, said in self._processes() if EXECUTOR in said], rng)

    def _processes(self):
        """(pid, parent, command line) of each that is alive."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended
                state, parent, _, session = stat.read_text().rpartition(")")[2].split()[:4]
                if int(session) == self._process.pid and state != "Z":
                    said = (stat.parent / "cmdline").read_text().replace("\0", " ")
                    yield int(stat.parent.name), int(parent), said


def _was_too_slow(answer):
    """Whether Spark gave up on a busy machine: it waits ten seconds for a Python process."""
    return "Python worker failed to connect back" in answer.get("refused", "")


def _kill_one(pids, rng: random.Random):
    if not pids:
        return False
    os.kill(rng.choice(sorted(pids)), signal.SIGKILL)
    return True
