"""Whether the logs of a checkpoint hang together, before Spark goes on from their last entries.

If the plan of the micro-batch at work is missing, Spark skips its files: results are lost without
an error. If another plan is missing, Spark reports another query, and if a note of a file source
is, that some batch does not exist. A note that was cut off may name no file, which is then read
again. Hadoop keeps checksums beside local files, but Spark does not check them when it reads logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from slackwater.errors import SnapshotError

_LOGS = ("offsets/[0-9]*", "commits/[0-9]*", "sources/*/[0-9]*")
_PIECE = 512  # bytes that have a checksum


def check_checkpoint(path: str | Path) -> None:
    """Raise a `SnapshotError` if an entry of a checkpoint's logs is gone or damaged.

    Call it before a query is started; ``slackwater run`` does. Spark may skip such an entry, and
    lose or double results. Only local file systems are checked; state is checked when it is read.

    Parameters
    ----------
    path
        The directory of ``checkpointLocation``; it need not be there yet.

    Raises
    ------
    SnapshotError
        With the entry that is missing or damaged.

    Examples
    --------
    >>> check_checkpoint("/a/directory/that/is/not/there/yet")
    """
    path = Path(path)
    plan = max(_entries(path / "offsets"), default=-1)
    done = max(_entries(path / "commits"), default=-1)
    # micro-batch n makes version n + 1 of the state
    made = max((int(f.name.partition(".")[0]) for f in _versions(path)), default=0) - 1
    if plan < max(done, made):
        there = f"commits/{done}" if done > plan else f"version {made + 1} of the state"
        _refuse(path, f"offsets/{max(done, made)} is missing, but {there} is there")
    for source, noted in enumerate(_noted(path / "offsets" / str(plan))):
        if max(_entries(path / "sources" / str(source)), default=-1) < noted:
            entry = f"sources/{source}/{noted}"
            _refuse(path, f"{entry} is missing, but offsets/{plan} goes by it")
    for file in (file for log in _LOGS for file in path.glob(log)):
        if not _is_whole(file):
            _refuse(path, f"{file.relative_to(path)} is not what was written")


def _is_whole(file: Path) -> bool:
    """Whether a file has an entry behind its version, and the checksums that are kept of it."""
    data, kept = file.read_bytes(), file.with_name(f".{file.name}.crc")
    if b"\n" not in data.strip():
        return False
    return not kept.exists() or kept.read_bytes() == _checksums(data)


def _checksums(data: bytes) -> bytes:
    """What Hadoop keeps of a file: a CRC of each piece."""
    pieces = (data[i : i + _PIECE] for i in range(0, len(data), _PIECE))
    return b"crc\0" + b"".join(n.to_bytes(4, "big") for n in (_PIECE, *map(crc32, pieces)))


def _entries(log: Path) -> Iterator[int]:
    """The numbers of a log's entries, some of which may have been compacted."""
    names = (file.name.removesuffix(".compact") for file in log.glob("[0-9]*"))
    return (int(name) for name in names if name.isdigit())


def _versions(path: Path) -> Iterator[Path]:
    """What there is of the state, in all its operators and partitions."""
    return path.glob("state/[0-9]*/[0-9]*/[0-9]*.changelog")


def _noted(plan: Path) -> list[int]:
    """How far the plan goes in the notes of each source; -1: there are none."""
    try:
        _, _, *offsets = plan.read_text(encoding="utf-8").splitlines()
        notes = [json.loads(offset) if offset != "-" else None for offset in offsets]
    except (OSError, ValueError):  # Spark reports it
        return []
    return [offset.get("logOffset", -1) if isinstance(offset, dict) else -1 for offset in notes]


def _refuse(path: Path, why: str) -> None:
    msg = (
        f"the checkpoint {path} is damaged: {why}. Restore the directory from a copy, or begin "
        "anew with an empty one"
    )
    raise SnapshotError(msg)
