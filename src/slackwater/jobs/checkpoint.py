"""The checkpoint directory of a job, and the query that it belongs to.

``slackwater.json`` in it lists what must not change while the checkpoint exists. It is written
before the first start, so a directory with other files but without this one is not ours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slackwater.errors import SnapshotError
from slackwater.jobs.toml_table import JobFileError
from slackwater.spark.checkpoint import check_checkpoint

VERSION = 1
_FILE = "slackwater.json"


class Checkpoint:
    """A checkpoint directory, which may not exist yet."""

    def __init__(self, path: Path, file: str) -> None:
        self.path = path
        self._file = file
        self._what = f"{file}: [job] checkpoint {path}"
        self.saved = self._read()  # what must not change; empty: nothing yet

    def _read(self) -> dict[str, Any]:
        """Return what was saved; nothing for a new directory."""
        names = [p.name for p in self.path.iterdir()] if self.path.is_dir() else []
        if not any(name != _FILE + ".new" for name in names):
            return {}
        if _FILE not in names:
            self._refuse(
                "is not empty and was not made by `slackwater run`; name a directory that is new"
            )
        try:
            check_checkpoint(self.path)
        except SnapshotError as error:
            msg = f"{self._file}: {error}"
            raise JobFileError(msg) from error
        if not any((self.path / "offsets").glob("[0-9]*")):
            return {}  # created, but the query never started
        try:
            saved: dict[str, Any] = json.loads((self.path / _FILE).read_text(encoding="utf-8"))
            version, job = saved["version"], dict(saved["job"])
        except (ValueError, KeyError, TypeError):
            self._refuse(f"is damaged: {_FILE} in it cannot be read")
        if version != VERSION:
            self._refuse(f"is of version {version}, but this Slackwater reads version {VERSION}")
        return job

    def check(self, now: Mapping[str, Any]) -> None:
        """Raise if the query differs from the saved one, with the differences."""
        details = list(_differences(self.saved, now)) if self.saved else []
        if details:
            self._refuse(
                f"is of another query: {'; '.join(details)}. Undo the change, or name a new "
                "directory to begin anew; goal, limits and sink may change"
            )

    def claim(self, now: Mapping[str, Any]) -> None:
        """Save what must not change from now on, atomically."""
        if self.saved:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"version": VERSION, "job": now}, indent=2, ensure_ascii=False)
        new = self.path / (_FILE + ".new")
        with new.open("w", encoding="utf-8") as out:
            out.write(text + "\n")
            out.flush()
            os.fsync(out.fileno())
        new.replace(self.path / _FILE)

    def _refuse(self, why: str) -> Any:
        msg = f"{self._what} {why}"
        raise JobFileError(msg)


def _differences(saved: Mapping[str, Any], now: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """Yield the differences in words; keys that only `saved` has are ignored."""
    for name, value in now.items():
        old = saved.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            yield from _differences(old, value, f"{name} of ")
        elif old != value:
            texts = (json.dumps(each, ensure_ascii=False) for each in (old, value))
            yield "{}{} was {}, now {}".format(of, name, *texts)
