"""How much memory processes use; from /proc, so Linux only."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(process: int | str = "self") -> int:
    """Bytes of a process in memory; 0 without /proc.

    >>> resident() > 10**6 or not Path("/proc/self").exists()
    True
    >>> resident(-1)
    0
    """
    try:
        return int((_PROC / str(process) / "statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def family(process: int) -> list[int]:
    """A process, its children, and theirs."""
    parents: dict[int, list[int]] = {}
    for status in _PROC.glob("[0-9]*/stat"):
        try:
            after_name = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents.setdefault(int(after_name[1]), []).append(int(status.parent.name))
    found, new = [process], parents.get(process, [])
    while new:
        found += new
        new = [child for parent in new for child in parents.get(parent, [])]
    return found


def resident_family(process: int) -> int:
    """Bytes of all of them; pages that they share are counted for each."""
    return sum(resident(member) for member in family(process))
