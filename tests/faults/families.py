"""What can be done to a run: each fault is told when it is over, with what the query said to it."""

import shutil
import time
from contextlib import ExitStack
from typing import NamedTuple

from faults.checkpoint import PHASES, first_without, marker, phase_of
from faults.damage import TARGETS, WAYS, damaged, uncommitted
from faults.disk import Disk, can_mount
from faults.kinds import FILES
from faults.lives import CLUSTER, LOCAL, ONE


class Fault(NamedTuple):
    """What was done to a query, and its message if it refused to go on."""

    family: str
    what: str
    refused: str = ""


def driver(bench, folder, drawn):
    """`kill -9` of the driver at a phase of a micro-batch, or at any moment."""
    bench.trial.write(folder, range(FILES - 1))
    for phase in drawn([*PHASES, "any moment"]):
        sign = "noted" if phase == "any moment" else phase
        batch = first_without(folder, sign)  # one that is repeated has left some already
        life = bench.life(LOCAL, ONE)
        if not life.start_until(marker(folder, sign, batch), bench.kind, folder, bench.rng):
            return  # it has taken all there is
        time.sleep(bench.rng.uniform(0, {"any moment": 2, "at work": 0.3}.get(phase, 0)))
        bench.kill()
        yield Fault("driver", f"{phase}: found {phase_of(folder, batch)}")


def worker(bench, folder, drawn):
    """`kill -9` of a Python worker, or of the daemon that forks them."""
    yield from _while_it_runs(bench, folder, drawn, (LOCAL, ONE), "worker")


def executor(bench, folder, drawn):
    """`kill -9` of an executor of a small cluster."""
    yield from _while_it_runs(bench, folder, drawn, (CLUSTER,), "executor")


def _while_it_runs(bench, folder, drawn, masters, family):
    """Spark repeats the tasks that die, so the query goes on; kills are spread over its batches."""
    bench.trial.write(folder, range(FILES - 1))
    life = bench.life(*masters)
    if not life.start_until(marker(folder, "planned", 0), bench.kind, folder, bench.rng):
        return
    for batch in sorted(drawn(range(FILES - 1))):
        life.wait_for(marker(folder, "planned", batch))
        time.sleep(bench.rng.uniform(0, 0.5))
        kill = life.kill_worker if family == "worker" else life.kill_executor
        while life.is_busy and not kill(bench.rng):  # they are just being started
            time.sleep(0.01)
        if life.is_busy:
            yield Fault(family, f"found {phase_of(folder, batch)}")
    refused = life.end().get("refused", "")
    if refused:
        yield Fault(family, "tasks were not repeated", refused)


def file(bench, folder, drawn):
    """Damage to a file of the checkpoint while the query is down."""
    known = [f"{target} {way}" for target in TARGETS for way in WAYS]
    _start(bench, folder)
    open_damages = []  # some are found much later, when the file is read
    for batch, what in enumerate(drawn([*known, "uncommitted", "uncommitted"]), 1):
        target, _, way = what.partition(" ")
        if not way:
            uncommitted(folder)
        elif damage := damaged(folder / "checkpoint", target, way, bench.rng):
            open_damages.append(damage)
        life = bench.life(LOCAL, ONE)
        life.kill_worker(bench.rng)  # or it still has in memory what it should read
        bench.trial.write(folder, [batch])
        refused = life.run(bench.kind, folder, bench.rng).get("refused", "")
        if refused:
            _mend(open_damages)
            bench.insist(folder, LOCAL, ONE)
        yield Fault("file", open_damages[-1].what if way and open_damages else what, refused)
    _mend(open_damages)


def _mend(damages):
    for damage in damages:
        damage.mend()


def disk(bench, folder, drawn):
    """No space left where the checkpoint, the output or Spark's own files are."""
    if not can_mount(bench.folder / "mount"):
        return
    bench.kill()
    with ExitStack() as mounted:
        scratch = bench.folder / "small"
        places = {"checkpoint": folder / "checkpoint", "out": folder / "out", "scratch": scratch}
        disks = {name: mounted.enter_context(Disk(place)) for name, place in places.items()}
        mounted.callback(bench.kill)  # before its disk goes
        bench.life(LOCAL, scratch=scratch)
        _start(bench, folder)
        for batch, place in enumerate(drawn(list(disks)), 1):
            bench.trial.write(folder, [batch])
            life = bench.life(LOCAL, scratch=scratch)
            when = bench.rng.choice(["before", "planned"])
            if when == "before":
                disks[place].fill()
                answer = life.run(bench.kind, folder, bench.rng)
            else:
                planned = marker(folder, "planned", batch)
                assert life.start_until(planned, bench.kind, folder, bench.rng)
                disks[place].fill()
                answer = life.end()
            refused = answer.get("refused", "")
            disks[place].free()
            if refused:
                bench.insist(folder, LOCAL, scratch=scratch)
            yield Fault("disk", f"{place} full, {when}", refused)
        for place in ("checkpoint", "out"):  # what is judged must outlive the disks
            shutil.copytree(folder / place, bench.folder / "kept" / place)
    shutil.copytree(bench.folder / "kept", folder, dirs_exist_ok=True)
    shutil.rmtree(bench.folder / "kept")


def _start(bench, folder):
    """The first file, undisturbed."""
    bench.trial.write(folder, [0])
    bench.insist(folder, LOCAL, ONE)


FAMILIES = {"file": file, "worker": worker, "driver": driver, "disk": disk, "executor": executor}
