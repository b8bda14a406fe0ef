"""Change the source a little, one place at a time, and see whether a test notices.

A change is a mutant; one that no test notices survives. `make mutants` draws a seeded sample of the
engine (or of each of its packages), tries it, and prints what survived and the score.
docs/results/mutants.md has the outcome.

The operators are those of cosmic-ray (tools/mutations.py). Its runner is not used: it writes each
mutant into the source tree and starts the tests anew. Here a mutant is handed to the import system
of a forked process, so nothing on disk changes and numpy, numba and hypothesis are loaded once. The
kernels run as plain Python, and a mutant meets only the tests that run its line, quickest first.

All of them are tests of `make test`: those marked `full` are left out, and those marked `compiled`
while kernels are plain Python. `--again` shows more
examples to the mutants that are left; with `--compiled` those outside the kernels meet the tests as
`make test` runs them, simulations too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any, NoReturn

import coverage
import pytest

from mutations import (
    GROUPS,
    PACKAGES,
    ROOT,
    SOURCE,
    Mutant,
    described,
    mutated,
    population,
    statement,
)

BUILD = ROOT / "build" / "mutants"  # cosmic-ray, and what the last run found
OUTCOMES = BUILD / "outcomes.jsonl"
TESTS = ["tests/golden", "tests/unit", "tests/property"]
# Seconds of processor time: the slowest tests of a mutant are left out beyond this.
ENOUGH = {"mutants": 40.0, "nojit": 60.0, "ci": 60.0}
PRELOADED = ("numba", "pandas", "pyarrow.compute", "hypothesis.strategies", "sqlglot", "duckdb")
# Plain asserts: pytest would load what it rewrites by itself, and it takes kernels/back_test.py for
# a test by its name. A mutant of that file was never seen.
QUIET = ["-q", "-p", "no:cacheprovider", "--assert=plain"]
MEMORY = 6 << 30  # a mutant may ask for any amount
ALIVE = ("survived", "not run")


class Watch:
    """Notes for each test how long it takes and, as a coverage context, which lines it runs."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run one test."""
        self.measured.switch_context(item.nodeid)
        begin = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - begin
        return result  # noqa: B901, pytest's wrappers return


class Chosen:
    """Runs only the given tests, in their order, each with its own limit of processor time."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what was chosen."""
        chosen = {item.nodeid: item for item in items}
        items[:] = [chosen[test] for test in self.seconds if test in chosen]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A test that never ends is ended by a signal, whatever it is doing."""
        signal.setitimer(signal.ITIMER_PROF, 2 + 4 * self.seconds[item.nodeid])


def forked(work: Callable[[], int]) -> int:
    """Start `work` in a process of its own; its number."""
    child = os.fork()
    if child == 0:
        leave(work)
    return child


def leave(work: Callable[[], int]) -> NoReturn:
    """Do the work and end this process at once: nothing of the parent's is cleaned up twice."""
    status = 70
    try:
        status = work()
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def measure(tests: list[str], compiled: bool) -> int:
    """Run the tests once; leave the time of each and the lines that it runs."""
    # As `make test` does: what is marked `compiled` is too much for kernels as plain Python.
    marks = "not full" if compiled else "not full and not compiled"
    measured = coverage.Coverage(
        data_file=str(BUILD / "coverage"), config_file=False, include=[f"{SOURCE}/*"]
    )
    measured.erase()
    watch = Watch(measured)
    measured.start()
    status = pytest.main([*QUIET, "-m", marks, *tests], plugins=[watch])
    measured.stop()
    measured.save()
    (BUILD / "seconds.json").write_text(json.dumps(watch.seconds))
    return int(status)


class Selection:
    """The tests as `measure` left them: how long each takes, and which lines it runs."""

    def __init__(self, enough: float) -> None:
        self.enough = enough
        self.seconds: dict[str, float] = json.loads((BUILD / "seconds.json").read_text())
        self.data = coverage.CoverageData(str(BUILD / "coverage"))
        self.data.read()

    def of(self, mutant: Mutant) -> dict[str, float]:
        """The tests that run the mutant's line, quick first.

        If it runs on import, those that run its file, and then all others: a constant is read, and
        an instance of a class made, in any place.
        """
        path = ROOT / mutant.path
        lines = self.data.contexts_by_lineno(str(path))
        contexts = set(lines.get(mutant.line, []))
        if not contexts:  # of a statement on several lines, not every line counts as run
            places = statement(path.read_text(), mutant.line)
            contexts = {context for line in places for context in lines.get(line, [])}
        everything, others = set(self.seconds), set[str]()
        running = contexts & everything
        if not running and "" in contexts:
            running = {test for tests in lines.values() for test in tests} & everything
            others = everything - running
        by_time = partial(sorted, key=lambda test: (self.seconds[test], test))
        quick: list[str] = [*by_time(running), *by_time(others)]
        spent = itertools.accumulate(self.seconds[test] for test in quick)
        return {
            test: self.seconds[test]
            for test, total in zip(quick, spent, strict=True)
            if total <= self.enough
        }


def attempt(mutant: Mutant, tests: dict[str, float]) -> int:
    """Import the mutant in place of its file and run the tests; pytest's exit status."""
    path, code = str(ROOT / mutant.path), mutated(mutant)
    plain = SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> CodeType | None:
        if loader.path == path:
            return compile(code, path, "exec", dont_inherit=True)
        return plain(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.setitimer(signal.ITIMER_PROF, 30)  # until the first test
    signal.alarm(300)  # one that waits uses no processor time
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return int(
        pytest.main([*QUIET, "-x", "--tb=no", "--no-summary", *files], plugins=[Chosen(tests)])
    )


def tried(sample: list[Mutant], selection: Selection, jobs: int) -> Iterator[tuple[Mutant, str]]:
    """What becomes of each mutant, as it is known; `jobs` at a time."""
    waiting, running = deque(sample), dict[int, Mutant]()
    while waiting or running:
        if waiting and len(running) < jobs:
            mutant = waiting.popleft()
            if tests := selection.of(mutant):
                running[forked(partial(attempt, mutant, tests))] = mutant
            else:
                yield mutant, "not run"
            continue
        child, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        mutant = running.pop(child)
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:
            msg = f"the tests of {mutant} were not found"
            raise RuntimeError(msg)
        yield mutant, "survived" if code == 0 else "timed out" if code < 0 else "killed"


def interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in `count` draws."""
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = (
        z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    )
    return middle - reach, middle + reach


def table(sizes: dict[str, int], outcomes: dict[Mutant, str]) -> Iterator[str]:
    """A row for each group and for all: what became of its sample, and the score, its interval."""
    yield "| group | mutants | sample | killed | timed out | survived | score | 95 % interval |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for group, size in (sizes | {"all": sum(sizes.values())}).items():
        counts = Counter(
            what for mutant, what in outcomes.items() if group in ("all", mutant.group)
        )
        if drawn := counts.total():
            alive = sum(counts[what] for what in ALIVE)
            share = 1 - alive / drawn
            low, high = interval(share, drawn)
            dead = f"{counts['killed']} | {counts['timed out']}"
            score = f"{share:.1%} | {low:.1%} to {high:.1%}"
            yield f"| {group} | {size} | {drawn} | {dead} | {alive} | {score} |"


def drawn(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """A sample; a larger one of the same seed begins with it."""
    order = random.Random(seed).sample(mutants, len(mutants))
    return order[:size]


def chosen(groups: list[list[Mutant]], size: int, seed: int, each: bool) -> list[Mutant]:
    """A sample of all groups together, or one of each of them."""
    if not each:
        return drawn([mutant for group in groups for mutant in group], size, seed)
    samples = [drawn(group, size, seed) for group in groups]
    # One of each group at a time: a run that is cut short leaves samples of all.
    return [mutant for turn in itertools.zip_longest(*samples) for mutant in turn if mutant]


def groups_of(packages: list[str]) -> list[str]:
    """The groups of some packages, with their kernels."""
    if unknown := set(packages) - set(PACKAGES):
        msg = f"there is no package {', '.join(sorted(unknown))}; there are {', '.join(PACKAGES)}"
        raise SystemExit(msg)
    return [group for group in GROUPS if group.partition(",")[0] in packages]


def save(outcomes: dict[Mutant, str]) -> None:
    """Leave the outcomes for `--again`."""
    entries = [asdict(mutant) | {"outcome": what} for mutant, what in outcomes.items()]
    OUTCOMES.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def saved() -> dict[Mutant, str]:
    """The outcomes of the last run."""
    entries = [json.loads(line) for line in OUTCOMES.read_text().splitlines()]
    return {Mutant(**{k: v for k, v in e.items() if k != "outcome"}): e["outcome"] for e in entries}


def main() -> int:
    """Try the mutants; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=100, help="mutants of the engine")
    parser.add_argument("--each", action="store_true", help="--sample mutants of each group")
    parser.add_argument("--only", default=",".join(PACKAGES), help="packages, with their kernels")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--again", action="store_true", help="only survivors of the last run")
    parser.add_argument("--compiled", action="store_true", help="--again, with compiled kernels")
    parser.add_argument("--measured", action="store_true", help="tests as the last run saw them")
    parser.add_argument("tests", nargs="*", default=TESTS, help="tests that mutants meet")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(BUILD / "tools")]
    # Those that are left meet more examples.
    again = options.again or options.compiled
    profile = "ci" if options.compiled else "nojit" if again else "mutants"
    os.environ |= {
        "NUMBA_DISABLE_JIT": str(int(not options.compiled)),
        "SLACKWATER_PROFILE": profile,
    }
    for name in PRELOADED:
        import_module(name)
    if not options.measured:
        _, status = os.waitpid(forked(partial(measure, options.tests, options.compiled)), 0)
        if status != 0:
            print("mutants: a test fails without a mutant", file=sys.stderr)
            return 1
    print("mutants: what no test notices", flush=True)
    everything = {group: list(population(group)) for group in groups_of(options.only.split(","))}
    sample = chosen(list(everything.values()), options.sample, options.seed, options.each)
    outcomes = saved() if again else {}
    if again:
        sample = [mutant for mutant, what in outcomes.items() if what in ALIVE]
    if options.compiled:  # numba would take a kernel from its cache, without the change
        sample = [mutant for mutant in sample if "/kernels/" not in mutant.path]
    for mutant, what in tried(sample, Selection(ENOUGH[profile]), options.jobs):
        if what != "not run" or not again:  # it may be that only these tests do not run it
            outcomes[mutant] = what
            save(outcomes)
        if what in ALIVE:
            print(f"{outcomes[mutant]}: {described(mutant)}", flush=True)
    print("\n".join(table({group: len(found) for group, found in everything.items()}, outcomes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
