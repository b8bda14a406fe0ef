"""A kind of query on the bench: run undisturbed, run disturbed, and compared."""

import random
import shutil
from functools import partial
from pathlib import Path
from typing import NamedTuple

from faults.checkpoint import cuts
from faults.judge import Verdict, judged
from faults.kinds import FILES, KINDS
from faults.lives import CLUSTER, LOCAL, ONE, Life
from spark.streams import write


class Run(NamedTuple):
    """A query from its first file to its last."""

    kind: str
    family: str
    faults: list
    verdict: Verdict


class Bench:
    """One kind of query: its folders, the driver that is alive, its undisturbed run."""

    def __init__(self, kind, folder, seed):
        self.kind, self.folder, self.seed = kind, Path(folder), seed
        self.rng = random.Random(f"{seed} {kind}")
        self.trial = KINDS[kind]()
        self.lives = 0
        self._life = None
        self._calm = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    # ---- lives

    def life(self, *masters, scratch=None):
        """A driver on one of these masters: the one that is alive, or a new one."""
        if self._life is None or self._life.master not in masters:
            self.kill()
            scratch = scratch or self.folder / f"scratch{self.lives}"
            self.lives += 1
            scratch.mkdir(parents=True, exist_ok=True)
            self._life = Life(self.rng.choice(masters), scratch)
        return self._life

    def kill(self):
        if self._life is not None:
            self._life.close()
            shutil.rmtree(self._life.scratch, ignore_errors=True)
            self._life = None

    # ---- runs

    def calm(self):
        """The folder of an undisturbed run."""
        if self._calm is None:
            folder = self.folder / "calm"
            self.trial.write(folder, range(FILES))
            answer = self.insist(folder, LOCAL, ONE)
            assert "refused" not in answer, answer
            self._calm = folder
        return self._calm

    def run(self, family, disturb, n, turn):
        """Let `disturb` do `n` faults to a run; then let it end, and judge.

        `turn` is the number of this run among all of its family.
        """
        calm, rough = self.calm(), self.folder / f"{family}-{turn}"
        faults = list(disturb(self, rough, partial(self._drawn, n, turn)))
        self.trial.write(rough, range(FILES))
        answer = self.insist(rough, LOCAL, ONE, CLUSTER)
        if "refused" in answer:
            verdict = Verdict(0, 0, f"it did not go on: {answer['refused']}")
        else:
            verdict = judged(self.kind, rough, answer, calm, lambda read: self._again(rough, read))
        if verdict.ok:
            shutil.rmtree(rough, ignore_errors=True)  # Spark still tidies up in it
        return Run(self.kind, family, faults, verdict)

    def insist(self, folder, *masters, scratch=None, **options):
        """Run to the end; if this is refused, once more with another driver."""
        for _ in range(2):
            life = self.life(*masters, scratch=scratch)
            answer = life.run(self.kind, folder, self.rng, **options)
            if "refused" not in answer:
                break
            self.kill()
        return answer

    def _drawn(self, n, turn, choices):
        """`n` of the choices: all come in some order, over all runs, before any comes again."""
        order = random.Random(self.seed).sample(choices, len(choices))
        return [order[i % len(order)] for i in range(turn * n, (turn + 1) * n)]

    def _again(self, rough, read):
        """An undisturbed run whose micro-batches read these files."""
        folder = rough.with_name(f"{rough.name}-same-cuts")
        for files in read:
            for stream, file in files:
                number = int(Path(file).stem)
                write(folder / stream, [self.trial.parts[stream][number]], first=number)
            self.insist(folder, LOCAL, ONE, CLUSTER, per_trigger=FILES)
        assert cuts(folder) == read
        return folder
