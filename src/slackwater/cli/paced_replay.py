"""A replay step by step: its metrics lines on a page, in a log, or both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from slackwater.jobs.recordings import Recording

_STEP_S = 0.5  # between two lines, at a given speed


def play(
    recording: Recording, show: bool, log: Path | None, speed: float | None, may_stay: bool
) -> None:
    """Replay a recording: `speed` times as fast as it arrived, or as fast as it goes."""
    from slackwater.cli.dashboard_server import beside
    from slackwater.dashboard.control import Control
    from slackwater.engine.replay_lines import lines

    said: SimpleQueue[dict[str, Any]] = SimpleQueue()
    control = None if speed is None else Control(said.put, recording.title)
    why_not = "A replay at full speed takes no commands; give it a --speed."
    every = None if speed is None else f"{round(1000 * _STEP_S * speed)} ms"
    with ExitStack() as stack:
        tellers = [stack.enter_context(_written(log))] if log is not None else []
        history = stack.enter_context(beside(show, control, why_not, may_stay=may_stay))
        tellers += [] if history is None else [history.take]
        told = lines(
            recording.query,
            recording.tables,
            recording.arrival,
            every,
            name=recording.title,
            commands=None if control is None else lambda: _all(said),
        )
        for line in told if speed is None else _paced(told):
            for tell in tellers:
                tell(line)


def _all(queue: SimpleQueue[dict[str, Any]]) -> list[dict[str, Any]]:
    """What has been commanded since the last time."""
    found = []
    while True:
        try:
            found.append(queue.get_nowait())
        except Empty:
            return found


def _paced(told: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One line each half second, or as fast as it goes if that is slower."""
    pause, due = Event(), perf_counter()
    for line in told:
        due += _STEP_S
        yield line
        pause.wait(max(0.0, due - perf_counter()))


@contextmanager
def _written(log: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A writer of JSON lines."""
    from slackwater.errors import DataError

    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("w", encoding="utf-8")
    except OSError as error:
        msg = f"the metrics cannot be written to {log}: {error.strerror}"
        raise DataError(msg) from error
    with file:
        yield lambda line: print(json.dumps(line, ensure_ascii=False), file=file, flush=True)  # noqa: T201
